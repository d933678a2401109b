import numpy as np
import polars as pl
import pytest

from evals.strategy_comparison.compare import SLICE_ROWS_SCHEMA, compare
from evals.strategy_comparison.slices import length_of, n_words, question_slices

QUESTIONS = [f"q{number:02}" for number in range(60)]
CLUSTERS = {
    question: f"{'docs' if number < 40 else 'notes'}/{number % 20}.md"
    for number, question in enumerate(QUESTIONS)
}


def gold(**columns) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "question_id": QUESTIONS,
            "question": ["How long do refunds take?"] * 60,
            "language": ["en"] * 50 + ["pt"] * 10,
            "tags": [["table", "table"] if number < 5 else [] for number in range(60)],
            **columns,
        },
        schema_overrides={"tags": pl.List(pl.String)},
    )


def scores(**values: np.ndarray) -> pl.DataFrame:
    return pl.concat(
        pl.DataFrame(
            {
                "strategy": strategy,
                "question_id": QUESTIONS,
                "metric": "recall",
                "cutoff": "5",
                "value": column,
            }
        )
        for strategy, column in values.items()
    )


def compared(frame: pl.DataFrame, strategy: str = "other", **how) -> dict[tuple[str, str], dict]:
    slices = compare(
        frame,
        CLUSTERS,
        "base",
        slices=question_slices(gold(), CLUSTERS),
        **{"resamples": 1000, **how},
    ).slices
    assert dict(slices.schema) == SLICE_ROWS_SCHEMA
    return {
        (row["dimension"], row["slice"]): row
        for row in slices.iter_rows(named=True)
        if row["strategy"] == strategy
    }


def weak_in_portuguese() -> pl.DataFrame:
    random = np.random.default_rng(0)
    base = random.uniform(0.5, 0.9, 60)
    other = base + random.normal(0, 0.02, 60)
    other[50:] -= 0.4
    return scores(base=base, other=other)


def test_a_question_is_in_its_collection_language_length_and_tags_once_each() -> None:
    slices = question_slices(gold(), CLUSTERS)
    first = slices.filter(pl.col("question_id") == "q00").select("dimension", "slice").rows()
    assert first == [
        ("collection", "docs"),
        ("language", "en"),
        ("length", "short"),
        ("tag", "table"),
    ]
    assert not slices.is_duplicated().any()


def test_questions_that_rest_on_no_document_are_in_no_slice() -> None:
    assert set(question_slices(gold(), {"q07": "docs/a.md"})["question_id"]) == {"q07"}


@pytest.mark.parametrize(
    ("question", "words", "length"),
    [
        ("How long do refunds take?", 5, "short"),
        ("one two three four five six seven", 7, "short"),
        ("one two three four five six seven eight", 8, "medium"),
        (" ".join(["word"] * 15), 15, "medium"),
        (" ".join(["word"] * 16), 16, "long"),
        ("Quel est le délai ?", 4, "short"),
        ("退款需要多长时间才能到达买家的银行账户呢", 10, "medium"),
        ("払い戻しには API で何日かかりますか", 9, "medium"),
        ("환불은 얼마나 걸리나요?", 3, "short"),
    ],
)
def test_questions_are_as_long_as_their_words(question: str, words: int, length: str) -> None:
    assert (n_words(question), length_of(question)) == (words, length)


def test_a_slice_is_the_comparison_of_its_questions_alone() -> None:
    frame = weak_in_portuguese()
    found = compared(frame)["language", "pt"]
    alone = compare(
        frame.filter(pl.col("question_id") >= "q50"), CLUSTERS, "base", resamples=1000
    ).table.row(by_predicate=pl.col("strategy") == "other", named=True)
    for column in ("n_questions", "n_documents", "mean", "difference", "ci_low", "ci_high"):
        assert found[column] == alone[column]
    assert found["difference"] == pytest.approx(-0.4, abs=0.03)
    # Sought among all slices, a difference must be larger to be told.
    detectable = "minimum_detectable_difference"
    assert found[detectable] > alone[detectable]


def test_a_weakness_hidden_by_the_mean_is_seen_in_its_slice() -> None:
    found = compared(weak_in_portuguese())
    assert found["language", "pt"]["verdict"] == "worse"
    assert found["language", "en"]["verdict"] == "cannot tell"


def test_no_interval_is_wider_than_shares_can_differ() -> None:
    base, other = np.zeros(60), np.zeros(60)
    other[:2] = 1.0
    two = {question: question if number < 2 else "q0" for number, question in enumerate(QUESTIONS)}
    slices = pl.DataFrame(
        {"question_id": QUESTIONS[1:3], "dimension": ["tag"] * 2, "slice": ["few"] * 2}
    )
    found = compare(scores(base=base, other=other), two, "base", slices=slices).slices
    row = found.row(by_predicate=pl.col("strategy") == "other", named=True)
    assert (row["n_documents"], row["difference"]) == (2, 0.5)
    assert (row["ci_low"], row["ci_high"]) == (-1.0, 1.0)


def test_a_small_slice_has_its_figures_and_no_verdict() -> None:
    base = np.linspace(0.2, 0.9, 60)
    found = compared(scores(base=base, other=base + 0.1))["tag", "table"]
    assert (found["n_questions"], found["n_documents"]) == (5, 5)
    assert found["difference"] == pytest.approx(0.1)
    assert found["ci_low"] is not None
    assert (found["verdict"], found["p_holm"]) == (None, None)


def test_a_slice_with_scores_missing_has_no_verdict() -> None:
    frame = weak_in_portuguese().with_columns(
        value=pl.when((pl.col("strategy") == "other") & (pl.col("question_id") == "q59"))
        .then(None)
        .otherwise("value")
    )
    assert compared(frame)["language", "pt"]["verdict"] is None


def test_slices_are_corrected_for_all_that_are_tested() -> None:
    random = np.random.default_rng(2)
    base = random.uniform(0, 1, 60)
    frame = scores(base=base, **{f"s{n}": base + random.normal(0, 0.3, 60) for n in range(6)})
    slices = compare(
        frame, CLUSTERS, "base", resamples=1000, slices=question_slices(gold(), CLUSTERS)
    ).slices
    assert set(slices["verdict"]) == {"baseline", "cannot tell", None}
    tested = slices.filter(pl.col("p_holm").is_not_null() & (pl.col("verdict") != "baseline"))
    assert tested.height == 6 * 4  # two collections, two languages; five questions have a tag


def test_all_of_the_questions_are_no_slice_of_them() -> None:
    assert ("length", "short") not in compared(weak_in_portuguese())


def test_equal_slices_everywhere_are_the_baseline_and_cannot_tell() -> None:
    base = np.linspace(0.2, 0.9, 60)
    frame = scores(base=base, other=base)
    assert {row["verdict"] for row in compared(frame, "base").values()} == {"baseline"}
    assert {row["verdict"] for row in compared(frame).values()} == {"cannot tell", None}


def test_without_slices_there_are_none() -> None:
    base = np.linspace(0.2, 0.9, 60)
    slices = compare(scores(base=base), CLUSTERS, "base", resamples=200).slices
    assert slices.is_empty()
    assert dict(slices.schema) == SLICE_ROWS_SCHEMA
