"""The text around a chunk as part of its prefix: what a pronoun at its edge refers to."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import replace

from chunking_assets.chunk_sets.chunker import Chunk, Chunker
from chunking_assets.chunk_sets.packing import PREFIX_SHARE
from chunking_assets.chunk_sets.spans import Document, Level


def with_neighbours(document: Document, chunker: Chunker, chunks: Sequence[Chunk]) -> list[Chunk]:
    """The chunks with the sentences or characters around them before their prefix.

    What comes before is kept to its end and what follows to its beginning, within a quarter of
    the budget together; a chunk for which nothing fits stays as it is.
    """
    window = _Window(document, chunker)
    found = []
    for chunk in chunks:
        limit = chunk.budget // PREFIX_SHARE
        around = window.around(chunk, limit) if chunk.searched else ""
        found.append(replace(chunk, prefix=around + chunk.prefix) if around else chunk)
    counts = document.count_texts([chunk.embed_text for chunk in found])
    return [
        replace(chunk, n_tokens=n) if n <= chunk.budget else before
        for chunk, before, n in zip(found, chunks, counts, strict=True)
    ]


class _Window:
    def __init__(self, document: Document, chunker: Chunker) -> None:
        assert chunker.neighbours is not None
        self.document, self.settings = document, chunker.neighbours
        level: Level = "sentence" if self.settings.unit == "sentences" else "word"
        self.starts = [0, *document.boundaries(level), len(document.text)]

    def around(self, chunk: Chunk, limit: int) -> str:
        """`"… what precedes …\\n"`, of at most `limit` tokens; empty if nothing fits."""
        first, last = self._likely(chunk, limit)
        while first < chunk.start or last > chunk.end:
            before = " ".join(self.document.kept(first, chunk.start).split())
            after = " ".join(self.document.kept(chunk.end, last).split())
            text = " … ".join(part for part in (before, after) if part)
            if not text:
                return ""
            if self.document.count_texts([text + "\n"])[0] <= limit:
                return text + "\n"
            if last > chunk.end:
                last = max(chunk.end, self.starts[bisect_left(self.starts, last) - 1])
            else:
                first = min(chunk.start, self.starts[bisect_right(self.starts, first)])
        return ""

    def _likely(self, chunk: Chunk, limit: int) -> tuple[int, int]:
        """The window without what is surely too much of it, as token positions tell."""
        first, last = self._first(chunk.start), self._last(chunk.end)
        room = limit + limit // 4 + 4  # positions count white space, and the end of a token
        most = self.document.reach(
            chunk.end, max(0, room - self.document.count(first, chunk.start))
        )
        if last > most:
            last = max(chunk.end, self.starts[bisect_right(self.starts, most) - 1])
        least = self.document.back(chunk.start, room)
        if first < least:
            first = min(chunk.start, self.starts[bisect_left(self.starts, least)])
        return first, last

    def _first(self, start: int) -> int:
        if self.settings.unit == "sentences":
            return self.starts[max(0, bisect_left(self.starts, start) - self.settings.before)]
        at = bisect_left(self.starts, max(0, start - self.settings.before))
        return min(start, self.starts[at])

    def _last(self, end: int) -> int:
        if self.settings.unit == "sentences":
            following = self.document.skip_space(end, len(self.document.text))
            index = bisect_right(self.starts, following) - 1 + self.settings.after
            return max(end, self.starts[min(len(self.starts) - 1, index)])
        at = bisect_right(self.starts, min(len(self.document.text), end + self.settings.after))
        return max(end, self.starts[at - 1])
