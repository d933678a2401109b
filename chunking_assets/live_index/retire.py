"""Forget shards that corpus.yaml no longer has: a collection removed, or cut anew.

A shard that is not declared gets no listing, so no absence would ever delete it; it is dropped
here, from the served tables first, after the shards that are declared are in place.
"""

from collections.abc import Collection as Shards

from chunking_assets.chunk_embeddings.build import EMBEDDED_CHUNKS
from chunking_assets.chunk_embeddings.lance_index import LanceIndex
from chunking_assets.chunk_sets.build import CHUNKS, EXCLUDED_SPANS
from chunking_assets.parsed_elements.build import DOCUMENTS, ELEMENTS
from chunking_assets.workspace import Workspace


def undeclared_shards(workspace: Workspace, declared: Shards[str]) -> list[str]:
    """Shards that some table still holds and the configuration no longer names."""
    partitions = [*workspace.table(DOCUMENTS).partitions(), *workspace.table(CHUNKS).partitions()]
    partitions += workspace.table(EMBEDDED_CHUNKS).partitions()
    return sorted({_shard(p) for p in partitions} - {*declared})


def retire_shards(workspace: Workspace, shards: Shards[str]) -> None:
    """Drop every row of these shards; running again after a crash finishes the work."""
    embedded = workspace.table(EMBEDDED_CHUNKS)
    for partition in embedded.partitions():
        if _shard(partition) in shards:
            _drop_rows(workspace, *partition.split("|"))
            embedded.remove(partition)
    for table in (workspace.table(EXCLUDED_SPANS), workspace.table(CHUNKS)):
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


def _shard(partition: str) -> str:
    return partition.rpartition("|")[2]


def _drop_rows(workspace: Workspace, index_version: str, shard: str) -> None:
    index = LanceIndex(workspace, index_version)
    if index.exists():
        index.delete_shard(shard)
        index.publish()
