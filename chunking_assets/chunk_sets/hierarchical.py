"""Parents and children: small chunks are searched, the larger ones around them are read."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import ClassVar, Self

from pydantic import Field, StrictInt

from chunking_assets.chunk_sets.chunker import Chunk
from chunking_assets.chunk_sets.packing import pack
from chunking_assets.chunk_sets.recursive import LEVELS
from chunking_assets.chunk_sets.sizes import Size, SizesChunker
from chunking_assets.chunk_sets.spans import Document


class HierarchicalChunker(SizesChunker):
    """Cuts the text as `recursive` into chunks of the first of `sizes`, each of them into chunks of
    the next, down to the last. Only the finest, level 0, are searched; the others are their
    parents, served in place of children found together by profiles with `parents`.

    Helps where a question needs a sentence to be found and a page to be answered: manuals, papers,
    contracts. A small chunk has one subject and so a clear vector, a large one has the context.
    A parent that would only repeat its one child is left out. HierarchicalNodeParser of LlamaIndex
    with its auto-merging retriever, spans in place of text.

    Parameters: those of `Chunker`; `sizes` in tokens, coarse to fine, at least two (default
    `[1024, 256]`); `max_tokens`, the finest size (default: as `sizes` says; given alone, `sizes` is
    4 times that, and that); `max_chars` in code points, of the finest size, in proportion for the
    others; `overlap` in tokens, repeated within a parent and only between the finest chunks. A
    parent has no prefix: it is never searched.
    """

    kind = "hierarchical"
    largest_searched: ClassVar[int] = -1

    sizes: tuple[Size, ...] = Field(default=(1024, 256), max_length=16)
    max_tokens: StrictInt = Field(default=256, ge=1, le=1_000_000)

    def at(self, level: int) -> Self:
        if level == 0:
            return super().at(level)
        # Without prefix and overlap, and never small: what fits a child fits its parent.
        above = {"overlap": 0, "prefix": "none", "min_tokens": self.min_tokens}
        return super().at(level).model_copy(update=above)

    def chunks(self, document: Document) -> Iterator[Chunk]:
        levels = [self.at(level) for level in range(len(self.sizes))]
        found: list[Chunk] = []

        def place(chunks: Iterable[Chunk], level: int, parent: int | None) -> None:
            for chunk in chunks:
                if level == 0:
                    found.append(replace(chunk, parent=parent))
                    continue
                span = chunk.start, chunk.end
                children = list(pack(document, levels[level - 1], LEVELS, [span]))
                around = parent
                if len(children) > 1:
                    around = len(found)
                    found.append(replace(chunk, level=level, parent=parent, searched=False))
                place(children, level - 1, around)

        top = len(levels) - 1
        place(pack(document, levels[top], LEVELS), top, None)
        return iter(found)
