"""How often luck alone would divide the questions as far: labels swapped, a document at a time.

The bootstrap asks how far the difference may be off; this asks whether there need be one. It
assumes no distribution, so it holds where documents are few or scores are 0 and 1.
"""

import numpy as np

_BLOCK_CELLS = 2_000_000  # documents × resamples held at once


def sign_flip_p_values(
    totals: np.ndarray, *, resamples: int, seed: int, tolerance: float = 0.0
) -> np.ndarray:
    """Two-sided p-values, float64 (strategies,), of paired differences summed by document.

    `totals` is float64 (documents, strategies). If a strategy and its baseline are equal, the
    questions of a document could as well have had their scores under the other's name, so each
    document's sum is as likely with the other sign. Where there are no more than `resamples`
    patterns of signs, all are tried and p is exact; otherwise that many are drawn, and one is
    added to both counts. Sums within `tolerance` of the observed one tie with it.

    Sources: Fisher, The Design of Experiments (1935); Smucker, Allan & Carterette, A Comparison of
    Statistical Significance Tests for Information Retrieval Evaluation, CIKM 2007; Phipson & Smyth,
    Permutation P-values Should Never Be Zero (2010), on the added one.

    >>> sign_flip_p_values(np.array([[1.0], [1.0], [1.0]]), resamples=100, seed=0).tolist()
    [0.25]
    """
    n_documents = len(totals)
    observed = np.abs(totals.sum(axis=0)) - tolerance
    halves = 2 ** (n_documents - 1) if n_documents else 1  # a pattern and its mirror count alike
    if halves <= resamples:
        patterns = np.arange(halves)[:, None] >> np.arange(n_documents) & 1
        return _as_far(patterns == 0, totals, observed) / halves
    random = np.random.default_rng([seed, 1])  # not the documents that the bootstrap draws
    block = max(1, _BLOCK_CELLS // n_documents)
    beyond = np.zeros(totals.shape[1])
    for start in range(0, resamples, block):
        rows = min(block, resamples - start)
        beyond += _as_far(random.random((rows, n_documents)) < 0.5, totals, observed)
    return (1 + beyond) / (1 + resamples)


def _as_far(positive: np.ndarray, totals: np.ndarray, observed: np.ndarray) -> np.ndarray:
    """How many patterns of signs give a sum at least as far from 0 as the observed one."""
    sums = 2 * (positive.astype(float) @ totals) - totals.sum(axis=0)
    counted: np.ndarray = (np.abs(sums) >= observed).sum(axis=0).astype(float)
    return counted
