"""How much of a judged mean was really judged, and what the rest could make of it.

A judge that fails on one strategy's hard questions must not let that strategy win, so no mean goes
without its bounds: as if everything missing were 0, and as if it were 1.
"""

from dataclasses import dataclass

import polars as pl

MISSING = ("error", "skipped")
"""What a metric applies to and has no value for. Not applicable and stale rows are not missing."""


@dataclass(frozen=True, slots=True)
class Coverage:
    """One metric of one strategy; as the view `score_coverage` has it.

    `mean` is of the `n_scored` values, None without one; `low` and `high` are its bounds over the
    `n_total` questions it applies to, None if there are none.
    """

    metric: str
    n_total: int
    n_scored: int
    mean: float | None
    low: float | None
    high: float | None

    @property
    def share(self) -> float | None:
        """`n_scored` of `n_total`."""
        return self.n_scored / self.n_total if self.n_total else None

    def __str__(self) -> str:
        if self.mean is None or self.low is None or self.high is None:
            return f"none of {self.n_total} scored"
        return (
            f"{self.mean:.3f} ({self.n_scored} of {self.n_total} scored, "
            f"bounds {self.low:.3f} to {self.high:.3f})"
        )


def coverage(scores: pl.DataFrame) -> list[Coverage]:
    """Each metric of one strategy's `ragas_scores`, in the order of its rows."""
    found = []
    for (metric,), rows in scores.group_by(["metric"], maintain_order=True):
        values = rows["value"].drop_nulls()
        n_scored = values.len()
        n_total = n_scored + rows.filter(pl.col("status").is_in(MISSING)).height
        known = float(values.sum())
        found.append(
            Coverage(
                metric=str(metric),
                n_total=n_total,
                n_scored=n_scored,
                mean=known / n_scored if n_scored else None,
                low=known / n_total if n_total else None,
                high=(known + n_total - n_scored) / n_total if n_total else None,
            )
        )
    return found
