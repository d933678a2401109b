"""What every adapter shares: the library cuts, its pieces become exact spans of the text.

A piece that is not in the text where it should be stops the document: a span that is nearly right
would score a library for text it never returned. Everything else a library does is left as it is,
so that the comparison is with the library; what is over the budget is marked, not cut again.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import cache
from importlib import metadata
from typing import Any, ClassVar

from pydantic import model_validator

from chunking_assets.chunk_sets.chunker import Chunk, Chunker
from chunking_assets.chunk_sets.packing import chunk_of
from chunking_assets.chunk_sets.spans import Document
from chunking_assets.errors import CorpusError

EXCERPT_CHARS = 60
EXTRA = "pip install 'chunking-assets[baselines]'"

Piece = tuple[int, str]
"""Where the library says its chunk starts, in code points, and the chunk."""


class LibraryChunker(Chunker):
    """Cuts as a library does, counting with the tokenizer of the version.

    Parameters: `max_tokens`, `overlap` in tokens; `max_chars` in code points, over which a chunk is
    marked as over its budget. The others of `Chunker` that decide about a chunk are refused: no
    library has them.
    """

    package: ClassVar[str]
    """The library's name in the package index; its release is part of what is declared."""

    @model_validator(mode="after")
    def _only_what_the_library_has(self) -> "LibraryChunker":
        refused = [
            name
            for name in ("min_tokens", "prefix", "clean", "neighbours", "context")
            if getattr(self, name) != type(self).model_fields[name].default
        ]
        if refused:
            raise ValueError(f"{self.package} has no {', '.join(refused)}; leave it out")
        return self

    def declaration(self) -> dict[str, Any]:
        """
        Raises:
            CorpusError: the library is not installed.
        """
        return {**super().declaration(), "library": f"{self.package} {release(self.package)}"}

    def chunks(self, document: Document) -> Iterator[Chunk]:
        """
        Raises:
            CorpusError: the library is not installed, or returned what is not in the text.
        """
        release(self.package)
        spans = list(self._trimmed(document))
        counts = document.count_exactly([("", start, end) for start, end in spans])
        for span, n_tokens in zip(spans, counts, strict=True):
            yield chunk_of(document, self, span, "", n_tokens)

    def pieces(self, document: Document, count: Callable[[str], int]) -> Iterable[Piece]:
        """The library's chunks in their order, `count` being the tokens of a text."""
        raise NotImplementedError

    def _trimmed(self, document: Document) -> Iterator[tuple[int, int]]:
        @cache
        def count(text: str) -> int:
            return document.tokenizer.count([text])[0]

        previous = 0
        for start, piece in self.pieces(document, count):
            end = start + len(piece)
            if start < previous or document.text[start:end] != piece:
                raise CorpusError(
                    f"{self.package} {release(self.package)} returned a chunk that is not in the "
                    f"text from offset {previous} on: {piece[:EXCERPT_CHARS]!r}. Its place cannot "
                    "be told; chunk this document otherwise."
                )
            previous = start
            start = document.skip_space(start, end)
            end = document.trim(start, end)
            if start < end:
                yield start, end


def release(package: str) -> str:
    """The installed release of a library.

    Raises:
        CorpusError: it is not installed.
    """
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError as error:
        raise CorpusError(f"{package} is not installed. Install it: {EXTRA}") from error
