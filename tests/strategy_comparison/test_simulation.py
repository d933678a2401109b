"""What the procedure promises, tried on invented worlds whose truth is known."""

import numpy as np
import polars as pl

from evals.strategy_comparison.compare import compare

RESAMPLES = 1000


def compared(values: np.ndarray, documents: np.ndarray) -> pl.DataFrame:
    """The table of verdicts on scores (strategies, questions); the first is the baseline."""
    strategies, questions = values.shape
    names = [f"q{number:03}" for number in range(questions)]
    scores = pl.DataFrame(
        {
            "strategy": np.repeat([f"s{number}" for number in range(strategies)], questions),
            "question_id": names * strategies,
            "metric": "recall",
            "cutoff": "5",
            "value": values.ravel(),
        }
    )
    clusters = dict(zip(names, map(str, documents), strict=True))
    return compare(scores, clusters, "s0", resamples=RESAMPLES).table


def ten_equal_strategies(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Recall 0, ½ or 1 on 100 questions over 25 documents, one to eleven each.

    Questions and documents are easy or hard for all; each strategy has its luck with a document,
    shared by the document's questions, and with a question.
    """
    random = np.random.default_rng(seed)
    documents = np.sort(random.integers(0, 25, 100))
    ease = random.normal(0, 1, 100) + random.normal(0, 0.7, 25)[documents]
    luck = random.normal(0, 0.35, (10, 25))[:, documents] + random.normal(0, 0.6, (10, 100))
    return np.select([ease + luck > 0.4, ease + luck > -0.4], [1.0, 0.5], 0.0), documents


def ten_points_better(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Evidence found or not, on 200 questions over 50 documents.

    The second strategy finds what the first does not on 15 % of the questions, and misses what it
    finds on 5 %; documents differ in both.
    """
    random = np.random.default_rng(seed)
    documents = np.sort(random.integers(0, 50, 200))
    base = random.random(200) < 0.6
    gain, loss = random.gamma(10, 0.1, (2, 50))[:, documents]
    found = ~base & (random.random(200) < 0.15 / 0.4 * gain)
    missed = base & (random.random(200) < 0.05 / 0.6 * loss)
    return np.array([base, (base | found) & ~missed], dtype=float), documents


def test_ten_equal_strategies_are_rarely_called_different() -> None:
    different = ruled_out = uncorrected = 0
    for seed in range(400):
        table = compared(*ten_equal_strategies(seed))
        different += table["verdict"].is_in(["better", "worse"]).any()
        ruled_out += (table["state"] == "ruled out").any()
        uncorrected += (table["p_value"] < 0.05).any()
    assert different / 400 < 0.05
    assert ruled_out / 400 < 0.05
    assert uncorrected / 400 > 0.2  # so the worlds are ones in which luck does mislead


def test_a_true_difference_of_ten_points_is_found() -> None:
    tables = [compared(*ten_points_better(seed)) for seed in range(200)]
    rows = [t.row(by_predicate=pl.col("strategy") == "s1", named=True) for t in tables]
    assert abs(np.mean([row["difference"] for row in rows]) - 0.1) < 0.01
    assert np.mean([row["verdict"] == "better" for row in rows]) > 0.8
    assert not any(row["verdict"] == "worse" for row in rows)
