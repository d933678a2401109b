"""What a person reads after a build: the leaderboard, the verdict, what was incremental."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from pathlib import PurePosixPath
from typing import Any

import polars as pl
from rich import box
from rich.console import Console
from rich.table import Table

from chunking_assets.build_log import BUILDS
from chunking_assets.config import Config
from chunking_assets.live_index.promotion import live
from chunking_assets.live_index.strategy_cost import StrategyCost, strategy_cost
from chunking_assets.parsed_elements.build import DOCUMENTS
from chunking_assets.workspace import Workspace
from evals.gold_questions.build import GOLD_QUESTIONS
from evals.ragas_scores.build import RAGAS_SCORES
from evals.retrieval_scores.build import RETRIEVAL_SCORES
from evals.strategy_comparison.build import STRATEGY_COMPARISONS
from evals.strategy_comparison.verdict import explain

SHOWN = ("mrr@10", "recall@1000t", "context_tokens@5")
LEAST_WIDTH, LISTED = 120, 20
EXAMPLE_QUERY = "select strategy, recall_at_5, mean_context_tokens, verdict from leaderboard;"


@dataclass(frozen=True)
class Totals:
    """What the builds since some moment did, all assets together."""

    documents_parsed: int = 0
    documents_removed: int = 0
    chunks_redone: int = 0
    vectors_embedded: int = 0
    vectors_reused: int = 0
    tokens_embedded: int = 0


def totals_since(workspace: Workspace, moment: float) -> Totals:
    """Add up the build log from `moment` (seconds since the epoch) on."""
    builds = workspace.table(BUILDS).read_all()
    if builds is None:
        return Totals()
    recent = builds.filter(pl.col("at") >= datetime.fromtimestamp(moment, UTC))
    parsed = recent.filter(pl.col("asset") == "parsed_elements")
    return Totals(
        documents_parsed=int(parsed["documents_added"].sum())
        + int(parsed["documents_changed"].sum()),
        documents_removed=int(parsed["documents_removed"].sum()),
        **{
            field.name: int(recent[field.name].sum())
            for field in fields(Totals)
            if field.name in recent.columns and not field.name.startswith("documents")
        },
    )


def print_summary(config: Config, totals: Totals, built: int, failed: int = 0) -> None:
    """The leaderboard with its verdict, the work done, and where to go from here.

    `built` is how many partitions of any asset were built, `failed` how many runs failed.
    """
    console, workspace = Console(), Workspace(config.home)
    console.width = max(console.width, LEAST_WIDTH)
    documents = workspace.table(DOCUMENTS).read_all(columns=["doc_id", "status", "error", "cure"])
    if documents is not None:
        _print_leaderboard(console, config, workspace)
        _print_unread(console, documents)
    if built or not failed:
        _print_work(console, totals, built, 0 if documents is None else documents.height)
    if workspace.eval_database.exists():
        console.print(
            f"\nFor analysts  {workspace.eval_database}\n{' ' * 14}{EXAMPLE_QUERY}",
            highlight=False,
            soft_wrap=True,
        )
    console.print("Dagster UI    make dev", highlight=False)
    if live(workspace) is not None:
        console.print('Ask it        make ask Q="How long do refunds take?"', highlight=False)


def _print_unread(console: Console, documents: pl.DataFrame) -> None:
    """Formats nobody reads are counted; of what should have been read, each is named."""
    rows = documents.filter(~pl.col("status").is_in(["ok", "empty"])).rows()
    unsupported = Counter(PurePosixPath(r[0]).suffix or r[0] for r in rows if r[1] == "unsupported")
    if unsupported:
        kinds = ", ".join(f"{count} {suffix}" for suffix, count in unsupported.most_common(12))
        console.print(
            f"[yellow]unsupported[/] {unsupported.total()} documents: {kinds}. Convert them to "
            "Markdown, HTML or text, or exclude them; each is in the view document_status.",
            highlight=False,
        )
    others = [row for row in rows if row[1] != "unsupported"]
    for doc_id, status, error, cure in others[:LISTED]:
        console.print(f"[yellow]{status}[/] {doc_id}: {error.rstrip('.')}. {cure}", highlight=False)
    if len(others) > LISTED:
        console.print(f"… and {len(others) - LISTED} more in the view document_status.")


def _print_work(console: Console, totals: Totals, built: int, documents: int) -> None:
    if not built:
        console.print(
            f"\nNothing changed: {documents} documents looked at; 0 parsed, 0 chunked, 0 embedded.",
            highlight=False,
        )
        return
    asked = totals.vectors_embedded + totals.vectors_reused
    share = f" ({totals.vectors_reused / asked:.0%} reused)" if asked else ""
    console.print(
        f"\nDone: {totals.documents_parsed} documents parsed, {totals.documents_removed} removed, "
        f"{totals.chunks_redone} chunks made, {totals.vectors_embedded} vectors embedded "
        f"({totals.tokens_embedded:,} tokens){share}.",
        highlight=False,
    )


def _print_leaderboard(console: Console, config: Config, workspace: Workspace) -> None:
    comparisons = workspace.table(STRATEGY_COMPARISONS).read()
    scores = workspace.table(RETRIEVAL_SCORES).read_all(list(config.strategies))
    if comparisons is None or scores is None:
        return
    current = live(workspace)
    means = {
        (strategy, measure): value
        for strategy, measure, value in scores.with_columns(
            measure=pl.concat_str("metric", "cutoff", separator="@")
        )
        .group_by("strategy", "measure")
        .agg(pl.col("value").mean())
        .iter_rows()
    }
    primary = comparisons.filter("is_primary")
    if primary.is_empty():
        console.print("No gold question can be scored, so nothing is compared (see README.md).")
        _print_stale(console, workspace)
        return
    metric = primary["metric"][0]
    title = f"Leaderboard, {primary['n_questions'][0]} questions"
    table = Table(
        title=title, title_justify="left", box=box.SIMPLE_HEAD, padding=0, collapse_padding=True
    )
    table.add_column("strategy", no_wrap=True)
    for column in (metric, "vs live [95 %]", "P(best)"):
        table.add_column(column, justify="right", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    for measure in SHOWN:
        name = measure.replace("context_tokens@5", "tokens")
        table.add_column(name, justify="right", no_wrap=True)
    costs = _known_costs(config, workspace)
    for column in ("re-index", "a month") if costs else ():
        table.add_column(column, justify="right", no_wrap=True)
    for row in primary.iter_rows(named=True):
        name = row["strategy"]
        marker = " ●" if current is not None and current.strategy == name else ""
        table.add_row(
            name + marker,
            _points(row["mean"]),
            _difference(row),
            "" if row["p_best"] is None else f"{row['p_best']:.2f}",
            _verdict(row),
            *(_points(means.get((name, m))) for m in SHOWN[:-1]),
            f"{means.get((name, SHOWN[-1]), 0):.0f}",
            *_costs(costs, name),
        )
    console.print(table)
    console.print(
        "● live, what the others are compared with. Scores in percent, tokens per question; "
        "could show: the smallest difference these questions tell from none.",
        highlight=False,
    )
    _print_stale(console, workspace)
    _print_judged(console, config, workspace)


def _known_costs(config: Config, workspace: Workspace) -> dict[str, StrategyCost]:
    """What strategies would cost; nothing where corpus.yaml has no prices."""
    shards, batch = list(config.shards()), config.embedding.batch_chunks
    return {
        name: strategy_cost(workspace, strategy, shards, config.prices, batch)
        for name, strategy in (config.strategies if config.prices.entries else {}).items()
    }


def _costs(costs: Mapping[str, StrategyCost], strategy: str) -> list[str]:
    if not costs:
        return []
    found = costs.get(strategy)
    shown = (None, None) if found is None else (found.reindex, found.storage_per_month)
    return ["?" if money is None else str(money) for money in shown]


def _print_stale(console: Console, workspace: Workspace) -> None:
    questions = workspace.table(GOLD_QUESTIONS).read(columns=["question_id", "status", "reason"])
    if questions is not None:
        for question_id, _, reason in questions.filter(pl.col("status") == "stale").iter_rows():
            console.print(f"[yellow]stale[/] question {question_id}: {reason}", highlight=False)


def _points(value: float | None) -> str:
    return "" if value is None else f"{100 * value:.1f}"


def _difference(row: dict[str, Any]) -> str:
    if row["verdict"] == "baseline" or row["difference"] is None or row["ci_low"] is None:
        return ""
    low, high = 100 * row["ci_low"], 100 * row["ci_high"]
    return f"{100 * row['difference']:+.1f} [{low:+.1f}, {high:+.1f}]"


def _verdict(row: dict[str, Any]) -> str:
    """The word, and where it is "cannot tell", why: `explain` without the figures shown beside."""
    if row["verdict"] != "cannot tell":
        return str(row["verdict"])
    reason = explain(row).removeprefix("cannot tell: ").rpartition(", these questions ")[2]
    return f"cannot tell ({reason.partition(', about ')[0]})"


def _print_judged(console: Console, config: Config, workspace: Workspace) -> None:
    judged = workspace.table(RAGAS_SCORES).read_all(
        list(config.strategies), ["status", "error_kind"]
    )
    if judged is None or judged.is_empty():
        return
    counts = judged.group_by("status", "error_kind").len().sort("len", descending=True)
    text = ", ".join(
        f"{count} {status}{f' / {kind}' if kind else ''}"
        for status, kind, count in counts.iter_rows()
    )
    console.print(f"RAGAS rows: {text}", highlight=False)
