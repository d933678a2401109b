"""One text in several sizes, all of them searched."""

from collections.abc import Iterator
from dataclasses import replace
from typing import ClassVar

from pydantic import Field, StrictInt, model_validator

from chunking_assets.chunk_sets.chunker import Chunk
from chunking_assets.chunk_sets.packing import pack
from chunking_assets.chunk_sets.recursive import LEVELS
from chunking_assets.chunk_sets.sizes import Size, SizesChunker
from chunking_assets.chunk_sets.spans import Document


class MultiGranularityChunker(SizesChunker):
    """Cuts the whole text as `recursive` once for each of `sizes`, and puts all chunks into one
    index: the question finds the size that suits it.

    Helps where some questions ask for a fact and others for an explanation, at the price of an
    index about as many times as large as there are sizes. Hits of two sizes overlap; a profile with
    `dedupe` hands on the better one. Spans that two sizes have in common appear once, as of the
    finer. The levels are independent: none is another's parent. After Zhong et al.,
    "Mix-of-Granularity: Optimize the Chunking Granularity for Retrieval-Augmented Generation"
    (2024, arXiv:2406.00456), whose trained router is left to the ranking.

    Parameters: those of `Chunker`; `sizes` in tokens, coarse to fine, at least two (default
    `[512, 256, 128]`); `max_tokens`, the coarsest size (default: as `sizes` says; given alone,
    `sizes` is that, its half and its quarter); `overlap` and `min_tokens` in tokens, `max_chars` in
    code points, of the coarsest size, in proportion for the others.
    """

    kind = "multi_granularity"
    largest_searched: ClassVar[int] = 0

    sizes: tuple[Size, ...] = Field(default=(512, 256, 128), max_length=16)
    max_tokens: StrictInt = Field(default=512, ge=1, le=1_000_000)

    @model_validator(mode="after")
    def _context_fits_the_finest(self) -> "MultiGranularityChunker":
        if self.context is not None and self.context.max_tokens > self.sizes[-1] // 2:
            raise ValueError(
                f"context.max_tokens ({self.context.max_tokens}) must be at most half of the "
                f"finest size ({self.sizes[-1]})"
            )
        return self

    def chunks(self, document: Document) -> Iterator[Chunk]:
        found: dict[tuple[int, int], Chunk] = {}
        for level in range(len(self.sizes)):
            for chunk in pack(document, self.at(level), LEVELS):
                found.setdefault((chunk.start, chunk.end), replace(chunk, level=level))
        return iter(sorted(found.values(), key=lambda chunk: (chunk.start, -chunk.level)))
