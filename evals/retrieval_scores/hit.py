"""Hit: whether the question could be answered at all from what was retrieved."""

from evals.retrieval_scores.spans import Retrieval

COVERED = 0.9
"""Allows for the white space and punctuation that trimming takes off a chunk's edges."""


def hit(retrieval: Retrieval, covered: float = COVERED) -> float:
    """1 if every slot's best covered quote is, to at least `covered` of its characters, else 0.

    All passages count together, so evidence cut by a chunk border is a hit when both halves are
    there. Elsewhere a hit (trec_eval's `success.k`) is *any* relevant chunk; with one quote that
    lies inside one chunk or outside all, the two agree.
    """
    return float(all(retrieval.coverage(span) >= covered for span in retrieval.gold))
