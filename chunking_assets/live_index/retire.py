"""Forget what corpus.yaml no longer has: shards of a collection removed or cut anew, and versions.

A shard that is not declared gets no listing, so no absence would ever delete it; it is dropped
here, from the served tables first, after the shards that are declared are in place. A version is
dropped when a person says so: its scores stay, and so does the record of what its name means.
"""

from collections.abc import Collection, Iterable

from chunking_assets.chunk_embeddings.build import EMBEDDED_CHUNKS
from chunking_assets.chunk_embeddings.lance_index import LanceIndex, stored_indexes, table_name
from chunking_assets.chunk_embeddings.superseded import SUPERSEDED_CHUNKS
from chunking_assets.chunk_embeddings.word_frequencies import WORDS
from chunking_assets.chunk_sets.build import CHUNKS, EXCLUDED_SPANS
from chunking_assets.errors import CorpusError
from chunking_assets.live_index.promotion import live
from chunking_assets.parsed_elements.build import DOCUMENTS, ELEMENTS
from chunking_assets.workspace import CACHES, Workspace

PUBLISHED = "eval_tables"
"""The asset whose stamp goes too, so that analysts no longer see what is dropped."""


def undeclared_shards(workspace: Workspace, declared: Collection[str]) -> list[str]:
    """Shards that some table still holds and the configuration no longer names."""
    partitions = [*workspace.table(DOCUMENTS).partitions(), *workspace.table(CHUNKS).partitions()]
    partitions += workspace.table(EMBEDDED_CHUNKS).partitions()
    return sorted({_shard(p) for p in partitions} - {*declared})


def retire_shards(workspace: Workspace, shards: Collection[str]) -> None:
    """Drop every row of these shards; running again after a crash finishes the work."""
    embedded = workspace.table(EMBEDDED_CHUNKS)
    for partition in embedded.partitions():
        if _shard(partition) in shards:
            _drop_rows(workspace, *partition.split("|"))
            embedded.remove(partition)
    for name in (SUPERSEDED_CHUNKS, EXCLUDED_SPANS, CHUNKS):
        table = workspace.table(name)
        for partition in table.partitions():
            if _shard(partition) in shards:
                table.remove(partition)
                for asset in ("chunk_sets", "chunk_embeddings"):
                    workspace.stamps.remove(asset, partition)
    for shard in shards:
        for name in (ELEMENTS, DOCUMENTS):
            workspace.table(name).remove(shard)
        for asset in ("raw_documents", "parsed_elements"):
            workspace.stamps.remove(asset, shard)
    if shards:
        workspace.stamps.remove(PUBLISHED)


def stored_versions(workspace: Workspace) -> list[str]:
    """The chunker versions of which something is stored, beside scores."""
    names = {index.partition("+")[0] for index in stored_indexes(workspace)}
    for table in (EMBEDDED_CHUNKS, CHUNKS, EXCLUDED_SPANS):
        partitions = workspace.table(table).partitions()
        names |= {p.partition("|")[0].partition("+")[0] for p in partitions}
    return sorted(names)


def retire_version(
    workspace: Workspace,
    version: str,
    declared: Collection[str],
    retained: Collection[str] = (),
) -> list[str]:
    """Drop the tables, chunks and stamps of a chunker version, or the one table of an index
    version; returns what was dropped. Running again after a crash finishes the work.

    Scores stay, and the record of the declaration: under this name nothing else may be declared.
    `declared` are the chunker and index versions of corpus.yaml; `retained` index versions that
    were live and are kept for a rollback.

    Raises:
        CorpusError: the version is live, declared, retained, or never was.
    """
    current = live(workspace)
    if current is not None and _belongs(current.index_version, version):
        raise CorpusError(
            f"{version} is live ({current.strategy}). Promote another strategy before: "
            "make promote STRATEGY=<name>"
        )
    if version in declared:
        raise CorpusError(
            f"{version} is still declared. Take it and its strategies out of corpus.yaml before."
        )
    if kept := [index for index in retained if _belongs(index, version)]:
        raise CorpusError(
            f"{version} was live and is kept for a rollback ({', '.join(kept)}). Lower "
            "promotion.retain in corpus.yaml before, or wait for other promotions."
        )
    stored = [*stored_versions(workspace), *stored_indexes(workspace)]
    if version not in stored and not _is_recorded(workspace, version):
        raise CorpusError(
            f"no version is called {version!r}. Stored and not declared: "
            f"{', '.join(v for v in stored if v not in declared) or 'none'}."
        )
    return sorted(_drop(workspace, version))


def _drop(workspace: Workspace, version: str) -> Iterable[str]:
    """Stamps first: nothing may vouch for what is half gone."""
    for asset in ("chunk_sets", "chunk_embeddings"):
        for partition in workspace.stamps.partitions(asset):
            if partition.startswith(f"{version}|"):
                workspace.stamps.remove(asset, partition)
    for index in stored_indexes(workspace):
        if _belongs(index, version):
            workspace.store.delete_below(f"{CACHES}/{WORDS}/{table_name(index)}")
            LanceIndex(workspace, index).drop()
            yield f"index {index}"
    for name in (EMBEDDED_CHUNKS, SUPERSEDED_CHUNKS, CHUNKS, EXCLUDED_SPANS):
        table = workspace.table(name)
        for partition in table.partitions():
            if _belongs(partition.partition("|")[0], version):
                table.remove(partition)
                yield f"{name} of {partition}"
    workspace.stamps.remove(PUBLISHED)


def _belongs(name: str, version: str) -> bool:
    """Whether a chunker or index version is this version or one of its indexes."""
    return name == version or name.startswith(f"{version}+")


def _is_recorded(workspace: Workspace, version: str) -> bool:
    return workspace.declaration("chunkers", version.partition("+")[0]) is not None


def _shard(partition: str) -> str:
    return partition.rpartition("|")[2]


def _drop_rows(workspace: Workspace, index_version: str, shard: str) -> None:
    index = LanceIndex(workspace, index_version)
    if index.is_stored():
        with index.writing():
            index.delete_shard(shard)
            index.publish()
