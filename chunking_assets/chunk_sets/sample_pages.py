"""Pages of a few documents of a shard, with the chunks stored for them under every version.

Made from the stored rows, so they show what is indexed and not what today's code would do.
"""

from collections.abc import Sequence
from pathlib import Path

import polars as pl

from chunking_assets.chunk_sets.build import CHUNKS, EXCLUDED_SPANS, cell
from chunking_assets.chunk_sets.chunker import Chunk
from chunking_assets.chunk_sets.chunking import for_language
from chunking_assets.chunk_sets.page import MOST_CHARS, Bands, chunks_page
from chunking_assets.chunk_sets.version import ChunkerVersion
from chunking_assets.parsed_elements.build import DOCUMENTS
from chunking_assets.parsed_elements.parse import READABLE
from chunking_assets.workspace import Workspace, encode, one_of, write_atomically

SAMPLES = 3


def write_sample_pages(
    workspace: Workspace, shard: str, versions: Sequence[ChunkerVersion]
) -> dict[str, Path]:
    """A page for the longest, the middle and the shortest document of a shard, by doc_id.

    Only versions with a stored chunk set are shown; a document longer than a page is no sample.
    """
    manifest = workspace.table(DOCUMENTS).manifest(shard)
    if manifest is None:
        return {}
    documents = workspace.table(DOCUMENTS).snapshot(manifest)
    fitting = pl.col("status").is_in(READABLE) & (pl.col("n_chars") <= MOST_CHARS)
    known = documents.read(["doc_id", "n_chars"], fitting)
    ordered = known.sort("n_chars", "doc_id", descending=[True, False])["doc_id"]
    if ordered.is_empty():
        return {}
    chosen = [ordered[n] for n in sorted({0, len(ordered) // 2, len(ordered) - 1})]
    sample = documents.read(["doc_id", "text", "language"], one_of("doc_id", chosen))
    sample = sample.sort(pl.col("doc_id").replace_strict(chosen, range(len(chosen))))
    stored = {v.name: _stored(workspace, CHUNKS, v, shard, chosen) for v in versions}
    left_out = {v.name: _stored(workspace, EXCLUDED_SPANS, v, shard, chosen) for v in versions}
    pages = {}
    for doc_id, text, language in sample.select("doc_id", "text", "language").iter_rows():
        bands = [
            Bands(
                version.name,
                for_language(version.chunker, language).max_tokens,
                _chunks(rows.filter(doc_id=doc_id)),
                _spans(left_out[version.name], doc_id),
            )
            for version in versions
            if (rows := stored[version.name]) is not None
        ]
        file = workspace.root / "pages" / encode(shard) / f"{encode(doc_id)}.html"
        write_atomically(file, chunks_page(doc_id, text, bands).encode())
        pages[doc_id] = file
    return pages


def _stored(
    workspace: Workspace, table: str, version: ChunkerVersion, shard: str, doc_ids: Sequence[str]
) -> pl.DataFrame | None:
    stored = workspace.table(table)
    manifest = stored.manifest(cell(version.name, shard))
    if manifest is None:
        return None
    return stored.snapshot(manifest).read(where=one_of("doc_id", doc_ids))


def _chunks(rows: pl.DataFrame) -> list[Chunk]:
    ordinals = dict(zip(rows["chunk_id"], rows["ordinal"], strict=True))
    return [
        Chunk(
            start=row["start"],
            end=row["end"],
            text=row["text"],
            prefix=row["prefix"],
            n_tokens=row["n_tokens"],
            heading_path=tuple(row["heading_path"]),
            over_budget=row["over_budget"],
            budget=row["budget"],
            cleaned=row["cleaned"],
            level=row["level"],
            parent=ordinals.get(row["parent_id"]),
            searched=row["searched"],
            remark=row["remark"],
        )
        for row in rows.sort("ordinal").iter_rows(named=True)
    ]


def _spans(rows: pl.DataFrame | None, doc_id: str) -> list[tuple[int, int]]:
    if rows is None:
        return []
    return list(rows.filter(doc_id=doc_id).sort("start").select("start", "end").iter_rows())
