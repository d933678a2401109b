"""The coarsest boundary that fits: block, line, sentence, word, grapheme."""

from collections.abc import Iterator

from chunking_assets.chunk_sets.chunker import Chunk, Chunker
from chunking_assets.chunk_sets.packing import pack
from chunking_assets.chunk_sets.spans import Document, Level

LEVELS: tuple[Level, ...] = ("block", "line", "sentence", "word")


class RecursiveChunker(Chunker):
    """Each chunk is as long as `max_tokens` allows and ends at the last block that fits; where
    that leaves it under a quarter full, at the last line, sentence, word, or grapheme cluster.

    The sound default for prose and Markdown: paragraphs, list items, tables and code stay whole
    while they fit, a heading stays with what it heads. After RecursiveCharacterTextSplitter of
    LangChain, with parsed elements in place of separators and tokens in place of characters.

    Parameters: those of `Chunker`; `max_tokens`, `overlap` in tokens, `max_chars` in code points.
    """

    kind = "recursive"

    def chunks(self, document: Document) -> Iterator[Chunk]:
        return pack(document, self, LEVELS)
