"""A chunker version: settings that never change under their name."""

from collections.abc import Mapping
from dataclasses import dataclass

from chunking_assets.chunk_sets.chunker import Chunker
from chunking_assets.keys import digest


@dataclass(frozen=True)
class ChunkerVersion:
    """An immutable declaration `name@n`. Tokens are counted by the tokenizer of an embedding
    model, known by its fingerprint, so that another tokenizer is another version."""

    name: str
    chunker: Chunker
    tokenizer_model: str
    tokenizer_fingerprint: str

    @property
    def declaration(self) -> Mapping[str, object]:
        """What is recorded at first use and never changes under the name."""
        return {
            **self.chunker.declaration(),
            "tokenizer_model": self.tokenizer_model,
            "tokenizer_fingerprint": self.tokenizer_fingerprint,
        }

    @property
    def digest(self) -> str:
        """Equal when the same text is cut in the same way, whatever the version is called."""
        return digest("chunker", self.chunker.declaration(), self.tokenizer_fingerprint)
