"""Answers and RAGAS scores of one strategy: which questions are judged, carried over, left out.

Every question has a row for its answer and for each metric, whatever happens: a failure is a row
with its kind and no value, and costs its neighbours nothing. A row whose key is unchanged is taken
from the last run; a failure no repetition cures stops the sending, keeps what is done and marks
the rest.
"""

import asyncio
import json
import statistics
from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chunking_assets.chat_models.chat_endpoint import (
    CallFailed,
    ChatEndpoint,
    EndpointStopped,
    Spent,
)
from chunking_assets.chat_models.endpoint import (
    NO_ENDPOINT,
    Endpoint,
    endpoint_from_environment,
)
from chunking_assets.chat_models.response_cache import CACHE_FILE, ResponseCache
from chunking_assets.cost_ledger import Entry
from chunking_assets.keys import digest
from evals.coverage import BEYOND, NO_JUDGE
from evals.ragas_scores import answers, judge
from evals.ragas_scores.availability import ragas_problem
from evals.ragas_scores.event_loop import in_own_loop
from evals.ragas_scores.extractive import EXTRACTIVE, extractive_answer
from evals.ragas_scores.flags import flags
from evals.ragas_scores.frames import (
    ANSWERS,
    SCORES,
    STATEMENTS,
    AnswerRow,
    JudgedFrames,
    JudgedQuestion,
    JudgeSummary,
    ScoreRow,
    StatementRow,
    frame,
    rows_of,
)
from evals.ragas_scores.instructions import ENGLISH, Instructions
from evals.ragas_scores.lexical_support import lexical_support
from evals.ragas_scores.metrics.metric import Metric, Sample
from evals.ragas_scores.metrics.registry import METRICS
from evals.ragas_scores.question_vectors import QuestionVectors

if TYPE_CHECKING:
    from chunking_assets.config import JudgeSettings


Progress = Callable[[int, int], None]
"""Called with (questions done, questions in all)."""

ANSWER = "answer"
"""The work of answering, in the cost ledger; the others are named after their metric."""

_FINAL = ("refused", "content_filter", "truncated", "invalid_output")
"""What asking again would not change."""


@dataclass(frozen=True)
class _Unavailable:
    """Why nothing can be judged here: `kind` for the rows, `reason` with the cure."""

    kind: str
    reason: str


def judge_strategy(
    strategy: str,
    questions: Sequence[JudgedQuestion],
    settings: "JudgeSettings",
    cache_folder: Path,
    previous: JudgedFrames | None = None,
    progress: Progress | None = None,
    *,
    instructions: Instructions = ENGLISH,
    vectors: QuestionVectors | None = None,
) -> JudgedFrames:
    """Answer every question from its contexts and judge the answers and the contexts.

    The endpoint comes from the environment. Without one, or without a working ragas, every score
    reads `skipped` (`no_judge`, `ragas_unavailable`) and nothing is sent; answers too, unless they
    are extractive. `previous` are the rows of the last run: those with an unchanged key are taken
    over. Replies are kept in `cache_folder`. When the endpoint fails for good, `summary.stopped`
    says how. `vectors` are needed for `answer_relevancy`.

    Raises:
        CorpusError: the cache in `cache_folder` cannot be used, or `instructions` do not fit.
    """
    endpoint = endpoint_from_environment()
    unavailable = None
    if endpoint is None:
        unavailable = _Unavailable(NO_JUDGE, NO_ENDPOINT)
    elif problem := ragas_problem():
        unavailable = _Unavailable("ragas_unavailable", problem)
    last = _LastRun.of(strategy, previous)
    chosen = _chosen(questions, settings.max_questions)

    async def all_judged() -> JudgedFrames:
        async with AsyncExitStack() as stack:
            judging = None
            if unavailable is None and endpoint is not None:
                chat = await stack.enter_async_context(
                    _opened(stack, endpoint, settings, cache_folder)
                )
                judging = judge.Judge(chat, settings.judge_model, instructions, vectors)
            run = _Run(strategy, settings, judging, unavailable, last)
            finished = 0

            async def judged(question: JudgedQuestion) -> _Judged:
                nonlocal finished
                done = await run.question(question, question.question_id in chosen)
                finished += 1
                if progress is not None:
                    progress(finished, len(questions))
                return done

            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(judged(question)) for question in questions]
        return _frames([task.result() for task in tasks], run.summary())

    return in_own_loop(all_judged)


def _opened(
    stack: AsyncExitStack, endpoint: Endpoint, settings: "JudgeSettings", cache_folder: Path
) -> ChatEndpoint:
    cache = stack.enter_context(ResponseCache(cache_folder / CACHE_FILE))
    return ChatEndpoint(endpoint, cache, concurrency=settings.concurrency, timeout=settings.timeout)


def _chosen(questions: Sequence[JudgedQuestion], most: int | None) -> set[str]:
    """The ids judged when only `most` may be: by hash, so that adding questions moves few."""
    ids = [q.question_id for q in questions if not q.status.startswith("stale")]
    return set(sorted(ids, key=digest)[:most])


def _frames(done: Sequence["_Judged"], summary: JudgeSummary) -> JudgedFrames:
    return JudgedFrames(
        answers=frame([judged.answer for judged in done], ANSWERS),
        scores=frame([row for judged in done for row in judged.scores], SCORES),
        statements=frame([row for judged in done for row in judged.statements], STATEMENTS),
        summary=summary,
    )


@dataclass
class _Judged:
    """The rows of one question."""

    answer: AnswerRow
    scores: list[ScoreRow] = field(default_factory=list)
    statements: list[StatementRow] = field(default_factory=list)


@dataclass(frozen=True)
class _LastRun:
    """Rows that need not be made again, by question and key."""

    answers: dict[tuple[str, str | None], AnswerRow]
    scores: dict[tuple[str, str, str | None], ScoreRow]
    statements: dict[tuple[str, str], list[StatementRow]]

    @classmethod
    def of(cls, strategy: str, previous: JudgedFrames | None) -> "_LastRun":
        if previous is None:
            return cls({}, {}, {})
        statements: dict[tuple[str, str], list[StatementRow]] = defaultdict(list)
        for statement in rows_of(previous.statements, STATEMENTS, StatementRow):
            if statement.strategy == strategy:
                statements[statement.question_id, statement.metric].append(statement)
        return cls(
            {
                (row.question_id, row.answer_key): row
                for row in rows_of(previous.answers, ANSWERS, AnswerRow)
                if row.strategy == strategy and row.status == "ok"
            },
            {
                (row.question_id, row.metric, row.judge_key): row
                for row in rows_of(previous.scores, SCORES, ScoreRow)
                if row.strategy == strategy and row.status == "ok"
            },
            statements,
        )


class _Run:
    """Judges the questions of one strategy; without a judge, says so in every row."""

    def __init__(
        self,
        strategy: str,
        settings: "JudgeSettings",
        judging: judge.Judge | None,
        unavailable: _Unavailable | None,
        last: _LastRun,
    ) -> None:
        self.strategy, self.settings, self.last = strategy, settings, last
        self.judging, self.unavailable = judging, unavailable
        self.metrics = [METRICS[name] for name in settings.metrics]
        self.judges = {m.name: judging.name(m.name) for m in self.metrics} if judging else {}
        self.carried_over = 0
        self.costs: list[Entry] = []

    def summary(self) -> JudgeSummary:
        if self.judging is None:
            gone = self.unavailable
            skipped = None if gone is None else f"{gone.kind}: {gone.reason}"
            return JudgeSummary(skipped=skipped, carried_over=self.carried_over)
        chat = self.judging.chat
        return JudgeSummary(
            stopped=str(chat.stopped) if chat.stopped else None,
            carried_over=self.carried_over,
            requests=chat.spent.requests,
            cached_calls=chat.spent.cached,
            prompt_tokens=chat.spent.prompt_tokens,
            completion_tokens=chat.spent.completion_tokens,
            adaptations=chat.adaptations,
            costs=tuple(self.costs),
        )

    def spend(self, work: str, question_id: str, spent: Spent) -> None:
        """Note what was sent, or saved, for one question."""
        settings = self.settings
        model = settings.answer_model if work == ANSWER else settings.judge_model
        self.costs.append(
            Entry.of_calls(work, model, spent, strategy=self.strategy, question_id=question_id)
        )

    async def question(self, question: JudgedQuestion, chosen: bool) -> _Judged:
        done = _Judged(self.described(question, await self.answer(question, chosen)))
        for metric in self.metrics:
            score, statements = await self.score(question, metric, done.answer, chosen)
            done.scores.append(score)
            done.statements += statements
        return done

    async def answer(self, question: JudgedQuestion, chosen: bool) -> AnswerRow:
        row = AnswerRow(strategy=self.strategy, question_id=question.question_id, status="skipped")
        is_extractive = self.settings.answerer == "extractive"
        if not is_extractive and self.unavailable is not None:
            return replace(row, error_kind=self.unavailable.kind, error=self.unavailable.reason)
        row = replace(row, **self.answerer(question))
        if question.status.startswith("stale"):
            return replace(row, error_kind="stale")
        if not chosen:
            return replace(row, error_kind=BEYOND)
        if not self.settings.lexical_support and not any("answer" in m.reads for m in self.metrics):
            return replace(row, error_kind="not_needed")
        if not question.contexts:
            return replace(row, error_kind="no_contexts_retrieved")
        if (before := self.last.answers.get((question.question_id, row.answer_key))) is not None:
            self.carried_over += 1
            if before.answer_kind == "generated":
                self.spend(ANSWER, question.question_id, _saved(before, 1))
            return before
        if is_extractive:
            copied = extractive_answer(question.question, question.contexts)
            return _answered(row, copied, question.contexts)
        return await self.generated(row, question)

    def answerer(self, question: JudgedQuestion) -> dict[str, Any]:
        """Who answers, and the key under which that answer is kept."""
        if self.settings.answerer == "extractive" or self.judging is None:
            answerer, kind, parameters = EXTRACTIVE, "extractive", {}
        else:
            answerer = f"{self.settings.answer_model}@{self.judging.chat.host}"
            kind, parameters = "generated", judge.parameters()
        key = answers.answer_key(question.question, question.contexts, answerer, parameters)
        return {"answer_key": key, "answerer": answerer, "answer_kind": kind}

    async def generated(self, row: AnswerRow, question: JudgedQuestion) -> AnswerRow:
        """The model's answer; where its citations are wrong it is told so, once."""
        asked = answers.messages(question.question, question.contexts)
        spent = Spent()
        try:
            reply = await self.ask(asked)
            output, spent = reply.output, reply.spent
            if found := answers.issues(output, question.contexts):
                repaired = await self.repaired(asked, output, found)
                spent += repaired.spent
                if repaired.output and len(
                    answers.issues(repaired.output, question.contexts)
                ) < len(found):
                    output = repaired.output
        except CallFailed as failure:
            kind, message = _kind_and_message(failure)
            spent += failure.spent
            self.spend(ANSWER, question.question_id, spent)
            return replace(row, status="error", error_kind=kind, error=message, **_tokens(spent))
        self.spend(ANSWER, question.question_id, spent)
        return replace(_answered(row, output, question.contexts), **_tokens(spent))

    async def ask(self, asked: Sequence[dict[str, str]]) -> Any:
        assert self.judging is not None
        return await self.judging.chat.ask(
            self.settings.answer_model, asked, answers.GroundedAnswer, answers.check_complete
        )

    async def repaired(
        self,
        asked: Sequence[dict[str, str]],
        output: answers.GroundedAnswer,
        found: Sequence[str],
    ) -> "_Repaired":
        try:
            reply = await self.ask([*asked, *answers.repair(output, found)])
        except CallFailed as failure:
            if failure.kind not in _FINAL:
                raise  # the next run asks again, and would then be given another answer
            return _Repaired(None, failure.spent)
        return _Repaired(reply.output, reply.spent)

    def described(self, question: JudgedQuestion, row: AnswerRow) -> AnswerRow:
        """With what can be said of the answer without a model; rows of the last run, too."""
        if row.status != "ok" or row.abstained or not row.answer:
            return row
        found = flags(row.answer, question.contexts, question.language)
        said = [sentence["text"] for sentence in json.loads(row.sentences or "[]")]
        return replace(
            row,
            numbers_not_in_context=found.numbers,
            names_not_in_context=found.names,
            quotes_not_in_context=found.quotes,
            lexical_support=(
                lexical_support(said, question.contexts) if self.settings.lexical_support else None
            ),
        )

    async def score(
        self, question: JudgedQuestion, metric: Metric, answer: AnswerRow, chosen: bool
    ) -> tuple[ScoreRow, list[StatementRow]]:
        row = ScoreRow(
            strategy=self.strategy,
            question_id=question.question_id,
            metric=metric.name,
            status="not_applicable",
        )
        if self.unavailable is not None:
            kind, reason = self.unavailable.kind, self.unavailable.reason
            return replace(row, status="skipped", error_kind=kind, error=reason), []
        sample = Sample(
            question.question,
            answer.answer or "",
            question.reference_answer.strip(),
            tuple(question.contexts),
        )
        row = replace(row, judge=self.judges[metric.name], judge_key=self.key(metric, sample))
        settled = _settled(row, metric, question, answer, chosen)
        if settled is not None:
            return settled, []
        carried = self.last.scores.get((question.question_id, metric.name, row.judge_key))
        if carried is not None:
            self.carried_over += 1
            self.spend(metric.name, question.question_id, _saved(carried, carried.calls))
            return carried, self.last.statements.get((question.question_id, metric.name), [])
        return await self._judged(row, metric, sample)

    def key(self, metric: Metric, sample: Sample) -> str:
        """Equal while the same judge would read the same texts as often."""
        return digest(
            "judgement",
            metric.name,
            self.judges[metric.name],
            judge.parameters(),
            self.settings.judge_repeats,
            sample.question,
            *(getattr(sample, part) for part in sorted(metric.reads)),
        )

    async def _judged(
        self, row: ScoreRow, metric: Metric, sample: Sample
    ) -> tuple[ScoreRow, list[StatementRow]]:
        assert self.judging is not None
        judgements: list[judge.Judgement] = []
        try:
            for repeat in range(self.settings.judge_repeats):
                judgements.append(judge.Judgement())
                await self.judging.judge(metric, sample, judgements[-1], repeat)
        except CallFailed as failure:
            kind, message = _kind_and_message(failure)
            row = replace(row, status="error", error_kind=kind, error=message)
        except Exception as error:  # a defect ragas meets in one row must not cost the others
            problem = f"{type(error).__name__}: {error}"[:300]
            row = replace(row, status="error", error_kind="judge_error", error=problem)
        else:
            row = _with_value(row, judgements)
        spent = sum((judgement.spent for judgement in judgements), Spent())
        self.spend(metric.name, row.question_id, spent)
        row = replace(
            row,
            calls=spent.requests,
            cached_calls=spent.cached,
            latency_s=spent.seconds,
            **_tokens(spent),
        )
        if row.status != "ok":
            return row, []
        return row, [
            StatementRow(
                strategy=self.strategy,
                question_id=row.question_id,
                metric=row.metric,
                judgement=repeat,
                statement=number,
                source=verdict.source,
                text=verdict.statement,
                verdict=verdict.verdict,
                reason=verdict.reason,
            )
            for repeat, judgement in enumerate(judgements)
            for number, verdict in enumerate(judgement.said.verdicts)
        ]


@dataclass(frozen=True)
class _Repaired:
    """What the model made of its wrong citations; `output` None if nothing usable."""

    output: answers.GroundedAnswer | None
    spent: Spent


def _answered(row: AnswerRow, answer: answers.GroundedAnswer, contexts: Sequence[str]) -> AnswerRow:
    return replace(
        row,
        status="ok",
        answer=answer.text,
        abstained=not answer.found,
        sentences=answers.sentences_json(answer),
        issues=answers.issues(answer, contexts),
    )


def _settled(
    row: ScoreRow, metric: Metric, question: JudgedQuestion, answer: AnswerRow, chosen: bool
) -> ScoreRow | None:
    """The row, if it can be written without a judge."""
    if question.status.startswith("stale"):
        return replace(row, status="stale", judge_key=None, error_kind=question.status)
    if not chosen:
        return replace(row, status="skipped", judge_key=None, error_kind=BEYOND)
    if "reference" in metric.reads:
        if question.status == "unanswerable":
            return replace(row, error_kind="unanswerable")
        if not question.reference_answer.strip():
            return replace(row, error_kind="no_reference_answer")
    if "answer" in metric.reads:
        return _settled_by_answer(row, question, answer)
    if not question.contexts:
        # Nothing helps and nothing can be attributed to nothing: 0 by definition, not by judgement.
        return replace(row, status="ok", value=0.0, error_kind="no_contexts_retrieved")
    return None


def _settled_by_answer(
    row: ScoreRow, question: JudgedQuestion, answer: AnswerRow
) -> ScoreRow | None:
    if answer.status == "error":
        stopped = answer.error_kind is not None and answer.error_kind.startswith("stopped")
        return replace(
            row,
            status="error",
            judge_key=None,
            error_kind=answer.error_kind if stopped else "no_answer",
            error=answer.error if stopped else f"{answer.error_kind}: {answer.error}",
        )
    if not question.contexts:
        return replace(row, error_kind="no_contexts_retrieved")
    if answer.abstained:
        return replace(row, error_kind="abstained")
    return None


def _with_value(row: ScoreRow, judgements: Sequence[judge.Judgement]) -> ScoreRow:
    values = [judgement.value for judgement in judgements if judgement.value is not None]
    if not values:
        return replace(row, error_kind="no_statements")
    if len(values) < len(judgements):
        problem = f"{len(judgements) - len(values)} of {len(judgements)} found no statements"
        return replace(row, status="error", error_kind="invalid_output", error=problem)
    verdicts = [verdict.verdict for judgement in judgements for verdict in judgement.said.verdicts]
    return replace(
        row,
        status="ok",
        value=statistics.fmean(values),
        n_judgements=len(values),
        variance=statistics.variance(values) if len(values) > 1 else None,
        n_statements=len(verdicts),
        n_supported=sum(verdicts),
    )


def _kind_and_message(failure: CallFailed) -> tuple[str, str]:
    stopped = isinstance(failure, EndpointStopped)
    return f"stopped: {failure.kind}" if stopped else failure.kind, failure.message


def _saved(row: AnswerRow | ScoreRow, requests: int) -> Spent:
    """What a row that is taken over need not be paid for again."""
    sent, received = row.prompt_tokens, row.completion_tokens
    known = None if sent is None or received is None else sent + received
    return Spent(cached=requests, tokens_saved=known)


def _tokens(spent: Spent) -> dict[str, Any]:
    return {
        "prompt_tokens": spent.prompt_tokens,
        "completion_tokens": spent.completion_tokens,
    }
