"""`python -m benchmarks.comparison`: what a comparison costs, beside scipy's tests of one metric.

Both sides get the same invented scores in one process and are timed in CPU seconds. Ours compares
every metric, judged ones with their noise among them, tests each difference twice, ranks all
strategies and looks at every slice; scipy's bootstrap and permutation test are given the documents'
sums of the metric that decides.
"""

import argparse
import sys
import time
from collections.abc import Callable
from typing import TypeVar

import numpy as np
import polars as pl

from evals.ragas_scores.build import JUDGED
from evals.strategy_comparison.compare import EXPLORATORY, Comparison, beside, compare
from evals.strategy_comparison.slices import SLICES_SCHEMA

T = TypeVar("T")

PRIMARY = "recall@5"
CPU_BUDGET = 30.0
"""Seconds that a thousand questions and six strategies may take."""
QUESTIONS_PER_DOCUMENT, TAGS = 3, 20
DIMENSIONS = {
    "collection": ["help", "handbook", "releases", "notes", "code"],
    "language": ["en", "pt", "fr"],
    "length": ["short", "medium", "long"],
    "tag": [f"tag-{number}" for number in range(TAGS)],
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.comparison", description=__doc__)
    parser.add_argument("--questions", type=int, default=1_000)
    parser.add_argument("--strategies", type=int, default=6)
    parser.add_argument("--resamples", type=int, default=10_000)
    chosen = parser.parse_args()
    scores, clusters, slices = invented(chosen.questions, chosen.strategies)
    ours, comparison = _timed(
        lambda: compare(
            scores,
            clusters,
            "strategy-0",
            PRIMARY,
            judged=JUDGED,
            slices=slices,
            resamples=chosen.resamples,
        )
    )
    import scipy.stats  # type: ignore[import-untyped]  # noqa: F401  # not timed: it takes seconds

    sums = _sums_by_document(scores, clusters)
    theirs, _ = _timed(lambda: _scipy(sums, chosen.resamples))
    print(
        f"{chosen.questions:,} questions on {len(set(clusters.values())):,} documents, "
        f"{chosen.strategies} strategies, {chosen.resamples:,} resamples"
    )
    print(f"  ours   {ours:6.2f} s of CPU: {_what(comparison)}")
    print(f"  scipy  {theirs:6.2f} s of CPU: {sums.shape[1]} differences, {PRIMARY} only")
    print(f"  ours / scipy {ours / theirs:.2f}; {ours / CPU_BUDGET:.0%} of {CPU_BUDGET:.0f} s")
    return 0


def invented(
    n_questions: int, n_strategies: int
) -> tuple[pl.DataFrame, dict[str, str], pl.DataFrame]:
    """Scores of every metric compared, the document of each question, and its slices."""
    random = np.random.default_rng(0)
    questions = [f"q{number:05}" for number in range(n_questions)]
    documents = random.integers(0, max(2, n_questions // QUESTIONS_PER_DOCUMENT), n_questions)
    metrics = [PRIMARY, beside(PRIMARY), *EXPLORATORY, *JUDGED]
    scores = pl.concat(
        pl.DataFrame(
            {
                "strategy": f"strategy-{number}",
                "question_id": questions,
                "metric": name.partition("@")[0],
                "cutoff": name.partition("@")[2],
                "value": random.choice([0.0, 0.5, 1.0], n_questions),
                "status": "ok",
                "judge_variance": 0.02 if name in JUDGED else np.nan,
                "judge_key": [f"{name} {number} {question}" for question in questions],
            }
        )
        for name in metrics
        for number in range(n_strategies)
    )
    rows = [
        (question, dimension, names[random.integers(len(names))])
        for question in questions
        for dimension, names in DIMENSIONS.items()
    ]
    clusters = dict(zip(questions, map(str, documents), strict=True))
    return scores, clusters, pl.DataFrame(rows, schema=SLICES_SCHEMA, orient="row")


def _timed(work: Callable[[], T]) -> tuple[float, T]:
    start = time.process_time()
    result = work()
    return time.process_time() - start, result


def _sums_by_document(scores: pl.DataFrame, clusters: dict[str, str]) -> np.ndarray:
    """Differences to the first strategy, float64 (documents, strategies - 1)."""
    metric, _, cutoff = PRIMARY.partition("@")
    wide = (
        scores.filter((pl.col("metric") == metric) & (pl.col("cutoff") == cutoff))
        .with_columns(document=pl.col("question_id").replace_strict(clusters))
        .group_by("document", "strategy")
        .agg(pl.col("value").sum())
        .pivot(on="strategy", index="document", values="value")
    )
    columns = sorted(name for name in wide.columns if name != "document")
    sums = wide.select(columns).to_numpy()
    differences: np.ndarray = sums[:, 1:] - sums[:, :1]
    return differences


def _scipy(sums: np.ndarray, resamples: int) -> None:
    from scipy.stats import bootstrap, permutation_test

    for column in sums.T:
        bootstrap((column,), np.mean, n_resamples=resamples, method="percentile")
        permutation_test(
            (column,),
            lambda values, axis: values.mean(axis=axis),
            permutation_type="samples",
            n_resamples=resamples,
            vectorized=True,
        )


def _what(comparison: Comparison) -> str:
    baseline = pl.col("strategy") != pl.col("baseline")
    differences, slices = (
        frame.filter(baseline).height for frame in (comparison.table, comparison.slices)
    )
    return f"{differences} differences, {slices} more in slices"


if __name__ == "__main__":
    sys.exit(main())
