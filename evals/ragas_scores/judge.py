"""The RAGAS metrics as released, over our own transport: ragas decides the prompts and the formula.

Every reply is checked between the model and ragas, and kept statement by statement; see
`metrics/metric.py` for why. ragas is imported inside functions only: it costs seconds, and the
stage must load without it.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from chunking_assets.chat_models.chat_endpoint import PARAMETERS, CallFailed, ChatEndpoint, Spent
from evals.ragas_scores.availability import RAGAS_VERSION
from evals.ragas_scores.instructions import ENGLISH, Instructions, instructed, prompt_version
from evals.ragas_scores.metrics.metric import Metric, Said, Sample, Verdict
from evals.ragas_scores.metrics.registry import METRICS
from evals.ragas_scores.question_vectors import QuestionVectors

FIRST_SEED = 7
SEEDS_PER_JUDGEMENT = 100
"""Room between the seeds of two judgements for prompts that one of them sends several times."""


@dataclass
class Judgement:
    """One metric for one question. `value` is in [0, 1], None if there was nothing to judge."""

    value: float | None = None
    said: Said = field(default_factory=Said)
    spent: Spent = field(default_factory=Spent)


@dataclass(frozen=True)
class Judge:
    """Who judges: a model at an endpoint, instructed in a language.

    `vectors` are for metrics that compare questions.
    """

    chat: ChatEndpoint
    model: str
    instructions: Instructions = ENGLISH
    vectors: QuestionVectors | None = None

    def name(self, metric: str) -> str:
        """Equal names are comparable measurements.

        It holds the model, the server, the ragas release, the digest of the metric's prompts, the
        language if they were translated, and the embedding model if there is one in the metric.

        Raises:
            CorpusError: the translation does not fit the metric.
        """
        parts = [
            f"{self.model}@{self.chat.host}",
            f"ragas-{RAGAS_VERSION}",
            prompt_version(metric, self.instructions),
        ]
        if self.instructions != ENGLISH:
            parts.append(self.instructions.language)
        if METRICS[metric].is_embedding and self.vectors is not None:
            parts.append(self.vectors.identity)
        return "|".join(parts)

    async def judge(
        self, metric: Metric, sample: Sample, judgement: Judgement, repeat: int = 0
    ) -> None:
        """Score `sample` into `judgement`, which a failure leaves partly filled.

        Each `repeat` is a judgement of its own, asked for with other seeds.

        Raises:
            CallFailed: the judge gave no usable reply.
        """
        llm = _transport()(self, metric, sample, judgement, repeat)
        embeddings = self.vectors.for_ragas() if metric.is_embedding and self.vectors else None
        ragas_metric = instructed(metric, self.instructions, llm, embeddings)
        result = await ragas_metric.ascore(**metric.inputs(sample))
        computed = float(result.value)
        value = metric.value(judgement.said, computed)
        if value is not None and not abs(value - computed) <= metric.rounding:
            raise CallFailed(
                "invalid_output", f"ragas computed {computed} where its verdicts give {value}"
            )
        judgement.value = value

    async def verdicts(
        self, statements: Sequence[str], contexts: Sequence[str], judgement: Judgement
    ) -> list[Verdict]:
        """The second half of faithfulness alone: a verdict on each of these statements, in order.

        Raises:
            CallFailed: the judge gave no usable reply.
        """
        from ragas.metrics.collections.faithfulness.util import (
            NLIStatementInput,
            NLIStatementOutput,
        )

        faithfulness = METRICS["faithfulness"]
        judgement.said = Said(statements=(tuple(statements),))
        sample = Sample("", " ".join(statements), "", tuple(contexts))
        llm = _transport()(self, faithfulness, sample, judgement, 0)
        prompt = instructed(faithfulness, self.instructions, llm, None).nli_statement_prompt
        asked = NLIStatementInput(context="\n".join(contexts), statements=list(statements))
        await llm.agenerate(prompt.to_string(asked), NLIStatementOutput)
        given = {verdict.statement: verdict for verdict in judgement.said.verdicts}
        # In the order asked for where the judge repeats the statements, in its own otherwise.
        in_order = [given[text] for text in statements if text in given]
        whole = len(in_order) == len(statements)
        return in_order if whole else list(judgement.said.verdicts)


def parameters() -> dict[str, object]:
    """What besides the prompt decides a judgement; part of every judge_key."""
    return dict(PARAMETERS)


@cache
def _transport() -> type[Any]:
    from pydantic import BaseModel
    from ragas.llms.base import InstructorBaseRagasLLM

    class Transport(InstructorBaseRagasLLM):
        """Serves one judgement; ragas' own LLM class would report each call to its makers."""

        def __init__(
            self, judge: Judge, metric: Metric, sample: Sample, judgement: Judgement, repeat: int
        ) -> None:
            self.judge, self.metric, self.sample = judge, metric, sample
            self.judgement, self.repeat = judgement, repeat
            self.asked: Counter[str] = Counter()

        def generate(self, prompt: str, response_model: type[Any]) -> Any:
            raise NotImplementedError("judgements are asynchronous")

        async def agenerate(self, prompt: str, response_model: type[Any]) -> Any:
            seed = FIRST_SEED + SEEDS_PER_JUDGEMENT * self.repeat + self.asked[prompt]
            self.asked[prompt] += 1
            try:
                reply = await self.judge.chat.ask(
                    self.judge.model,
                    [{"role": "user", "content": prompt}],
                    response_model,
                    self.check,
                    seed if seed != FIRST_SEED else None,
                )
            except CallFailed as failure:
                self.judgement.spent += failure.spent
                raise
            self.judgement.spent += reply.spent
            self.judgement.said += self.read(reply.output)
            return reply.output

        def read(self, output: BaseModel) -> Said:
            return self.metric.read(output, self.judgement.said, self.sample)

        def check(self, output: BaseModel) -> None:
            self.read(output)

    return Transport
