"""Which strategy is live: a log of promotions and rollbacks, of which the last state counts.

An event holds the whole declaration of its strategy, so a reader needs nothing but the workspace,
and a rollback restores what was served then, not what corpus.yaml calls by that name now.
"""

import getpass
import json
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import polars as pl

from chunking_assets.chunk_embeddings.build import is_indexed
from chunking_assets.errors import CorpusError
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
        "reason": pl.String(),
        "forced": pl.Boolean(),
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


def live(workspace: Workspace) -> Live | None:
    """What is live now, or None before the first promotion."""
    stack = _stack(workspace)
    if not stack:
        return None
    event = stack[-1]
    recorded = json.loads(event["declaration"])
    return Live(strategy=event["strategy"], event_id=event["event_id"], **recorded)


def promote(
    workspace: Workspace,
    strategy: Strategy,
    shards: Sequence[str],
    *,
    reason: str = "",
    force: bool = False,
) -> dict[str, Any]:
    """Make a strategy live if the gate lets it through; returns the recorded event.

    The gate: its index holds every shard, and against the strategy now live the comparison says
    "better". The first promotion has nothing to be compared with. `force` overrides the verdict,
    never the completeness, and is recorded.

    Raises:
        PromotionRefused: with the verdict found and the way to insist.
    """
    missing = [s for s in shards if not is_indexed(workspace, strategy.index.name, s)]
    if missing:
        raise PromotionRefused(
            f"{strategy.name}: index {strategy.index.name} does not hold {', '.join(missing)} yet. "
            "Bring the index up to date first."
        )
    with workspace.lock(PROMOTIONS):
        current = live(workspace)
        if current is not None and current.strategy == strategy.name:
            raise PromotionRefused(f"{strategy.name} is live already. Nothing to do.")
        verdict, shown = _verdict(workspace, strategy.name, current)
        if verdict not in ("better", "first") and not force:
            raise PromotionRefused(
                f"{strategy.name} against the live {current.strategy if current else '-'}: "
                f"{verdict}{shown}. Nothing was promoted. To promote all the same (recorded as "
                f"forced): make promote STRATEGY={strategy.name} FORCE=1"
            )
        return _record(
            workspace,
            action="promote",
            strategy=strategy.name,
            previous=current.strategy if current else None,
            verdict=verdict,
            reason=reason,
            forced=force and verdict not in ("better", "first"),
            declaration=_declaration(strategy),
        )


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
            reason=reason,
            forced=False,
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


def _stack(workspace: Workspace) -> list[dict[str, Any]]:
    """The promotions still standing, the live one last."""
    events = workspace.table(PROMOTIONS).read()
    stack: list[dict[str, Any]] = []
    for event in [] if events is None else events.iter_rows(named=True):
        if event["action"] == "promote":
            stack.append(event)
        else:
            stack.pop()
    return stack


def _verdict(workspace: Workspace, strategy: str, current: Live | None) -> tuple[str, str]:
    """The word of the comparison with what is live, and the figures behind it."""
    if current is None:
        return "first", ""
    comparisons = workspace.table("strategy_comparisons").read()
    if comparisons is None:
        return "not compared yet", ""
    rows = comparisons.filter(
        pl.col("is_primary")
        & (pl.col("strategy") == strategy)
        & (pl.col("baseline") == current.strategy)
    )
    if rows.is_empty():
        return "not compared with the live strategy yet", ""
    row = rows.row(0, named=True)
    if row["ci_low"] is None:
        return row["verdict"], f" ({row['n_questions']} questions)"
    low, high = row["ci_low"], row["ci_high"]
    figures = f" ({row['metric']} {row['difference']:+.3f} [{low:+.3f}, {high:+.3f}])"
    return row["verdict"], figures


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
