"""What a search finds (hits: chunks with scores) and what a reader is given (passages)."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Hit:
    """A chunk found for a question.

    `score` orders hits within one result and means something only there. Those of each step are
    kept: `vector_score` is the cosine with the question, `bm25_score` the full-text score,
    `fused_score` both together, `rerank_score` what the reranker said; None where a step was not
    taken. `n_tokens` are the tokens the index's model reads for the chunk, prefix included. `level`
    is 0 for the finest size of an index with several; `parent_id` names the chunk around this one;
    `page` is the printed page it begins on, where its format has pages. `dropped` says why a
    candidate was not handed on, None of one that was.
    """

    chunk_id: str
    doc_id: str
    ordinal: int
    start: int
    end: int
    prefix: str
    text: str
    heading_path: tuple[str, ...]
    n_tokens: int
    score: float
    vector_score: float | None = None
    bm25_score: float | None = None
    fused_score: float | None = None
    rerank_score: float | None = None
    level: int = 0
    parent_id: str | None = None
    page: int | None = None
    dropped: str | None = None

    @property
    def rank_key(self) -> tuple[float, str, int, str]:
        """Sorts best first; equal scores, as of a passage that is there twice, in text order."""
        return (-self.score, self.doc_id, self.start, self.chunk_id)


@dataclass(frozen=True, slots=True)
class Passage:
    """What is handed on: one or more spans of one document that follow each other.

    `spans` are code-point offsets into the canonical text, half-open; `text` is their content,
    joined by a blank line where white space lies between two of them. `n_tokens` are those of its
    chunks, without chunks that lie inside another one. `prefix`, `heading_path` and `page` are
    those of the first chunk; `hits` are all of them in text order, with their scores.
    """

    doc_id: str
    spans: tuple[tuple[int, int], ...]
    text: str
    heading_path: tuple[str, ...]
    n_tokens: int
    score: float
    hits: tuple[Hit, ...]

    @property
    def chunk_ids(self) -> tuple[str, ...]:
        return tuple(hit.chunk_id for hit in self.hits)

    @property
    def prefix(self) -> str:
        return self.hits[0].prefix

    @property
    def page(self) -> int | None:
        return self.hits[0].page

    def metadata(self) -> dict[str, Any]:
        """Where it is from, in values that can be written as JSON."""
        return {
            "doc_id": self.doc_id,
            "spans": [list(span) for span in self.spans],
            "heading_path": list(self.heading_path),
            "page": self.page,
            "prefix": self.prefix,
            "score": self.score,
            "chunk_ids": list(self.chunk_ids),
            "n_tokens": self.n_tokens,
        }


@dataclass(frozen=True, slots=True)
class Answer:
    """What a question was answered with, and every candidate with its scores and its fate."""

    question: str
    passages: tuple[Passage, ...]
    candidates: tuple[Hit, ...]
