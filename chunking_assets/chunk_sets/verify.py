"""Whether a stored chunk set keeps its promises, found out from the stored rows alone."""

from dataclasses import dataclass

import polars as pl

from chunking_assets.chunk_sets.batches import batches
from chunking_assets.chunk_sets.build import CHUNKS, EXCLUDED_SPANS, cell
from chunking_assets.parsed_elements.build import DOCUMENTS, ELEMENTS
from chunking_assets.parsed_elements.parse import READABLE
from chunking_assets.workspace import Snapshot, Table, Workspace, one_of

BATCH_CHARS = 4_000_000
"""Characters of canonical text looked at together."""


@dataclass(frozen=True)
class ChunkSetHealth:
    """What was found in one cell; the lists name chunk_ids or doc_ids.

    `inexact`: text is not the canonical slice; `uncovered`: documents with characters in no chunk
    and no excluded span;
    `over_budget`: single graphemes longer than the budget; `duplicates`: repeated chunk_ids.
    """

    chunks: int
    inexact: tuple[str, ...]
    uncovered: tuple[str, ...]
    over_budget: tuple[str, ...]
    duplicates: tuple[str, ...]


def verify_chunk_set(workspace: Workspace, chunker_version: str, shard: str) -> ChunkSetHealth:
    """Compare every chunk of a cell with the canonical text it was cut from."""
    partition = cell(chunker_version, shard)
    documents = _stored(workspace.table(DOCUMENTS), shard)
    chunks = _stored(workspace.table(CHUNKS), partition)
    excluded = _stored(workspace.table(EXCLUDED_SPANS), partition)
    elements = _stored(workspace.table(ELEMENTS), shard)
    if documents is None or chunks is None:
        return ChunkSetHealth(0, (), (), (), ())
    known = documents.read(["doc_id", "n_chars"], pl.col("status").is_in(READABLE))
    ids = chunks.read(["chunk_id", "doc_id", "over_budget"])
    inexact = ids.filter(~pl.col("doc_id").is_in(known["doc_id"].implode()))["chunk_id"].to_list()
    uncovered: list[str] = []
    for some in batches(dict(known.iter_rows()), BATCH_CHARS):
        where = one_of("doc_id", some)
        texts = dict(documents.read(["doc_id", "text"], where).iter_rows())
        cut = chunks.read(["chunk_id", "doc_id", "start", "end", "text"], where)
        inexact += [
            chunk_id
            for chunk_id, doc_id, start, end, text in cut.iter_rows()
            if texts[doc_id][start:end] != text
        ]
        covered = [cut.select("doc_id", "start", "end")]
        if elements is not None:
            furniture = where & (pl.col("kind") == "furniture")
            covered.append(elements.read(["doc_id", "start", "end"], furniture))
        if excluded is not None:
            covered.append(excluded.read(["doc_id", "start", "end"], where))
        spans: dict[str, list[tuple[int, int]]] = {}
        for doc_id, start, end in pl.concat(covered).sort("start").iter_rows():
            spans.setdefault(doc_id, []).append((start, end))
        uncovered += [d for d, text in texts.items() if _loses_text(text, spans.get(d, []))]
    return ChunkSetHealth(
        chunks=ids.height,
        inexact=tuple(inexact),
        uncovered=tuple(uncovered),
        over_budget=tuple(ids.filter("over_budget")["chunk_id"]),
        duplicates=tuple(ids.filter(pl.col("chunk_id").is_duplicated())["chunk_id"].unique()),
    )


def _stored(table: Table, partition: str) -> Snapshot | None:
    manifest = table.manifest(partition)
    return None if manifest is None else table.snapshot(manifest)


def _loses_text(text: str, spans: list[tuple[int, int]]) -> bool:
    position = 0
    for start, end in spans:
        if text[position:start].strip():
            return True
        position = max(position, end)
    return bool(text[position:].strip())
