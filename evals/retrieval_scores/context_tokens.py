"""Context tokens: what the passages cost to read."""

from evals.retrieval_scores.spans import Retrieval


def context_tokens(retrieval: Retrieval) -> float:
    """The sum of the passages' tokens, in the tokenizer of the index's model. Less is better.

    Overlap is paid for. Tokens of different models are not the same unit.
    """
    return float(sum(passage.n_tokens for passage in retrieval.passages))
