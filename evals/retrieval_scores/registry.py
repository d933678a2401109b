"""Every retrieval metric by name: a new one is a file, a line here and its test."""

from collections.abc import Callable, Mapping

from evals.retrieval_scores.context_tokens import context_tokens
from evals.retrieval_scores.hit import hit
from evals.retrieval_scores.iou import iou
from evals.retrieval_scores.mrr import mrr
from evals.retrieval_scores.ndcg import ndcg
from evals.retrieval_scores.precision import precision
from evals.retrieval_scores.recall import recall
from evals.retrieval_scores.spans import Retrieval

Metric = Callable[[Retrieval], float]

METRICS: Mapping[str, Metric] = {
    "recall": recall,
    "precision": precision,
    "iou": iou,
    "hit": hit,
    "mrr": mrr,
    "ndcg": ndcg,
    "context_tokens": context_tokens,
}
LOWER_IS_BETTER = frozenset({"context_tokens"})
