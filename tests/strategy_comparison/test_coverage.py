"""What is missing must not help: neither a strategy nor a difference."""

import numpy as np
import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from evals.coverage import covered, difference_bounds
from evals.retrieval_scores.score import score_question
from evals.retrieval_scores.spans import Span
from evals.strategy_comparison.compare import compare

N = 200
QUESTIONS = [f"q{number:03}" for number in range(N)]
CLUSTERS = {question: f"d{number % 40:02}" for number, question in enumerate(QUESTIONS)}
HARD = np.arange(N) % 10 < 2
"""A fifth of the questions."""


def judged(**values: np.ndarray) -> pl.DataFrame:
    """Rows as of a judge: a status, and a value exactly where it is `ok`."""
    return pl.concat(
        pl.DataFrame(
            {
                "strategy": strategy,
                "question_id": QUESTIONS,
                "metric": "faithfulness",
                "cutoff": "",
                "value": pl.Series(column, dtype=pl.Float64).fill_nan(None),
                "status": ["error" if missing else "ok" for missing in np.isnan(column)],
            }
        )
        for strategy, column in values.items()
    )


def row(frame: pl.DataFrame, strategy: str = "other") -> dict:
    table = compare(frame, CLUSTERS, "base", "faithfulness", (), resamples=1000).table
    return table.row(by_predicate=pl.col("strategy") == strategy, named=True)


def as_good(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Two strategies that are equally bad on the hard questions, and the other a little better
    on the easy ones."""
    random = np.random.default_rng(seed)
    base = np.where(HARD, 0.1, 0.8) + random.uniform(-0.05, 0.05, N)
    return base, base + np.where(HARD, 0.0, 0.04)


def test_timeouts_on_one_strategy_s_hard_questions_do_not_let_it_win() -> None:
    base, other = as_good()
    assert row(judged(base=base, other=other))["verdict"] == "better"
    other[HARD] = np.nan
    found = row(judged(base=base, other=other))
    assert found["mean"] > 0.8 > base.mean()
    assert found["verdict"] == "cannot tell"
    assert found["reason"] == "160 of 200 questions are scored, 95% are needed"
    assert (found["n_scored"], found["n_total"], found["coverage"]) == (160, 200, 0.8)


def test_timeouts_of_the_baseline_do_not_make_it_lose() -> None:
    base, other = as_good()
    base[~HARD & (np.arange(N) < 60)] = np.nan
    found = row(judged(base=base, other=other))
    assert found["verdict"] == "cannot tell"
    assert found["reason"].endswith("scored for the baseline, 95% are needed")


def test_a_few_missing_scores_that_could_turn_the_difference_leave_no_verdict() -> None:
    base, other = as_good()
    other[np.flatnonzero(~HARD)[:9]] = np.nan
    found = row(judged(base=base, other=other))
    assert found["coverage"] == 0.955
    assert found["ci_low"] > 0
    assert found["difference_low"] < 0 < found["difference_high"]
    assert (found["verdict"], found["reason"]) == (
        "cannot tell",
        "9 missing scores could turn it round",
    )


def test_a_difference_that_no_missing_score_could_turn_stands() -> None:
    base, other = as_good()
    other[~HARD] = np.minimum(1, base[~HARD] + 0.15)
    other[np.flatnonzero(HARD)[:4]] = np.nan
    found = row(judged(base=base, other=other))
    assert found["difference_low"] > 0
    assert found["verdict"] == "better"


def test_a_strategy_with_little_scored_stands_last_and_is_not_ranked() -> None:
    base, other = as_good()
    other[HARD] = np.nan
    frame = judged(base=base, other=other, third=base - 0.02)
    table = compare(frame, CLUSTERS, "base", "faithfulness", (), resamples=1000).table
    assert table["strategy"].to_list() == ["base", "third", "other"]
    assert dict(table.select("strategy", "state").iter_rows()) == {
        "base": "best so far",
        "third": "ruled out",
        "other": "in play",
    }
    assert table["p_best"].to_list() == [1, 0, None]


def test_where_there_is_nothing_to_score_nothing_is_missing() -> None:
    base, other = as_good()
    other[:40] = np.nan
    frame = judged(base=base, other=other).with_columns(
        status=pl.when(pl.col("value").is_null())
        .then(pl.lit("not_applicable"))
        .otherwise(pl.col("status"))
    )
    found = row(frame)
    assert (found["n_scored"], found["n_total"], found["n_questions"]) == (160, 160, 160)
    assert found["verdict"] == "better"


def test_a_question_without_a_row_is_missing_too() -> None:
    base, other = as_good()
    frame = judged(base=base, other=other)
    left_out = pl.col("question_id").is_in(QUESTIONS[:40]) & (pl.col("strategy") == "other")
    found = row(frame.filter(~left_out))
    assert (found["coverage"], found["verdict"]) == (0.8, "cannot tell")


def test_a_cost_that_misses_scores_has_no_bounds_and_no_verdict() -> None:
    base = np.linspace(500, 900, N)
    other = base - 100
    other[:4] = np.nan
    frame = judged(base=base, other=other).with_columns(
        metric=pl.lit("context_tokens"), cutoff=pl.lit("5")
    )
    table = compare(frame, CLUSTERS, "base", "context_tokens@5", (), resamples=500).table
    found = table.row(by_predicate=pl.col("strategy") == "other", named=True)
    assert (found["mean_low"], found["difference_low"]) == (None, None)
    assert found["verdict"] == "cannot tell"


@given(
    st.lists(
        st.tuples(*[st.one_of(st.just(np.nan), st.floats(0, 1))] * 2, st.booleans()),
        min_size=1,
        max_size=12,
    )
)
def test_bounds_hold_whatever_the_missing_scores_are(pairs: list[tuple[float, float, bool]]):
    one, other, asked = (np.array(column) for column in zip(*pairs, strict=True))
    low, high = difference_bounds(one, other, asked)
    if not asked.any():
        assert (low, high) == (None, None)
        return
    bounds = [covered(side, asked) for side in (one, other)]
    for fill in (0.0, 0.3, 1.0):
        means = [np.where(np.isnan(side), fill, side)[asked].mean() for side in (one, other)]
        assert low - 1e-12 <= means[0] - means[1] <= high + 1e-12
        for mean, bound in zip(means, bounds, strict=True):
            assert bound.mean_low - 1e-12 <= mean <= bound.mean_high + 1e-12
    if abs(low) > 1e-9:
        assert (bounds[0].mean_low > bounds[1].mean_high) == (low > 0)


def test_an_empty_retrieval_scores_0_recall_and_is_compared_as_such() -> None:
    evidence = [[Span("docs/a.md", 0, 10)]]
    nothing = score_question({"5": [], "1000t": []}, evidence)
    assert all(np.isfinite(value) for value in nothing.values())
    assert (nothing["recall", "5"], nothing["recall", "1000t"]) == (0, 0)
    frame = judged(base=np.full(N, 0.5), other=np.full(N, nothing["recall", "5"]))
    found = row(frame)
    assert (found["mean"], found["difference"], found["verdict"]) == (0, -0.5, "worse")
    assert found["n_scored"] == N
