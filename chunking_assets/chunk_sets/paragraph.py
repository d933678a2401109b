"""Paragraphs: what the author kept together."""

from collections.abc import Iterator
from itertools import pairwise

from chunking_assets.chunk_sets.chunker import Chunk, Chunker
from chunking_assets.chunk_sets.packing import pack
from chunking_assets.chunk_sets.recursive import LEVELS
from chunking_assets.chunk_sets.spans import Document


class ParagraphChunker(Chunker):
    """Each chunk is one block as the author wrote it: a paragraph, list item, table or code block,
    a heading with what follows it.

    Helps where each block answers a question by itself: frequently asked questions, glossaries,
    changelogs, laws. Chunks differ in size as the blocks do; `min_tokens` joins the small ones, and
    a block longer than `max_tokens` is cut as by `recursive`. The discourse passages of Hearst and
    Plaunt ("Subtopic structuring for full-length document access", SIGIR 1993).

    Parameters: those of `Chunker`; `min_tokens` in tokens (default 0: every block by itself).
    """

    kind = "paragraph"

    def chunks(self, document: Document) -> Iterator[Chunk]:
        edges = [0, *document.boundaries("block"), len(document.text)]
        return pack(document, self, LEVELS, list(pairwise(edges)))
