"""Context recall: the share of the reference answer's statements found in the contexts.

https://docs.ragas.io/en/stable/concepts/metrics/available_metrics/context_recall/. One call: the
judge cuts the reference into statements and classifies each.
"""

from typing import Any

from evals.ragas_scores.metrics.metric import Metric, Said, Sample, checked, share


class ContextRecall(Metric):
    name = "context_recall"
    reads = frozenset({"reference", "contexts"})

    def of_ragas(self, llm: Any, embeddings: Any) -> Any:
        from ragas.metrics.collections import ContextRecall

        return ContextRecall(llm=llm)

    def inputs(self, sample: Sample) -> dict[str, Any]:
        return {
            "user_input": sample.question,
            "retrieved_contexts": list(sample.contexts),
            "reference": sample.reference,
        }

    def read(self, reply: Any, said: Said, sample: Sample) -> Said:
        given = [(s.statement, s.attributed, s.reason) for s in reply.classifications]
        return checked(given, "reference")

    def value(self, said: Said, computed: float) -> float | None:
        return share(said.of("reference"))
