"""Fusion of the two search arms into one order."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from operator import attrgetter

from chunking_assets.retrieval.hit import Hit


@dataclass(frozen=True, slots=True)
class ScoreFusion:
    """Weighted sum of both scores, each as a share of what it could be.

    The cosine is spread over [0, 1] between the worst and the best candidate; the BM25 score is
    taken as a share of what the question's words could attain, so that a question whose words
    match nowhere leaves the decision to the vectors.
    """

    vector_weight: float
    lowest_cosine: float
    spread: float
    attainable_bm25: float

    @classmethod
    def over(
        cls, candidates: Sequence[Hit], attainable_bm25: float, vector_weight: float
    ) -> "ScoreFusion":
        cosines = [hit.vector_score or 0.0 for hit in candidates] or [0.0]
        lowest = min(cosines)
        spread = (max(cosines) - lowest) or 1.0
        return cls(vector_weight, lowest, spread, max(attainable_bm25, 1e-9))

    def __call__(self, hit: Hit) -> Hit:
        cosine = ((hit.vector_score or 0.0) - self.lowest_cosine) / self.spread
        score = (
            self.vector_weight * min(1.0, max(0.0, cosine))
            + (1 - self.vector_weight) * (hit.bm25_score or 0.0) / self.attainable_bm25
        )
        return replace(hit, score=score, fused_score=score)


def reciprocal_rank(
    vector: Sequence[Hit], bm25: Sequence[Hit], constant: int, vector_weight: float
) -> list[Hit]:
    """Fusion by places alone: each arm adds its weight / (constant + place), places from 1.

    Looks at no score, so no arm can be trusted more where it is sure. Cormack, Clarke and
    Buettcher, "Reciprocal Rank Fusion", SIGIR 2009, with `constant` 60.
    """
    known = {hit.chunk_id: hit for hit in (*vector, *bm25)}
    scores = dict.fromkeys(known, 0.0)
    for ranking, weight in ((vector, vector_weight), (bm25, 1 - vector_weight)):
        for place, hit in enumerate(ranking, 1):
            scores[hit.chunk_id] += weight / (constant + place)
    return sorted(
        (replace(known[i], score=score, fused_score=score) for i, score in scores.items()),
        key=attrgetter("rank_key"),
    )
