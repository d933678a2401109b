"""Compare every scored strategy with the live one, or with the declared baseline."""

from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from chunking_assets.errors import CorpusError
from chunking_assets.keys import digest
from chunking_assets.live_index.promotion import live
from chunking_assets.workspace import Workspace
from evals.gold_questions.build import read_gold
from evals.retrieval_scores.build import RETRIEVAL_SCORES
from evals.strategy_comparison.compare import (
    CHANGES_SCHEMA,
    TABLE_SCHEMA,
    VERSION,
    Comparison,
    compare,
)
from evals.strategy_comparison.report import frontier_svg, leaderboard_svg
from evals.strategy_comparison.verdict import explain

if TYPE_CHECKING:
    from chunking_assets.config import ComparisonSettings

STRATEGY_COMPARISONS, QUESTION_CHANGES = "strategy_comparisons", "question_changes"
LISTED = 30

NOTHING_TO_COMPARE = Comparison(
    pl.DataFrame(schema=TABLE_SCHEMA), pl.DataFrame(schema=CHANGES_SCHEMA)
)
"""Without a scored question there is no difference, and no verdict."""


@dataclass(frozen=True)
class ComparisonUpdate:
    """The verdict in words, tables and a picture."""

    version: str
    rows: int
    baseline: str
    verdict: str
    markdown: str
    picture: str
    changes_markdown: str


def update_strategy_comparison(
    workspace: Workspace, strategies: Sequence[str], settings: "ComparisonSettings"
) -> ComparisonUpdate:
    """Compare the strategies scored on today's gold questions; the others are not comparable.

    The baseline is the live strategy, or the one declared, or the first scored.

    Raises:
        CorpusError: no strategy is scored on today's questions, or the baseline is not.
    """
    gold = read_gold(workspace)
    table = workspace.table(RETRIEVAL_SCORES)
    scored = {
        name: manifest.version
        for name in strategies
        if (manifest := table.manifest(name))
        and manifest.details.get("golden_version") == gold.version
    }
    if not scored:
        raise CorpusError(
            "no strategy is scored on the gold questions as they are now. "
            "Build retrieval_scores first."
        )
    current = live(workspace)
    baseline = (current.strategy if current else settings.baseline) or next(iter(scored))
    if baseline not in scored:
        raise CorpusError(
            f"the baseline {baseline} is not scored on the gold questions as they are now. "
            "Build its retrieval_scores first."
        )
    scores = table.read_all(list(scored))
    assert scores is not None
    comparison = NOTHING_TO_COMPARE
    if not scores.is_empty():
        comparison = compare(
            scores.drop("strategy_digest"),
            _clusters(gold.evidence),
            baseline,
            settings.metric,
            confidence=settings.confidence,
            resamples=settings.resamples,
            seed=settings.seed,
        )
    version = digest(
        "comparison", VERSION, sorted(scored.items()), baseline, settings.model_dump(mode="json")
    )
    for name, rows in (
        (QUESTION_CHANGES, comparison.changes),
        (STRATEGY_COMPARISONS, comparison.table),
    ):
        manifest = workspace.table(name).manifest()
        if manifest is None or manifest.version != version:
            workspace.table(name).replace(rows, version=version)
    primary = comparison.table.filter("is_primary")
    return ComparisonUpdate(
        version=version,
        rows=comparison.table.height,
        baseline=baseline,
        verdict=_verdict(primary),
        markdown=_markdown(primary),
        picture="\n\n".join(
            f"![{name}](data:image/svg+xml;base64,{b64encode(svg.encode()).decode()})"
            for name, svg in (
                ("intervals", leaderboard_svg(primary)),
                ("frontier", frontier_svg(scores, baseline)),
            )
        ),
        changes_markdown=_changes(comparison.changes),
    )


def _clusters(evidence: pl.DataFrame) -> dict[str, str]:
    """The document of each question's first evidence: questions of one document move together."""
    first = evidence.filter(pl.col("evidence") == 1).unique("question_id", keep="first")
    return dict(first.select("question_id", "doc_id").iter_rows())


def _verdict(primary: pl.DataFrame) -> str:
    lines = [
        f"- `{row['strategy']}`: {explain(row)}"
        for row in primary.iter_rows(named=True)
        if row["verdict"] != "baseline"
    ]
    if primary.is_empty():
        return "No gold question could be scored: add some, or mend the stale ones."
    return "\n".join(lines) or "only the baseline is scored"


def _markdown(primary: pl.DataFrame) -> str:
    if primary.is_empty():
        return ""
    lines = [
        f"| strategy | {primary['metric'][0]} | difference | P(best) | verdict |",
        "|---|---:|---:|---:|---|",
    ]
    for row in primary.iter_rows(named=True):
        difference = "" if row["difference"] is None else f"{row['difference']:+.3f}"
        mean = "" if row["mean"] is None else f"{row['mean']:.3f}"
        best = "" if row["p_best"] is None else f"{row['p_best']:.2f}"
        lines.append(f"| `{row['strategy']}` | {mean} | {difference} | {best} | {row['verdict']} |")
    return "\n".join(lines)


def _changes(changes: pl.DataFrame) -> str:
    lines = [
        f"- `{row['strategy']}` {row['change']} `{row['question_id']}` "
        f"({row['baseline_value']:.2f} → {row['value']:.2f})"
        for row in changes.head(LISTED).iter_rows(named=True)
    ]
    if changes.height > LISTED:
        lines.append(f"- … and {changes.height - LISTED} more in `question_changes`")
    return "\n".join(lines) or "no question changed sides"
