"""A strategy: index version × retrieval profile."""

from dataclasses import dataclass

from chunking_assets.chunk_embeddings.version import IndexVersion
from chunking_assets.keys import digest
from chunking_assets.retrieval.profile import IMPLEMENTATION, RetrievalProfile


@dataclass(frozen=True)
class Strategy:
    """What a question is answered with, what is scored, what is promoted."""

    name: str
    index: IndexVersion
    profile_name: str
    profile: RetrievalProfile

    @property
    def declared(self) -> str:
        """Equal when corpus.yaml says the same: chunker version, model and profile."""
        return digest(
            "strategy",
            self.index.chunker_version.digest,
            self.index.model.declaration(),
            self.profile.declaration(),
        )

    @property
    def digest(self) -> str:
        """Equal when the same question over the same corpus is answered in the same way."""
        return digest(self.declared, IMPLEMENTATION)
