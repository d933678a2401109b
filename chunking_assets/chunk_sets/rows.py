"""What a document's chunks are called and how they are stored.

An id is made of content and not of position, so an edit elsewhere in the document leaves it, and
with it every vector, score and citation that names it.
"""

from collections import Counter
from collections.abc import Iterable, Sequence

import polars as pl

from chunking_assets.chunk_sets.chunker import Chunk
from chunking_assets.chunk_sets.cleaning import Excluded
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
        "cleaned": pl.String(),
        "n_tokens": pl.Int64(),
        "n_chars": pl.Int64(),
        "heading_path": pl.List(pl.String),
        "level": pl.Int64(),
        "parent_id": pl.String(),
        "searched": pl.Boolean(),
        "budget": pl.Int64(),
        "over_budget": pl.Boolean(),
        "remark": pl.String(),
        "text_sha": pl.String(),
        "chunkset_key": pl.String(),
    }
)
"""One row a chunk. `n_chars` counts `text`; `n_tokens` and `text_sha` are of what is embedded:
`prefix`, then `cleaned`, or `text` where that is null."""

EXCLUDED_SPANS_SCHEMA = pl.Schema(
    {
        "chunker_version": pl.String(),
        "doc_id": pl.String(),
        "start": pl.Int64(),
        "end": pl.Int64(),
        "reason": pl.String(),
    }
)
"""What cleaning leaves out of what is embedded, one row a span of the canonical text."""

EMBED_TEXT = pl.col("prefix") + pl.coalesce("cleaned", "text")


def chunkset_key(
    text_sha: str, elements_sha: str, media_type: str, language: str | None, *made_by: str
) -> str:
    """What the chunks of one document are made from: equal means they need not be made again.

    `made_by` is the chunker's digest, and the name of what cleaning leaves out of the document
    because others have it too.
    """
    return digest("chunk_set", text_sha, elements_sha, media_type, language, *made_by)


def chunk_ids(version_name: str, doc_id: str, chunks: Sequence[Chunk]) -> list[str]:
    """An id for each chunk, unique within and across documents and chunker versions.

    Equal chunks of one document are told apart by their order of occurrence.
    """
    seen: Counter[str] = Counter()
    ids = []
    for chunk in chunks:
        sha = text_sha(chunk.prefix + chunk.text)
        ids.append(digest("chunk", version_name, doc_id, sha, seen[sha]))
        seen[sha] += 1
    return ids


def chunk_rows(
    version_name: str, documents: Iterable[tuple[str, str, Sequence[Chunk]]]
) -> pl.DataFrame:
    """Rows of the `chunks` table, in the order of the documents and of their text.

    Each document is its doc_id, the key of its chunks and the chunks. One frame holds many
    documents, because making one costs more than chunking a page.
    """
    of_documents = [
        (doc_id, key, chunks, chunk_ids(version_name, doc_id, chunks))
        for doc_id, key, chunks in documents
    ]
    every = [chunk for _, _, chunks, _ in of_documents for chunk in chunks]
    return pl.DataFrame(
        {
            "chunker_version": [version_name] * len(every),
            "chunk_id": [chunk_id for _, _, _, ids in of_documents for chunk_id in ids],
            "doc_id": [doc_id for doc_id, _, chunks, _ in of_documents for _ in chunks],
            "ordinal": [n for _, _, chunks, _ in of_documents for n in range(len(chunks))],
            "start": [chunk.start for chunk in every],
            "end": [chunk.end for chunk in every],
            "text": [chunk.text for chunk in every],
            "prefix": [chunk.prefix for chunk in every],
            "cleaned": [chunk.cleaned for chunk in every],
            "n_tokens": [chunk.n_tokens for chunk in every],
            "n_chars": [len(chunk.text) for chunk in every],
            "heading_path": [list(chunk.heading_path) for chunk in every],
            "level": [chunk.level for chunk in every],
            "parent_id": [
                None if chunk.parent is None else ids[chunk.parent]
                for _, _, chunks, ids in of_documents
                for chunk in chunks
            ],
            "searched": [chunk.searched for chunk in every],
            "budget": [chunk.budget for chunk in every],
            "over_budget": [chunk.over_budget for chunk in every],
            "remark": [chunk.remark for chunk in every],
            "text_sha": [text_sha(chunk.embed_text) for chunk in every],
            "chunkset_key": [key for _, key, chunks, _ in of_documents for _ in chunks],
        },
        schema=CHUNKS_SCHEMA,
    )


def excluded_rows(
    version_name: str, documents: Iterable[tuple[str, Sequence[Excluded]]]
) -> pl.DataFrame:
    """Rows of the `excluded_spans` table; each document is its doc_id and its spans."""
    rows = [
        (version_name, doc_id, span.start, span.end, span.reason)
        for doc_id, spans in documents
        for span in spans
    ]
    return pl.DataFrame(rows, schema=EXCLUDED_SPANS_SCHEMA, orient="row")
