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
from evals.ragas_scores.agreement import agreement_in_words, distrust
from evals.ragas_scores.build import JUDGE_AGREEMENT, JUDGED, RAGAS_SCORES, Judged, read_judged
from evals.retrieval_scores.build import RETRIEVAL_SCORES, measurement
from evals.retrieval_scores.registry import METRICS
from evals.strategy_comparison.compare import (
    CHANGES_SCHEMA,
    SLICE_ROWS_SCHEMA,
    TABLE_SCHEMA,
    VERSION,
    Changed,
    Comparison,
    beside,
    compare,
    tokens_read,
)
from evals.strategy_comparison.report import frontier_svg, leaderboard_svg
from evals.strategy_comparison.slices import question_slices
from evals.strategy_comparison.verdict import explain, is_cost

if TYPE_CHECKING:
    from chunking_assets.config import ComparisonSettings

STRATEGY_COMPARISONS, QUESTION_CHANGES = "strategy_comparisons", "question_changes"
STRATEGY_SLICES = "strategy_slices"
LISTED = 30


class QuestionsMoved(CorpusError):
    """The gold questions are not those that were scored: the scores are yet to follow."""


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
    judged_markdown: str
    picture: str
    changes_markdown: str


@dataclass(frozen=True)
class Scored:
    """The version of one strategy's retrieval scores, and what of their measurement has changed
    since."""

    version: str
    changed: tuple[str, ...]


@dataclass(frozen=True)
class StoredScores:
    """The scores there are, read together with the questions they are of.

    `scores` are of the strategies measured as is measured now, in anything; `scored` also names the
    others. `judged` holds what was judged of a strategy, `agreement` how far judges agree with
    people.
    """

    gold: Gold
    scored: Mapping[str, Scored]
    scores: pl.DataFrame
    judged: Mapping[str, Judged]
    agreement: pl.DataFrame | None

    def against(
        self,
        baseline: str,
        settings: "ComparisonSettings",
        *,
        metric: str | None = None,
        margin: float = 0.0,
    ) -> Comparison:
        """All strategies against one, by `metric` or by the one that decides.

        A judged metric decides only if its judge agrees with people; to look at, it needs not.

        Raises:
            QuestionsMoved: the baseline is scored, but not as is measured now.
            CorpusError: the baseline is not scored.
        """
        if baseline not in self.scored or self.scored[baseline].changed:
            raise (QuestionsMoved if baseline in self.scored else CorpusError)(
                f"the baseline {baseline} is not scored on the gold questions as they are now. "
                "Build its retrieval_scores first."
            )
        if self.scores.filter(pl.col("cutoff") != "").is_empty():
            return NOTHING_TO_COMPARE
        clusters = _clusters(self.gold.evidence)
        # A question without evidence rests on no document: it stands for itself.
        of_its_own = {name: name for name in self.gold.questions["question_id"]}
        return compare(
            self.scores,
            of_its_own | clusters,
            baseline,
            metric or settings.metric,
            judged=[name for name in JUDGED if (self.scores["metric"] == name).any()],
            slices=question_slices(self.gold.questions, clusters),
            changed=self.changed(baseline),
            distrust=None if metric else self.distrust(settings, baseline),
            confidence=settings.confidence,
            resamples=settings.resamples,
            seed=settings.seed,
            margin=margin,
        )

    def changed(self, baseline: str) -> Changed:
        """What of the measurement differs from now, or for judged metrics from the baseline's, by
        metric and strategy."""
        retrieval = {name: scored.changed for name, scored in self.scored.items()}
        return dict.fromkeys(METRICS, retrieval) | {
            metric: {name: self._judged_otherwise(name, baseline, metric) for name in self.scored}
            for metric in JUDGED
        }

    def _judged_otherwise(self, strategy: str, baseline: str, metric: str) -> tuple[str, ...]:
        scored, judged = self.scored[strategy], self.judged.get(strategy)
        if "golden_version" in scored.changed:
            return ("golden_version",)
        if judged is None:
            return ()
        if judged.retrieval != scored.version:
            return ("retrieval",)
        return judged.differs(self.judged.get(baseline), metric)

    def judge_of(self, baseline: str) -> str | None:
        """Who judged faithfulness, and how far it agrees with people, in words."""
        judged = self.judged.get(baseline)
        judge = None if judged is None else judged.judges.get("faithfulness")
        return judge and f"Judge {judge}\n  {agreement_in_words(self.agreement, judge)}"

    def distrust(self, settings: "ComparisonSettings", baseline: str) -> str | None:
        """Why the metric that decides may not; None if it may."""
        if settings.metric not in JUDGED or baseline not in self.judged:
            return None
        judge = self.judged[baseline].judges.get(settings.metric)
        return judge and distrust(self.agreement, judge, settings.min_kappa)


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
        QuestionsMoved: none of them was measured as is measured now.
        CorpusError: none of them was measured.
    """
    gold = read_gold(workspace)
    scored = scored_strategies(workspace, strategies, gold.version)
    if all(of_strategy.changed for of_strategy in scored.values()):
        raise (QuestionsMoved if scored else CorpusError)(
            "no strategy is scored on the gold questions as they are now. "
            "Build retrieval_scores first."
        )
    of_now = [name for name, scores in scored.items() if "golden_version" not in scores.changed]
    scores = workspace.table(RETRIEVAL_SCORES).read_all(of_now)
    assert scores is not None
    judged = {
        name: found for name in of_now if (found := read_judged(workspace, name, gold)) is not None
    }
    of_answers = [found.scores for found in judged.values()]
    return StoredScores(
        gold,
        scored,
        pl.concat([scores.drop("strategy_digest"), *of_answers], how="diagonal"),
        judged,
        workspace.table(JUDGE_AGREEMENT).read(),
    )


def comparison_version(
    workspace: Workspace,
    scored: Mapping[str, Scored],
    settings: "ComparisonSettings",
    baseline: str | None,
) -> str:
    """A digest of all that a comparison is made from, and of how it is made."""
    judged = [
        (name, manifest.version, manifest.details.get("retrieval"))
        for name in sorted(scored)
        if (manifest := workspace.table(RAGAS_SCORES).manifest(name)) is not None
    ]
    agreement = workspace.table(JUDGE_AGREEMENT).manifest() if settings.metric in JUDGED else None
    return digest(
        "comparison",
        VERSION,
        sorted((name, scores.version, scores.changed) for name, scores in scored.items()),
        judged,
        agreement and agreement.version,
        baseline,
        settings.model_dump(mode="json"),
    )


def update_strategy_comparison(
    workspace: Workspace, strategies: Sequence[str], settings: "ComparisonSettings"
) -> ComparisonUpdate:
    """Compare the strategies scored on today's gold questions; the others are not comparable.

    The baseline is the live strategy, or the one declared, or the first scored.

    Raises:
        QuestionsMoved: no strategy, or not the baseline, is scored on today's questions.
        CorpusError: none is scored at all, or the baseline is not.
    """
    stored = read_scores(workspace, strategies)
    current = live(workspace)
    baseline = (current.strategy if current else settings.baseline) or next(
        name for name, scored in stored.scored.items() if not scored.changed
    )
    comparison = stored.against(baseline, settings)
    version = comparison_version(workspace, stored.scored, settings, baseline)
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
        judged_markdown=_judged(comparison.table),
        picture="\n\n".join(
            f"![{name}](data:image/svg+xml;base64,{b64encode(svg.encode()).decode()})"
            for name, svg in (
                ("intervals", leaderboard_svg(primary)),
                ("frontier", _frontier(stored, baseline, settings.metric)),
            )
        ),
        changes_markdown=_changes(comparison.changes),
    )


def _frontier(stored: StoredScores, baseline: str, metric: str) -> str:
    changed = stored.changed(baseline).get(metric.partition("@")[0], {})
    otherwise = [name for name, scored in stored.scored.items() if scored.changed or changed[name]]
    scores = stored.scores.filter(~pl.col("strategy").is_in(otherwise))
    quality = "recall@5" if is_cost(metric) else metric
    return frontier_svg(scores, baseline, quality, tokens_read(quality))


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
        f"| strategy | {primary['metric'][0]} | difference | could show | P(best) | verdict "
        "| state |",
        "|---|---:|---:|---:|---:|---|---|",
    ]
    for row in primary.iter_rows(named=True):
        difference = "" if row["difference"] is None else f"{row['difference']:+.3f}"
        mean = "" if row["mean"] is None else f"{row['mean']:.3f}"
        detectable = row["minimum_detectable_difference"]
        could_show = "" if detectable is None else f"{detectable:.3f}"
        best = "" if row["p_best"] is None else f"{row['p_best']:.2f}"
        lines.append(
            f"| `{row['strategy']}` | {mean} | {difference} | {could_show} | {best} | "
            f"{row['verdict']} | {row['state'] or ''} |"
        )
    return "\n".join(lines)


def _judged(table: pl.DataFrame) -> str:
    lines = [
        f"- `{row['strategy']}`, {row['metric']}: {explain(row)}."
        for row in table.filter(pl.col("metric").is_in(JUDGED)).iter_rows(named=True)
        if row["verdict"] != "baseline"
    ]
    return "\n".join(lines) or "no answer was judged"


def _changes(changes: pl.DataFrame) -> str:
    lines = [
        f"- `{row['strategy']}` {row['change']} `{row['question_id']}` "
        f"({row['baseline_value']:.2f} → {row['value']:.2f})"
        for row in changes.head(LISTED).iter_rows(named=True)
    ]
    if changes.height > LISTED:
        lines.append(f"- … and {changes.height - LISTED} more in `question_changes`")
    return "\n".join(lines) or "no question changed sides"
