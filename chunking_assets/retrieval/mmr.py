"""Diversity: hits that say what was said already wait behind those that do not."""

from collections.abc import Mapping, Sequence

import numpy as np

from chunking_assets.retrieval.hit import Hit


def mmr(
    ranked: Sequence[Hit], vectors: Mapping[str, np.ndarray], relevance: float, limit: int
) -> list[Hit]:
    """Maximal marginal relevance: `limit` hits, each the best by `relevance` times its score less
    (1 - `relevance`) times its highest cosine with a hit before it; then the others as they were.

    Scores are taken as a share of the best one. A hit without a vector is like no other. Carbonell
    and Goldstein, SIGIR 1998.
    """
    left = list(ranked)
    if not left:
        return []
    best = max(hit.score for hit in left) or 1.0
    rows = np.zeros((len(left), max((v.size for v in vectors.values()), default=1)))
    for row, hit in enumerate(left):
        if hit.chunk_id in vectors:
            rows[row] = vectors[hit.chunk_id]
    score = np.array([hit.score / best for hit in left])
    likeness = np.zeros(len(left))
    order: list[int] = []
    for _ in range(min(limit, len(left))):
        value = relevance * score - (1 - relevance) * likeness
        value[order] = -np.inf
        chosen = int(np.argmax(value))  # the first of equals, so the better-ranked
        order.append(chosen)
        likeness = np.maximum(likeness, rows @ rows[chosen])
    taken = {*order}
    return [left[n] for n in order] + [hit for n, hit in enumerate(left) if n not in taken]
