"""Factual correctness: how far the answer claims what the reference answer claims, no more or less.

https://docs.ragas.io/en/stable/concepts/metrics/available_metrics/factual_correctness/: F1 of the
answer's claims that the reference supports and the reference's that the answer supports, at the
defaults of ragas (low atomicity, low coverage). Four calls. It does not look at the contexts.
"""

from typing import Any

from evals.ragas_scores.metrics.metric import Metric, Said, Sample, Source, checked


class FactualCorrectness(Metric):
    name = "factual_correctness"
    reads = frozenset({"answer", "reference"})
    rounding = 0.005 + 1e-9  # ragas keeps two decimals

    def of_ragas(self, llm: Any, embeddings: Any) -> Any:
        from ragas.metrics.collections import FactualCorrectness

        return FactualCorrectness(llm=llm)

    def inputs(self, sample: Sample) -> dict[str, Any]:
        return {"response": sample.answer, "reference": sample.reference}

    def read(self, reply: Any, said: Said, sample: Sample) -> Said:
        from ragas.metrics.collections.factual_correctness.util import ClaimDecompositionOutput

        if isinstance(reply, ClaimDecompositionOutput):
            return Said(statements=(tuple(reply.claims),))
        given = [(s.statement, s.verdict, s.reason) for s in reply.statements]
        # The answer is cut first; without claims it is given no verdicts.
        source: Source = "answer" if len(said.statements) == 1 else "reference"
        return checked(given, source, len(said.statements[-1]))

    def value(self, said: Said, computed: float) -> float | None:
        answer, reference = said.of("answer"), said.of("reference")
        if not answer or not reference:
            return None
        true = sum(answer)
        wrong, missed = len(answer) - true, len(reference) - sum(reference)
        return 2 * true / (2 * true + wrong + missed) if true else 0.0
