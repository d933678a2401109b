"""Sections under their headings: whole where they fit, joined where small, cut where large."""

from collections.abc import Iterable, Iterator
from typing import Literal

from chunking_assets.chunk_sets.chunker import Chunk, Chunker
from chunking_assets.chunk_sets.packing import fits, pack
from chunking_assets.chunk_sets.recursive import LEVELS
from chunking_assets.chunk_sets.spans import Document


class HeadingChunker(Chunker):
    """Each chunk is a section with its subsections if that fits in `max_tokens`. Small neighbours
    under one parent are joined while they fit; a section too large for one chunk is cut as by
    `recursive`, its subsections apart from it. No chunk goes on into the next parent's section.

    Helps where headings carry the subject: manuals, help centres, policies, wikis. The breadcrumb
    tells a chunk's place (default `prefix`), so that "Limits" of one product is not taken for
    another's. After HybridChunker of Docling: split what is too large, merge undersized peers.

    Parameters: those of `Chunker`; `overlap` repeats tokens only inside a section that was cut.
    """

    kind = "heading"

    prefix: Literal["none", "breadcrumb", "title"] = "breadcrumb"

    def chunks(self, document: Document) -> Iterator[Chunk]:
        return pack(document, self, ("section", *LEVELS), _Sections(document, self).ranges())


class _Sections:
    """The tree of sections. Section 0 is the document: what precedes the first heading is its own
    text. Section `i` with its subsections ends where section `after[i]` starts."""

    def __init__(self, document: Document, settings: Chunker) -> None:
        self.document, self.settings = document, settings
        self.starts = [0, *(start for start, _ in document.sections), len(document.text)]
        levels = [0, *(max(1, heading.level) for _, heading in document.sections)]
        self.after = [len(levels)] * len(levels)
        open_sections: list[int] = []
        for section, level in enumerate(levels):
            while open_sections and levels[open_sections[-1]] >= level:
                self.after[open_sections.pop()] = section
            open_sections.append(section)
        self.separable = {0, *document.boundaries("section"), len(document.text)}

    def ranges(self) -> list[tuple[int, int]]:
        return list(self.joined([(0, self.after[0])], 0))

    def joined(self, siblings: Iterable[tuple[int, int]], start: int) -> Iterator[tuple[int, int]]:
        """The ranges from `start` to the end of `siblings`, each `(section, section after it)`."""
        end = start
        for section, after in siblings:
            stop = self.starts[after]
            if end > start and end in self.separable and not self.fit(start, stop):
                yield start, end
                start = end
            if self.fit(start, stop):
                end = stop
                continue
            if after == section + 1:
                yield start, stop
            else:
                yield from self.joined(self.inside(section), start)
            start = end = stop
        if end > start:
            yield start, end

    def inside(self, section: int) -> Iterator[tuple[int, int]]:
        """A section's own text, then its subsections."""
        yield section, section + 1
        child = section + 1
        while child < self.after[section]:
            yield child, self.after[child]
            child = self.after[child]

    def fit(self, start: int, end: int) -> bool:
        return fits(self.document, self.settings, start, end)
