"""Windows of a fixed number of tokens."""

from collections.abc import Iterator

from chunking_assets.chunk_sets.chunker import Chunk, Chunker
from chunking_assets.chunk_sets.packing import pack
from chunking_assets.chunk_sets.spans import Document


class FixedChunker(Chunker):
    """Each chunk holds as many whole words as `max_tokens` allows, whatever they say.

    The baseline every other strategy has to beat, and a fair choice for text without structure:
    transcripts, logs, OCR. Unlike the usual token windows it ends between words, because half a
    word helps neither full-text search nor an embedding; a word longer than three quarters of a
    window is cut between grapheme clusters. Called FixedTokenChunker in Smith and Troynikov,
    "Evaluating Chunking Strategies for Retrieval", Chroma, 2024.

    Parameters: those of `Chunker`; `max_tokens`, `overlap` in tokens, `max_chars` in code points.
    """

    kind = "fixed"

    def chunks(self, document: Document) -> Iterator[Chunk]:
        return pack(document, self, ("word",))
