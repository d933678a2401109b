"""An index version: chunker version × embedding model, one LanceDB table."""

from dataclasses import dataclass

from chunking_assets.chunk_sets.version import ChunkerVersion
from chunking_assets.embedding_models.model import EmbeddingModel


@dataclass(frozen=True)
class IndexVersion:
    """What a vector index is built from."""

    chunker_version: ChunkerVersion
    model_name: str
    model: EmbeddingModel

    @property
    def name(self) -> str:
        """As it is written everywhere: `recursive-400@1+e5-small`."""
        return f"{self.chunker_version.name}+{self.model_name}"
