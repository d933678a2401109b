"""Precision: how much of what was retrieved is evidence."""

from evals.retrieval_scores.spans import Retrieval


def precision(retrieval: Retrieval) -> float:
    """Covered gold characters / the sum of retrieved lengths; 0 when nothing was retrieved.

    Of evidence with alternatives all are gold here: finding the second one too is not a mistake.

    Overlapping chunks pay for their overlap, passages of other documents pay in full, and a gold
    character counts once however often it was retrieved. Elsewhere the word means the share of
    *chunks* judged relevant (trec_eval's `P.k`) or an average over ranks (RAGAS).

    Source: Smith & Troynikov, Evaluating Chunking Strategies for Retrieval, Chroma 2024,
    https://research.trychroma.com/evaluating-chunking
    """
    if not retrieval.retrieved_chars:
        return 0.0
    return retrieval.relevant_chars / retrieval.retrieved_chars
