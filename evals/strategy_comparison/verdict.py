"""The word for a comparison, and the sentence that says why.

A winner is named only when the corrected p-value and the interval both say so; everything else is
"cannot tell", together with the difference these questions could have shown.
"""

from collections.abc import Mapping
from typing import Any, Literal

from evals.retrieval_scores.registry import LOWER_IS_BETTER
from evals.strategy_comparison.bootstrap import PairedDifference

Verdict = Literal["baseline", "better", "worse", "cannot tell"]

MIN_QUESTIONS = 10
MIN_DOCUMENTS = 3


def decide(
    result: PairedDifference, p_holm: float, confidence: float, *, lower_is_better: bool = False
) -> Verdict:
    """`better` or `worse` if p after Holm < 1 - confidence and the interval excludes 0."""
    if (
        result.n_questions < MIN_QUESTIONS
        or result.n_documents < MIN_DOCUMENTS
        or result.ci_low is None
        or result.ci_high is None
        or p_holm >= 1 - confidence
        or result.ci_low <= 0 <= result.ci_high
    ):
        return "cannot tell"
    return "better" if (result.ci_low > 0) != lower_is_better else "worse"


def explain(row: Mapping[str, Any]) -> str:
    """One line for a row of the comparison table.

    Scores are shown in points (hundredths), tokens as they are.

    >>> row = dict(metric="recall@5", verdict="cannot tell", n_questions=80, n_documents=20,
    ...     difference=0.008, p_holm=0.7, minimum_detectable_difference=0.041)
    >>> explain(row)
    'cannot tell: difference +0.8 points, these questions could show 4.1'
    """
    verdict, difference = row["verdict"], row["difference"]
    if verdict == "baseline":
        return "baseline"
    if row["n_questions"] == 0:
        return f"{verdict}: no question was scored for both"
    if row["n_questions"] < MIN_QUESTIONS:
        return f"{verdict}: {row['n_questions']} questions, {MIN_QUESTIONS} are needed"
    if row["n_documents"] < MIN_DOCUMENTS:
        return f"{verdict}: {row['n_documents']} documents, {MIN_DOCUMENTS} are needed"
    tokens = row["metric"].partition("@")[0] in LOWER_IS_BETTER
    scale, unit = (1, "tokens") if tokens else (100, "points")
    shown = f"{scale * difference:+.1f} {unit}"
    if verdict != "cannot tell":
        low, high = scale * row["ci_low"], scale * row["ci_high"]
        return (
            f"{verdict}: {shown} ({row['confidence']:.0%} interval {low:+.1f} to {high:+.1f}, "
            f"p = {row['p_holm']:.2g} after Holm)"
        )
    detectable = row["minimum_detectable_difference"]
    if detectable is None and difference == 0:
        return f"{verdict}: every question scores the same"
    if detectable is None:
        return f"{verdict}: difference {shown} on every document"
    if abs(difference) < detectable:
        return f"{verdict}: difference {shown}, these questions could show {scale * detectable:.1f}"
    return f"{verdict}: difference {shown}, but p = {row['p_holm']:.2g} after Holm"
