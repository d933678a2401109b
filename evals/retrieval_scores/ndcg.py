"""Normalised discounted cumulative gain: how early all the evidence is there."""

from math import log2

from evals.retrieval_scores.mrr import RELEVANT
from evals.retrieval_scores.spans import Retrieval


def ndcg(retrieval: Retrieval, relevant: float = RELEVANT) -> float:
    """Discounted gain of each quote's first passage / that of one quote per rank from the top.

    A quote gains 1 / log2(1 + rank) at the first passage that holds `relevant` of it; a second
    passage with the same quote gains nothing. The ideal places quote i at rank i, whatever the
    chunks are, so strategies are measured against the same ideal; the i-th quote found therefore
    never gains more than at rank i, and one passage that holds everything scores 1, not more.
    Quotes never found count in the ideal even beyond k. Alternatives count as one quote, found with
    the first of them.

    Elsewhere every relevant *chunk* gains and the ideal holds all relevant chunks of the index,
    so overlapping chunks change the scale. Where each quote lies in one passage of its own and k
    is at least the number of quotes, this equals trec_eval's `ndcg_cut.k`.

    Source: Järvelin & Kekäläinen, Cumulated gain-based evaluation of IR techniques, ACM TOIS 20
    (2002), https://doi.org/10.1145/582415.582418
    """
    gains = (
        1 / log2(1 + max(rank, place))
        for place, rank in enumerate(retrieval.first_ranks(relevant), start=1)
    )
    ideal = sum(1 / log2(1 + place) for place in range(1, len(retrieval.evidence) + 1))
    return sum(gains) / ideal
