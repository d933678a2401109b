"""A chunker version: settings that never change under their name."""

from dataclasses import dataclass

from chunking_assets.chunk_sets.chunker import Chunker


@dataclass(frozen=True)
class ChunkerVersion:
    """An immutable declaration `name@n`. `digest` covers the settings, the implementation of the
    kind, and the boundaries of the tokenizer that counts for it."""

    name: str
    chunker: Chunker
    tokenizer_model: str
    digest: str
