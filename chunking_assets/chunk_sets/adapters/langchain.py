"""RecursiveCharacterTextSplitter of LangChain, which returns texts without their places.

Its `add_start_index` searches a stretch of the text that is wrong where sizes are tokens
(langchain#17642), and in repeated text any search may find another place. So the splitter is given
parts that know where they begin.
"""

from collections.abc import Callable, Iterator
from typing import Any

from chunking_assets.chunk_sets.adapters.library import LibraryChunker, Piece
from chunking_assets.chunk_sets.spans import Document


class LangchainChunker(LibraryChunker):
    r"""LangChain's RecursiveCharacterTextSplitter with its own separators: `\n\n`, `\n`, a space,
    any character. The splitter most published comparisons take as their baseline.
    """

    kind = "langchain"
    package = "langchain-text-splitters"

    def pieces(self, document: Document, count: Callable[[str], int]) -> Iterator[Piece]:
        from langchain_text_splitters import RecursiveCharacterTextSplitter

        text = document.text

        class Placing(RecursiveCharacterTextSplitter):
            """Hands every part on with its place. A part is tried in the order of the text, and
            none is missing but single characters over the budget."""

            at = 0

            def _merge_splits(self, splits: Any, separator: str) -> list[str]:
                return super()._merge_splits(map(self.placed, splits), separator)

            def _join_docs(self, docs: list[Any], separator: str) -> str:
                return _Placed("".join(docs), docs[0].start)

            def placed(self, part: str) -> "_Placed":
                start = text.index(part, self.at)
                self.at = start + len(part)
                return _Placed(part, start)

        splitter = Placing(
            chunk_size=self.max_tokens,
            chunk_overlap=self.overlap,
            length_function=count,
            strip_whitespace=False,  # chunks are trimmed as all are
        )
        covered = 0
        for piece in splitter.split_text(text):
            start = piece.start if isinstance(piece, _Placed) else text.find(piece, covered)
            covered = start + len(piece)
            yield start, piece


class _Placed(str):
    """A part of a text that knows where it starts."""

    start: int

    def __new__(cls, part: str, start: int) -> "_Placed":
        placed = super().__new__(cls, part)
        placed.start = start
        return placed
