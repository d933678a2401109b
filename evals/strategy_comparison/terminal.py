"""One comparison as lines of text: the verdict, what was lost and won, then the figures behind."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import polars as pl

from evals.strategy_comparison.compare import Comparison, beside
from evals.strategy_comparison.verdict import explain, in_words, is_cost

LISTED = 10
WIDTH = 100


def describe(
    comparison: Comparison,
    strategy: str,
    questions: Mapping[str, str],
    deciding: str,
    judge: str | None = None,
) -> Iterator[str]:
    """What a person asks first, first. `questions` are their texts by id; `deciding` is the metric
    that decides, which may be another one than was compared; `judge` says who judged, and how far
    it agrees with people."""
    rows = comparison.table.filter(pl.col("strategy") == strategy)
    (row,) = rows.filter("is_primary").iter_rows(named=True)
    metric, others = row["metric"], comparison.table.filter("is_primary").height - 1
    yield f"{strategy} against {row['baseline']}, by {metric}"
    if metric != deciding:
        yield f"(not the metric that decides, which is {deciding})"
    yield ""
    yield f"  {explain(row)}"
    if row["mean"] is not None:
        best = "" if row["p_best"] is None else f"; first in {row['p_best']:.0%} of resamples"
        yield (
            f"  {_number(row['mean'], metric)} against {_number(row['baseline_mean'], metric)} on "
            f"{row['n_questions']} questions over {row['n_documents']} documents, corrected for "
            f"{others} {'strategy' if others == 1 else 'strategies'}"
        )
        yield f"  {row['state']}{best}"
        if (detectable := row["minimum_detectable_difference"]) is not None:
            yield f"  these questions could show {in_words(detectable, metric).removeprefix('+')}"
    for other in rows.filter(pl.col("metric") == beside(metric)).iter_rows(named=True):
        sort = "at equal tokens" if other["metric"].endswith("t") else "at equal k"
        yield f"  {sort}, {other['metric']}: {explain(other)}"
    changes = comparison.changes.filter(pl.col("strategy") == strategy)
    for change in ("lost", "won"):
        yield from _changes(changes.filter(pl.col("change") == change), change, questions)
    yield from _slices(comparison.slices.filter(pl.col("strategy") == strategy))
    explaining = rows.filter(~pl.col("is_primary") & (pl.col("metric") != beside(metric)))
    if not explaining.is_empty():
        yield "\nOther metrics, which decide nothing"
        width = max(map(len, explaining["metric"]))
        for other in explaining.iter_rows(named=True):
            yield f"  {other['metric']:<{width}} {explain(other)}"
    if judge:
        yield f"\n{judge}"


def _changes(changes: pl.DataFrame, change: str, questions: Mapping[str, str]) -> Iterator[str]:
    if changes.is_empty():
        return
    yield f"\n{change.capitalize()}: {changes.height}"
    for row in changes.head(LISTED).iter_rows(named=True):
        name = row["question_id"]
        line = f"  {row['baseline_value']:.2f} → {row['value']:.2f}  {name}  "
        yield _cut(f"{line}{questions.get(name, '')}")
    if changes.height > LISTED:
        yield f"  … and {changes.height - LISTED} more, in the table question_changes"


def _slices(slices: pl.DataFrame) -> Iterator[str]:
    if slices.is_empty():
        return
    table = [
        (
            row["dimension"],
            row["slice"],
            str(row["n_questions"]),
            _number(row["baseline_mean"], row["metric"]),
            _number(row["mean"], row["metric"]),
            _difference(row),
            row["verdict"] or "too few to tell",
        )
        for row in slices.iter_rows(named=True)
    ]
    header = ("slice", "", "n", "before", "after", "difference", "verdict")
    yield ""
    yield from _columns([header, *table])
    yield "  (verdicts are corrected for all slices and strategies, intervals are not)"


def _columns(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Words to the left, figures to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = [
            cell.rjust(width) if 2 <= number <= 4 else cell.ljust(width)
            for number, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        yield f"  {'  '.join(cells)}".rstrip()


def _difference(row: Mapping[str, Any]) -> str:
    if row["difference"] is None:
        return ""
    scale = 1 if is_cost(row["metric"]) else 100
    shown = f"{scale * row['difference']:+.1f}"
    if row["ci_low"] is None:
        return shown
    return f"{shown} [{scale * row['ci_low']:+.1f}, {scale * row['ci_high']:+.1f}]"


def _number(value: float | None, metric: str) -> str:
    if value is None:
        return ""
    return f"{value:,.0f}" if is_cost(metric) else f"{100 * value:.1f}"


def _cut(line: str) -> str:
    return line if len(line) <= WIDTH else f"{line[: WIDTH - 1]}…"
