"""Whether a stored chunk set keeps its promises, found out from the stored rows alone."""

from dataclasses import dataclass

import polars as pl

from chunking_assets.chunk_sets.build import CHUNKS, cell
from chunking_assets.parsed_elements.build import DOCUMENTS
from chunking_assets.workspace import Workspace


@dataclass(frozen=True)
class ChunkSetHealth:
    """What was found in one cell; the lists name chunk_ids or doc_ids.

    `inexact`: text is not the canonical slice; `uncovered`: documents with characters in no chunk;
    `over_budget`: single graphemes longer than the budget; `duplicates`: repeated chunk_ids.
    """

    chunks: int
    inexact: tuple[str, ...]
    uncovered: tuple[str, ...]
    over_budget: tuple[str, ...]
    duplicates: tuple[str, ...]


def verify_chunk_set(workspace: Workspace, chunker_version: str, shard: str) -> ChunkSetHealth:
    """Compare every chunk of a cell with the canonical text it was cut from."""
    documents = workspace.table(DOCUMENTS).read(shard, ["doc_id", "status", "text"])
    chunks = workspace.table(CHUNKS).read(cell(chunker_version, shard))
    if documents is None or chunks is None:
        return ChunkSetHealth(0, (), (), (), ())
    texts = dict(documents.filter(pl.col("status") == "ok").select("doc_id", "text").iter_rows())
    inexact = [
        chunk_id
        for chunk_id, doc_id, start, end, text in chunks.select(
            "chunk_id", "doc_id", "start", "end", "text"
        ).iter_rows()
        if texts.get(doc_id, "")[start:end] != text
    ]
    spans = {
        doc_id: list(zip(starts, ends, strict=True))
        for doc_id, starts, ends in chunks.sort("doc_id", "start")
        .group_by("doc_id", maintain_order=True)
        .agg("start", "end")
        .iter_rows()
    }
    return ChunkSetHealth(
        chunks=chunks.height,
        inexact=tuple(inexact),
        uncovered=tuple(d for d, text in texts.items() if _loses_text(text, spans.get(d, []))),
        over_budget=tuple(chunks.filter("over_budget")["chunk_id"]),
        duplicates=tuple(chunks.filter(pl.col("chunk_id").is_duplicated())["chunk_id"].unique()),
    )


def _loses_text(text: str, spans: list[tuple[int, int]]) -> bool:
    position = 0
    for start, end in spans:
        if text[position:start].strip():
            return True
        position = max(position, end)
    return bool(text[position:].strip())
