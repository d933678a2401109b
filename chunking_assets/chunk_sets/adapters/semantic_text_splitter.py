"""The splitter of semantic-text-splitter (text-splitter in Rust)."""

from collections.abc import Callable, Iterable

from chunking_assets.chunk_sets.adapters.library import LibraryChunker, Piece
from chunking_assets.chunk_sets.spans import Document


class SemanticTextSplitterChunker(LibraryChunker):
    """TextSplitter of semantic-text-splitter (Brandt): newlines by the length of their runs, then
    sentences, words, graphemes and characters as Unicode has them, the largest unit that fits.

    Exact spans and a kept budget; slow in tokens, because each candidate is counted whole.
    """

    kind = "semantic_text_splitter"
    package = "semantic-text-splitter"

    def pieces(self, document: Document, count: Callable[[str], int]) -> Iterable[Piece]:
        from semantic_text_splitter import TextSplitter

        splitter = TextSplitter.from_callback(count, self.max_tokens, overlap=self.overlap)
        found: list[Piece] = splitter.chunk_indices(document.text)
        return found
