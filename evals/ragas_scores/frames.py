"""What this stage takes and gives: questions in, three tables and a summary out.

A row exists for every question and metric whatever happened to it; a value exists only with status
`ok`. The schemas are fixed, so an empty table is still a table.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Literal, TypeVar

import polars as pl

from chunking_assets.cost_ledger import Entry

Schema = Mapping[str, pl.DataType | type[pl.DataType]]

ANSWERS: Schema = {
    "strategy": pl.String,
    "question_id": pl.String,
    "answer_key": pl.String,
    "answerer": pl.String,
    "answer_kind": pl.String,
    "status": pl.String,
    "answer": pl.String,
    "abstained": pl.Boolean,
    "sentences": pl.String,
    "issues": pl.List(pl.String),
    "numbers_not_in_context": pl.List(pl.String),
    "names_not_in_context": pl.List(pl.String),
    "quotes_not_in_context": pl.List(pl.String),
    "lexical_support": pl.Float64,
    "error_kind": pl.String,
    "error": pl.String,
    "prompt_tokens": pl.Int64,
    "completion_tokens": pl.Int64,
}
SCORES: Schema = {
    "strategy": pl.String,
    "question_id": pl.String,
    "metric": pl.String,
    "judge": pl.String,
    "judge_key": pl.String,
    "status": pl.String,
    "value": pl.Float64,
    "n_judgements": pl.Int64,
    "variance": pl.Float64,
    "error_kind": pl.String,
    "error": pl.String,
    "n_statements": pl.Int64,
    "n_supported": pl.Int64,
    "calls": pl.Int64,
    "cached_calls": pl.Int64,
    "prompt_tokens": pl.Int64,
    "completion_tokens": pl.Int64,
    "latency_s": pl.Float64,
}
STATEMENTS: Schema = {
    "strategy": pl.String,
    "question_id": pl.String,
    "metric": pl.String,
    "judgement": pl.Int64,
    "statement": pl.Int64,
    "source": pl.String,
    "text": pl.String,
    "verdict": pl.Int64,
    "reason": pl.String,
}


@dataclass(frozen=True)
class JudgedQuestion:
    """A gold question and the contexts a strategy retrieved for it, best first.

    `status` is `ok`, `unanswerable` (the documents do not hold the answer, which is the point), or
    begins with `stale` when its evidence is no longer in the documents. `language` is a BCP 47
    tag, empty if unknown.
    """

    question_id: str
    question: str
    reference_answer: str
    status: str
    contexts: list[str]
    language: str = ""


@dataclass(frozen=True, kw_only=True)
class AnswerRow:
    """One row of `answers`. What describes an answer is null unless `status` is `ok`.

    `sentences` is JSON: text, sources and quote of each. Flags are null, and not empty, where
    there is nothing to flag because it `abstained`.
    """

    strategy: str
    question_id: str
    answer_key: str | None = None
    answerer: str | None = None
    answer_kind: Literal["generated", "extractive"] | None = None
    status: Literal["ok", "error", "skipped"]
    answer: str | None = None
    abstained: bool | None = None
    sentences: str | None = None
    issues: list[str] = field(default_factory=list)
    numbers_not_in_context: list[str] | None = None
    names_not_in_context: list[str] | None = None
    quotes_not_in_context: list[str] | None = None
    lexical_support: float | None = None
    error_kind: str | None = None
    error: str | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None


@dataclass(frozen=True, kw_only=True)
class ScoreRow:
    """One row of `ragas_scores`. `value` is null unless `status` is `ok`.

    `value` is the mean of `n_judgements`, `variance` their sample variance (null of one);
    statements are counted over all of them.

    `calls` are requests sent for the row, `cached_calls` replies that needed none; tokens are the
    endpoint's count over `calls`, null once it did not say or when nothing was asked; `latency_s`
    is the time spent in calls.
    """

    strategy: str
    question_id: str
    metric: str
    judge: str | None = None
    judge_key: str | None = None
    status: Literal["ok", "error", "not_applicable", "stale", "skipped"]
    value: float | None = None
    n_judgements: int | None = None
    variance: float | None = None
    error_kind: str | None = None
    error: str | None = None
    n_statements: int | None = None
    n_supported: int | None = None
    calls: int = 0
    cached_calls: int = 0
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    latency_s: float = 0.0


@dataclass(frozen=True, kw_only=True)
class StatementRow:
    """One row of `ragas_statements`: the judge's word on one statement of one score."""

    strategy: str
    question_id: str
    metric: str
    judgement: int
    statement: int
    source: str
    text: str
    verdict: int
    reason: str


@dataclass(frozen=True)
class JudgeSummary:
    """What a run did. `skipped` says why nothing was judged, `stopped` what ended it early.

    `carried_over` rows were taken from the last run; `requests` and tokens are this run's alone
    (tokens None once the endpoint did not say); `adaptations` per model what its server did not
    accept. `costs` are what was sent for each question, and what need not be sent again.
    """

    skipped: str | None = None
    stopped: str | None = None
    carried_over: int = 0
    requests: int = 0
    cached_calls: int = 0
    prompt_tokens: int | None = 0
    completion_tokens: int | None = 0
    adaptations: dict[str, list[str]] = field(default_factory=dict)
    costs: tuple[Entry, ...] = ()


@dataclass(frozen=True)
class JudgedFrames:
    """The tables `answers`, `ragas_scores` and `ragas_statements` of one strategy."""

    answers: pl.DataFrame
    scores: pl.DataFrame
    statements: pl.DataFrame
    summary: JudgeSummary = field(default_factory=JudgeSummary)


Row = TypeVar("Row", AnswerRow, ScoreRow, StatementRow)


def frame(rows: Sequence[Row], schema: Schema) -> pl.DataFrame:
    return pl.DataFrame([asdict(row) for row in rows], schema=schema)


def rows_of(table: pl.DataFrame, schema: Schema, kind: type[Row]) -> list[Row]:
    """The rows of a table written before; none if it was written with other columns."""
    if table.schema != pl.Schema(schema):
        return []
    return [kind(**row) for row in table.iter_rows(named=True)]
