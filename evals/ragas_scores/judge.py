"""The RAGAS metrics as released, over our own transport: ragas decides the prompts and the value.

ragas takes what a judge returns on trust: fewer verdicts than statements raise a score, and a
verdict of 2 counts as two supported statements. So every judgement is checked between the model
and ragas, and kept statement by statement. ragas is imported inside functions only: it costs
seconds, and the stage must load without it.
"""

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from evals.ragas_scores.availability import RAGAS_VERSION
from evals.ragas_scores.transport import PARAMETERS, CallFailed, ChatEndpoint, Spent


@dataclass(frozen=True, slots=True)
class Verdict:
    """The judge's word on one statement: 1 the context supports it, 0 it does not; and why."""

    statement: str
    verdict: int
    reason: str


@dataclass
class Judgement:
    """One metric for one question. `value` is in [0, 1], None if there was nothing to judge."""

    value: float | None = None
    verdicts: list[Verdict] = field(default_factory=list)
    statements: list[str] | None = None
    spent: Spent = field(default_factory=Spent)


def judge_name(model: str, host: str, metric: str) -> str:
    """Who judged: equal names are comparable measurements.

    It holds the model, the server, the ragas release and the digest of the metric's prompts.
    """
    return f"{model}@{host}|ragas-{RAGAS_VERSION}|{prompt_versions()[metric]}"


@cache
def prompt_versions() -> dict[str, str]:
    """Per metric, 12 hex digits of the sha256 of the prompts ragas sends for fixed inputs."""
    from ragas.metrics.collections.context_recall.util import (
        ContextRecallInput,
        ContextRecallPrompt,
    )
    from ragas.metrics.collections.faithfulness.util import (
        NLIStatementInput,
        NLIStatementPrompt,
        StatementGeneratorInput,
        StatementGeneratorPrompt,
    )

    prompts = {
        "faithfulness": [
            StatementGeneratorPrompt().to_string(StatementGeneratorInput(question="q", answer="a")),
            NLIStatementPrompt().to_string(NLIStatementInput(context="c", statements=["s"])),
        ],
        "context_recall": [
            ContextRecallPrompt().to_string(
                ContextRecallInput(question="q", context="c", answer="a")
            )
        ],
    }
    return {
        metric: hashlib.sha256("\0".join(texts).encode()).hexdigest()[:12]
        for metric, texts in prompts.items()
    }


def parameters() -> dict[str, object]:
    """What besides the prompt decides a judgement; part of every judge_key."""
    return dict(PARAMETERS)


async def judge(
    chat: ChatEndpoint,
    model: str,
    metric: str,
    question: str,
    text: str,
    contexts: Sequence[str],
    judgement: Judgement,
) -> None:
    """Score `text` against `contexts` into `judgement`, which a failure leaves partly filled.

    Faithfulness (Es et al. 2023, https://arxiv.org/abs/2309.15217) is the share of an answer's
    statements that the contexts support; `text` is the answer. Context recall is the share of the
    reference answer's statements that can be attributed to the contexts; `text` is the reference.
    Neither `text` nor `contexts` may be empty.

    Raises:
        CallFailed: the judge gave no usable reply.
    """
    from ragas.metrics.collections import ContextRecall, Faithfulness

    llm = _judge_class()(chat, model, judgement)
    if metric == "faithfulness":
        result = await Faithfulness(llm=llm).ascore(
            user_input=question, response=text, retrieved_contexts=list(contexts)
        )
    else:
        result = await ContextRecall(llm=llm).ascore(
            user_input=question, retrieved_contexts=list(contexts), reference=text
        )
    if judgement.verdicts:
        judgement.value = _checked(float(result.value), judgement.verdicts)


def _checked(value: float, verdicts: list[Verdict]) -> float:
    share = sum(v.verdict for v in verdicts) / len(verdicts)
    if not math.isclose(value, share):
        raise CallFailed("invalid_output", f"ragas computed {value} where {share} are supported")
    return value


@cache
def _judge_class() -> type[Any]:
    from pydantic import BaseModel
    from ragas.llms.base import InstructorBaseRagasLLM
    from ragas.metrics.collections.context_recall.util import ContextRecallOutput
    from ragas.metrics.collections.faithfulness.util import (
        NLIStatementOutput,
        StatementGeneratorOutput,
    )

    def verdicts(output: BaseModel) -> list[Verdict]:
        if isinstance(output, NLIStatementOutput):
            return [Verdict(s.statement, s.verdict, s.reason) for s in output.statements]
        if isinstance(output, ContextRecallOutput):
            return [Verdict(s.statement, s.attributed, s.reason) for s in output.classifications]
        return []

    class TransportJudge(InstructorBaseRagasLLM):
        """Serves one judgement; ragas' own LLM class would report each call to its makers."""

        def __init__(self, chat: ChatEndpoint, model: str, judgement: Judgement) -> None:
            self.chat, self.model, self.judgement = chat, model, judgement

        def generate(self, prompt: str, response_model: type[Any]) -> Any:
            raise NotImplementedError("judgements are asynchronous")

        async def agenerate(self, prompt: str, response_model: type[Any]) -> Any:
            try:
                reply = await self.chat.ask(
                    self.model,
                    [{"role": "user", "content": prompt}],
                    response_model,
                    self.check,
                )
            except CallFailed as failure:
                self.judgement.spent += failure.spent
                raise
            self.judgement.spent += reply.spent
            if isinstance(reply.output, StatementGeneratorOutput):
                self.judgement.statements = reply.output.statements
            else:
                self.judgement.verdicts = verdicts(reply.output)
            return reply.output

        def check(self, output: BaseModel) -> None:
            if isinstance(output, StatementGeneratorOutput):
                return
            given = verdicts(output)
            for verdict in given:
                if verdict.verdict not in (0, 1):
                    raise ValueError(f"verdict {verdict.verdict}: only 0 and 1 are verdicts")
            expected = self.judgement.statements
            if not given or (expected is not None and len(given) != len(expected)):
                wanted = "at least 1" if expected is None else len(expected)
                raise ValueError(f"{len(given)} verdicts given, {wanted} expected")

    return TransportJudge
