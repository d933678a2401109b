"""Faithfulness: the share of an answer's statements that the contexts support.

Es et al. 2023, https://arxiv.org/abs/2309.15217. The judge cuts the answer into statements in one
call and gives a verdict on each in a second.
"""

from typing import Any

from evals.ragas_scores.metrics.metric import Metric, Said, Sample, checked, share


class Faithfulness(Metric):
    name = "faithfulness"
    reads = frozenset({"answer", "contexts"})

    def of_ragas(self, llm: Any, embeddings: Any) -> Any:
        from ragas.metrics.collections import Faithfulness

        return Faithfulness(llm=llm)

    def inputs(self, sample: Sample) -> dict[str, Any]:
        return {
            "user_input": sample.question,
            "response": sample.answer,
            "retrieved_contexts": list(sample.contexts),
        }

    def read(self, reply: Any, said: Said, sample: Sample) -> Said:
        from ragas.metrics.collections.faithfulness.util import StatementGeneratorOutput

        if isinstance(reply, StatementGeneratorOutput):
            return Said(statements=(tuple(reply.statements),))
        given = [(s.statement, s.verdict, s.reason) for s in reply.statements]
        return checked(given, "answer", len(said.statements[-1]))

    def value(self, said: Said, computed: float) -> float | None:
        return share(said.of("answer"))
