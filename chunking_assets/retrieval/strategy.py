"""A strategy: index version × retrieval profile."""

from dataclasses import dataclass

from chunking_assets.chunk_embeddings.version import FULL, IndexVersion
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
        """Equal when corpus.yaml says the same: chunker version, model, precision and profile."""
        precision = self.index.precision
        return digest(
            "strategy",
            self.index.chunker_version.digest,
            self.index.model.declaration(),
            self.profile.declaration(),
            *([] if precision == FULL else [precision]),
        )

    @property
    def digest(self) -> str:
        """Equal when the same question over the same corpus is answered in the same way."""
        return digest(self.declared, IMPLEMENTATION)
