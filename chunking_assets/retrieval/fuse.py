"""Fusion of the two search arms into one order."""

from collections.abc import Sequence
from dataclasses import replace
from operator import attrgetter

from chunking_assets.retrieval.hit import Hit


def fuse(
    vector: Sequence[Hit],
    bm25: Sequence[Hit],
    attainable_bm25: float,
    vector_weight: float,
) -> list[Hit]:
    """Weighted score fusion over the union of both arms' candidates.

    The cosine is spread over [0, 1] between the worst and the best candidate; the BM25 score is
    taken as a share of what the question's words could attain, so that a question whose words
    match nowhere leaves the decision to the vectors. Hits of the full-text arm bring their exact
    cosine along; a chunk the full-text arm did not return counts as not matching.

    >>> fuse([], [], 1.0, 0.5)
    []
    """
    candidates = {hit.chunk_id: hit for hit in (*vector, *bm25)}  # the later one knows both scores
    if not candidates:
        return []
    cosines = [hit.vector_score or 0.0 for hit in candidates.values()]
    lowest, spread = min(cosines), (max(cosines) - min(cosines)) or 1.0
    fused = [
        replace(
            hit,
            score=vector_weight * ((hit.vector_score or 0.0) - lowest) / spread
            + (1 - vector_weight) * (hit.bm25_score or 0.0) / max(attainable_bm25, 1e-9),
        )
        for hit in candidates.values()
    ]
    return sorted(fused, key=attrgetter("rank_key"))
