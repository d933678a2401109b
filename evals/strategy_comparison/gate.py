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
from evals.retrieval_scores.build import scored_from, scores_inputs
from evals.strategy_comparison.build import StoredScores, read_scores
from evals.strategy_comparison.verdict import is_cost, measured_otherwise

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
    min_difference: float = 0.0,
) -> Gate:
    """Judge one declared strategy against another by the metric that decides.

    All declared strategies are compared, so that trying many of them finds no winner by luck.
    `min_difference` is how much better the strategy must be, in the metric's own unit (0.02 is two
    points of recall); negative: how much worse it may be. It passes if the verdict is `better` than
    that, fails if it is `worse`, and is undecided otherwise.

    Raises:
        CorpusError: nothing can be compared at all.
    """
    stored = read_scores(workspace, list(strategies))
    for name in (strategy, against):
        if why := _not_of_now(workspace, strategies[name], shards, stored):
            return Gate("cannot decide", f"{name} {why}. Bring it up to date first: make build")
    margin = -min_difference if is_cost(settings.metric) else min_difference
    table = stored.against(against, settings, margin=margin).table
    rows = table.filter(pl.col("is_primary") & (pl.col("strategy") == strategy))
    if rows.is_empty():
        return Gate("cannot decide", "no gold question could be scored")
    row = rows.row(0, named=True)
    outcomes: Mapping[str, Outcome] = {"better": "pass", "worse": "fail"}
    asked = f"; at least {min_difference:+g} asked for" if min_difference else ""
    return Gate(
        outcomes.get(row["verdict"], "cannot decide"),
        f"{strategy} against {against}, {row['metric']}: {row['reason']}{asked}",
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
