"""Which strategy is live: a log of promotions and rollbacks, of which the last state counts.

An event holds the whole declaration of its strategy, so a reader needs nothing but the workspace,
and a rollback restores what was served then, not what corpus.yaml calls by that name now.
"""

import getpass
import json
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

import polars as pl

from chunking_assets.chunk_embeddings.build import BATCH_CHUNKS, is_indexed
from chunking_assets.errors import CorpusError
from chunking_assets.live_index.gate import (
    NO_LIMITS,
    Evidence,
    PromotionSettings,
    refusals,
    unsound_cells,
)
from chunking_assets.live_index.strategy_cost import StrategyCost, strategy_cost
from chunking_assets.prices import NO_PRICES, Prices
from chunking_assets.retrieval.strategy import Strategy
from chunking_assets.workspace import Workspace

PROMOTIONS = "promotions"

PROMOTIONS_SCHEMA = pl.Schema(
    {
        "event_id": pl.String(),
        "at": pl.Datetime("us", "UTC"),
        "action": pl.String(),
        "strategy": pl.String(),
        "previous": pl.String(),
        "verdict": pl.String(),
        "numbers": pl.String(),
        "reason": pl.String(),
        "forced": pl.Boolean(),
        "overridden": pl.List(pl.String),
        "by": pl.String(),
        "declaration": pl.String(),
    }
)


class PromotionRefused(CorpusError):
    """The gate did not let a strategy through; the message says why and how to insist."""


@dataclass(frozen=True)
class Live:
    """The strategy readers serve, as it was declared when it was promoted."""

    strategy: str
    declared: str
    index_version: str
    model: dict[str, Any]
    profile: dict[str, Any]
    event_id: str


def live(workspace: Workspace, at: datetime | None = None) -> Live | None:
    """What is live now, or was at a moment; None before the first promotion."""
    stack = _stack(workspace, at)
    if not stack:
        return None
    event = stack[-1]
    recorded = json.loads(event["declaration"])
    return Live(strategy=event["strategy"], event_id=event["event_id"], **recorded)


Doubts = Callable[[str], Sequence[str]]
"""Given the name of the live strategy, what speaks against a stored verdict over it."""


def promote(
    workspace: Workspace,
    strategy: Strategy,
    shards: Sequence[str],
    *,
    settings: PromotionSettings = NO_LIMITS,
    prices: Prices = NO_PRICES,
    batch_chunks: int = BATCH_CHUNKS,
    doubts: Doubts = lambda live: (),
    reason: str = "",
    force: bool = False,
) -> dict[str, Any]:
    """Make a strategy live if the gate lets it through; returns the recorded event.

    The gate: its index holds every shard, no blocking check failed on it, the stored comparison
    with the strategy now live says "better" by as much as `settings` ask for, its costs are below
    their ceilings, and `doubts`, which looks closer at a verdict that would do, has none. The first
    promotion has nothing to be compared with. `force` overrides what was measured, never an index
    that is incomplete or unsound; what it overrode is recorded. `prices` and `batch_chunks` are
    those of `strategy_cost`.

    Raises:
        PromotionRefused: with what was found and the way to insist.
    """
    _check_servable(workspace, strategy, shards)
    with workspace.lock(PROMOTIONS):
        current = live(workspace)
        if current is not None and current.strategy == strategy.name:
            raise PromotionRefused(f"{strategy.name} is live already. Nothing to do.")
        cost = strategy_cost(workspace, strategy, shards, prices, batch_chunks)
        evidence = _evidence(workspace, strategy, current, cost)
        reasons = refusals(evidence, settings)
        if current is not None and evidence.verdict == "better":
            reasons += doubts(current.strategy)
        if reasons and not force:
            raise PromotionRefused(
                f"{strategy.name} against the live {current.strategy if current else '-'}: "
                f"{'; '.join(reasons)}. Nothing was promoted. To promote all the same (recorded as "
                f"forced): make promote STRATEGY={strategy.name} FORCE=1"
            )
        return _record(
            workspace,
            action="promote",
            strategy=strategy.name,
            previous=current.strategy if current else None,
            verdict=evidence.verdict,
            numbers=json.dumps(asdict(evidence), sort_keys=True),
            reason=reason,
            forced=bool(reasons),
            overridden=reasons,
            declaration=_declaration(strategy),
        )


def _check_servable(workspace: Workspace, strategy: Strategy, shards: Sequence[str]) -> None:
    """
    Raises:
        PromotionRefused: the index lacks a shard, or a blocking check failed on it.
    """
    index = strategy.index
    missing = [s for s in shards if not is_indexed(workspace, index.name, s)]
    if missing:
        raise PromotionRefused(
            f"{strategy.name}: index {index.name} does not hold {', '.join(missing)} yet. "
            "Bring the index up to date first."
        )
    unsound = unsound_cells(workspace, index.chunker_version.name, shards)
    if unsound:
        raise PromotionRefused(
            f"{strategy.name}: a blocking check failed on {', '.join(unsound)}. Build them again "
            "(make build); what the check found is on their page in the Dagster UI."
        )


def retained(workspace: Workspace, settings: PromotionSettings) -> list[str]:
    """The index versions of the live strategy and of those live before it that are retained,
    latest first: nothing may remove or clean what is served of them."""
    events = workspace.table(PROMOTIONS).read(columns=["strategy", "declaration"])
    if events is None:
        return []
    versions: dict[str, str] = {}
    for strategy, declaration in reversed(events.rows()):
        versions.setdefault(strategy, json.loads(declaration)["index_version"])
    return list(dict.fromkeys([*versions.values()][: settings.retain + 1]))


def check_live(workspace: Workspace, strategies: Mapping[str, Strategy]) -> None:
    """What is served must be declared as it was promoted: only what is declared is kept current,
    scored and compared.

    Raises:
        CorpusError: the live strategy is not declared, or declared otherwise.
    """
    current = live(workspace)
    if current is not None:
        _check_declared(current.strategy, current.declared, strategies, "The live strategy")


def rollback(
    workspace: Workspace, strategies: Mapping[str, Strategy], *, reason: str = ""
) -> dict[str, Any]:
    """Make live what was live before the last promotion still standing; returns the event.

    Raises:
        PromotionRefused: nothing was live before.
        CorpusError: what was live before is not declared any more, so its index is not current.
    """
    with workspace.lock(PROMOTIONS):
        stack = _stack(workspace)
        if len(stack) < 2:
            first = f"{stack[0]['strategy']} was the first; " if stack else ""
            raise PromotionRefused(f"{first}there is nothing to roll back to.")
        before = json.loads(stack[-2]["declaration"])["declared"]
        _check_declared(stack[-2]["strategy"], before, strategies, "The strategy to return to")
        return _record(
            workspace,
            action="rollback",
            strategy=stack[-2]["strategy"],
            previous=stack[-1]["strategy"],
            verdict=None,
            numbers=None,
            reason=reason,
            forced=False,
            overridden=[],
            declaration=stack[-2]["declaration"],
        )


def _check_declared(
    name: str, promoted: str, strategies: Mapping[str, Strategy], what: str
) -> None:
    if name not in strategies:
        raise CorpusError(
            f"{what}, {name}, is not declared in corpus.yaml any more. Declare it again as it was; "
            "it can go once another one is promoted."
        )
    if strategies[name].declared != promoted:
        raise CorpusError(
            f"{what}, {name}, is declared otherwise than it was promoted, and readers are served "
            "as it was. Restore its settings, and declare the new ones under another name."
        )


def _stack(workspace: Workspace, at: datetime | None = None) -> list[dict[str, Any]]:
    """The promotions still standing, now or at a moment, the live one last."""
    events = workspace.table(PROMOTIONS).read()
    if events is not None and at is not None:
        events = events.filter(pl.col("at") <= at)
    stack: list[dict[str, Any]] = []
    for event in [] if events is None else events.iter_rows(named=True):
        if event["action"] == "promote":
            stack.append(event)
        else:
            stack.pop()
    return stack


def _evidence(
    workspace: Workspace, strategy: Strategy, current: Live | None, cost: StrategyCost
) -> Evidence:
    """What is stored of a strategy, and of its comparison with what is live."""
    costs: dict[str, Any] = {
        "context_tokens": _context_tokens(workspace, strategy.name),
        "reindex_cost": cost.reindex,
        "storage_cost": cost.storage_per_month,
    }
    if current is None:
        return Evidence("first", **costs)
    comparisons = workspace.table("strategy_comparisons").read()
    if comparisons is None:
        return Evidence("not compared yet", **costs)
    primary = comparisons.filter(pl.col("is_primary") & (pl.col("baseline") == current.strategy))
    rows = {row["strategy"]: row for row in primary.iter_rows(named=True)}
    row = rows.get(strategy.name)
    if row is None:
        return Evidence("not compared with the live strategy yet", **costs)
    low, high, is_higher = row["ci_low"], row["ci_high"], (row["difference"] or 0) > 0
    return Evidence(
        verdict=row["verdict"],
        metric=row["metric"],
        difference=row["difference"],
        ci_low=low,
        ci_high=high,
        confidence=row["confidence"],
        gain=low if is_higher or high is None else -high,
        n_questions=row["n_questions"],
        coverage=row["coverage"],
        live_coverage=rows.get(current.strategy, {}).get("coverage"),
        **costs,
    )


def _context_tokens(workspace: Workspace, strategy: str) -> float | None:
    """Mean tokens a question is answered with, as the profile serves."""
    scores = workspace.table("retrieval_scores").read(strategy, ["metric", "cutoff", "value"])
    if scores is None:
        return None
    served = scores.filter((pl.col("metric") == "context_tokens") & (pl.col("cutoff") == "served"))
    mean = served["value"].mean()
    return mean if isinstance(mean, float) else None


def _declaration(strategy: Strategy) -> str:
    return json.dumps(
        {
            "declared": strategy.declared,
            "index_version": strategy.index.name,
            "model": {
                "name": strategy.index.model_name,
                "kind": strategy.index.model.kind,
                "settings": strategy.index.model.model_dump(mode="json"),
            },
            "profile": strategy.profile.model_dump(mode="json"),
        },
        sort_keys=True,
    )


def _record(workspace: Workspace, **event: Any) -> dict[str, Any]:
    event = {
        "event_id": uuid.uuid4().hex,
        "at": datetime.now(UTC),
        "by": _who(),
        **event,
    }
    workspace.table(PROMOTIONS).append(pl.DataFrame([event], schema=PROMOTIONS_SCHEMA))
    return event


def _who() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container whose user has no name
        return "unknown"
