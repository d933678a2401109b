"""Answer relevancy: how like the question are the questions that the answer answers.

Es et al. 2023, https://arxiv.org/abs/2309.15217. The judge derives three questions from the answer;
the value is the mean cosine of their vectors to the question's, 0 if it finds the answer evasive
each time. It says nothing about truth, and means little across embedding models.
"""

import math
from typing import Any

from evals.ragas_scores.metrics.metric import Metric, Said, Sample, checked


class AnswerRelevancy(Metric):
    name = "answer_relevancy"
    reads = frozenset({"answer"})
    is_embedding = True
    rounding = math.inf  # the vectors are no part of what was said: the value is that of ragas

    def of_ragas(self, llm: Any, embeddings: Any) -> Any:
        from ragas.metrics.collections import AnswerRelevancy

        return AnswerRelevancy(llm=llm, embeddings=embeddings, strictness=3)

    def inputs(self, sample: Sample) -> dict[str, Any]:
        return {"user_input": sample.question, "response": sample.answer}

    def read(self, reply: Any, said: Said, sample: Sample) -> Said:
        if not reply.question.strip():
            raise ValueError("the question is empty")
        if reply.noncommittal not in (0, 1):
            raise ValueError(f"noncommittal {reply.noncommittal}: only 0 and 1 are verdicts")
        return checked([(reply.question, 1 - reply.noncommittal, "")], "question", 1)

    def value(self, said: Said, computed: float) -> float | None:
        if not any(said.of("question")):
            return 0.0
        return min(max(computed, 0.0), 1.0)  # a cosine may be below 0, or a rounding above 1
