"""Reciprocal rank: how far down the first useful passage is; its mean over questions is MRR."""

from evals.retrieval_scores.spans import Retrieval

RELEVANT = 0.5
"""The share of a quote that one passage must hold to be relevant."""


def mrr(retrieval: Retrieval, relevant: float = RELEVANT) -> float:
    """1 / rank of the first passage that holds `relevant` of any quote or alternative; 0 if none.

    Relevance is judged passage by passage: chunks shorter than half a quote are never relevant,
    so a strategy of very small chunks is better compared by recall within a token budget.
    Equals trec_eval's `recip_rank` over passages labelled in this way.

    Source: Kantor & Voorhees, The TREC-5 Confusion Track, Information Retrieval 2 (2000),
    https://doi.org/10.1023/A:1009902609570
    """
    ranks = retrieval.first_ranks(relevant)
    return 1 / ranks[0] if ranks else 0.0
