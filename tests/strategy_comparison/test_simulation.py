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


def judged_by_chance(seed: int, repeats: int = 3) -> pl.DataFrame:
    """Two strategies of equal faithfulness on 40 questions over 10 documents, judged `repeats`
    times: each of four statements is called supported with a chance of its own, so that much of
    what is seen is the judge's. Some answers are the same text, and judged once for both."""
    random = np.random.default_rng(seed)
    truth = np.clip(random.normal(0.6, 0.25, (1, 40)) + random.normal(0, 0.1, (2, 40)), 0.05, 0.95)
    values = random.binomial(4, truth, (repeats, 2, 40)) / 4
    shared = random.random(40) < 0.3
    values[:, 1, shared] = values[:, 0, shared]
    names = [f"q{number}" for number in range(40)]
    return pl.concat(
        pl.DataFrame(
            {
                "strategy": f"s{strategy}",
                "question_id": names,
                "metric": "faithfulness",
                "cutoff": "",
                "status": "ok",
                "value": values[:, strategy].mean(axis=0),
                "judge_variance": values[:, strategy].var(axis=0, ddof=1) / repeats,
                "judge_key": [
                    name if is_shared else f"{name} {strategy}"
                    for name, is_shared in zip(names, shared, strict=True)
                ],
            }
        )
        for strategy in range(2)
    )


def test_a_noisy_judge_makes_no_strategy_win() -> None:
    clusters = {f"q{number}": f"d{number % 10}" for number in range(40)}
    different = 0
    noise, spread = [], []
    for seed in range(400):
        table = compare(
            judged_by_chance(seed), clusters, "s0", "faithfulness", (), resamples=RESAMPLES
        ).table
        row = table.row(by_predicate=pl.col("strategy") == "s1", named=True)
        different += row["verdict"] in ("better", "worse")
        noise.append(row["judge_noise"])
        spread.append(row["difference"])
    assert different / 400 < 0.05
    # The judge's noise is most of what moves the difference, and is measured as what it is.
    assert 0.5 < np.mean(noise) / np.std(spread) < 1
