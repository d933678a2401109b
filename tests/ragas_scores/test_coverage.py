import duckdb
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chunking_assets.workspace import Workspace
from evals.coverage import covered_by_metric
from evals.database import publish
from evals.ragas_scores.frames import SCORES

STATUSES = ("ok", "error", "skipped", "not_applicable", "stale")


def scores(*rows, metric="faithfulness", strategy="s"):
    """From (status, value), or (status, value, error_kind)."""
    return pl.DataFrame(
        [
            {"strategy": strategy, "question_id": str(n), "metric": metric, "status": status,
             "value": value, "error_kind": kind[0] if kind else None}
            for n, (status, value, *kind) in enumerate(rows)
        ],
        schema=SCORES,
    )  # fmt: skip


def of(rows):
    return list(covered_by_metric(rows).values())


def test_a_mean_has_the_bounds_of_what_is_missing():
    [found] = of(
        scores(("ok", 1.0), ("ok", 0.5), ("error", None), ("skipped", None), ("stale", None),
               ("not_applicable", None))
    )  # fmt: skip
    assert (found.n_scored, found.n_total, found.coverage) == (2, 4, 0.5)
    assert (found.mean_scored, found.mean_low, found.mean_high) == (0.75, 0.375, 0.875)
    assert str(found) == "0.750 (2 of 4 scored, bounds 0.375 to 0.875)"


def test_nothing_scored_has_no_mean():
    [found] = of(scores(("skipped", None)))
    assert (found.mean_scored, found.coverage, str(found)) == (None, 0.0, "none of 1 scored")


def test_a_metric_that_applies_to_nothing_has_no_bounds():
    [found] = of(scores(("not_applicable", None)))
    assert (found.n_total, found.coverage, found.mean_low, found.mean_high) == (0, None, None, None)


def test_what_nobody_asked_for_is_not_missing():
    [found] = of(scores(("ok", 0.5), *[("skipped", None, "max_questions")] * 9))
    assert (found.n_scored, found.n_total, found.coverage) == (1, 1, 1.0)
    [found] = of(scores(("ok", 0.5), ("skipped", None, "no_judge")))
    assert (found.n_total, found.coverage) == (2, 0.5)


def test_a_judge_that_fails_on_the_hard_questions_cannot_put_their_strategy_ahead():
    [easy_only] = of(scores(*[("ok", 1.0)] * 6, *[("error", None)] * 4))
    [all_judged] = of(scores(*[("ok", 1.0)] * 6, *[("ok", 0.5)] * 4))
    assert easy_only.mean_scored > all_judged.mean_scored
    assert easy_only.mean_low < all_judged.mean_low
    assert easy_only.mean_low < all_judged.mean_high  # the bounds overlap: no verdict
    assert easy_only.coverage < 0.95


@given(st.lists(st.sampled_from(STATUSES), min_size=1, max_size=20), st.randoms())
def test_the_bounds_hold_whatever_the_missing_values_are(statuses, random):
    hidden = [random.random() for _ in statuses]
    rows = [(s, v if s == "ok" else None) for s, v in zip(statuses, hidden, strict=True)]
    [found] = of(scores(*rows))
    applicable = [v for s, v in zip(statuses, hidden, strict=True) if s in STATUSES[:3]]
    if applicable:
        assert found.mean_low - 1e-9 <= sum(applicable) / len(applicable) <= found.mean_high + 1e-9


def test_the_database_says_the_same(tmp_path):
    workspace = Workspace(tmp_path)
    beyond = ("skipped", None, "max_questions")
    rows = scores(("ok", 1.0), ("ok", 0.25), ("error", None), ("stale", None), beyond)
    other = scores(("skipped", None), metric="context_recall")
    workspace.table("ragas_scores").replace(pl.concat([rows, other]), "s", version="1")
    with duckdb.connect(publish(workspace).path, read_only=True) as connection:
        said = connection.execute(
            "select metric, n_total, n_scored, mean_scored, mean_if_missing_0, mean_if_missing_1"
            " from score_coverage"
        ).fetchall()
    counted = [
        (metric, c.n_total, c.n_scored, c.mean_scored, c.mean_low, c.mean_high)
        for metric, c in covered_by_metric(pl.concat([rows, other])).items()
    ]
    assert sorted(said) == [pytest.approx(row) for row in sorted(counted)]
