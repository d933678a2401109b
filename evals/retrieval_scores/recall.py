"""Recall: how much of the evidence was retrieved."""

from evals.retrieval_scores.spans import Retrieval


def recall(retrieval: Retrieval) -> float:
    """Covered gold characters / gold characters, over the union of what was retrieved.

    Of evidence with alternatives the best covered one counts, with the weight of the shortest: a
    question is recalled in full when one of them is, and more passages never recall less.

    Elsewhere the word means the share of relevant *chunks* found (trec_eval's `recall.k`), which
    changes with the chunk set, or the share of sentences an LLM can attribute (RAGAS' context
    recall). This is the published tool's recall at a fixed k.

    Source: Smith & Troynikov, Evaluating Chunking Strategies for Retrieval, Chroma 2024,
    https://research.trychroma.com/evaluating-chunking
    """
    return retrieval.covered_chars / retrieval.gold_chars
