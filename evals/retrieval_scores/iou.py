"""Intersection over union: recall and precision in one number."""

from evals.retrieval_scores.spans import Retrieval


def iou(retrieval: Retrieval) -> float:
    """Covered gold characters / (the sum of retrieved lengths + the gold not covered).

    The sum, not the union, of retrieved lengths: overlap is paid for, as in `precision`. The
    Jaccard index proper would unite them. Evidence with alternatives is covered as in `precision`
    and not covered as in `recall`.

    Source: Smith & Troynikov, Evaluating Chunking Strategies for Retrieval, Chroma 2024,
    https://research.trychroma.com/evaluating-chunking
    """
    return retrieval.relevant_chars / (retrieval.retrieved_chars + retrieval.uncovered_chars)
