"""Windows of a fixed number of tokens, each a stride after the one before."""

from collections.abc import Iterator
from typing import Any

from pydantic import Field, StrictInt, model_validator

from chunking_assets.chunk_sets.chunker import Chunk, Chunker
from chunking_assets.chunk_sets.packing import pack
from chunking_assets.chunk_sets.spans import Document


class SlidingWindowChunker(Chunker):
    """Windows of `max_tokens`, each beginning about `stride` tokens after the one before, between
    words.

    Every passage shorter than `max_tokens - stride` stands whole in some window, wherever it lies:
    helps with dense text in which an answer may straddle any boundary, at the price of an index
    `max_tokens / stride` times as large. The windows of passage retrieval (Callan, "Passage-level
    evidence in document retrieval", SIGIR 1994).

    Parameters: those of `Chunker`, `max_tokens` being the window; `stride` in tokens (default: half
    a window), or the `overlap` it leaves, in tokens.
    """

    kind = "sliding_window"

    stride: StrictInt | None = Field(default=None, ge=1)

    @model_validator(mode="before")
    @classmethod
    def _overlap_follows(cls, given: Any) -> Any:
        if not isinstance(given, dict):
            return given
        window = given.get("max_tokens", cls.model_fields["max_tokens"].default)
        stride, overlap = given.get("stride"), given.get("overlap")
        if not isinstance(window, int) or not isinstance(stride, int | None):
            return given  # refused with the field's own message
        if stride is None:
            return given if overlap is not None else {**given, "overlap": window // 2}
        if overlap is not None:
            raise ValueError("give stride or overlap, not both")
        if stride > window:
            raise ValueError(f"stride ({stride}) must be at most max_tokens ({window})")
        return {**given, "overlap": window - max(1, stride)}

    def chunks(self, document: Document) -> Iterator[Chunk]:
        return pack(document, self, ("word",))
