"""A chunker version: settings that never change under their name."""

from collections.abc import Mapping
from dataclasses import dataclass, field

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
    models_asked: Mapping[str, object] = field(default_factory=dict)
    """The declarations of the embedding models that decide where the strategy cuts."""

    @property
    def declaration(self) -> Mapping[str, object]:
        """What is recorded at first use and never changes under the name."""
        return {
            **self.chunker.declaration(),
            "tokenizer_model": self.tokenizer_model,
            "tokenizer_fingerprint": self.tokenizer_fingerprint,
            **({"models_asked": dict(self.models_asked)} if self.models_asked else {}),
        }

    @property
    def digest(self) -> str:
        """Equal for equal declarations, whatever the version is called."""
        asked = [self.models_asked] if self.models_asked else []
        return digest("chunker", self.chunker.declaration(), self.tokenizer_fingerprint, *asked)
