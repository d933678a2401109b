"""Compare every scored strategy with the live one, or with the declared baseline."""

from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from chunking_assets.errors import CorpusError
from chunking_assets.keys import digest
from chunking_assets.live_index.promotion import live
from chunking_assets.workspace import Workspace
from evals.gold_questions.build import Gold, read_gold
from evals.retrieval_scores.build import RETRIEVAL_SCORES, measurement
from evals.strategy_comparison.compare import (
    CHANGES_SCHEMA,
    SLICE_ROWS_SCHEMA,
    TABLE_SCHEMA,
    VERSION,
    Comparison,
    beside,
    compare,
)
from evals.strategy_comparison.report import frontier_svg, leaderboard_svg
from evals.strategy_comparison.slices import question_slices
from evals.strategy_comparison.verdict import explain

if TYPE_CHECKING:
    from chunking_assets.config import ComparisonSettings

STRATEGY_COMPARISONS, QUESTION_CHANGES = "strategy_comparisons", "question_changes"
STRATEGY_SLICES = "strategy_slices"
LISTED = 30

NOTHING_TO_COMPARE = Comparison(
    pl.DataFrame(schema=TABLE_SCHEMA),
    pl.DataFrame(schema=CHANGES_SCHEMA),
    pl.DataFrame(schema=SLICE_ROWS_SCHEMA),
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


@dataclass(frozen=True)
class Scored:
    """The version of one strategy's scores, and what of the measurement has changed since."""

    version: str
    changed: tuple[str, ...]


@dataclass(frozen=True)
class StoredScores:
    """The scores there are, read together with the questions they are of.

    `scores` holds those that were measured as is measured now; `scored` also names the others.
    """

    gold: Gold
    scored: Mapping[str, Scored]
    scores: pl.DataFrame

    def against(
        self,
        baseline: str,
        settings: "ComparisonSettings",
        *,
        metric: str | None = None,
        margin: float = 0.0,
    ) -> Comparison:
        """All strategies against one, by `metric` or by the one that decides.

        Raises:
            CorpusError: the baseline is not scored, or not as is measured now.
        """
        if baseline not in self.scored or self.scored[baseline].changed:
            raise CorpusError(
                f"the baseline {baseline} is not scored on the gold questions as they are now. "
                "Build its retrieval_scores first."
            )
        if self.scores.is_empty():
            return NOTHING_TO_COMPARE
        clusters = _clusters(self.gold.evidence)
        return compare(
            self.scores,
            clusters,
            baseline,
            metric or settings.metric,
            slices=question_slices(self.gold.questions, clusters),
            changed={name: scored.changed for name, scored in self.scored.items()},
            confidence=settings.confidence,
            resamples=settings.resamples,
            seed=settings.seed,
            margin=margin,
        )


def scored_strategies(
    workspace: Workspace, strategies: Sequence[str], golden_version: str
) -> dict[str, Scored]:
    """Those of the strategies that have scores, in their order."""
    now = measurement(golden_version)
    table = workspace.table(RETRIEVAL_SCORES)
    manifests = {name: table.manifest(name) for name in strategies}
    return {
        name: Scored(
            manifest.version, tuple(k for k, v in now.items() if manifest.details.get(k) != v)
        )
        for name, manifest in manifests.items()
        if manifest is not None
    }


def read_scores(workspace: Workspace, strategies: Sequence[str]) -> StoredScores:
    """What is stored of these strategies.

    Raises:
        CorpusError: none of them was measured as is measured now.
    """
    gold = read_gold(workspace)
    scored = scored_strategies(workspace, strategies, gold.version)
    comparable = [name for name, of_strategy in scored.items() if not of_strategy.changed]
    if not comparable:
        raise CorpusError(
            "no strategy is scored on the gold questions as they are now. "
            "Build retrieval_scores first."
        )
    scores = workspace.table(RETRIEVAL_SCORES).read_all(comparable)
    assert scores is not None
    return StoredScores(gold, scored, scores.drop("strategy_digest"))


def update_strategy_comparison(
    workspace: Workspace, strategies: Sequence[str], settings: "ComparisonSettings"
) -> ComparisonUpdate:
    """Compare the strategies scored on today's gold questions; the others are not comparable.

    The baseline is the live strategy, or the one declared, or the first scored.

    Raises:
        CorpusError: no strategy is scored on today's questions, or the baseline is not.
    """
    stored = read_scores(workspace, strategies)
    current = live(workspace)
    baseline = (current.strategy if current else settings.baseline) or next(
        name for name, scored in stored.scored.items() if not scored.changed
    )
    comparison = stored.against(baseline, settings)
    version = digest(
        "comparison",
        VERSION,
        sorted((name, scored.version, scored.changed) for name, scored in stored.scored.items()),
        baseline,
        settings.model_dump(mode="json"),
    )
    for name, rows in (
        (QUESTION_CHANGES, comparison.changes),
        (STRATEGY_SLICES, comparison.slices),
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
        verdict=_verdict(comparison.table),
        markdown=_markdown(primary),
        picture="\n\n".join(
            f"![{name}](data:image/svg+xml;base64,{b64encode(svg.encode()).decode()})"
            for name, svg in (
                ("intervals", leaderboard_svg(primary)),
                ("frontier", frontier_svg(stored.scores, baseline)),
            )
        ),
        changes_markdown=_changes(comparison.changes),
    )


def _clusters(evidence: pl.DataFrame) -> dict[str, str]:
    """The document where each question's first evidence stands: questions of one document move
    together."""
    found = evidence.filter(pl.col("start").is_not_null()).unique("question_id", keep="first")
    return dict(found.select("question_id", "doc_id").iter_rows())


def _verdict(table: pl.DataFrame) -> str:
    if table.is_empty():
        return "No gold question could be scored: add some, or mend the stale ones."
    at_other_budget = {
        row["strategy"]: f" At {row['metric']}: {explain(row)}."
        for row in table.filter(
            ~pl.col("is_primary") & (pl.col("metric") == beside(table["metric"][0]))
        ).iter_rows(named=True)
    }
    lines = [
        f"- `{row['strategy']}` ({row['state'] or 'not ranked'}): {explain(row)}."
        f"{at_other_budget.get(row['strategy'], '')}"
        for row in table.filter("is_primary").iter_rows(named=True)
        if row["verdict"] != "baseline"
    ]
    return "\n".join(lines) or "only the baseline is scored"


def _markdown(primary: pl.DataFrame) -> str:
    if primary.is_empty():
        return ""
    lines = [
        f"| strategy | {primary['metric'][0]} | difference | P(best) | verdict | state |",
        "|---|---:|---:|---:|---|---|",
    ]
    for row in primary.iter_rows(named=True):
        difference = "" if row["difference"] is None else f"{row['difference']:+.3f}"
        mean = "" if row["mean"] is None else f"{row['mean']:.3f}"
        best = "" if row["p_best"] is None else f"{row['p_best']:.2f}"
        lines.append(
            f"| `{row['strategy']}` | {mean} | {difference} | {best} | {row['verdict']} | "
            f"{row['state'] or ''} |"
        )
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
