"""The splitter of semchunk."""

from collections.abc import Callable, Iterator

from chunking_assets.chunk_sets.adapters.library import LibraryChunker, Piece
from chunking_assets.chunk_sets.spans import Document


class SemchunkChunker(LibraryChunker):
    """semchunk (Butler, 2023): the longest run of newlines, tabs, spaces or the strongest
    punctuation cuts, and pieces are merged up to `max_tokens`.

    Exact spans and a kept budget; with an overlap it may cut inside a grapheme cluster.
    """

    kind = "semchunk"
    package = "semchunk"

    def pieces(self, document: Document, count: Callable[[str], int]) -> Iterator[Piece]:
        from semchunk.semchunk import chunk

        found = chunk(
            document.text,
            self.max_tokens,
            count,
            memoize=False,  # its own memory of counts is never freed
            offsets=True,
            overlap=self.overlap or None,
        )
        for piece, (start, _) in zip(*found, strict=True):
            yield start, piece
