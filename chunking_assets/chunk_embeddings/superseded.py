"""Chunks that are no more: which document they were of, when they went, and which revision came.

A chunk's row is dropped when its document changes, and citations that name it are not. One row a
chunk is kept, so that whoever holds an old citation learns what became of it.
"""

import uuid
from collections.abc import Mapping
from datetime import UTC, datetime

import polars as pl

from chunking_assets.parsed_elements.build import DOCUMENTS
from chunking_assets.workspace import Workspace, one_of

SUPERSEDED_CHUNKS = "superseded_chunks"

SUPERSEDED_SCHEMA = pl.Schema(
    {
        "index_version": pl.String(),
        "chunk_id": pl.String(),
        "doc_id": pl.String(),
        "doc_rev": pl.String(),
        "at": pl.Datetime("us", "UTC"),
    }
)
"""`doc_rev` is the revision that came; null where the document is gone."""


def record_superseded(
    workspace: Workspace, index_version: str, shard: str, partition: str, chunks: pl.DataFrame
) -> None:
    """Remember chunks (chunk_id, doc_id) that an index no longer holds."""
    if chunks.is_empty():
        return
    revisions = _revisions(workspace, shard, chunks)
    rows = chunks.select(
        pl.lit(index_version).alias("index_version"),
        "chunk_id",
        "doc_id",
        pl.col("doc_id")
        .replace_strict(revisions, default=None, return_dtype=pl.String)
        .alias("doc_rev"),
        pl.lit(datetime.now(UTC)).cast(SUPERSEDED_SCHEMA["at"]).alias("at"),
    )
    table = workspace.table(SUPERSEDED_CHUNKS)
    if (before := table.read(partition)) is not None:
        # A run killed before its ledger was written remembers the same chunks again.
        rows = pl.concat([before.join(rows, "chunk_id", how="anti"), rows])
    table.replace(rows, partition, version=uuid.uuid4().hex)


def forget_superseded(workspace: Workspace, before: datetime) -> int:
    """Drop what went before a moment; how many rows."""
    table, dropped = workspace.table(SUPERSEDED_CHUNKS), 0
    for partition in table.partitions():
        rows = table.read(partition)
        assert rows is not None
        kept = rows.filter(pl.col("at") >= before)
        if kept.height < rows.height:
            dropped += rows.height - kept.height
            table.replace(kept, partition, keys={"before": str(before)})
    return dropped


def _revisions(workspace: Workspace, shard: str, chunks: pl.DataFrame) -> Mapping[str, str]:
    table = workspace.table(DOCUMENTS)
    manifest = table.manifest(shard)
    if manifest is None:
        return {}
    documents = table.snapshot(manifest)
    found = documents.read(["doc_id", "doc_rev"], one_of("doc_id", {*chunks["doc_id"]}))
    return dict(found.iter_rows())
