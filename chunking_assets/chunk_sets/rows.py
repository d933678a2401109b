"""What a document's chunks are called and how they are stored.

An id is made of content and not of position, so an edit elsewhere in the document leaves it, and
with it every vector, score and citation that names it.
"""

from collections import Counter
from collections.abc import Sequence

import polars as pl

from chunking_assets.chunk_sets.chunker import Chunk
from chunking_assets.keys import digest, text_sha

CHUNKS_SCHEMA = pl.Schema(
    {
        "chunker_version": pl.String(),
        "chunk_id": pl.String(),
        "doc_id": pl.String(),
        "ordinal": pl.Int64(),
        "start": pl.Int64(),
        "end": pl.Int64(),
        "text": pl.String(),
        "prefix": pl.String(),
        "n_tokens": pl.Int64(),
        "n_chars": pl.Int64(),
        "heading_path": pl.List(pl.String),
        "over_budget": pl.Boolean(),
        "text_sha": pl.String(),
        "chunkset_key": pl.String(),
    }
)
"""One row a chunk. `n_chars` counts `text`; `n_tokens` and `text_sha` are of `prefix + text`."""


def chunkset_key(text_sha: str, elements_sha: str, chunker_digest: str) -> str:
    """What the chunks of one document are made from: equal means they need not be made again."""
    return digest("chunk_set", text_sha, elements_sha, chunker_digest)


def chunk_ids(version_name: str, doc_id: str, chunks: Sequence[Chunk]) -> list[str]:
    """An id for each chunk, unique within and across documents and chunker versions.

    Equal chunks of one document are told apart by their order of occurrence.
    """
    return _ids(version_name, doc_id, [text_sha(chunk.prefix + chunk.text) for chunk in chunks])


def _ids(version_name: str, doc_id: str, shas: Sequence[str]) -> list[str]:
    seen: Counter[str] = Counter()
    ids = []
    for sha in shas:
        ids.append(digest("chunk", version_name, doc_id, sha, seen[sha]))
        seen[sha] += 1
    return ids


def chunk_rows(
    version_name: str, doc_id: str, chunkset_key: str, chunks: Sequence[Chunk]
) -> pl.DataFrame:
    """The rows of one document in the `chunks` table, in the order of the text."""
    shas = [text_sha(chunk.prefix + chunk.text) for chunk in chunks]
    return pl.DataFrame(
        {
            "chunker_version": [version_name] * len(chunks),
            "chunk_id": _ids(version_name, doc_id, shas),
            "doc_id": [doc_id] * len(chunks),
            "ordinal": range(len(chunks)),
            "start": [chunk.start for chunk in chunks],
            "end": [chunk.end for chunk in chunks],
            "text": [chunk.text for chunk in chunks],
            "prefix": [chunk.prefix for chunk in chunks],
            "n_tokens": [chunk.n_tokens for chunk in chunks],
            "n_chars": [len(chunk.text) for chunk in chunks],
            "heading_path": [list(chunk.heading_path) for chunk in chunks],
            "over_budget": [chunk.over_budget for chunk in chunks],
            "text_sha": shas,
            "chunkset_key": [chunkset_key] * len(chunks),
        },
        schema=CHUNKS_SCHEMA,
    )
