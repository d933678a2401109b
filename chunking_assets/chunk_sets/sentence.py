"""Whole sentences, as many as fit."""

from bisect import bisect_left
from collections.abc import Iterator

from pydantic import Field, StrictInt, model_validator

from chunking_assets.chunk_sets.chunker import Chunk, Chunker
from chunking_assets.chunk_sets.packing import pack
from chunking_assets.chunk_sets.spans import Document


class SentenceChunker(Chunker):
    """Each chunk holds as many whole sentences as `max_tokens` allows, from whatever paragraphs.

    Helps with running prose without headings: articles, transcripts, letters. No sentence is torn,
    and `overlap_sentences` gives each chunk the last ones of the one before, so that a pronoun
    keeps what it refers to. A sentence longer than the budget is cut between words. Known from
    SentenceSplitter of LlamaIndex, which counts its overlap in tokens.

    Parameters: those of `Chunker`; `overlap_sentences` in sentences (default 0), as many of them as
    make up at most half of the chunk they are repeated from; or `overlap` in tokens.
    """

    kind = "sentence"

    overlap_sentences: StrictInt = Field(default=0, ge=0, le=100)

    @model_validator(mode="after")
    def _one_overlap(self) -> "SentenceChunker":
        if self.overlap and self.overlap_sentences:
            raise ValueError("give overlap or overlap_sentences, not both")
        return self

    def chunks(self, document: Document) -> Iterator[Chunk]:
        sentences = document.boundaries("sentence")

        def last_sentences(start: int, end: int) -> int | None:
            """Where the last sentences of a chunk start."""
            last = bisect_left(sentences, end)
            first = bisect_left(sentences, (start + end + 1) // 2, 0, last)
            index = max(first, last - self.overlap_sentences)
            return sentences[index] if index < last else None

        repeated = last_sentences if self.overlap_sentences else None
        return pack(document, self, ("sentence", "word"), repeated=repeated, units=True)
