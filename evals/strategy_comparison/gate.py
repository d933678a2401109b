"""May this strategy replace that one? For a team's own continuous integration.

It passes only what is shown, and decides nothing on scores that are missing, of another state of
the index or the questions, or measured otherwise: what cannot be decided is not let through.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import polars as pl

from chunking_assets.retrieval.strategy import Strategy
from chunking_assets.workspace import Workspace
from evals.ragas_scores.build import JUDGED
from evals.retrieval_scores.build import scored_from, scores_inputs
from evals.strategy_comparison.build import StoredScores, read_scores
from evals.strategy_comparison.verdict import in_words, is_cost, measured_otherwise

if TYPE_CHECKING:
    from chunking_assets.config import ComparisonSettings

Outcome = Literal["pass", "fail", "cannot decide"]
EXIT_STATUS: Mapping[Outcome, int] = {"pass": 0, "fail": 1, "cannot decide": 2}


@dataclass(frozen=True)
class Gate:
    """Whether a strategy is let through, and the reason in words."""

    outcome: Outcome
    reason: str


def gate(
    workspace: Workspace,
    strategies: Mapping[str, Strategy],
    shards: Sequence[str],
    settings: "ComparisonSettings",
    strategy: str,
    against: str,
    *,
    asked_as: str,
    min_difference: float = 0.0,
    judged_as: str | None = None,
) -> Gate:
    """Judge one declared strategy against another by the metric that decides.

    All declared strategies are compared, so that trying many of them finds no winner by luck.
    `min_difference` is how much better the strategy must be, in the metric's own unit (0.02 is two
    points of recall); negative: how much worse it may be. `asked_as` is the content of the question
    files as they are now (`content_now`): an edit that was not scored yet is another measurement.
    `judged_as` is what judging would be like
    now (`judge_identity`), for a metric that is judged; its judge must agree with people, too. The
    strategy passes if the verdict is `better` than that difference, fails if it is `worse`, and is
    undecided otherwise.

    Raises:
        CorpusError: nothing can be compared at all.
    """
    stored = read_scores(workspace, list(strategies))
    for name in (strategy, against):
        why = _not_of_now(workspace, strategies[name], shards, stored)
        if why is None and settings.metric in JUDGED:
            why = _not_judged_now(stored, name, judged_as)
        if why:
            return Gate("cannot decide", f"{name} {why}. Bring it up to date first: make build")
    if stored.gold.content != asked_as:
        return Gate(
            "cannot decide",
            "the question files, or the documents they quote, changed since they were scored. "
            "Bring the scores up to date first: make build",
        )
    margin = -min_difference if is_cost(settings.metric) else min_difference
    table = stored.against(against, settings, margin=margin).table
    rows = table.filter(pl.col("is_primary") & (pl.col("strategy") == strategy))
    if rows.is_empty():
        return Gate("cannot decide", "no gold question could be scored")
    row = rows.row(0, named=True)
    outcomes: Mapping[str, Outcome] = {"better": "pass", "worse": "fail"}
    asked = f"; at least {in_words(min_difference, row['metric'])} asked for"
    return Gate(
        outcomes.get(row["verdict"], "cannot decide"),
        f"{strategy} against {against}, {row['metric']}: {row['reason']}"
        f"{asked if min_difference else ''}",
    )


def _not_of_now(
    workspace: Workspace, strategy: Strategy, shards: Sequence[str], stored: StoredScores
) -> str | None:
    scored = stored.scored.get(strategy.name)
    if scored is None:
        return "has no scores"
    if scored.changed:
        return f"was {measured_otherwise(scored.changed)}"
    now = scores_inputs(workspace, strategy, shards, stored.gold)
    if scored_from(workspace, strategy.name) != now:
        return "was scored on another state of its index, its settings or the questions"
    return None


def _not_judged_now(stored: StoredScores, strategy: str, judged_as: str | None) -> str | None:
    judged = stored.judged.get(strategy)
    if judged is None:
        return "has no judged scores"
    if judged.retrieval != stored.scored[strategy].version:
        return "was judged on passages of another state of its index"
    if judged.identity != judged_as:
        return "was judged under other settings, or at another endpoint, than there are here"
    return None
