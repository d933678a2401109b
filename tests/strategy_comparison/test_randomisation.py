from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import permutation_test

from evals.strategy_comparison import randomisation
from evals.strategy_comparison.bootstrap import paired_bootstrap
from evals.strategy_comparison.randomisation import sign_flip_p_values

CLOSE = 1e-9


def p_value(totals: np.ndarray, resamples: int = 10_000, seed: int = 0) -> float:
    return sign_flip_p_values(totals[:, None], resamples=resamples, seed=seed, tolerance=CLOSE)[0]


def by_enumeration(totals: np.ndarray) -> float:
    flipped = [abs(np.dot(signs, totals)) for signs in product((1, -1), repeat=len(totals))]
    return float(np.mean(np.array(flipped) >= abs(totals.sum()) - CLOSE))


@pytest.mark.parametrize("documents", [1, 2, 5, 9])
def test_few_documents_are_enumerated(documents: int) -> None:
    totals = np.random.default_rng(documents).normal(0.4, 1, documents)
    assert p_value(totals) == pytest.approx(by_enumeration(totals))


@pytest.mark.parametrize("documents", [4, 8, 11])
def test_few_documents_give_the_exact_p_value_of_scipy(documents: int) -> None:
    totals = np.random.default_rng(documents).normal(0.4, 1, documents)
    exact = permutation_test((totals,), np.sum, permutation_type="samples", n_resamples=np.inf)
    assert p_value(totals) == pytest.approx(exact.pvalue)


def test_many_documents_give_the_p_value_of_scipy() -> None:
    totals = np.random.default_rng(3).normal(0.25, 1, 60)
    drawn = permutation_test(
        (totals,),
        lambda sums, axis: sums.sum(axis),
        permutation_type="samples",
        n_resamples=40_000,
        rng=np.random.default_rng(1),
    )
    assert 0.01 < drawn.pvalue < 0.2
    assert p_value(totals, 40_000) == pytest.approx(drawn.pvalue, abs=0.006)


def test_drawing_comes_close_to_enumerating() -> None:
    totals = np.random.default_rng(5).normal(0.3, 1, 12)
    assert p_value(totals, 2**11 - 1) == pytest.approx(p_value(totals, 2**11), abs=0.03)


def test_drawing_never_gives_0() -> None:
    assert p_value(np.ones(100), 500) == 1 / 501


def test_equal_strategies_are_never_told_apart() -> None:
    assert p_value(np.zeros(7)) == p_value(np.zeros(100)) == 1


def test_drawing_in_small_blocks_gives_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    totals = np.random.default_rng(3).normal(0.2, 1, 60)
    whole = p_value(totals, 300)
    monkeypatch.setattr(randomisation, "_BLOCK_CELLS", 130)
    assert p_value(totals, 300) == whole


@given(st.lists(st.sampled_from([-1.0, -0.5, 0.0, 0.5, 1.0]), min_size=1, max_size=9))
@settings(max_examples=60, deadline=None)
def test_ties_count_and_the_sign_of_the_difference_does_not(totals: list[float]) -> None:
    column = np.array(totals)
    assert p_value(column) == p_value(-column) == pytest.approx(by_enumeration(column))


def test_the_questions_of_a_document_are_swapped_together() -> None:
    """Six documents can give no p-value below 2/64, however many questions they have."""
    scores = np.vstack([np.zeros(120), np.ones(120)])
    documents = [f"d{number % 6}" for number in range(120)]
    assert paired_bootstrap(scores, documents, 0, resamples=2000)[1].p_randomisation == 2 / 64


def test_the_test_is_against_the_margin() -> None:
    random = np.random.default_rng(4)
    base = random.uniform(0, 0.5, 120)
    scores = np.vstack([base, base + 0.1 + random.normal(0, 0.05, 120)])
    documents = [f"d{number % 30}" for number in range(120)]

    def p_values(margin: float) -> tuple[float, float]:
        result = paired_bootstrap(scores, documents, 0, resamples=2000, margin=margin)[1]
        assert result.difference == pytest.approx(0.1, abs=0.02)
        return result.p_value, result.p_randomisation

    assert max(p_values(0.0)) < 0.01
    assert min(p_values(0.1)) > 0.05
    assert max(p_values(0.2)) < 0.01
