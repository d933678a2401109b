"""Context precision: how early the passages stand that helped to arrive at the reference answer.

https://docs.ragas.io/en/stable/concepts/metrics/available_metrics/context_precision/: the average
precision of one verdict a passage, best first. One call a passage.
"""

from typing import Any

from evals.ragas_scores.metrics.metric import Metric, Said, Sample, checked

_SHOWN_CHARS = 200


class ContextPrecision(Metric):
    name = "context_precision"
    reads = frozenset({"reference", "contexts"})
    rounding = 1e-6  # ragas adds 1e-10 to the denominator: a perfect order is 0.99999999995 there

    def of_ragas(self, llm: Any, embeddings: Any) -> Any:
        from ragas.metrics.collections import ContextPrecision

        return ContextPrecision(llm=llm)

    def inputs(self, sample: Sample) -> dict[str, Any]:
        return {
            "user_input": sample.question,
            "reference": sample.reference,
            "retrieved_contexts": list(sample.contexts),
        }

    def read(self, reply: Any, said: Said, sample: Sample) -> Said:
        passage = sample.contexts[len(said.verdicts)]
        return checked([(passage[:_SHOWN_CHARS], reply.verdict, reply.reason)], "passage", 1)

    def value(self, said: Said, computed: float) -> float | None:
        return average_precision(said.of("passage"))


def average_precision(useful: list[int]) -> float:
    """The mean, over the passages that are useful, of the precision at their rank.

    >>> average_precision([1, 0, 1]), average_precision([0, 0])
    (0.8333333333333333, 0.0)
    """
    at_ranks = [sum(useful[:rank]) / rank for rank, is_useful in enumerate(useful, 1) if is_useful]
    return sum(at_ranks) / len(at_ranks) if at_ranks else 0.0
