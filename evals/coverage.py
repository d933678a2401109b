"""How much of a mean was measured, and what the scores that are missing could make of it.

A judge that fails on one strategy's hard questions must not make that strategy look good: a mean
over what is left says so, and a difference that the missing scores could turn is none.
"""

from dataclasses import dataclass

import numpy as np
import polars as pl

MIN_COVERAGE = 0.95
"""Below this share of the questions scored, on either side, there is no verdict."""

NOT_ASKED = ("not_applicable", "stale")
"""Statuses of a score that say there was nothing to score, so that nothing is missing."""

BEYOND = "max_questions"
"""Why a score is skipped that nobody asked for: which questions are judged depends on their names
alone, and is the same for every strategy. A sample, not a loss."""

NO_JUDGE = "no_judge"
"""Why every score is skipped where no endpoint is configured."""


@dataclass(frozen=True, slots=True)
class Coverage:
    """One strategy's scores of one metric.

    `n_total` counts the questions the metric applies to, scored or not. `mean_scored` is of the
    `n_scored` values; `mean_low` and `mean_high` are the mean if every missing score were 0 or 1.
    A mean is None where there is nothing to take it of, its bounds also where the metric has none.
    """

    n_scored: int
    n_total: int
    coverage: float | None
    mean_scored: float | None
    mean_low: float | None
    mean_high: float | None

    @property
    def is_enough(self) -> bool:
        return self.coverage is not None and self.coverage >= MIN_COVERAGE

    def __str__(self) -> str:
        if self.mean_scored is None or self.mean_low is None or self.mean_high is None:
            return f"none of {self.n_total} scored"
        return (
            f"{self.mean_scored:.3f} ({self.n_scored} of {self.n_total} scored, "
            f"bounds {self.mean_low:.3f} to {self.mean_high:.3f})"
        )


def covered(scores: np.ndarray, asked: np.ndarray, *, is_share: bool = True) -> Coverage:
    """The coverage of one strategy.

    `scores` is float64 (questions,), NaN where none was had; `asked` is bool, False where the
    metric does not apply: there is nothing to miss. `is_share`: the metric lies between 0 and 1.

    >>> print(covered(np.array([1.0, np.nan, 0.0, np.nan]), np.array([True, True, True, False])))
    0.500 (2 of 3 scored, bounds 0.333 to 0.667)
    """
    of_asked = scores[asked]
    n_total, n_scored = len(of_asked), int((~np.isnan(of_asked)).sum())
    if n_total == 0:
        return Coverage(0, 0, None, None, None, None)
    low, high = _bounds(of_asked, n_scored, is_share)
    known = of_asked[~np.isnan(of_asked)]
    return Coverage(n_scored, n_total, n_scored / n_total, _mean(known), _mean(low), _mean(high))


def is_asked() -> pl.Expr:
    """Of rows with `status` and `error_kind`: whether a value is there or missing."""
    return ~(pl.col("status").is_in(NOT_ASKED) | pl.col("error_kind").eq_missing(BEYOND))


def covered_by_metric(scores: pl.DataFrame) -> dict[str, Coverage]:
    """Each judged metric of one strategy, in the order of the rows.

    `scores` has `metric`, `status`, `error_kind` and `value`. The view `score_coverage` counts
    alike.
    """
    return {
        str(metric): covered(
            rows["value"].cast(pl.Float64).fill_null(np.nan).to_numpy(),
            rows.select(is_asked()).to_series().to_numpy(),
        )
        for (metric,), rows in scores.group_by(["metric"], maintain_order=True)
    }


def difference_bounds(
    scores: np.ndarray,
    baseline_scores: np.ndarray,
    asked_of_both: np.ndarray,
    *,
    is_share: bool = True,
) -> tuple[float | None, float | None]:
    """The mean difference if every missing score were the worst, or the best, for the strategy.

    They contain no 0 exactly when the bounds of the two means do not overlap. None where a metric
    without bounds misses a score.

    >>> difference_bounds(np.array([1.0, np.nan]), np.array([0.5, 0.5]), np.array([True, True]))
    (0.0, 0.5)
    """
    sides = [scores[asked_of_both], baseline_scores[asked_of_both]]
    (low, high), (baseline_low, baseline_high) = (
        _bounds(side, int((~np.isnan(side)).sum()), is_share) for side in sides
    )
    if low is None or high is None or baseline_low is None or baseline_high is None:
        return None, None
    return _mean(low - baseline_high), _mean(high - baseline_low)


def _bounds(
    scores: np.ndarray, n_scored: int, is_share: bool
) -> tuple[np.ndarray | None, np.ndarray | None]:
    if not is_share and n_scored < len(scores):
        return None, None
    missing = np.isnan(scores)
    return np.where(missing, 0.0, scores), np.where(missing, 1.0, scores)


def _mean(scores: np.ndarray | None) -> float | None:
    return None if scores is None or not len(scores) else float(scores.mean())
