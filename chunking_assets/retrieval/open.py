"""Opening a strategy for questions."""

from collections.abc import Callable
from datetime import datetime

from chunking_assets.chunk_embeddings.build import check_fingerprint
from chunking_assets.embedding_models.model import Embedder, EmbeddingModel
from chunking_assets.retrieval.profile import RetrievalProfile
from chunking_assets.retrieval.reader import Reader
from chunking_assets.retrieval.strategy import Strategy
from chunking_assets.workspace import Workspace


def open_strategy(
    workspace: Workspace, strategy: Strategy, embedder: Callable[[], Embedder] | None = None
) -> Reader:
    """The reader of a declared strategy, live or not; `embedder` shares a model already loaded."""
    index = strategy.index
    return open_index(
        workspace, index.name, index.model_name, index.model, strategy.profile, embedder
    )


def open_index(
    workspace: Workspace,
    index_version: str,
    model_name: str,
    model: EmbeddingModel,
    profile: RetrievalProfile,
    embedder: Callable[[], Embedder] | None = None,
    at: datetime | None = None,
) -> Reader:
    """The reader of an index version, as it is or as it was `at` a moment; the model is loaded at
    the first question that needs it.

    Raises:
        CorpusError: the index was built with another model under this name: its vectors and the
            question's would not be comparable.
    """
    workspace.check_declaration("embedding_models", model_name, model.declaration())

    def load() -> Embedder:
        loaded = embedder() if embedder else model.embedder(workspace.models)
        check_fingerprint(workspace, model_name, loaded.identity)
        return loaded

    return Reader(workspace, index_version, profile, load, at)
