"""Embedders that count what they send, as those behind an endpoint do."""

from collections.abc import Sequence

import numpy as np
from small_corpus import HashEmbedder

from chunking_assets.chat_models.chat_endpoint import Spent
from chunking_assets.embedding_models.model import Progress


class CountingEmbedder(HashEmbedder):
    """Its server counts 1000 tokens for whatever is asked, in three requests."""

    def __init__(self) -> None:
        super().__init__(512)
        self.spent, self.retries = Spent(requests=7, prompt_tokens=70), 1

    def embed_passages(self, texts: Sequence[str], progress: Progress | None = None) -> np.ndarray:
        self.spent += Spent(requests=3, prompt_tokens=1000)
        self.retries += 2
        return super().embed_passages(texts, progress)


class DyingEmbedder(CountingEmbedder):
    """It is paid, and then there is no answer."""

    def embed_passages(self, texts: Sequence[str], progress: Progress | None = None) -> np.ndarray:
        super().embed_passages(texts, progress)
        raise RuntimeError("the connection is lost")
