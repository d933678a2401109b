"""Answers and RAGAS scores of one strategy: which questions are judged, carried over, left out.

Every question has a row for its answer and for each metric, whatever happens: a failure is a row
with its kind and no value, and costs its neighbours nothing. A row whose key is unchanged is taken
from the last run; a failure no repetition cures stops the sending, keeps what is done and marks
the rest.
"""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from chunking_assets.keys import digest
from evals.ragas_scores import answers, judge
from evals.ragas_scores.availability import (
    NO_JUDGE,
    Endpoint,
    endpoint_from_environment,
    ragas_problem,
)
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
from evals.ragas_scores.response_cache import ResponseCache
from evals.ragas_scores.transport import CallFailed, ChatEndpoint, EndpointStopped, Spent

if TYPE_CHECKING:
    from chunking_assets.config import JudgeSettings

CACHE_FILE = "chat_replies.sqlite"

Progress = Callable[[int, int], None]
"""Called with (questions done, questions in all)."""

Result = TypeVar("Result")


def judge_strategy(
    strategy: str,
    questions: Sequence[JudgedQuestion],
    settings: "JudgeSettings",
    cache_folder: Path,
    previous: JudgedFrames | None = None,
    progress: Progress | None = None,
) -> JudgedFrames:
    """Answer every question from its contexts and judge the answers and the contexts.

    The endpoint comes from the environment. Without one, or without a working ragas, every row
    reads `skipped` (`no_judge`, `ragas_unavailable`) and nothing is sent. `previous` are the rows
    of the last run: those with an unchanged key are taken over. Replies are kept in
    `cache_folder`. When the endpoint fails for good, `summary.stopped` says how.

    Raises:
        CorpusError: the cache in `cache_folder` cannot be used.
    """
    endpoint = endpoint_from_environment()
    if endpoint is None:
        return _all_skipped(strategy, questions, settings, "no_judge", NO_JUDGE)
    if problem := ragas_problem():
        return _all_skipped(strategy, questions, settings, "ragas_unavailable", problem)
    run = partial(
        _judge_all, strategy, questions, settings, endpoint, cache_folder, previous, progress
    )
    return _in_own_loop(run)


def _all_skipped(
    strategy: str,
    questions: Sequence[JudgedQuestion],
    settings: "JudgeSettings",
    kind: str,
    reason: str,
) -> JudgedFrames:
    done = [
        _Judged(
            AnswerRow(
                strategy=strategy,
                question_id=question.question_id,
                status="skipped",
                error_kind=kind,
                error=reason,
            ),
            [
                ScoreRow(
                    strategy=strategy,
                    question_id=question.question_id,
                    metric=metric,
                    status="skipped",
                    error_kind=kind,
                    error=reason,
                )
                for metric in settings.metrics
            ],
        )
        for question in questions
    ]
    return _frames(done, JudgeSummary(skipped=f"{kind}: {reason}"))


def _in_own_loop(work: Callable[[], Coroutine[Any, Any, Result]]) -> Result:
    """Run to the end from plain code, also where a loop runs already, as in a notebook."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work())
    with ThreadPoolExecutor(1) as other_thread:
        return other_thread.submit(lambda: asyncio.run(work())).result()


async def _judge_all(
    strategy: str,
    questions: Sequence[JudgedQuestion],
    settings: "JudgeSettings",
    endpoint: Endpoint,
    cache_folder: Path,
    previous: JudgedFrames | None,
    progress: Progress | None,
) -> JudgedFrames:
    with ResponseCache(cache_folder / CACHE_FILE) as cache:
        async with ChatEndpoint(
            endpoint, cache, concurrency=settings.concurrency, timeout=settings.timeout
        ) as chat:
            run = _Run(strategy, settings, chat, _LastRun.of(strategy, previous))
            chosen = _chosen(questions, settings.max_questions)
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
    summary = JudgeSummary(
        stopped=str(chat.stopped) if chat.stopped else None,
        carried_over=run.carried_over,
        requests=chat.spent.requests,
        cached_calls=chat.spent.cached,
        prompt_tokens=chat.spent.prompt_tokens,
        completion_tokens=chat.spent.completion_tokens,
        adaptations=chat.adaptations,
    )
    return _frames([task.result() for task in tasks], summary)


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
    """Judges the questions of one strategy at one endpoint."""

    def __init__(
        self, strategy: str, settings: "JudgeSettings", chat: ChatEndpoint, last: _LastRun
    ) -> None:
        self.strategy, self.settings, self.chat, self.last = strategy, settings, chat, last
        self.answerer = f"{settings.answer_model}@{chat.host}"
        self.judges: dict[str, str] = {
            metric: judge.judge_name(settings.judge_model, chat.host, metric)
            for metric in settings.metrics
        }
        self.carried_over = 0

    async def question(self, question: JudgedQuestion, chosen: bool) -> _Judged:
        done = _Judged(await self.answer(question, chosen))
        for metric in self.settings.metrics:
            score, statements = await self.score(question, metric, done.answer, chosen)
            done.scores.append(score)
            done.statements += statements
        return done

    async def answer(self, question: JudgedQuestion, chosen: bool) -> AnswerRow:
        contexts = question.contexts
        key = answers.answer_key(question.question, contexts, self.answerer, judge.parameters())
        row = AnswerRow(
            strategy=self.strategy,
            question_id=question.question_id,
            answer_key=key,
            answerer=self.answerer,
            status="skipped",
        )
        if question.status.startswith("stale"):
            return replace(row, error_kind="stale")
        if not chosen:
            return replace(row, error_kind="max_questions")
        if "faithfulness" not in self.settings.metrics:
            return replace(row, error_kind="not_needed")
        if not contexts:
            return replace(row, error_kind="no_contexts_retrieved")
        if (before := self.last.answers.get((question.question_id, key))) is not None:
            self.carried_over += 1
            return before
        try:
            reply = await self.chat.ask(
                self.settings.answer_model,
                answers.messages(question.question, contexts),
                answers.GroundedAnswer,
                answers.check_complete,
            )
        except CallFailed as failure:
            kind, message = _kind_and_message(failure)
            return replace(
                row, status="error", error_kind=kind, error=message, **_tokens(failure.spent)
            )
        return replace(
            row,
            status="ok",
            answer=reply.output.text,
            abstained=not reply.output.found,
            issues=answers.issues(reply.output, contexts),
            **_tokens(reply.spent),
        )

    async def score(
        self, question: JudgedQuestion, metric: str, answer: AnswerRow, chosen: bool
    ) -> tuple[ScoreRow, list[StatementRow]]:
        faithfulness = metric == "faithfulness"
        text = (answer.answer or "") if faithfulness else question.reference_answer.strip()
        row = ScoreRow(
            strategy=self.strategy,
            question_id=question.question_id,
            metric=metric,
            judge=self.judges[metric],
            judge_key=digest(
                "judgement",
                metric,
                self.judges[metric],
                judge.parameters(),
                question.question,
                text,
                question.contexts,
            ),
            status="not_applicable",
        )
        settled = _left_out(row, question, chosen)
        if settled is None and faithfulness:
            settled = _faithfulness_settled(row, question, answer)
        elif settled is None:
            settled = _context_recall_settled(row, question, text)
        if settled is not None:
            return settled, []
        carried = self.last.scores.get((question.question_id, metric, row.judge_key))
        if carried is not None:
            self.carried_over += 1
            return carried, self.last.statements.get((question.question_id, metric), [])
        return await self._judged(row, question, text)

    async def _judged(
        self, row: ScoreRow, question: JudgedQuestion, text: str
    ) -> tuple[ScoreRow, list[StatementRow]]:
        judgement = judge.Judgement()
        try:
            await judge.judge(
                self.chat,
                self.settings.judge_model,
                row.metric,
                question.question,
                text,
                question.contexts,
                judgement,
            )
        except CallFailed as failure:
            kind, message = _kind_and_message(failure)
            row = replace(row, status="error", error_kind=kind, error=message)
        except Exception as error:  # a defect ragas meets in one row must not cost the others
            problem = f"{type(error).__name__}: {error}"[:300]
            row = replace(row, status="error", error_kind="judge_error", error=problem)
        else:
            row = _with_value(row, judgement)
        spent = judgement.spent
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
                statement=number,
                text=verdict.statement,
                verdict=verdict.verdict,
                reason=verdict.reason,
            )
            for number, verdict in enumerate(judgement.verdicts)
        ]


# Each of these gives the row if it can be written without a judge.


def _left_out(row: ScoreRow, question: JudgedQuestion, chosen: bool) -> ScoreRow | None:
    if question.status.startswith("stale"):
        return replace(row, status="stale", judge_key=None, error_kind=question.status)
    if not chosen:
        return replace(row, status="skipped", judge_key=None, error_kind="max_questions")
    return None


def _faithfulness_settled(
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


def _context_recall_settled(row: ScoreRow, question: JudgedQuestion, text: str) -> ScoreRow | None:
    if question.status == "unanswerable":
        return replace(row, error_kind="unanswerable")
    if not text:
        return replace(row, error_kind="no_reference_answer")
    if not question.contexts:
        # Nothing can be attributed to nothing: 0 by definition, not by judgement.
        return replace(row, status="ok", value=0.0, error_kind="no_contexts_retrieved")
    return None


def _with_value(row: ScoreRow, judgement: judge.Judgement) -> ScoreRow:
    if judgement.value is None:
        return replace(row, error_kind="no_statements")
    return replace(
        row,
        status="ok",
        value=judgement.value,
        n_statements=len(judgement.verdicts),
        n_supported=sum(verdict.verdict for verdict in judgement.verdicts),
    )


def _kind_and_message(failure: CallFailed) -> tuple[str, str]:
    stopped = isinstance(failure, EndpointStopped)
    return f"stopped: {failure.kind}" if stopped else failure.kind, failure.message


def _tokens(spent: Spent) -> dict[str, Any]:
    return {
        "prompt_tokens": spent.prompt_tokens,
        "completion_tokens": spent.completion_tokens,
    }
