"""How many answers and judgements a build would ask for, and how many tokens those took before.

What a strategy retrieves after a change of its index is not known before it is asked, so every
question of such a strategy counts: an upper bound. What was judged before costs nothing again.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from chunking_assets.chat_models.endpoint import endpoint_from_environment
from chunking_assets.workspace import Workspace
from evals.gold_questions.build import read_gold
from evals.ragas_scores.build import ANSWERS, RAGAS_SCORES
from evals.ragas_scores.metrics.registry import METRICS
from evals.ragas_scores.score import ANSWER

if TYPE_CHECKING:
    from chunking_assets.config import JudgeSettings

_ANSWER_COLUMNS = ["question_id", "status", "answerer", "prompt_tokens", "completion_tokens"]
_SCORE_COLUMNS = [
    "question_id", "metric", "judge", "status", "calls", "cached_calls", "prompt_tokens",
    "completion_tokens",
]  # fmt: skip


@dataclass(frozen=True)
class PlannedCalls:
    """What one strategy would ask one model for, at most.

    `times` counts answers or judgements; `calls` the requests they took before, one each where
    nothing is known; tokens are None where no such call was ever paid for.
    """

    strategy: str
    work: str
    model: str
    times: int
    calls: int
    tokens_sent: int | None
    tokens_received: int | None


def planned_calls(
    workspace: Workspace, strategy: str, settings: "JudgeSettings", *, is_retrieved_anew: bool
) -> list[PlannedCalls]:
    """What judging a strategy would ask for; nothing without an endpoint.

    `is_retrieved_anew` says that its index, its settings or the questions changed.

    Raises:
        CorpusError: there are no gold questions yet.
    """
    endpoint = endpoint_from_environment()
    if endpoint is None:
        return []
    gold = read_gold(workspace).questions.filter(~pl.col("status").str.starts_with("stale"))
    ids = set(gold["question_id"])
    most = min(len(ids), settings.max_questions or len(ids))
    planned = list(_planned(workspace, strategy, settings, most, endpoint.host, is_retrieved_anew))
    return [calls for calls in planned if calls.times]


def _planned(
    workspace: Workspace,
    strategy: str,
    settings: "JudgeSettings",
    most: int,
    host: str,
    is_retrieved_anew: bool,
) -> Iterator[PlannedCalls]:
    answers = _past(workspace, ANSWERS, _ANSWER_COLUMNS).with_columns(calls=1, cached_calls=0)
    scores = _past(workspace, RAGAS_SCORES, _SCORE_COLUMNS)
    reads_answer = any("answer" in METRICS[name].reads for name in settings.metrics)
    if settings.answerer == "model" and (reads_answer or settings.lexical_support):
        model = settings.answer_model
        done = answers.filter(
            (pl.col("strategy") == strategy) & (pl.col("answerer") == f"{model}@{host}")
        )
        left = most if is_retrieved_anew else most - _settled(done)
        yield _calls(strategy, ANSWER, model, left, answers)
    for name in settings.metrics:
        model, past = settings.judge_model, scores.filter(pl.col("metric") == name)
        done = past.filter(
            (pl.col("strategy") == strategy)
            & pl.col("judge").fill_null("").str.starts_with(f"{model}@{host}|")
        )
        left = most if is_retrieved_anew else most - _settled(done)
        yield _calls(strategy, name, model, left * settings.judge_repeats, past)


def _settled(rows: pl.DataFrame) -> int:
    """Questions with an outcome that stays."""
    return rows.filter(pl.col("status").is_in(["ok", "not_applicable"])).height


def _past(workspace: Workspace, table: str, columns: list[str]) -> pl.DataFrame:
    rows = workspace.table(table).read_all(columns=["strategy", *columns])
    if rows is None:
        return pl.DataFrame(schema={"strategy": pl.String, **dict.fromkeys(columns, pl.String)})
    return rows


def _calls(strategy: str, work: str, model: str, times: int, past: pl.DataFrame) -> PlannedCalls:
    """As many tokens and requests a time as it took before, over all strategies."""
    times = max(0, times)
    paid = past.filter(
        (pl.col("status") == "ok") & (pl.col("prompt_tokens").cast(pl.Int64) > 0)
    ).cast({"prompt_tokens": pl.Int64, "completion_tokens": pl.Int64, "calls": pl.Int64})
    if paid.is_empty():
        return PlannedCalls(strategy, work, model, times, times, None, None)

    def expected(column: str) -> int:
        return round(times * paid[column].sum() / paid.height)

    return PlannedCalls(
        strategy,
        work,
        model,
        times,
        expected("calls"),
        expected("prompt_tokens"),
        expected("completion_tokens"),
    )
