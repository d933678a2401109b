"""What every embedding model offers: an identity, a tokenizer, an embedder.

A model is declared in corpus.yaml by settings (cheap to build, nothing is loaded); the tokenizer
and the embedder are made from them when first used. The identity goes into every vector's key, so
two models never share a vector and a changed model never passes for the old one.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import ClassVar, Literal, Protocol, runtime_checkable

import numpy as np
from pydantic import BaseModel, ConfigDict

from chunking_assets.keys import digest

Progress = Callable[[int, int], None]
"""Called with (done, total) while long work goes on."""
TokenProgress = Callable[[int, int, int], None]
"""Called with (done, total, tokens of those done that a model read)."""

Role = Literal["passage", "query"]
Batch = tuple[Sequence[int], np.ndarray]
"""Positions of some texts, and their vectors: float32 (positions, dimensions)."""


@dataclass(frozen=True)  # without slots: the fingerprint is kept, as every vector's key asks it
class ModelIdentity:
    """Everything that decides a vector besides the text.

    `revision` is a release or the sha256 of the weights actually run; `max_tokens` is the longest
    input the model reads at once, special tokens and prefix included.
    """

    id: str
    revision: str
    dimensions: int
    max_tokens: int
    query_prefix: str
    passage_prefix: str
    pooling: str
    normalised: bool

    @cached_property
    def fingerprint(self) -> str:
        return digest("embedding-model", asdict(self))


class Tokenizer(Protocol):
    """Counts in a model's own tokens, special tokens left out."""

    @property
    def fingerprint(self) -> str:
        """Equal for equal token boundaries."""

    @property
    def splits_at_white_space(self) -> bool:
        """No token holds white space, and a word gives the same tokens wherever it stands: counts
        of spans cut at white space may be added up. One that ends in what a model may take for
        white space (`tokenizer.READ_AS_SPACE`) is the exception."""

    def count(self, texts: Sequence[str]) -> list[int]:
        """Tokens of each text, tokenized on its own."""

    def starts(self, texts: Sequence[str]) -> list[np.ndarray]:
        """Per text, the code-point offset at which each token starts: int64, non-decreasing."""


class Embedder(Protocol):
    """Turns texts into vectors; the same text gives the same bits, whatever its neighbours are."""

    @property
    def identity(self) -> ModelIdentity: ...

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Tokens the model reads for each passage, prefix and special tokens included."""

    def embed_passages(self, texts: Sequence[str], progress: Progress | None = None) -> np.ndarray:
        """float32 (len(texts), dimensions), unit length, finite."""

    def embed_queries(self, texts: Sequence[str]) -> np.ndarray:
        """As `embed_passages`, for the question side."""


@runtime_checkable
class BatchEmbedder(Embedder, Protocol):
    """An embedder whose answers come in batches, each worth keeping before the next is there."""

    def embed_batches(self, texts: Sequence[str], role: Role) -> Iterator[Batch]:
        """Every text once, in any order; unit length, finite. What it raises, it raises after the
        last batch there is."""

    def collect_earlier(self) -> Iterator[tuple[list[str], np.ndarray]]:
        """Passages asked for by earlier runs whose vectors have come since, and the vectors. When
        the next is taken, those before have been kept."""


@runtime_checkable
class ReadsLess(Embedder, Protocol):
    """An embedder that may have been seen to read less of a text than it is declared to."""

    reads_at_most: int
    """Tokens, special ones included."""


SpanWindow = tuple[str, Sequence[tuple[int, int]]]
"""A text read at once, and spans `[start, end)` of it in code points."""


@runtime_checkable
class TokenEmbedder(Embedder, Protocol):
    """An embedder that also gives a vector per token of what it reads."""

    @property
    def tokenizer(self) -> Tokenizer: ...

    def embed_spans(self, windows: Sequence[SpanWindow]) -> list[np.ndarray]:
        """Per window float32 (len(spans), dimensions), unit length, finite: the mean of the token
        vectors of each span, the model having read the whole window, led by the passage prefix.

        A window has at most `identity.max_tokens` by `count_tokens`. A span in which the model
        reads no token gets the mean of the window.
        """


class EmbeddingModel(BaseModel):
    """One entry of `embedding_models:` in corpus.yaml. Subclasses add their parameters."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    kind: ClassVar[str]

    def declaration(self) -> dict[str, object]:
        """What is recorded at first use and may not change under the same name."""
        return {"kind": self.kind, **self.model_dump(mode="json")}

    def jobs_from(self) -> int | None:
        """From so many new passages on, looked at together, a batch API embeds them; None:
        never."""
        return None

    def tokenizer_fingerprint(self) -> str:
        """Known without loading anything heavy: part of every chunker version's digest."""
        raise NotImplementedError

    def check_token_vectors(self) -> None:
        """
        Raises:
            CorpusError: as far as known without loading, vectors per token are not to be had, or
                their mean means nothing to this model.
        """

    def tokenizer(self, models_folder: Path) -> Tokenizer:
        """Load the tokenizer, preparing the model's files below `models_folder` if needed."""
        raise NotImplementedError

    def embedder(self, models_folder: Path) -> Embedder:
        """Load the weights, preparing the model's files below `models_folder` if needed."""
        raise NotImplementedError
