"""The word for a comparison, the reason for it, and what is left to hope for.

A winner is named only when the interval, the bootstrap and the randomisation test, both corrected
for the number of strategies, and the coverage all say so; everything else is "cannot tell",
together with the difference these questions could have shown.
"""

from collections.abc import Mapping, Sequence
from math import ceil, sqrt
from typing import Any, Literal

from evals.coverage import MIN_COVERAGE
from evals.retrieval_scores.registry import LOWER_IS_BETTER
from evals.strategy_comparison.bootstrap import PairedDifference

Verdict = Literal["baseline", "better", "worse", "cannot tell", "not comparable"]
State = Literal["best so far", "in play", "ruled out"]

MIN_QUESTIONS = 10
MIN_DOCUMENTS = 3
MOST_QUESTIONS = 1_000_000
"""A difference that needs more than these is nil for every purpose."""

_CHANGED = {
    "golden_version": "other questions or evidence",
    "scorer": "another version of the scorer",
    "cutoffs": "other cut-offs",
    "metrics": "other metrics",
    "retrieval": "passages of another state of the index",
    "judge": "another judge",
    "answerer": "answers of another model",
}


def is_cost(metric: str) -> bool:
    """Whether less of this metric, name and cut-off, is better."""
    return metric.partition("@")[0] in LOWER_IS_BETTER


def in_words(difference: float, metric: str) -> str:
    """
    >>> in_words(0.02, "recall@5"), in_words(-150, "context_tokens@5")
    ('+2.0 points', '-150.0 tokens')
    """
    scale, unit = (1, "tokens") if is_cost(metric) else (100, "points")
    return f"{scale * difference:+.1f} {unit}"


def withheld(row: Mapping[str, Any]) -> str | None:
    """Why no verdict may be given on this row of the comparison, whatever its p-values."""
    if row["distrust"]:
        return str(row["distrust"])
    if row["n_questions"] == 0:
        return f"no question was scored for both{_because(row['missing'])}"
    for what, needed in (("question", MIN_QUESTIONS), ("document", MIN_DOCUMENTS)):
        if (found := row[f"n_{what}s"]) < needed:
            return f"{found} {what if found == 1 else f'{what}s'}, {needed} are needed"
    for whose in ("", "baseline_"):
        if (row[f"{whose}coverage"] or 0) < MIN_COVERAGE:
            return (
                f"{row[f'{whose}n_scored']} of {row[f'{whose}n_total']} questions are scored"
                f"{' for the baseline' if whose else ''}{_because(row[f'{whose}missing'])}, "
                f"{MIN_COVERAGE:.0%} are needed"
            )
    missing = sum(row[f"{w}n_total"] - row[f"{w}n_scored"] for w in ("", "baseline_"))
    low, high = row["difference_low"], row["difference_high"]
    if missing and (low is None or low <= row["margin"] <= high):
        return f"{missing} missing scores could turn it round"
    return None


def _because(missing: str) -> str:
    return f" ({missing})" if missing else ""


def decide(row: Mapping[str, Any]) -> Verdict:
    """`better` or `worse` if nothing withholds it, p after Holm is below 1 - confidence and the
    interval excludes the margin (0 unless a gate asks for more)."""
    if (
        withheld(row)
        or row["ci_low"] is None
        or row["p_holm"] >= 1 - row["confidence"]
        or row["ci_low"] <= row["margin"] <= row["ci_high"]
    ):
        return "cannot tell"
    return "better" if (row["ci_low"] > row["margin"]) != is_cost(row["metric"]) else "worse"


def states(rows: Sequence[Mapping[str, Any]]) -> list[State]:
    """What one metric's rows, the baseline's among them, leave of each strategy's chances.

    `best so far` has the best mean over the questions scored for all. `ruled out` is worse than
    another one: than the baseline by the verdict, than a strategy that is better by the verdict,
    or further behind the best than strategies without a difference would be. The rest is in play.
    """
    beaten = {
        row["baseline"] if row["verdict"] == "better" else row["strategy"]
        for row in rows
        if row["verdict"] in ("better", "worse")
    }
    return [_state(row, row["strategy"] in beaten) for row in rows]


def _state(row: Mapping[str, Any], is_beaten: bool) -> State:
    if row["behind_best"] == 0:
        return "best so far"
    is_far_behind = row["p_behind"] is not None and row["p_behind"] < 1 - row["confidence"]
    return "ruled out" if is_beaten or (is_far_behind and not withheld(row)) else "in play"


def questions_needed(result: PairedDifference, margin: float = 0.0) -> int | None:
    """About how many questions like these, on as many more documents, would tell the difference
    seen from `margin`; None where it is nil, or nothing is known of its spread.

    The detectable difference falls with the square root of their number.
    """
    detectable = result.minimum_detectable_difference
    if detectable is None or result.difference is None:
        return None
    distance = abs(result.difference - margin)
    if distance * sqrt(MOST_QUESTIONS) < detectable * sqrt(result.n_questions):
        return None
    return ceil(result.n_questions * (detectable / distance) ** 2)


def measured_otherwise(changed: Sequence[str]) -> str:
    """
    >>> measured_otherwise(["golden_version", "judge"])
    'measured with other questions or evidence, another judge'
    """
    return f"measured with {', '.join(_CHANGED.get(key, key) for key in changed)}"


def reason(row: Mapping[str, Any]) -> str:
    """What the verdict of a row rests on. Scores are in points (hundredths), tokens as they are.

    >>> row = dict(metric="recall@5", verdict="cannot tell", n_questions=80, n_documents=20,
    ...     distrust=None, missing="", baseline_missing="",
    ...     n_scored=80, n_total=80, coverage=1.0, baseline_n_scored=80, baseline_n_total=80,
    ...     baseline_coverage=1.0, difference=0.008, difference_low=0.008, difference_high=0.008,
    ...     margin=0.0, p_holm=0.7, minimum_detectable_difference=0.041, questions_needed=2102)
    >>> reason(row)
    'difference +0.8 points, these questions could show 4.1, about 2,102 would show it'
    """
    verdict, difference = row["verdict"], row["difference"]
    if verdict == "baseline":
        return "what the others are compared with"
    if verdict == "not comparable":
        return f"{measured_otherwise(row['changed'].split(', '))}; score it again"
    if why := withheld(row):
        return why
    scale, shown = 1 if is_cost(row["metric"]) else 100, in_words(difference, row["metric"])
    if verdict != "cannot tell":
        low, high = scale * row["ci_low"], scale * row["ci_high"]
        noise = (
            f", the judge's noise ±{scale * row['judge_noise']:.1f}" if row["judge_noise"] else ""
        )
        return (
            f"{shown} ({row['confidence']:.0%} interval {low:+.1f} to {high:+.1f}, "
            f"p = {row['p_holm']:.3g} after Holm{noise})"
        )
    detectable = row["minimum_detectable_difference"]
    if detectable is None and difference == 0:
        return "every question scores the same"
    if detectable is None:
        return f"difference {shown} on every document"
    if abs(difference - row["margin"]) >= detectable:
        return f"difference {shown}, but p = {row['p_holm']:.3g} after Holm"
    needed = row["questions_needed"]
    return (
        f"difference {shown}, these questions could show {scale * detectable:.1f}"
        f"{'' if needed is None else f', about {needed:,} would show it'}"
    )


def explain(row: Mapping[str, Any]) -> str:
    """Verdict and reason of a row of the comparison table, in one line.

    >>> explain({"verdict": "cannot tell", "reason": "9 questions, 10 are needed"})
    'cannot tell: 9 questions, 10 are needed'
    """
    if row["verdict"] == "baseline":
        return "baseline"
    return f"{row['verdict']}: {row['reason']}"
