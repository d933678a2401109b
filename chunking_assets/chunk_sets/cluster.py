"""Of all segmentations of a document, the one whose chunks are most alike inside."""

from collections.abc import Iterator, Sequence

import numpy as np
from pydantic import Field, StrictInt, model_validator

from chunking_assets.chunk_sets.chunker import Chunk, Chunker
from chunking_assets.chunk_sets.packing import LEAST_FILL, pack, prefix_at
from chunking_assets.chunk_sets.recursive import LEVELS
from chunking_assets.chunk_sets.semantic import NOISE_DECIMALS, passage_vectors
from chunking_assets.chunk_sets.spans import Document

PIECES_PER_CHUNK = 4
"""A chunk has room for at least so many pieces, or there would be nothing to choose."""


class ClusterChunker(Chunker):
    """Cuts a document into small pieces of whole sentences and joins neighbours so that the sum of
    similarities inside the chunks is the largest of all segmentations within `max_tokens`.

    A similarity counts by how much it exceeds the document's mean, so that pieces less alike than
    usual are better apart. Unlike `semantic`, it weighs all cuts against each other and knows the
    budget. Helps where precision counts: chunks end with their subject and are shorter than the
    budget. The mean is the document's own, so an edit may move a cut elsewhere in it. After
    ClusterSemanticChunker (Smith and Troynikov, "Evaluating chunking strategies for retrieval",
    Chroma technical report, 2024), which compares every piece with every other; here, time and
    memory are linear in the document.

    Code and tables stay one piece, a heading belongs to the piece it heads, a piece too long for
    one chunk is cut as by `recursive`.

    Parameters: those of `Chunker`; `min_tokens` joins small chunks, `overlap` repeats tokens only
    inside a piece that was cut. `piece_tokens` in tokens (default 50), at most a quarter of
    `max_tokens`; a longer sentence is a longer piece. `model` is the embedding model that is asked
    (default: the one whose tokens are counted).
    """

    kind = "cluster"

    piece_tokens: StrictInt = Field(default=50, ge=1, le=10_000)
    model: str | None = None

    @model_validator(mode="after")
    def _pieces_are_small(self) -> "ClusterChunker":
        most = max(1, self.max_tokens // PIECES_PER_CHUNK)
        if "piece_tokens" in self.model_fields_set and self.piece_tokens > most:
            raise ValueError(
                f"piece_tokens ({self.piece_tokens}) must be at most a quarter of max_tokens "
                f"({self.max_tokens})"
            )
        return self

    def models_asked(self) -> tuple[str | None, ...]:
        return (self.model,)

    def chunks(self, document: Document) -> Iterator[Chunk]:
        pieces = self.pieces(document)
        if len(pieces) < 2:
            return pack(document, self, LEVELS, pieces)
        furthest = self.furthest(document, pieces)
        width = int((furthest - np.arange(len(pieces))).max()) + 1
        band = similarity_band(passage_vectors(document, self, self.model, pieces), width)
        clusters = best_segmentation(band, furthest)
        ranges = [(pieces[first][0], pieces[last][1]) for first, last in clusters]
        return pack(document, self, LEVELS, ranges)

    def pieces(self, document: Document) -> list[tuple[int, int]]:
        """Spans of about `piece_tokens`, whole sections, blocks or sentences; one at least."""
        size = min(self.piece_tokens, max(1, self.max_tokens // PIECES_PER_CHUNK))
        most_chars = max(1, self.char_cap * size // self.max_tokens)
        length, found = len(document.text), []
        start = document.skip_space(0, length)
        while start < length:
            reach = min(document.reach(start, size), start + most_chars)
            least = start + (reach - start) // LEAST_FILL
            cut = document.last_boundary(least, reach, ("section", "block", "sentence"))
            if cut is None:
                cut = document.first_boundary(max(reach, start + 1), length, "sentence") or length
            found.append((start, cut))
            start = document.skip_space(cut, length)
        return found

    def furthest(self, document: Document, pieces: Sequence[tuple[int, int]]) -> np.ndarray:
        """For each piece the last one that one chunk can hold with it, itself at least."""
        reach = []
        for start, _ in pieces:
            prefix = prefix_at(document, self, start)
            budget = self.max_tokens - document.count_texts([prefix])[0]
            reach.append(min(document.reach(start, budget), start + self.char_cap))
        ends = [document.trim(start, end) for start, end in pieces]
        last = np.searchsorted(ends, reach, side="right") - 1
        return np.maximum(last, np.arange(len(pieces)))


def similarity_band(vectors: np.ndarray, width: int) -> np.ndarray:
    """How alike pieces at most `width - 1` apart are, by how much that exceeds the mean of all
    pairs, however far: float64 (pieces, width).

    `band[i, j]` is for the pieces `i - j` and `i`, in whole millionths, so that sums are exact and
    equal ones tie on every machine; 0 where there is no such pair. `vectors` are of unit length.
    """
    count = len(vectors)
    total = vectors.sum(axis=0)
    mean = (total @ total - np.einsum("nd,nd->", vectors, vectors)) / (count * (count - 1))
    band = np.zeros((count, width))
    for apart in range(1, min(width, count)):
        alike = np.einsum("nd,nd->n", vectors[apart:], vectors[:-apart])
        band[apart:, apart] = np.rint((alike - mean) * 10**NOISE_DECIMALS)
    return band


def best_segmentation(
    band: np.ndarray, furthest: Sequence[int] | np.ndarray
) -> list[tuple[int, int]]:
    """The clusters `(first, last)` that cover all pieces with the largest sum of similarities.

    The similarity of two pieces of one cluster counts twice, as in the full matrix; a cluster from
    `i` ends at `furthest[i]` at the latest. Among equal sums, the last clusters are the longest.
    O(pieces * width) time and memory.
    """
    count, width = band.shape
    # gain[i, j]: the sum inside the cluster from i - j to i, that of the one to i - 1 and row i.
    gain = 2 * np.cumsum(band, axis=1)
    for size in range(1, width):
        gain[1:, size] += gain[:-1, size - 1]
    furthest = np.asarray(furthest)
    for size in range(1, width):
        gain[size:, size][furthest[: count - size] < np.arange(size, count)] = -np.inf
    best, first = np.zeros(count + 1), np.zeros(count, np.int64)
    for last in range(count):
        earliest = max(0, last - width + 1)
        sums = best[earliest : last + 1] + gain[last, last - earliest :: -1]
        chosen = int(np.argmax(sums))
        best[last + 1], first[last] = sums[chosen], earliest + chosen
    clusters, last = [], count - 1
    while last >= 0:
        clusters.append((int(first[last]), last))
        last = int(first[last]) - 1
    return clusters[::-1]
