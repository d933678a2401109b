import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from evals.strategy_comparison import bootstrap
from evals.strategy_comparison.bootstrap import PairedDifference, paired_bootstrap
from evals.strategy_comparison.holm import holm
from evals.strategy_comparison.student import t_quantile


def spread_over(documents: int, questions: int) -> list[str]:
    return [f"d{number % documents:03}" for number in range(questions)]


def noisy(seed: int, questions: int, *effects: float) -> np.ndarray:
    random = np.random.default_rng(seed)
    base = random.normal(0.5, 0.1, questions)
    return np.array([base, *(base + e + random.normal(0, 0.1, questions) for e in effects)])


def numbers(result: PairedDifference) -> list[float]:
    return [
        value for name in PairedDifference.__slots__ if (value := getattr(result, name)) is not None
    ]


def test_the_difference_is_the_difference_of_means_over_questions() -> None:
    scores = np.array([[0.0, 0.0, 1.0, 0.0], [1.0, 0.0, 1.0, 1.0]])
    _, result = paired_bootstrap(scores, ["a", "a", "a", "b"], 0, resamples=100)
    assert (result.baseline_mean, result.mean, result.difference) == (0.25, 0.75, 0.5)
    assert (result.n_questions, result.n_documents) == (4, 2)


def test_identical_strategies_differ_by_nothing_and_nothing_is_nan() -> None:
    scores = np.vstack([noisy(1, 60)] * 3)
    for result in paired_bootstrap(scores, spread_over(12, 60), 0, resamples=500):
        assert (result.difference, result.ci_low, result.ci_high) == (0, 0, 0)
        assert result.p_value == 1
        assert result.p_best == pytest.approx(1 / 3)
        assert result.minimum_detectable_difference is None
        assert not np.isnan(numbers(result)).any()


def test_a_clear_difference_is_found_and_a_null_one_is_not() -> None:
    _, clear, null = paired_bootstrap(noisy(3, 200, 0.1, 0.0), spread_over(40, 200), 0)
    assert clear.ci_low is not None
    assert clear.ci_low > 0
    assert clear.p_value < 0.001
    assert null.p_value > 0.05
    assert null.ci_low is not None
    assert null.ci_high is not None
    assert null.ci_low < 0 < null.ci_high


def test_questions_of_one_document_move_together_so_the_interval_is_wider() -> None:
    random = np.random.default_rng(5)
    fate = np.repeat(random.normal(0, 0.3, 20), 5)  # 20 documents, 5 questions each
    scores = np.vstack([np.zeros(100), fate + random.normal(0, 0.05, 100)])
    documents = [f"d{number // 5}" for number in range(100)]
    clustered, naive = (
        paired_bootstrap(scores, names, 0, resamples=4000)[1]
        for names in (documents, spread_over(100, 100))
    )
    width = [r.ci_high - r.ci_low for r in (clustered, naive)]  # type: ignore[operator]
    assert width[0] > 1.8 * width[1]
    assert clustered.minimum_detectable_difference > 1.8 * naive.minimum_detectable_difference  # type: ignore[operator]


def test_the_same_seed_gives_the_same_numbers_and_another_seed_others() -> None:
    def run(seed: int) -> list[PairedDifference]:
        return paired_bootstrap(
            noisy(2, 50, 0.02), spread_over(10, 50), 0, resamples=300, seed=seed
        )

    assert run(1) == run(1)
    assert run(1)[1].ci_low != run(2)[1].ci_low


def test_the_order_of_questions_does_not_matter() -> None:
    scores, documents = noisy(2, 50, 0.02, 0.03), np.array(spread_over(10, 50))
    order = np.random.default_rng(0).permutation(50)
    one = paired_bootstrap(scores, list(documents), 0, resamples=300)
    other = paired_bootstrap(scores[:, order], list(documents[order]), 0, resamples=300)
    for a, b in zip(one, other, strict=True):
        assert numbers(a) == pytest.approx(numbers(b), abs=1e-12)


def test_resampling_in_small_blocks_gives_the_same_numbers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    whole = paired_bootstrap(noisy(2, 50, 0.02), spread_over(10, 50), 0, resamples=300)
    monkeypatch.setattr(bootstrap, "_BLOCK_CELLS", 70)
    assert paired_bootstrap(noisy(2, 50, 0.02), spread_over(10, 50), 0, resamples=300) == whole


@given(
    st.integers(2, 5),
    st.integers(2, 30),
    st.integers(2, 6),
    st.randoms(use_true_random=False),
)
@settings(max_examples=40, deadline=None)
def test_shares_of_wins_sum_to_one(strategies: int, questions: int, documents: int, draw) -> None:
    scores = np.array(
        [[draw.choice([0.0, 0.5, 1.0]) for _ in range(questions)] for _ in range(strategies)]
    )
    names = ["first", "second", *(f"d{draw.randrange(documents)}" for _ in range(questions - 2))]
    results = paired_bootstrap(scores, names, 0, resamples=200)
    assert sum(r.p_best for r in results) == pytest.approx(1)  # type: ignore[misc]
    for result in results:
        assert not np.isnan(numbers(result)).any()
        assert 0 < result.p_value <= 1
        assert 0 < result.p_behind <= 1  # type: ignore[operator]
        assert result.ci_low <= result.difference + 1e-12  # type: ignore[operator]
        assert result.ci_high >= result.difference - 1e-12  # type: ignore[operator]


def test_less_wins_where_lower_is_better() -> None:
    scores = np.vstack([np.full(30, 900.0), np.full(30, 500.0)])
    cheap = paired_bootstrap(scores, spread_over(6, 30), 0, resamples=200, lower_is_better=True)
    assert [r.p_best for r in cheap] == [0, 1]


def test_only_questions_scored_on_both_sides_are_compared() -> None:
    scores = np.array([[0.0] * 6, [1.0] * 6, [1.0] * 6])
    scores[1, 0], scores[0, 5] = np.nan, np.nan
    base, partial, full = paired_bootstrap(scores, list("aabbcc"), 0, resamples=100)
    assert [r.n_questions for r in (base, partial, full)] == [5, 4, 5]
    assert partial.difference == full.difference == 1
    assert sum(r.p_best for r in (base, partial, full)) == pytest.approx(1)  # type: ignore[misc]


def test_without_a_common_question_nothing_is_claimed() -> None:
    scores = np.array([[0.5, np.nan], [np.nan, 0.5]])
    _, result = paired_bootstrap(scores, ["a", "b"], 0, resamples=100)
    assert (result.n_questions, result.n_documents, result.difference) == (0, 0, None)
    assert (result.p_value, result.p_randomisation) == (1, 1)
    assert (result.p_best, result.behind_best, result.p_behind) == (None, None, None)


def test_one_document_supports_no_interval_and_no_significance() -> None:
    _, result = paired_bootstrap(noisy(1, 20, 0.5), ["only"] * 20, 0, resamples=200)
    assert (result.ci_low, result.ci_high, result.p_best) == (None, None, None)
    assert (result.p_value, result.p_randomisation) == (1, 1)


def test_few_documents_that_all_agree_are_no_more_than_a_sign_test_could_say() -> None:
    scores = np.vstack([np.zeros(40), np.ones(40)])
    for documents in (3, 5, 8, 20):
        _, result = paired_bootstrap(scores, spread_over(documents, 40), 0, resamples=2000)
        assert result.p_value == max(2.0 ** (1 - documents), 2 / 2001)


def test_the_interval_is_that_of_scipy_but_for_its_widening() -> None:
    random = np.random.default_rng(7)
    scores = np.vstack([np.zeros(80), random.normal(0.1, 0.3, 80)])
    _, ours = paired_bootstrap(scores, spread_over(20, 80), 0, resamples=20_000)
    of_documents = scores[1].reshape(4, 20).mean(axis=0)
    theirs = scipy.stats.bootstrap(
        (of_documents,),
        np.mean,
        n_resamples=20_000,
        method="percentile",
        rng=np.random.default_rng(1),
    )
    widened = np.sqrt(20 / 19) * t_quantile(0.975, 19) / scipy.stats.norm.ppf(0.975)
    for our_end, their_end in zip(
        (ours.ci_low, ours.ci_high), theirs.confidence_interval, strict=True
    ):
        narrow = ours.difference + (our_end - ours.difference) / widened
        assert narrow == pytest.approx(their_end, abs=0.06 * theirs.standard_error)


def test_the_best_is_behind_by_nothing_and_a_clear_last_by_more_than_chance() -> None:
    first, close, last = paired_bootstrap(noisy(3, 200, -0.005, -0.1), spread_over(40, 200), 0)
    assert (first.behind_best, first.p_behind) == (0, 1)
    assert close.p_behind > 0.05  # type: ignore[operator]
    assert last.behind_best == pytest.approx(0.1, abs=0.02)
    assert last.p_behind < 0.001  # type: ignore[operator]


def test_three_documents_leave_nobody_behind() -> None:
    scores = np.vstack([np.zeros(40), np.ones(40)])
    first, _ = paired_bootstrap(scores, spread_over(3, 40), 0, resamples=2000)
    assert first.p_behind == 0.25


def test_those_not_ranked_do_not_take_part() -> None:
    scores = noisy(3, 60, 0.1, 0.2)
    ranked = np.array([True, True, False])
    first, second, third = paired_bootstrap(scores, spread_over(12, 60), 0, ranked=ranked)
    assert (third.p_best, third.behind_best, third.p_behind) == (None, None, None)
    assert third.difference is not None
    assert (second.p_best, second.behind_best) == (1, 0)
    assert first.p_best == 0


def coverage(documents: int, *, naive: bool, simulations: int = 250) -> float:
    """How often the 95 % interval holds the true difference when documents have a fate of their
    own: 1 to 7 questions each, standard deviations 0.2 (document) and 0.3 (question)."""
    random = np.random.default_rng(documents)
    held = 0
    for _ in range(simulations):
        sizes = random.integers(1, 8, documents)
        codes = np.repeat(np.arange(documents), sizes)
        change = random.normal(0, 0.2, documents)[codes] + random.normal(0, 0.3, len(codes)) + 0.1
        names = [f"q{i}" if naive else f"d{c}" for i, c in enumerate(codes)]
        scores = np.vstack([np.zeros_like(change), change])
        _, result = paired_bootstrap(scores, names, 0, resamples=500)
        held += result.ci_low <= 0.1 <= result.ci_high  # type: ignore[operator]
    return held / simulations


@pytest.mark.parametrize("documents", [5, 12, 30])
def test_the_interval_holds_the_truth_about_as_often_as_it_says(documents: int) -> None:
    assert 0.90 <= coverage(documents, naive=False) <= 0.985


def test_resampling_questions_singly_would_not() -> None:
    assert coverage(12, naive=True) < 0.88


def test_the_minimum_detectable_difference_is_found_four_times_in_five() -> None:
    random = np.random.default_rng(11)
    documents = spread_over(30, 120)

    def change(effect: float) -> np.ndarray:
        return np.vstack([np.zeros(120), random.normal(effect, 0.3, 120)])

    detectable = np.mean(
        [
            paired_bootstrap(change(0), documents, 0, resamples=200)[
                1
            ].minimum_detectable_difference
            for _ in range(50)
        ]
    )
    found = [
        paired_bootstrap(change(float(detectable)), documents, 0, resamples=500)[1].p_value < 0.05
        for _ in range(250)
    ]
    assert 0.72 <= np.mean(found) <= 0.88


def test_a_larger_family_needs_a_larger_difference() -> None:
    alone, one_of_ten = (
        paired_bootstrap(noisy(2, 50, 0.02), spread_over(10, 50), 0, resamples=100, family=family)[
            1
        ].minimum_detectable_difference
        for family in (1, 10)
    )
    assert one_of_ten > alone  # type: ignore[operator]


@pytest.mark.parametrize(
    ("p_values", "adjusted"),
    [
        ([0.01, 0.04, 0.03, 0.005], [0.03, 0.06, 0.06, 0.02]),
        ([0.0001, 0.02, 0.02, 0.9, 0.04], [0.0005, 0.08, 0.08, 0.9, 0.08]),
        ([0.6, 0.7], [1.0, 1.0]),
        ([0.03], [0.03]),
        ([], []),
    ],
)
def test_holm_adjusts_as_published(p_values: list[float], adjusted: list[float]) -> None:
    assert holm(p_values) == pytest.approx(adjusted)


@given(st.lists(st.floats(0, 1), max_size=12))
def test_holm_keeps_the_order_and_never_lowers_a_p_value(p_values: list[float]) -> None:
    adjusted = holm(p_values)
    assert all(p <= a <= 1 for p, a in zip(p_values, adjusted, strict=True))
    by_raw = [a for _, a in sorted(zip(p_values, adjusted, strict=True))]
    assert by_raw == sorted(by_raw)


@pytest.mark.parametrize("degrees", [1, 2, 3, 8, 31, 400])
@pytest.mark.parametrize("probability", [0.51, 0.8, 0.975, 0.9995])
def test_quantiles_of_t_are_those_of_scipy(probability: float, degrees: int) -> None:
    expected = scipy.stats.t.ppf(probability, degrees)
    assert t_quantile(probability, degrees) == pytest.approx(expected, rel=1e-8)


@pytest.mark.parametrize(
    ("probability", "degrees", "tabulated"),
    [
        (0.975, 1, 12.7062),
        (0.975, 2, 4.3027),
        (0.975, 5, 2.5706),
        (0.975, 30, 2.0423),
        (0.95, 10, 1.8125),
        (0.995, 7, 3.4995),
        (0.8, 4, 0.9410),
        (0.9, 120, 1.2886),
        (0.975, 100_000, 1.9600),
        (0.025, 5, -2.5706),
    ],
)
def test_quantiles_of_t_are_the_tabulated_ones(
    probability: float, degrees: int, tabulated: float
) -> None:
    assert t_quantile(probability, degrees) == pytest.approx(tabulated, abs=5e-5)


def noisy_pair(noise: float) -> PairedDifference:
    random = np.random.default_rng(3)
    values = np.array([random.uniform(0, 1, 90), random.uniform(0, 1, 90)])
    documents = [str(n % 30) for n in range(90)]
    return paired_bootstrap(values, documents, 0, noise=np.full(values.shape, noise))[1]


def test_a_judge_s_noise_widens_the_interval_by_its_standard_error() -> None:
    quiet, noisy = noisy_pair(0.0), noisy_pair(0.9)
    error = np.sqrt(90 * 0.9) / 90
    assert (quiet.judge_noise, noisy.judge_noise) == (0, pytest.approx(error))
    halves = [(found.ci_high - found.ci_low) / 2 for found in (quiet, noisy)]
    assert halves[1] == pytest.approx(np.hypot(halves[0], 1.96 * error), rel=0.03)
    assert noisy.difference == quiet.difference
    assert noisy.p_value > quiet.p_value
    assert noisy.p_randomisation == quiet.p_randomisation
    assert noisy.minimum_detectable_difference > quiet.minimum_detectable_difference


def test_noise_that_was_not_measured_is_said_to_be_unknown_and_changes_nothing() -> None:
    unknown, quiet = noisy_pair(np.nan), noisy_pair(0.0)
    assert unknown.judge_noise is None
    assert (unknown.ci_low, unknown.ci_high) == (quiet.ci_low, quiet.ci_high)
