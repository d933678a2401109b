"""How far each strategy is from the baseline, and how sure these questions can make us.

Strategies are compared question by question, and whole documents are resampled: questions on one
document share its fate, and resampling them singly makes intervals far too narrow. The same
resamples serve all strategies, so that they can be ranked within each.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np

from evals.strategy_comparison.randomisation import sign_flip_p_values
from evals.strategy_comparison.student import normal_quantile, t_quantile

POWER = 0.8
"""The chance of a verdict at the minimum detectable difference."""

_ROUNDING = 1e-12  # relative: sums of equal scores may differ by this, and must tie all the same
_BLOCK_CELLS = 2_000_000  # documents × resamples held at once: 32 MB


@dataclass(frozen=True, slots=True)
class PairedDifference:
    """One strategy against the baseline, over the questions scored for both.

    Means, `difference` (strategy - baseline) and the interval are in the metric's own unit. A
    number that cannot be known is None: the means without a pair, the interval with less than two
    documents, the minimum detectable difference where no score differs.

    `behind_best` is how far its mean is behind the best one, over the questions scored for all; 0
    for the best itself. `p_behind` is how often strategies that are all equal would leave one that
    far behind.

    `judge_noise` is the standard error that the judge alone gives the difference, None where it was
    not measured.
    """

    n_questions: int
    n_documents: int
    baseline_mean: float | None
    mean: float | None
    difference: float | None
    ci_low: float | None
    ci_high: float | None
    p_value: float
    p_randomisation: float
    p_best: float | None
    behind_best: float | None
    p_behind: float | None
    minimum_detectable_difference: float | None
    judge_noise: float | None


_NO_PAIR = PairedDifference(
    0, 0, None, None, None, None, None, 1.0, 1.0, None, None, None, None, None
)


def paired_bootstrap(
    scores: np.ndarray,
    documents: Sequence[str],
    baseline: int,
    *,
    confidence: float = 0.95,
    resamples: int = 10_000,
    seed: int = 20_260_101,
    family: int = 1,
    lower_is_better: bool = False,
    margin: float = 0.0,
    ranked: np.ndarray | None = None,
    noise: np.ndarray | None = None,
) -> list[PairedDifference]:
    """Every strategy's paired difference to the baseline, in the order of the rows.

    `scores` is float64 (strategies, questions), NaN where a question was not scored; `documents`
    names the document of each question; `baseline` is a row. `family` is the number of
    comparisons among which a verdict is sought: the minimum detectable difference is what would
    be found with 80 % power at the strictest level Holm's procedure may ask for. `margin` is the
    difference that the p-values are against. `ranked`, bool (strategies,), says which strategies
    are ranked with one another; all of them if None. `noise`, float64 as `scores`, is how far each
    difference would vary if the same texts were judged again (a variance), NaN where that was not
    measured.

    The interval is the percentile interval of the difference of means over questions, documents
    resampled with replacement, deviations widened by sqrt(D/(D-1)) · t/z: D documents resampled
    vary too little, the more so the fewer they are. `p_value` is two-sided, from the same
    distribution, one added to both counts; it is never below 2^(1-d), what a sign test over the d
    documents that differ at all could give. `p_randomisation` is that of the randomisation test,
    documents swapped whole. `p_best` is the share of resamples in which the strategy has the best
    mean over the questions scored for all that are ranked; ties are shared. `p_behind` is the share
    in which the best and the worst of strategies without any difference are as far apart, so that
    it stays above 1 - `confidence` for all of equal strategies in `confidence` of the cases.

    Noise of a judge enters in a second stage: each resampled difference is moved by a normal draw
    with the variance that its repeated judgements give the mean, and the detectable difference has
    that variance added. The first stage holds some of it already, as far as it differs between
    these documents, so the interval is rather a little wide than narrow; it is one for documents
    like these, judged anew.

    Sources: Efron & Tibshirani, An Introduction to the Bootstrap (1993); Hesterberg, What
    Teachers Should Know About the Bootstrap, The American Statistician 69 (2015), on narrowness;
    Cameron, Gelbach & Miller, Bootstrap-Based Improvements for Inference with Clustered Errors,
    Review of Economics and Statistics 90 (2008); Westfall & Young, Resampling-Based Multiple
    Testing (1993), on the range; Davison & Hinkley, Bootstrap Methods and their Application (1997),
    section 3.8, on resampling in two stages.
    """
    names = np.asarray(documents, dtype=object)
    scored = ~np.isnan(scores)
    paired = scored & scored[baseline]
    alpha = 1 - confidence
    tolerance = _ROUNDING * max(1.0, float(np.nanmax(np.abs(scores), initial=0)))
    among = np.ones(len(scores), dtype=bool) if ranked is None else ranked
    common = scored[among].all(axis=0)
    quality = (-scores if lower_is_better else scores)[np.ix_(among, common)]
    ranks = dict(
        zip(
            np.flatnonzero(among).tolist(),
            _ranking(quality, names[common], alpha, resamples, seed, tolerance),
            strict=True,
        )
    )
    results: dict[int, PairedDifference] = {}
    for questions in np.unique(paired, axis=0):
        rows = np.flatnonzero((paired == questions).all(axis=1))
        if not questions.any():
            for row in rows.tolist():
                results[row] = _NO_PAIR
            continue
        kept = scores[:, questions]
        differences = kept[rows] - kept[baseline]
        totals, sizes = _by_document(differences, names[questions])
        n_documents = len(sizes)
        observed = totals.sum(axis=0) / sizes.sum()
        drawn = _widened(_resample(totals, sizes, resamples, seed), observed, n_documents, alpha)
        judged = _noise(noise, rows, questions)
        drawn = _judged_anew(drawn, np.nan_to_num(judged), seed)
        low, high = np.quantile(drawn, [alpha / 2, 1 - alpha / 2], axis=0)
        beyond = totals - margin * sizes[:, None]
        p_randomisation = sign_flip_p_values(
            beyond, resamples=resamples, seed=seed, tolerance=tolerance * float(sizes.sum())
        )
        for column, row in enumerate(rows.tolist()):
            p_best, behind_best, p_behind = ranks.get(row, _UNRANKED)
            results[row] = PairedDifference(
                n_questions=int(questions.sum()),
                n_documents=n_documents,
                baseline_mean=float(kept[baseline].mean()),
                mean=float(kept[row].mean()),
                difference=float(observed[column]),
                ci_low=float(low[column]) if n_documents > 1 else None,
                ci_high=float(high[column]) if n_documents > 1 else None,
                p_value=_p_value(drawn[:, column] - margin, beyond[:, column], tolerance),
                p_randomisation=float(p_randomisation[column]),
                p_best=p_best,
                behind_best=behind_best,
                p_behind=p_behind,
                minimum_detectable_difference=_minimum_detectable(
                    totals[:, column] - observed[column] * sizes,
                    int(sizes.sum()),
                    alpha / max(1, family),
                    float(np.nan_to_num(judged[column])),
                ),
                judge_noise=None if np.isnan(judged[column]) else float(judged[column]),
            )
    return [results[row] for row in range(len(scores))]


_Rank = tuple[float | None, float | None, float | None]
_UNRANKED: _Rank = (None, None, None)


def _ranking(
    quality: np.ndarray,
    documents: np.ndarray,
    alpha: float,
    resamples: int,
    seed: int,
    tolerance: float,
) -> list[_Rank]:
    """Share of wins, distance to the best mean and its p-value, of each strategy.

    Unknown where no two documents are scored for all.
    """
    totals, sizes = _by_document(quality, documents)
    if len(sizes) < 2 or not len(quality):
        return [_UNRANKED] * len(quality)
    means = totals.sum(axis=0) / sizes.sum()
    drawn = _widened(_resample(totals, sizes, resamples, seed), means, len(sizes), alpha)
    ahead = drawn >= drawn.max(axis=1, keepdims=True) - tolerance
    shares = np.mean(ahead / ahead.sum(axis=1, keepdims=True), axis=0)
    behind = means.max() - means
    behind[behind <= tolerance] = 0
    spread = np.ptp(drawn - means, axis=1)
    as_far = (spread[:, None] >= behind - tolerance).sum(axis=0)
    differing = (np.abs(totals - totals[:, [means.argmax()]]) > tolerance).sum(axis=0)
    p_behind = np.minimum(1, np.maximum((1 + as_far) / (1 + resamples), 2.0 ** (1 - differing)))
    return list(zip(shares.tolist(), behind.tolist(), p_behind.tolist(), strict=True))


def _by_document(scores: np.ndarray, documents: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Sums of scores (documents, strategies) and numbers of questions (documents,)."""
    names, codes = np.unique(documents, return_inverse=True)
    totals = np.zeros((len(names), len(scores)))
    np.add.at(totals, codes, scores.T)
    return totals, np.bincount(codes, minlength=len(names)).astype(float)


def _resample(totals: np.ndarray, sizes: np.ndarray, resamples: int, seed: int) -> np.ndarray:
    """Means over the questions of documents drawn with replacement: (resamples, strategies)."""
    random = np.random.default_rng(seed)
    n_documents = len(sizes)
    block = max(1, _BLOCK_CELLS // n_documents)
    means = np.empty((resamples, totals.shape[1]))
    for start in range(0, resamples, block):
        rows = min(block, resamples - start)
        drawn = random.integers(0, n_documents, (rows, n_documents))
        drawn += n_documents * np.arange(rows)[:, None]
        times = np.bincount(drawn.ravel(), minlength=rows * n_documents).reshape(rows, n_documents)
        weights = times.astype(float)
        means[start : start + rows] = (weights @ totals) / (weights @ sizes)[:, None]
    return means


def _widened(drawn: np.ndarray, observed: np.ndarray, n_documents: int, alpha: float) -> np.ndarray:
    if n_documents < 2:
        return drawn
    tail = 1 - alpha / 2
    spread = sqrt(n_documents / (n_documents - 1))
    spread *= t_quantile(tail, n_documents - 1) / normal_quantile(tail)
    widened: np.ndarray = observed + spread * (drawn - observed)
    return widened


def _noise(noise: np.ndarray | None, rows: np.ndarray, questions: np.ndarray) -> np.ndarray:
    """The standard error of each row's mean difference that is the judge's; NaN if unknown."""
    if noise is None:
        return np.full(len(rows), np.nan)
    shown: np.ndarray = np.sqrt(noise[np.ix_(rows, questions)].sum(axis=1)) / questions.sum()
    return shown


def _judged_anew(drawn: np.ndarray, errors: np.ndarray, seed: int) -> np.ndarray:
    if not errors.any():
        return drawn
    random = np.random.default_rng([seed, 2])  # not the documents that were drawn
    moved: np.ndarray = drawn + errors * random.standard_normal(drawn.shape)
    return moved


def _p_value(drawn: np.ndarray, totals: np.ndarray, tolerance: float) -> float:
    beyond = min((drawn <= tolerance).sum(), (drawn >= -tolerance).sum())
    differing = int((np.abs(totals) > tolerance).sum())
    return min(1.0, max(2 * (1 + int(beyond)) / (1 + len(drawn)), 2.0 ** (1 - differing)))


def _minimum_detectable(
    residuals: np.ndarray, n_questions: int, alpha: float, judge_noise: float
) -> float | None:
    """From the clustered standard error; `residuals` are per document, summed over questions."""
    n_documents = len(residuals)
    squares = float(residuals @ residuals)
    if n_documents < 2 or squares <= _ROUNDING:
        return None
    clustered = n_documents / (n_documents - 1) * squares / n_questions**2
    standard_error = sqrt(clustered + judge_noise**2)
    degrees = n_documents - 1
    return (t_quantile(1 - alpha / 2, degrees) + t_quantile(POWER, degrees)) * standard_error
