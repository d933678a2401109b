"""The project's own embedding model as ragas wants one: nothing is sent to embed a question.

ragas compares questions with questions, so both sides are embedded as questions. The model is
loaded at the first text; who it is, is known before from its declaration.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from chunking_assets.cost_ledger import Entry
from chunking_assets.embedding_models.metered import MeteredQueries
from chunking_assets.embedding_models.model import Embedder
from chunking_assets.keys import digest


@dataclass(frozen=True)
class QuestionVectors:
    """A declared embedding model, its vectors kept in the folder `cache`; `load` makes it."""

    name: str
    declaration: Mapping[str, object]
    load: Callable[[], Embedder]
    cache: Path

    @property
    def identity(self) -> str:
        """Part of the name of every judge that uses it."""
        return f"{self.name}-{digest(self.declaration)[:8]}"

    @cached_property
    def _embedder(self) -> MeteredQueries:
        return MeteredQueries(self.load(), self.cache, self.name)

    def costs_of(self, strategy: str) -> list[Entry]:
        """What all its vectors took, as sent for a strategy; nothing if it was never loaded."""
        is_loaded = "_embedder" in vars(self)
        return [replace(self._embedder.spent, strategy=strategy)] if is_loaded else []

    def embed(self, texts: list[str]) -> list[list[float]]:
        vectors: list[list[float]] = self._embedder.embed_queries(texts).tolist()
        return vectors

    def for_ragas(self) -> Any:
        """As the metrics of `ragas.metrics.collections` take it."""
        from ragas.embeddings.base import BaseRagasEmbedding

        own = self

        class OwnEmbedding(BaseRagasEmbedding):
            def embed_text(self, text: str, **options: Any) -> list[float]:
                return own.embed([text])[0]

            async def aembed_text(self, text: str, **options: Any) -> list[float]:
                return own.embed([text])[0]

            async def aembed_texts(self, texts: list[str], **options: Any) -> list[list[float]]:
                return own.embed(texts)

        return OwnEmbedding()
