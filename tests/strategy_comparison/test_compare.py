from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

from chunking_assets.errors import CorpusError
from evals.strategy_comparison.bootstrap import paired_bootstrap
from evals.strategy_comparison.compare import CHANGES_SCHEMA, TABLE_SCHEMA, Comparison, compare
from evals.strategy_comparison.holm import holm
from evals.strategy_comparison.verdict import decide, explain, questions_needed

QUESTIONS = [f"q{number:02}" for number in range(60)]
CLUSTERS = {question: f"d{number % 15}" for number, question in enumerate(QUESTIONS)}


def scores(measure: str = "recall@5", **values: np.ndarray | list[float | None]) -> pl.DataFrame:
    metric, cutoff = measure.split("@")
    return pl.concat(
        pl.DataFrame(
            {
                "strategy": [strategy] * len(column),
                "question_id": QUESTIONS[: len(column)],
                "metric": metric,
                "cutoff": cutoff,
                "value": column,
            },
            schema_overrides={"value": pl.Float64},
        )
        for strategy, column in values.items()
    )


def random_scores(seed: int = 0) -> pl.DataFrame:
    random = np.random.default_rng(seed)
    base = random.uniform(0.3, 0.6, 60)

    def near(effect: float) -> np.ndarray:
        return np.clip(base + effect + random.normal(0, 0.05, 60), 0, 1)

    return scores(base=base, good=near(0.2), bad=near(-0.2), same=near(0.0))


def run(frame: pl.DataFrame, baseline: str = "base", **settings) -> Comparison:
    return compare(frame, CLUSTERS, baseline, **{"resamples": 2000, **settings})


def rows(comparison: Comparison) -> dict[str, dict]:
    return {row["strategy"]: row for row in comparison.table.iter_rows(named=True)}


def test_better_worse_and_cannot_tell_are_named_best_first() -> None:
    table = run(random_scores()).table
    assert table["strategy"][0] == "good"
    assert dict(table.select("strategy", "verdict").iter_rows()) == {
        "good": "better",
        "base": "baseline",
        "same": "cannot tell",
        "bad": "worse",
    }
    assert dict(table.schema) == TABLE_SCHEMA
    assert table["mean"].to_list() == sorted(table["mean"], reverse=True)


def test_every_row_says_how_it_was_made() -> None:
    table = run(random_scores(), seed=7, confidence=0.9).table
    made = table.select("metric", "baseline", "seed", "resamples", "confidence").unique()
    assert made.rows() == [("recall@5", "base", 7, 2000, 0.9)]
    assert table["n_questions"].unique().to_list() == [60]
    assert table["n_documents"].unique().to_list() == [15]


def test_the_baseline_differs_from_itself_by_nothing() -> None:
    row = rows(run(random_scores()))["base"]
    assert (row["difference"], row["ci_low"], row["ci_high"], row["p_holm"]) == (0, 0, 0, 1)


def test_the_order_of_rows_does_not_matter() -> None:
    frame = random_scores()
    one, other = run(frame), run(frame.sample(fraction=1, shuffle=True, seed=3))
    assert_frame_equal(one.table, other.table, check_exact=True)
    assert_frame_equal(one.changes, other.changes, check_exact=True)


def test_identical_strategies_cannot_be_told_apart() -> None:
    column = list(np.linspace(0, 1, 60))
    comparison = run(scores(base=column, twin=column))
    row = rows(comparison)["twin"]
    assert (row["verdict"], row["difference"]) == ("cannot tell", 0)
    assert explain(row) == "cannot tell: every question scores the same"
    assert not comparison.table.select(pl.selectors.float().is_nan().any()).row(0).count(True)


def test_many_equal_strategies_rarely_yield_a_winner() -> None:
    random, wins = np.random.default_rng(3), 0
    for _ in range(30):
        base = random.uniform(0, 1, 60)
        others = {f"s{n}": np.clip(base + random.normal(0, 0.3, 60), 0, 1) for n in range(8)}
        table = run(scores(base=np.clip(base + random.normal(0, 0.3, 60), 0, 1), **others)).table
        wins += table["verdict"].is_in(["better", "worse"]).any()
    assert wins <= 4


def test_exploratory_metrics_are_marked_and_corrected_among_themselves() -> None:
    frame = pl.concat(
        [
            random_scores(),
            random_scores(1).with_columns(metric=pl.lit("precision")),
            random_scores(2).with_columns(metric=pl.lit("mrr"), cutoff=pl.lit("10")),
        ]
    )
    alone, together = run(random_scores()).table, run(frame).table
    assert together["metric"].unique(maintain_order=True).to_list() == [
        "recall@5",
        "precision@5",
        "mrr@10",
    ]
    assert_frame_equal(together.filter("is_primary"), alone, check_exact=True)
    exploratory = together.filter(~pl.col("is_primary") & (pl.col("verdict") != "baseline"))
    assert exploratory.height == 6
    assert exploratory["p_holm"].min() == pytest.approx(6 * exploratory["p_value"].min())


def test_with_more_strategies_the_same_questions_can_show_less() -> None:
    frame = random_scores()
    alone = rows(run(frame.filter(pl.col("strategy").is_in(["base", "same"]))))["same"]
    among = rows(run(frame))["same"]
    assert among["ci_low"] == alone["ci_low"]
    assert among["minimum_detectable_difference"] > alone["minimum_detectable_difference"]


def test_a_primary_metric_listed_as_exploratory_is_compared_once() -> None:
    table = run(random_scores(), exploratory=("recall@5",)).table
    assert table["is_primary"].to_list() == [True] * 4


def test_fewer_tokens_are_better() -> None:
    base = np.linspace(500, 900, 60)
    frame = scores("context_tokens@5", base=base, lean=base - 200 + np.arange(60) % 7)
    comparison = run(frame, primary="context_tokens@5")
    row = rows(comparison)["lean"]
    assert (row["verdict"], row["p_best"]) == ("better", 1)
    assert "better: -197.1 tokens" in explain(row)
    assert comparison.table["strategy"].to_list() == ["lean", "base"]
    assert comparison.changes.is_empty()


def test_questions_not_scored_on_both_sides_are_left_out_and_shown() -> None:
    column: list[float | None] = [0.5] * 60
    holes = [None if n < 10 else float("nan") if n < 20 else 1.0 for n in range(60)]
    row = rows(run(scores(base=column, other=holes)))["other"]
    assert (row["n_questions"], row["difference"]) == (40, 0.5)


@pytest.mark.parametrize(
    ("count", "clusters", "reason"),
    [
        (9, CLUSTERS, "9 questions, 10 are needed"),
        (60, {q: f"d{n % 2}" for n, q in enumerate(QUESTIONS)}, "2 documents, 3 are needed"),
    ],
)
def test_too_little_to_go_by_is_said(count: int, clusters: dict[str, str], reason: str) -> None:
    frame = scores(base=[0.0] * count, other=[1.0] * count)
    row = rows(compare(frame, clusters, "base", resamples=500))["other"]
    assert row["verdict"] == "cannot tell"
    assert explain(row) == f"cannot tell: {reason}"


def test_a_strategy_without_a_common_question_is_a_row_that_says_so() -> None:
    half = 30
    frame = scores(base=[0.5] * half + [None] * half, other=[None] * half + [0.5] * half)
    row = rows(run(frame))["other"]
    assert (row["n_questions"], row["difference"], row["verdict"]) == (0, None, "cannot tell")
    assert explain(row) == "cannot tell: no question was scored for both"


def test_cannot_tell_comes_with_what_the_questions_could_show() -> None:
    row = rows(run(random_scores()))["same"]
    shown, needed = 100 * row["minimum_detectable_difference"], row["questions_needed"]
    assert f"points, these questions could show {shown:.1f}, about {needed} would" in explain(row)


def test_the_questions_needed_are_about_those_with_which_the_difference_is_detected() -> None:
    random = np.random.default_rng(1)
    names = [f"q{n:05}" for n in range(6000)]
    documents = {name: f"d{n // 4}" for n, name in enumerate(names)}
    change = random.normal(0.03, 0.3, 6000)

    def detected(count: int) -> dict:
        frame = pl.concat(
            pl.DataFrame(
                {
                    "strategy": strategy,
                    "question_id": names[:count],
                    "metric": "recall",
                    "cutoff": "5",
                    "value": column,
                }
            )
            for strategy, column in (("base", np.zeros(count)), ("other", change[:count]))
        )
        return rows(compare(frame, documents, "base", resamples=500))["other"]

    few = detected(400)
    assert few["verdict"] == "cannot tell"
    scaled = few["questions_needed"] * (few["difference"] / 0.03) ** 2
    assert detected(round(scaled))["minimum_detectable_difference"] == pytest.approx(0.03, rel=0.1)


@pytest.mark.parametrize(
    ("difference", "detectable", "needed"),
    [(0.0, 0.1, None), (0.1, None, None), (None, None, None), (1e-9, 0.1, None), (-0.05, 0.1, 400)],
)
def test_a_nil_difference_needs_no_number_of_questions(difference, detectable, needed) -> None:
    scored = np.vstack([np.zeros(100), np.ones(100)])
    (_, result) = paired_bootstrap(scored, [f"d{n}" for n in range(100)], 0, resamples=100)
    changed = replace(result, difference=difference, minimum_detectable_difference=detectable)
    assert questions_needed(changed) == needed


def test_each_strategy_is_best_so_far_in_play_or_ruled_out() -> None:
    random = np.random.default_rng(0)
    base = random.uniform(0.3, 0.6, 60)
    near = {"equal": 0.19, "bad": -0.2, "good": 0.21}
    frame = scores(base=base, **{n: base + e + random.normal(0, 0.05, 60) for n, e in near.items()})
    table = run(frame).table
    assert dict(table.select("strategy", "state").iter_rows()) == {
        "good": "best so far",
        "equal": "in play",
        "base": "ruled out",
        "bad": "ruled out",
    }


def test_twins_that_lead_are_both_best_so_far() -> None:
    column = list(np.linspace(0, 1, 60))
    assert set(run(scores(base=column, twin=column)).table["state"]) == {"best so far"}


def test_too_few_questions_rule_nobody_out() -> None:
    table = compare(scores(base=[0.0] * 9, other=[1.0] * 9), CLUSTERS, "base", resamples=500).table
    assert dict(table.select("strategy", "state").iter_rows()) == {
        "other": "best so far",
        "base": "in play",
    }


def test_both_tests_must_agree() -> None:
    """Heavy tails, where the bootstrap is too sure."""
    random = np.random.default_rng(33)
    documents = random.integers(4, 30)
    change = 0.2 * random.standard_t(2, 3 * documents) + 0.1
    clusters = {f"q{n:02}": f"d{n % documents}" for n in range(3 * documents)}
    frame = pl.concat(
        pl.DataFrame(
            {
                "strategy": strategy,
                "question_id": list(clusters),
                "metric": "recall",
                "cutoff": "5",
                "value": column,
            }
        )
        for strategy, column in (("base", np.zeros_like(change)), ("other", change))
    )
    row = rows(compare(frame, clusters, "base", resamples=2000))["other"]
    assert row["p_value"] < 0.05 < row["p_randomisation"] == row["p_holm"]
    assert row["ci_low"] > 0
    assert row["verdict"] == "cannot tell"


def test_a_small_p_value_is_no_verdict_where_the_interval_holds_no_difference() -> None:
    row = rows(run(random_scores()))["good"] | {
        "margin": 0.0, "distrust": None, "missing": "", "baseline_missing": "",
        "baseline_coverage": 1.0, "baseline_n_scored": 60, "baseline_n_total": 60,
    }  # fmt: skip
    assert decide(row) == "better"
    assert decide(row | {"ci_low": -0.001}) == "cannot tell"
    assert decide(row | {"p_holm": 0.06}) == "cannot tell"


def test_the_larger_of_both_p_values_is_corrected() -> None:
    random = np.random.default_rng(1)
    base = random.uniform(0.3, 0.6, 60)
    others = {f"s{n}": base + random.normal(0.01, 0.05, 60) for n in range(6)}
    table = run(scores(base=base, **others)).table.filter(pl.col("verdict") != "baseline")
    pairs = table.select("p_value", "p_randomisation").rows()
    assert table["p_holm"].to_list() == holm([max(pair) for pair in pairs])


def test_the_other_sort_of_cut_off_stands_beside_the_metric_that_decides() -> None:
    twin = random_scores(5).with_columns(cutoff=pl.lit("1000t"))
    by_k = run(pl.concat([random_scores(), twin])).table
    assert by_k["metric"].unique(maintain_order=True).to_list() == ["recall@5", "recall@1000t"]
    assert by_k.filter("is_primary")["metric"].unique().to_list() == ["recall@5"]
    by_tokens = run(pl.concat([random_scores(), twin]), primary="recall@1000t").table
    assert by_tokens["metric"].unique(maintain_order=True).to_list() == ["recall@1000t", "recall@5"]
    assert_frame_equal(by_k.filter("is_primary"), run(random_scores()).table, check_exact=True)


def test_what_was_measured_otherwise_is_not_compared_and_says_what_changed() -> None:
    changed = {"recall": {"good": ("golden_version", "scorer"), "bad": ()}}
    found = rows(run(random_scores(), changed=changed))
    good = found.pop("good")
    assert (good["verdict"], good["changed"]) == ("not comparable", "golden_version, scorer")
    assert (good["mean"], good["p_best"], good["state"], good["n_questions"]) == (None,) * 3 + (0,)
    assert explain(good) == (
        "not comparable: measured with other questions or evidence, another version of the "
        "scorer; score it again"
    )
    without = random_scores().filter(pl.col("strategy") != "good")
    assert found == rows(run(without))


def test_a_verdict_can_be_asked_against_a_margin() -> None:
    random = np.random.default_rng(0)
    base = random.uniform(0.3, 0.6, 60)
    frame = scores(base=base, good=base + 0.2 + random.normal(0, 0.05, 60))

    def verdict(margin: float) -> str:
        row = rows(run(frame, margin=margin))["good"]
        assert row["difference"] == pytest.approx(0.2, abs=0.02)
        return row["verdict"]

    assert [verdict(m) for m in (-0.1, 0.1, 0.2, 0.3)] == [
        "better",
        "better",
        "cannot tell",
        "worse",
    ]


def test_a_verdict_comes_with_its_interval_and_p() -> None:
    text = explain(rows(run(random_scores()))["good"])
    assert text.startswith("better: +2")
    assert "95% interval +" in text
    assert text.endswith("after Holm)")


def test_a_question_is_lost_or_won_when_half_of_the_metric_moves_the_largest_first() -> None:
    base, other = [0.5] * 60, [0.5] * 60
    base[:5], other[:5] = [0.0, 1.0, 0.2, 0.7, 1.0], [1.0, 0.4, 0.69, 0.2, 0.0]
    changes = run(scores(base=base, other=other)).changes
    assert dict(changes.schema) == CHANGES_SCHEMA
    assert changes.rows() == [
        ("base", "other", "q04", "lost", "recall@5", 1.0, 0.0),
        ("base", "other", "q01", "lost", "recall@5", 1.0, 0.4),
        ("base", "other", "q03", "lost", "recall@5", 0.7, 0.2),
        ("base", "other", "q00", "won", "recall@5", 0.0, 1.0),
    ]


def test_a_baseline_on_its_own_is_one_row() -> None:
    table = run(scores(base=[0.5] * 60)).table
    assert table.select("strategy", "verdict", "p_best").rows() == [("base", "baseline", 1.0)]


@pytest.mark.parametrize(
    ("frame", "settings", "said"),
    [
        (random_scores(), {"baseline": "gone"}, "the baseline 'gone' has no recall@5 score"),
        (random_scores(), {"primary": "hit@5"}, "the baseline 'base' has no hit@5 score"),
        (pl.concat([random_scores()] * 2), {}, "several recall@5 scores of question"),
        (
            random_scores().with_columns(question_id=pl.lit("x") + pl.col("question_id")),
            {},
            "no document to group it by",
        ),
        (random_scores().clear(), {}, "has no recall@5 score"),
    ],
)
def test_what_cannot_be_compared_is_one_error_with_the_cure(
    frame: pl.DataFrame, settings: dict, said: str
) -> None:
    with pytest.raises(CorpusError, match=said):
        run(frame, **settings)


def judged_scores(**values: np.ndarray) -> pl.DataFrame:
    frame = scores(**values)
    return frame.with_columns(metric=pl.lit("faithfulness"), cutoff=pl.lit(""))


def test_a_judgement_that_both_sides_share_adds_no_noise_to_their_difference() -> None:
    frame = judged_scores(base=np.linspace(0, 1, 60), good=np.linspace(0, 1, 60) ** 2)
    own = pl.format("{} {}", "question_id", "strategy")
    is_shared = pl.col("question_id") < "q20"
    keyed = frame.with_columns(
        judge_variance=pl.lit(0.01),
        judge_key=pl.when(is_shared).then("question_id").otherwise(own),
    )
    compared = compare(keyed, CLUSTERS, "base", "faithfulness", (), resamples=200)
    assert rows(compared)["good"]["judge_noise"] == pytest.approx(np.sqrt(40 * 0.02) / 60)


def test_a_changed_judge_takes_judged_metrics_out_of_the_comparison_and_no_other() -> None:
    both = pl.concat([random_scores(), judged_scores(base=np.full(60, 0.5), good=np.full(60, 0.9))])
    changed = {"faithfulness": {"good": ("judge",)}}
    found = run(both, judged=["faithfulness"], changed=changed).table
    on_spans = found.filter(metric="recall@5")
    assert on_spans.equals(run(random_scores()).table)
    (good,) = found.filter(metric="faithfulness", strategy="good").rows(named=True)
    assert (good["verdict"], good["changed"], good["is_primary"]) == (
        "not comparable",
        "judge",
        False,
    )


def test_a_baseline_measured_otherwise_leaves_nothing_to_compare_it_with() -> None:
    both = pl.concat([random_scores(), judged_scores(base=np.full(60, 0.5), good=np.full(60, 0.9))])
    changed = {"faithfulness": {"base": ("retrieval",)}}
    found = run(both, judged=["faithfulness"], changed=changed).table.filter(metric="faithfulness")
    assert set(found.select("strategy", "verdict", "changed").rows()) == {
        (name, "not comparable", "retrieval") for name in ("good", "bad", "same")
    }


def test_judged_metrics_are_a_family_of_their_own() -> None:
    one = judged_scores(base=np.linspace(0, 1, 60), good=np.linspace(0, 1, 60) ** 2)
    both = pl.concat([random_scores(), one])
    alone = run(random_scores()).table
    assert run(both, judged=["faithfulness"]).table.filter(metric="recall@5").equals(alone)


def test_a_metric_that_may_not_decide_gives_no_verdict_and_the_reason() -> None:
    random = np.random.default_rng(0)
    frame = scores(base=random.uniform(0, 0.3, 60), good=random.uniform(0.6, 0.9, 60))
    assert rows(run(frame))["good"]["verdict"] == "better"
    good = rows(run(frame, distrust="nobody knows the judge"))["good"]
    assert (good["verdict"], good["reason"]) == ("cannot tell", "nobody knows the judge")
    assert good["state"] == "best so far"
