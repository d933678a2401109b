"""What a search finds (hits: chunks with scores) and what a reader is given (passages)."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Hit:
    """A chunk found for a question.

    `score` orders hits within one result and means something only there; `vector_score` is the
    cosine with the question, `bm25_score` the full-text score; None where that arm was not asked.
    `n_tokens` are the tokens the index's model reads for the chunk, prefix included. `level` is 0
    for the finest size of an index with several; `parent_id` names the chunk around this one.
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
    level: int = 0
    parent_id: str | None = None

    @property
    def rank_key(self) -> tuple[float, str, int, str]:
        """Sorts best first; equal scores, as of a passage that is there twice, in text order."""
        return (-self.score, self.doc_id, self.start, self.chunk_id)


@dataclass(frozen=True, slots=True)
class Passage:
    """What is handed on: one or more spans of one document that follow each other.

    `spans` are code-point offsets into the canonical text, half-open; `text` is their content,
    joined by a blank line where white space lies between two of them. `n_tokens` are those of its
    chunks, without chunks that lie inside another one.
    """

    doc_id: str
    spans: tuple[tuple[int, int], ...]
    text: str
    heading_path: tuple[str, ...]
    n_tokens: int
    score: float
    chunk_ids: tuple[str, ...]
