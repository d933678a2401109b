"""One self-contained page for the meeting: the verdict, and what it rests on.

It is made from stored tables alone, so it can be written again at any time. Questions and documents
are data: they reach the page as JSON inside a script element that is not run, the page gives them
to the browser as text only, and its policy lets nothing load and no other script run.
"""

import json
import sys
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from chunking_assets.chunk_sets.build import CHUNKS, cell
from chunking_assets.errors import CorpusError
from chunking_assets.keys import digest, file_sha
from chunking_assets.live_index.promotion import live
from chunking_assets.workspace import Workspace, write_atomically
from evals.coverage import MIN_COVERAGE, Coverage, covered_by_metric
from evals.gold_questions.build import GOLD_QUESTIONS, Gold, read_gold
from evals.ragas_scores.abstention import ABSTENTION
from evals.ragas_scores.build import JUDGE_AGREEMENT, JUDGED, RAGAS_SCORES, read_judged
from evals.retrieval_scores.build import RETRIEVAL_SCORES
from evals.strategy_comparison.build import (
    QUESTION_CHANGES,
    STRATEGY_COMPARISONS,
    STRATEGY_SLICES,
    scored_strategies,
)
from evals.strategy_comparison.compare import beside, tokens_read
from evals.strategy_comparison.flipped_questions import flipped_questions
from evals.strategy_comparison.report import quality_and_cost
from evals.strategy_comparison.verdict import explain, is_cost

if TYPE_CHECKING:
    from chunking_assets.config import Config

TEMPLATE = Path(__file__).with_name("meeting_report.html")
VERSION = 4
"""Raised when the same tables would give another page, the template apart."""

SECTIONS = {
    "verdict": "What may be said of each strategy, in words, and what it rests on.",
    "leaderboard": "The deciding metric of each strategy: mean, difference, interval, verdict.",
    "frontier": "The deciding metric against context tokens, and what nothing beats on both.",
    "slices": "Collections, languages, tags, lengths: where a strategy is weak.",
    "flipped": "Questions won and lost: the evidence, and what both strategies returned.",
    "chunks": "How chunk sizes are spread, per chunker version.",
    "stale": "Questions whose evidence is gone, and what became of it.",
    "abstention": "Answered where the documents say, and not answered where they do not.",
    "judge": "Judged metrics and what they tell, what failed, agreement of the judge with people.",
}
"""The parts of the page, by their anchors."""

CHANGED_SINCE = "Questions or documents changed since this was scored: score it again."

BARS = 24
MOST_SLICES = 60
MOST_STALE = 40
MOST_CHARS = 500
"""The longest reason, quote or difference of a stale question that is shown."""


@dataclass(frozen=True)
class ReportUpdate:
    """Where the page is, its headline, the questions that flipped in all and on the page."""

    path: Path
    version: str
    headline: str
    flipped: int
    flipped_shown: int
    size: int


def report_file(workspace: Workspace) -> Path:
    """`reports/report.html` below the workspace."""
    return workspace.root / "reports" / "report.html"


def report_inputs(workspace: Workspace) -> str | None:
    """The digest of what the page would be made from now; None before the first comparison."""
    if workspace.table(STRATEGY_COMPARISONS).manifest() is None:
        return None
    tables = (GOLD_QUESTIONS, RETRIEVAL_SCORES, RAGAS_SCORES, JUDGE_AGREEMENT, STRATEGY_COMPARISONS)
    versions = [
        (name, partition, manifest.version)
        for name in tables
        for partition in workspace.table(name).partitions()
        if (manifest := workspace.table(name).manifest(partition)) is not None
    ]
    return digest("report", VERSION, file_sha(TEMPLATE), versions)


def write_report(
    workspace: Workspace, chunker_versions: Sequence[str], shards: Sequence[str]
) -> ReportUpdate:
    """Write the page of the last comparison; sizes are of these chunker versions' chunks.

    Raises:
        CorpusError: nothing was compared yet.
    """
    version = report_inputs(workspace)
    if version is None:
        raise CorpusError("no strategies were compared yet. Build strategy_comparison first.")
    data = meeting(workspace, chunker_versions, shards)
    content = meeting_page(data).encode()
    path = report_file(workspace)
    write_atomically(path, content)
    flipped = data["flipped"]
    return ReportUpdate(
        path, version, data["headline"], flipped["total"], len(flipped["questions"]), len(content)
    )


def meeting_page(data: Mapping[str, Any]) -> str:
    """The page as HTML; it loads nothing from anywhere."""
    # Inside a script element nothing but its end tag is special, and JSON may escape it.
    content = json.dumps(data).replace("<", "\\u003c")
    template = TEMPLATE.read_text(encoding="utf-8")
    script = template.rpartition("<script>")[2].partition("</script>")[0]
    template = template.replace("__SCRIPT__", b64encode(sha256(script.encode()).digest()).decode())
    before, _, after = template.partition("__DATA__")
    return before + content + after


def meeting(
    workspace: Workspace, chunker_versions: Sequence[str], shards: Sequence[str]
) -> dict[str, Any]:
    """What the page shows, as data; figures that are read are text, those that are drawn are not.

    Raises:
        CorpusError: nothing was compared yet, or a table is missing.
    """
    gold = read_gold(workspace)
    table, changes, slices = (
        _read(workspace, name) for name in (STRATEGY_COMPARISONS, QUESTION_CHANGES, STRATEGY_SLICES)
    )
    primary = table.filter("is_primary").rows(named=True)
    ranked = [row["strategy"] for row in primary]
    as_scored = [
        name
        for name, scored in scored_strategies(workspace, ranked, gold.version).items()
        if not scored.changed
    ]
    shown = _in_order(changes, ranked).filter(
        pl.col("strategy").is_in(as_scored) & pl.col("baseline").is_in(as_scored)
    )
    flipped = flipped_questions(workspace, gold, shown)
    current = live(workspace)
    verdict = _verdict(table, primary, current.strategy if current else None)
    if primary and verdict["baseline"] not in as_scored:
        verdict["facts"].insert(0, CHANGED_SINCE)
    return {
        **verdict,
        "leaderboard": [_leader(row) for row in primary],
        "frontier": _frontier(workspace, primary, gold),
        "slices": _slices(slices, ranked),
        "flipped": {
            "total": changes.height,
            "moved": changes.height - shown.height,
            "questions": [asdict(one) for one in flipped],
        },
        "chunks": _chunks(workspace, chunker_versions, shards),
        "stale": _stale(gold),
        "abstention": list(_abstention(workspace, ranked, gold)),
        "judge": _judge(workspace, ranked, table),
    }


def _read(workspace: Workspace, name: str) -> pl.DataFrame:
    rows = workspace.table(name).read()
    if rows is None:
        raise CorpusError(f"the table {name} is missing. Build strategy_comparison again.")
    return rows


def _in_order(changes: pl.DataFrame, ranked: Sequence[str]) -> pl.DataFrame:
    """The changes of the best strategy first; within one their order stays."""
    place = {name: number for number, name in enumerate(ranked)}
    number = pl.col("strategy").replace_strict(place, default=len(ranked), return_dtype=pl.Int64)
    return changes.sort(number, maintain_order=True)


def _verdict(
    table: pl.DataFrame, primary: Sequence[Mapping[str, Any]], current: str | None
) -> dict[str, Any]:
    if not primary:
        nothing = "No gold question could be scored: add some, or mend the stale ones."
        return {"headline": nothing, "facts": [], "verdicts": [], "metric": "", "baseline": ""}
    first = primary[0]
    metric, baseline = first["metric"], first["baseline"]
    others = [row for row in primary if row["verdict"] != "baseline"]
    at_other_budget = {
        row["strategy"]: f"At {row['metric']}: {explain(row)}."
        for row in table.filter(
            ~pl.col("is_primary") & (pl.col("metric") == beside(metric))
        ).iter_rows(named=True)
    }
    asked = max((row["n_questions"] for row in primary), default=0)
    documents = max((row["n_documents"] or 0 for row in primary), default=0)
    return {
        "headline": _headline(others, baseline, metric),
        "metric": metric,
        "baseline": baseline,
        "facts": [
            f"Compared with {baseline}, "
            f"{'which is live' if baseline == current else 'the reference'}.",
            f"Decided by {metric} on {asked:,} questions over {documents:,} documents; no other "
            "metric decides.",
            f"{first['confidence']:.0%} intervals, documents resampled {first['resamples']:,} times"
            f" (seed {first['seed']}); corrected for {len(others)} "
            f"{'strategy' if len(others) == 1 else 'strategies'} (Holm).",
        ],
        "verdicts": [
            {
                "strategy": row["strategy"],
                "verdict": row["verdict"],
                "state": row["state"] or "not ranked",
                "text": f"{row['reason']}.",
                "beside": at_other_budget.get(row["strategy"], ""),
            }
            for row in others
        ],
    }


def _headline(others: Sequence[Mapping[str, Any]], baseline: str, metric: str) -> str:
    """One sentence. `others` stand best mean first.

    >>> _headline([{"strategy": "a", "verdict": "cannot tell"}], "b", "recall@5")
    'No strategy is shown to be better than b by recall@5: these questions cannot tell.'
    """
    if not others:
        return f"Only {baseline} is scored; there is nothing to compare it with."
    better = [row["strategy"] for row in others if row["verdict"] == "better"]
    if better:
        names = better[0] if len(better) == 1 else f"{', '.join(better[:-1])} and {better[-1]}"
        return f"{names} {'is' if len(better) == 1 else 'are'} better than {baseline} by {metric}."
    start = f"No strategy is shown to be better than {baseline} by {metric}"
    if all(row["verdict"] == "worse" for row in others):
        return f"{start}: every other one is worse."
    if any(row["verdict"] == "cannot tell" for row in others):
        return f"{start}: these questions cannot tell."
    return f"{start}: the others were not measured in the same way."


def _leader(row: Mapping[str, Any]) -> dict[str, Any]:
    scale = _scale(row["metric"])
    return {
        "strategy": row["strategy"],
        "verdict": row["verdict"],
        "state": row["state"] or "",
        "mean": _shown(row["mean"], scale),
        "difference": "" if row["verdict"] == "baseline" else _shown(row["difference"], scale, "+"),
        "interval": ""
        if row["ci_low"] is None or row["verdict"] == "baseline"
        else f"{_shown(row['ci_low'], scale, '+')} to {_shown(row['ci_high'], scale, '+')}",
        "detectable": _shown(row["minimum_detectable_difference"], scale),
        "p_best": "" if row["p_best"] is None else f"{row['p_best']:.0%}",
        "drawn": [
            None if row[key] is None else scale * row[key]
            for key in ("ci_low", "difference", "ci_high")
        ],
    }


def _frontier(
    workspace: Workspace, primary: Sequence[Mapping[str, Any]], gold: Gold
) -> dict[str, Any] | None:
    if not primary or is_cost(primary[0]["metric"]):
        return None
    quality = primary[0]["metric"]
    cost = tokens_read(quality)
    strategies = [row["strategy"] for row in primary if row["mean"] is not None]
    scores = workspace.table(RETRIEVAL_SCORES).read_all(strategies)
    if not strategies or scores is None:
        return None
    of_answers = [read_judged(workspace, name, gold) for name in strategies]
    means = quality_and_cost(
        pl.concat([scores, *(one.scores for one in of_answers if one)], how="diagonal"),
        quality,
        cost,
    ).rows(named=True)
    if not means:
        return None
    return {
        "quality": quality,
        "cost": cost,
        "questions": means[0]["n_questions"],
        "points": [
            {
                "strategy": one["strategy"],
                "quality": 100 * one["quality"],
                "cost": one["cost"],
                "unbeaten": not any(_beats(other, one) for other in means),
                "baseline": one["strategy"] == primary[0]["baseline"],
            }
            for one in means
        ],
    }


def _beats(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    as_good = one["cost"] <= other["cost"] and one["quality"] >= other["quality"]
    return bool(as_good and (one["cost"], one["quality"]) != (other["cost"], other["quality"]))


def _slices(slices: pl.DataFrame, ranked: Sequence[str]) -> dict[str, Any]:
    """Rows of slices, the dimensions together, columns of strategies as they are `ranked`."""
    rows = slices.rows(named=True)
    cells = {(row["dimension"], row["slice"], row["strategy"]): row for row in rows}
    names = list(dict.fromkeys((row["dimension"], row["slice"]) for row in rows))
    present = {row["strategy"] for row in rows}
    strategies = [name for name in ranked if name in present]
    return {
        "strategies": strategies,
        "left_out": max(0, len(names) - MOST_SLICES),
        "rows": [
            {
                "dimension": dimension,
                "slice": name,
                "questions": max(
                    row["n_questions"]
                    for strategy in strategies
                    if (row := cells.get((dimension, name, strategy))) is not None
                ),
                "cells": [_slice(cells.get((dimension, name, each))) for each in strategies],
            }
            for dimension, name in names[:MOST_SLICES]
        ],
    }


def _slice(row: Mapping[str, Any] | None) -> dict[str, Any] | None:
    if row is None or row["mean"] is None:
        return None
    scale = _scale(row["metric"])
    better = None if row["difference"] is None else row["difference"] * scale
    return {
        "mean": _shown(row["mean"], scale),
        "difference": "" if row["verdict"] == "baseline" else _shown(row["difference"], scale, "+"),
        "verdict": row["verdict"] or "too few to tell",
        "gain": None if better is None else -better / 10 if is_cost(row["metric"]) else better,
    }


def _chunks(
    workspace: Workspace, chunker_versions: Sequence[str], shards: Sequence[str]
) -> list[dict[str, Any]]:
    """Sizes of searched chunks in tokens, in bars that are as wide for every version."""
    table = workspace.table(CHUNKS)
    sizes: dict[str, pl.Series] = {}
    over: dict[str, int] = {}
    for version in chunker_versions:
        rows = table.read_all(
            [cell(version, shard) for shard in shards], ["n_tokens", "searched", "over_budget"]
        )
        if rows is not None:
            searched = rows.filter(pl.col("searched"))
            sizes[version] = searched["n_tokens"]
            over[version] = searched.filter("over_budget").height
    largest = max((int(size.quantile(0.995) or 0) for size in sizes.values()), default=0)
    width = max(1, -(-(largest + 1) // BARS))
    return [
        {
            "version": version,
            "cells": [
                f"{size.len():,}",
                *(f"{size.quantile(share) or 0:,.0f}" for share in (0.05, 0.5, 0.95, 1)),
                f"{over[version]:,}",
            ],
            "width": width,
            "bars": _bars(size // width),
        }
        for version, size in sizes.items()
    ]


def _bars(numbers: pl.Series) -> list[int]:
    counts = dict(numbers.clip(0, BARS - 1).value_counts().iter_rows())
    return [counts.get(number, 0) for number in range(BARS)]


def _stale(gold: Gold) -> dict[str, Any]:
    stale = gold.questions.filter(pl.col("status") == "stale")
    lost = gold.evidence.filter(pl.col("start").is_null())
    by_question: dict[str, list[dict[str, str]]] = {}
    for row in lost.iter_rows(named=True):
        by_question.setdefault(row["question_id"], []).append(
            {
                "doc_id": row["doc_id"],
                "quote": _cut(row["quote"]),
                "diff": _cut(row["diff"] or ""),
            }
        )
    return {
        "total": stale.height,
        "of": gold.questions.height,
        "questions": [
            {
                "question_id": row["question_id"],
                "question": _cut(row["question"]),
                "reason": _cut(row["reason"] or ""),
                "file": row["file"] or "",
                "lost": by_question.get(row["question_id"], [])[:3],
            }
            for row in stale.head(MOST_STALE).iter_rows(named=True)
        ],
    }


def _abstention(
    workspace: Workspace, strategies: Sequence[str], gold: Gold
) -> Iterator[dict[str, Any]]:
    """Of each strategy that answered anything: what it answered, rightly and wrongly."""
    for strategy in strategies:
        judged = read_judged(workspace, strategy, gold)
        if judged is None:
            continue
        found = covered_by_metric(judged.scores.filter(pl.col("metric").is_in(ABSTENTION)))
        if not found:
            continue
        answered, abstained = (found.get(metric) for metric in ABSTENTION)
        yield {
            "strategy": strategy,
            "answerer": judged.answerer or "",
            "cells": [
                _right(answered),
                _wrong(answered),
                _right(abstained),
                _wrong(abstained),
                f"{sum(c.n_total - c.n_scored for c in found.values()) or ''}",
            ],
        }


def _right(outcome: Coverage | None) -> str:
    """How many of the questions with an outcome are right: `8 of 9 (89%)`."""
    if outcome is None or outcome.mean_scored is None:
        return ""
    count = round(outcome.mean_scored * outcome.n_scored)
    return f"{count:,} of {outcome.n_scored:,} ({outcome.mean_scored:.0%})"


def _wrong(outcome: Coverage | None) -> str:
    if outcome is None or outcome.mean_scored is None:
        return ""
    return f"{round((1 - outcome.mean_scored) * outcome.n_scored):,}"


def _judge(workspace: Workspace, strategies: Sequence[str], table: pl.DataFrame) -> dict[str, Any]:
    rows = list(_judged(workspace, strategies))
    agreement = workspace.table(JUDGE_AGREEMENT).read_all()
    # Where nobody judged anything, one line says so.
    judged = table.filter(pl.col("metric").is_in(JUDGED))
    told = judged.filter((pl.col("verdict") != "baseline") & (judged["n_scored"] > 0).any())
    return {
        "judges": sorted({judge for row in rows for judge in row.pop("judges")}),
        "rows": rows,
        "needed": f"{MIN_COVERAGE:.0%}",
        "verdicts": [
            {
                "strategy": row["strategy"],
                "metric": row["metric"],
                "verdict": row["verdict"],
                "cells": [
                    _shown(row["difference"], 100, "+"),
                    ""
                    if row["ci_low"] is None
                    else f"{_shown(row['ci_low'], 100, '+')} to {_shown(row['ci_high'], 100, '+')}",
                    _shown(row["judge_noise"], 100),
                ],
                "reason": row["reason"],
            }
            for row in told.iter_rows(named=True)
        ],
        "compared": ""
        if agreement is None
        else ", ".join(agreement["judge"].drop_nulls().unique().sort()),
        "agreement": []
        if agreement is None
        else [
            [
                row["kind"],
                f"{row['n_judged']:,} of {row['n_labels']:,}",
                "" if row["accuracy"] is None else f"{row['accuracy']:.0%}",
                ""
                if row["accuracy_low"] is None
                else f"{row['accuracy_low']:.0%} to {row['accuracy_high']:.0%}",
                "" if row["kappa"] is None else f"{row['kappa']:.2f}",
                row["error_kind"] or "",
            ]
            for row in agreement.iter_rows(named=True)
        ],
    }


def _judged(workspace: Workspace, strategies: Sequence[str]) -> Iterator[dict[str, Any]]:
    for strategy in strategies:
        scores = workspace.table(RAGAS_SCORES).read(strategy)
        if scores is None:
            continue
        for metric, found in covered_by_metric(scores).items():
            of_metric = scores.filter(pl.col("metric") == metric)
            failed = of_metric.filter(pl.col("status").is_in(["error", "skipped"]))
            kinds = failed.group_by("status", "error_kind").len().sort("len", descending=True)
            low, high = (_shown(mean, 100) for mean in (found.mean_low, found.mean_high))
            yield {
                "judges": of_metric["judge"].drop_nulls().unique().to_list(),
                "metric": metric,
                "strategy": strategy,
                "low_coverage": bool(found.n_total) and not found.is_enough,
                "cells": [
                    f"{found.n_scored:,} of {found.n_total:,}",
                    "" if found.coverage is None else f"{found.coverage:.0%}",
                    _shown(found.mean_scored, 100),
                    f"{low} to {high}" if low else "",
                    ", ".join(
                        f"{count:,} {status}: {kind or 'unknown'}"
                        for status, kind, count in kinds.iter_rows()
                    ),
                ],
            }


def _scale(metric: str) -> int:
    return 1 if is_cost(metric) else 100


def _shown(value: float | None, scale: int, sign: str = "") -> str:
    return "" if value is None else format(scale * value, f"{sign},.1f")


def _cut(text: str) -> str:
    return text if len(text) <= MOST_CHARS else f"{text[: MOST_CHARS - 1]}…"


def write_configured(config: "Config") -> ReportUpdate:
    """Write the page for the chunker versions and shards of a configuration."""
    return write_report(
        Workspace(config.home), list(config.chunker_versions), list(config.shards())
    )


def main() -> int:
    from chunking_assets import config as configuration

    try:
        print(write_configured(configuration.load()).path)
    except CorpusError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
