"""Where the subject changes: far-apart neighbours among the sentences' vectors."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Literal

import numpy as np
from pydantic import Field, StrictInt, model_validator

from chunking_assets.chunk_sets.chunker import Chunk, Chunker
from chunking_assets.chunk_sets.packing import fits, pack
from chunking_assets.chunk_sets.recursive import LEVELS
from chunking_assets.chunk_sets.spans import Document

DEFAULT_AMOUNT = {
    "percentile": 95.0,
    "standard_deviation": 3.0,
    "interquartile": 1.5,
    "gradient": 95.0,
}
NOISE_DECIMALS = 6
"""Similarities are rounded to these: beyond them, equal texts differ by the order of additions."""


class SemanticChunker(Chunker):
    """Cuts between two sentences whose vectors are further apart (cosine distance) than most of
    the document's. Each sentence is embedded with its neighbours, so that a short one has company;
    code and tables count as one sentence, a heading belongs to the first one under it.

    A segment too long for one chunk is cut at the largest distance in its middle half, and so on
    until the parts fit; a sentence too long by itself is cut as by `recursive`. Helps with prose
    that changes its subject without saying so: transcripts, essays, reports without headings. The
    threshold is the document's own, so an edit may move a cut elsewhere in it; embedding for the
    cuts costs `2 * window + 1` times as much as embedding the text. After Kamradt ("5 levels of
    text splitting", 2024) and SemanticChunker of LangChain, which have no largest size.

    Parameters: those of `Chunker`; `min_tokens` joins small segments, `overlap` repeats tokens
    only inside a segment that was cut. `threshold` and `amount` say what is far: above the
    `percentile` `amount` of the distances (default 95), `amount` standard deviations (3) or
    interquartile ranges (1.5) above their mean, or where the distance grows by more than the
    percentile `amount` of its gradient (95). `window` in sentences on each side (default 1).
    `model` is the embedding model that is asked (default: the one whose tokens are counted).
    """

    kind = "semantic"

    threshold: Literal["percentile", "standard_deviation", "interquartile", "gradient"] = (
        "percentile"
    )
    amount: float | None = Field(default=None, gt=0)
    window: StrictInt = Field(default=1, ge=0, le=20)
    model: str | None = None

    @model_validator(mode="after")
    def _a_percentile_is_at_most_a_hundred(self) -> "SemanticChunker":
        if self.threshold in ("percentile", "gradient") and (self.amount or 0) > 100:
            raise ValueError(f"amount ({self.amount}) is a percentile here and at most 100")
        return self

    def models_asked(self) -> tuple[str | None, ...]:
        return (self.model,)

    def chunks(self, document: Document) -> Iterator[Chunk]:
        sentences = sentence_spans(document)
        distances = self.distances(document, sentences)
        edges = [0, *(int(at) + 1 for at in self.breaks(distances)), len(sentences)]
        segments = [
            (sentences[first][0], sentences[after - 1][1])
            for start, end in pairwise(edges)
            for first, after in self.fitting(document, sentences, distances, start, end)
        ]
        return pack(document, self, LEVELS, segments)

    def distances(self, document: Document, sentences: Sequence[tuple[int, int]]) -> np.ndarray:
        """Cosine distance of each sentence, with its window, to the next one: float64."""
        if len(sentences) < 2:
            return np.empty(0)
        last = len(sentences) - 1
        windows = [
            (sentences[max(0, at - self.window)][0], sentences[min(last, at + self.window)][1])
            for at in range(len(sentences))
        ]
        vectors = passage_vectors(document, self, self.model, windows)
        alike: np.ndarray = np.einsum("nd,nd->n", vectors[:-1], vectors[1:])
        return np.round(1 - alike, NOISE_DECIMALS)

    def breaks(self, distances: np.ndarray) -> np.ndarray:
        """The positions of the distances that are breaks, increasing."""
        amount = DEFAULT_AMOUNT[self.threshold] if self.amount is None else self.amount
        if len(distances) < 2:
            return np.empty(0, np.int64)  # one distance is not far compared with any other
        if self.threshold == "gradient":
            distances = np.gradient(distances)
        if self.threshold in ("percentile", "gradient"):
            limit = np.percentile(distances, amount)
        elif self.threshold == "standard_deviation":
            limit = distances.mean() + amount * distances.std()
        else:
            first, third = np.percentile(distances, [25, 75])
            limit = distances.mean() + amount * (third - first)
        return np.flatnonzero(np.round(distances - limit, NOISE_DECIMALS) > 0)

    def fitting(
        self,
        document: Document,
        sentences: Sequence[tuple[int, int]],
        distances: np.ndarray,
        first: int,
        after: int,
    ) -> Iterator[tuple[int, int]]:
        """The sentences `[first, after)` in parts that fit one chunk each, or hold one sentence."""
        count = after - first
        if count < 2 or fits(document, self, sentences[first][0], sentences[after - 1][1]):
            if count:
                yield first, after
            return
        # The middle half: no crumbs, and no more than log(count) rounds.
        low, high = first + count // 4, after - 1 - count // 4
        cut = low + int(np.argmax(distances[low:high])) + 1
        yield from self.fitting(document, sentences, distances, first, cut)
        yield from self.fitting(document, sentences, distances, cut, after)


def sentence_spans(document: Document) -> list[tuple[int, int]]:
    """The sentences with something to embed, each up to where the next one starts."""
    starts = [at for at in document.boundaries("sentence") if document.is_apart(at)]
    return [
        (start, end)
        for at, end in pairwise([0, *starts, len(document.text)])
        if (start := document.skip_space(at, end)) < end
    ]


def passage_vectors(
    document: Document, chunker: Chunker, model: str | None, spans: Sequence[tuple[int, int]]
) -> np.ndarray:
    """Vectors of what is embedded of each span, float64 (spans, dimensions), unit length.

    `model` None is the one whose tokens `chunker` counts: its `tokenizer`, or the first declared.
    """
    name = model or chunker.tokenizer or next(iter(document.models.declared))
    texts = [document.kept(start, end).strip() for start, end in spans]
    return document.models.vectors(name, texts).astype(np.float64)
