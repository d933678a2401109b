"""What a person reads after a build: the leaderboard, the verdict, what was incremental."""

from dataclasses import dataclass, fields
from datetime import UTC, datetime

import polars as pl
from rich.console import Console
from rich.table import Table

from chunking_assets.build_log import BUILDS
from chunking_assets.config import Config
from chunking_assets.live_index.promotion import live
from chunking_assets.parsed_elements.build import DOCUMENTS
from chunking_assets.workspace import Workspace
from evals.ragas_scores.build import RAGAS_SCORES
from evals.retrieval_scores.build import RETRIEVAL_SCORES
from evals.strategy_comparison.build import STRATEGY_COMPARISONS
from evals.strategy_comparison.verdict import explain

SHOWN = ("recall@5", "precision@5", "mrr@10", "recall@1000t", "context_tokens@5")


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
        documents_parsed=int(parsed["documents_added"].sum() + parsed["documents_changed"].sum()),
        documents_removed=int(parsed["documents_removed"].sum()),
        **{
            field.name: int(recent[field.name].sum())
            for field in fields(Totals)
            if field.name in recent.columns and not field.name.startswith("documents")
        },
    )


def print_summary(config: Config, totals: Totals) -> None:
    """The leaderboard with its verdict, the work done, and where to go from here."""
    console, workspace = Console(), Workspace(config.home)
    documents = workspace.table(DOCUMENTS).read_all(columns=["doc_id", "status", "error", "cure"])
    if documents is not None:
        _print_leaderboard(console, config, workspace)
        for doc_id, status, error, cure in documents.filter(
            ~pl.col("status").is_in(["ok", "empty"])
        ).iter_rows():
            console.print(f"[yellow]{status}[/] {doc_id}: {error} {cure}", highlight=False)
    _print_work(console, totals, 0 if documents is None else documents.height)
    if workspace.eval_database.exists():
        console.print(
            f"\nFor analysts  {workspace.eval_database}\n"
            "              select strategy, recall_at_5, mean_context_tokens, verdict "
            "from leaderboard;",
            highlight=False,
            soft_wrap=True,
        )
    console.print("Dagster UI    make dev", highlight=False)
    if live(workspace) is not None:
        console.print('Ask it        make ask Q="How long do refunds take?"', highlight=False)


def _print_work(console: Console, totals: Totals, documents: int) -> None:
    if totals == Totals():
        console.print(
            f"\nNothing changed: {documents} documents looked at; "
            "0 parsed, 0 chunked, 0 embedded.",
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
    table = Table(title=f"Leaderboard, {primary['n_questions'][0]} questions", title_justify="left")
    table.add_column("strategy", no_wrap=True)
    for measure in SHOWN:
        table.add_column(measure, justify="right")
    table.add_column("P(best)", justify="right")
    table.add_column("verdict")
    for row in primary.iter_rows(named=True):
        name = row["strategy"]
        shown = [means.get((name, measure)) for measure in SHOWN]
        marker = " ●" if current is not None and current.strategy == name else ""
        table.add_row(
            name + marker,
            *("" if v is None else f"{v:.0f}" if v > 1 else f"{100 * v:.1f}" for v in shown),
            "" if row["p_best"] is None else f"{row['p_best']:.2f}",
            explain(row),
        )
    console.print(table)
    console.print("● live. Scores in percent; context tokens per question.", highlight=False)
    _print_judged(console, config, workspace)


def _print_judged(console: Console, config: Config, workspace: Workspace) -> None:
    judged = workspace.table(RAGAS_SCORES).read_all(
        list(config.strategies), ["status", "error_kind"]
    )
    if judged is None or judged.is_empty():
        return
    counts = judged.group_by("status", "error_kind").len().sort("len", descending=True)
    text = ", ".join(
        f"{count} {status}{f' / {kind}' if kind else ''}" for status, kind, count in counts.iter_rows()
    )
    console.print(f"RAGAS rows: {text}", highlight=False)
