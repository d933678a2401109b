"""Every embedding model a corpus declares, each loaded once, when something first asks it."""

from collections.abc import Mapping, Sequence
from threading import Lock

import numpy as np

from chunking_assets.embedding_models.model import Embedder, EmbeddingModel, Tokenizer
from chunking_assets.embedding_models.vector_cache import VECTORS, VectorCache, embed_through_cache
from chunking_assets.errors import CorpusError
from chunking_assets.workspace import Workspace


class Models:
    """Tokenizers, embedders and cached vectors by the name of the model; safe for threads.

    Can be pickled: a copy in another process loads what it needs itself.
    """

    def __init__(self, declared: Mapping[str, EmbeddingModel], workspace: Workspace) -> None:
        """Models are prepared and vectors cached in the folders of `workspace`."""
        self.declared, self.workspace = declared, workspace
        self._lock = Lock()
        self._tokenizers: dict[str, Tokenizer] = {}
        self._embedders: dict[str, Embedder] = {}

    def __reduce__(self) -> tuple[type["Models"], tuple[Mapping[str, EmbeddingModel], Workspace]]:
        return Models, (dict(self.declared), self.workspace)

    def tokenizer(self, name: str) -> Tokenizer:
        """
        Raises:
            CorpusError: no model of that name is declared, or its files are missing or damaged.
        """
        with self._lock:
            if name not in self._tokenizers:
                self._tokenizers[name] = self._model(name).tokenizer(self.workspace.models)
            return self._tokenizers[name]

    def embedder(self, name: str) -> Embedder:
        """As `tokenizer`; loads the weights."""
        with self._lock:
            if name not in self._embedders:
                self._embedders[name] = self._model(name).embedder(self.workspace.models)
            return self._embedders[name]

    def vectors(self, name: str, texts: Sequence[str]) -> np.ndarray:
        """Passage vectors, float32 (len(texts), dimensions), unit length; each is computed once
        in the life of the workspace."""
        embedder = self.embedder(name)
        return embed_through_cache(embedder, self.cache_of(embedder), texts).vectors

    def cache_of(self, embedder: Embedder) -> VectorCache:
        """Where the vectors of an embedder are kept."""
        identity, folder = embedder.identity, self.workspace.caches / VECTORS
        return VectorCache(folder, identity.fingerprint, identity.dimensions)

    def _model(self, name: str) -> EmbeddingModel:
        if name not in self.declared:
            raise CorpusError(
                f"no embedding model is called {name!r}. Declare it, or use: "
                f"{', '.join(self.declared)}."
            )
        return self.declared[name]
