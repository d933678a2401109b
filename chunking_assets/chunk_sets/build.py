"""Bring the chunk sets of one shard up to date with its documents.

A document is chunked again only when its text, its elements or the chunker's declaration changed.
All versions that need a document share one tokenization of it.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import polars as pl

from chunking_assets.chunk_sets.rows import CHUNKS_SCHEMA, chunk_rows, chunkset_key
from chunking_assets.chunk_sets.spans import Document
from chunking_assets.chunk_sets.version import ChunkerVersion
from chunking_assets.embedding_models.model import Progress, Tokenizer
from chunking_assets.errors import CorpusError
from chunking_assets.parsed_elements.build import DOCUMENTS, ELEMENTS
from chunking_assets.parsed_elements.parse import elements_of, elements_sha
from chunking_assets.raw_documents.changes import ChangeSet, compare
from chunking_assets.workspace import Workspace

CHUNKS = "chunks"


@dataclass(frozen=True)
class ChunkSetUpdate:
    """What one update of a cell did; `version` names the content, for the stages below."""

    chunker_version: str
    shard: str
    changes: ChangeSet
    chunks: int
    chunks_redone: int
    content_version: str


def cell(chunker_version: str, shard: str) -> str:
    """The partition of a chunk set: `recursive-400@1|help-center`."""
    return f"{chunker_version}|{shard}"


def update_chunk_sets(
    workspace: Workspace,
    shard: str,
    versions: Sequence[ChunkerVersion],
    tokenizer: Callable[[str], Tokenizer],
    progress: Progress | None = None,
) -> list[ChunkSetUpdate]:
    """Chunk what is new or changed in one shard, for each of these versions.

    `tokenizer` loads the tokenizer of an embedding model by name; it is called only when some
    document must be chunked.

    Raises:
        CorpusError: the shard was never parsed, or its elements do not belong to its documents.
    """
    with workspace.locks(f"{CHUNKS} {cell(v.name, shard)}" for v in versions):
        return _update(workspace, shard, versions, tokenizer, progress)


def _update(
    workspace: Workspace,
    shard: str,
    versions: Sequence[ChunkerVersion],
    tokenizer: Callable[[str], Tokenizer],
    progress: Progress | None,
) -> list[ChunkSetUpdate]:
    documents = workspace.table(DOCUMENTS).read(
        shard, ["doc_id", "status", "text_sha", "elements_sha"]
    )
    if documents is None:
        raise CorpusError(
            f"shard {shard} has no parsed documents yet. Build parsed_elements first."
        )
    ready = documents.filter(pl.col("status") == "ok")
    wanted = {
        version.name: {
            doc_id: chunkset_key(text, elements, version.digest)
            for doc_id, _, text, elements in ready.iter_rows()
        }
        for version in versions
    }
    manifests = {v.name: workspace.table(CHUNKS).manifest(cell(v.name, shard)) for v in versions}
    changes = {
        name: compare(manifest.keys if manifest else {}, wanted[name])
        for name, manifest in manifests.items()
    }
    redone = _chunk(workspace, shard, versions, changes, wanted, tokenizer, progress)
    return [
        _write(workspace, shard, v.name, changes[v.name], wanted[v.name], redone[v.name])
        for v in versions
    ]


def _chunk(
    workspace: Workspace,
    shard: str,
    versions: Sequence[ChunkerVersion],
    changes: dict[str, ChangeSet],
    wanted: dict[str, dict[str, str]],
    tokenizer: Callable[[str], Tokenizer],
    progress: Progress | None,
) -> dict[str, list[pl.DataFrame]]:
    """The new rows of each version, one frame a document."""
    redone: dict[str, list[pl.DataFrame]] = {v.name: [] for v in versions}
    redo = sorted({doc_id for change in changes.values() for doc_id in change.redo})
    if not redo:
        return redone
    texts = workspace.table(DOCUMENTS).read(shard, ["doc_id", "text", "elements_sha"])
    elements = workspace.table(ELEMENTS).read(shard)
    assert texts is not None
    if elements is None:
        raise CorpusError(f"shard {shard} has no elements. Build parsed_elements again.")
    by_document = elements.partition_by("doc_id", as_dict=True)
    for number, (doc_id, text, sha) in enumerate(
        texts.filter(pl.col("doc_id").is_in(redo)).sort("doc_id").iter_rows(), 1
    ):
        parsed = elements_of(by_document.get((doc_id,), elements.clear()))
        if elements_sha(parsed) != sha:
            raise CorpusError(
                f"{doc_id}: its elements do not belong to its text (an update was interrupted). "
                f"Build parsed_elements of shard {shard} again."
            )
        shared: dict[str, Document] = {}
        for version in versions:
            if doc_id in changes[version.name].redo:
                if version.tokenizer_model not in shared:
                    shared[version.tokenizer_model] = Document(
                        text, parsed, tokenizer(version.tokenizer_model)
                    )
                chunks = list(version.chunker.chunks(shared[version.tokenizer_model]))
                redone[version.name].append(
                    chunk_rows(version.name, doc_id, wanted[version.name][doc_id], chunks)
                )
        if progress:
            progress(number, len(redo))
    return redone


def _write(
    workspace: Workspace,
    shard: str,
    name: str,
    changes: ChangeSet,
    keys: dict[str, str],
    redone: Iterable[pl.DataFrame],
) -> ChunkSetUpdate:
    table, partition = workspace.table(CHUNKS), cell(name, shard)
    manifest = table.manifest(partition)
    new = pl.concat([CHUNKS_SCHEMA.to_frame(), *redone])
    if changes or manifest is None:
        old = table.read(partition)
        rows = (
            new
            if old is None
            else pl.concat([old.filter(pl.col("doc_id").is_in(changes.unchanged)), new])
        )
        manifest = table.replace(rows.sort("doc_id", "ordinal"), partition, keys=keys)
    return ChunkSetUpdate(
        chunker_version=name,
        shard=shard,
        changes=changes,
        chunks=manifest.rows,
        chunks_redone=new.height,
        content_version=manifest.version,
    )
