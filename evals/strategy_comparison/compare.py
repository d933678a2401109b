"""Every strategy against the baseline: verdicts, questions won and lost, slices of the questions.

One metric, named before looking, decides; the others are there to explain, and those on the spans
and those on the answers are corrected as families of their own. Only questions scored on both sides
are compared, and only scores measured in the same way.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from math import inf
from typing import Any

import numpy as np
import polars as pl

from chunking_assets.errors import CorpusError
from evals.coverage import MIN_COVERAGE, NOT_ASKED, covered, difference_bounds
from evals.strategy_comparison.bootstrap import paired_bootstrap
from evals.strategy_comparison.holm import holm
from evals.strategy_comparison.verdict import (
    decide,
    is_cost,
    questions_needed,
    reason,
    states,
    withheld,
)

VERSION = 4
"""Raised when the same scores would be given another verdict, or other figures."""

EXPLORATORY = ("precision@5", "iou@5", "ndcg@10", "mrr@10")

CHANGE = 0.5
"""A question is won or lost when the primary metric moves by at least this much.

For a hit that is 0 to 1 or back; for recall, half of the evidence found or lost. Smaller moves are
mostly chunk borders that shifted by a few words.
"""

Changed = Mapping[str, Mapping[str, Sequence[str]]]
"""By metric, without its cut-off, and strategy: what differs in the measurement."""

_Columns = dict[str, type[pl.DataType]]
TABLE_SCHEMA: _Columns = {
    "metric": pl.String,
    "baseline": pl.String,
    "strategy": pl.String,
    "n_questions": pl.Int64,
    "n_documents": pl.Int64,
    "baseline_mean": pl.Float64,
    "mean": pl.Float64,
    "difference": pl.Float64,
    "ci_low": pl.Float64,
    "ci_high": pl.Float64,
    "p_value": pl.Float64,
    "p_randomisation": pl.Float64,
    "p_holm": pl.Float64,
    "p_best": pl.Float64,
    "behind_best": pl.Float64,
    "p_behind": pl.Float64,
    "minimum_detectable_difference": pl.Float64,
    "judge_noise": pl.Float64,
    "questions_needed": pl.Int64,
    "n_scored": pl.Int64,
    "n_total": pl.Int64,
    "coverage": pl.Float64,
    "mean_low": pl.Float64,
    "mean_high": pl.Float64,
    "difference_low": pl.Float64,
    "difference_high": pl.Float64,
    "verdict": pl.String,
    "reason": pl.String,
    "state": pl.String,
    "changed": pl.String,
    "is_primary": pl.Boolean,
    "seed": pl.Int64,
    "resamples": pl.Int64,
    "confidence": pl.Float64,
}
SLICE_ROWS_SCHEMA: _Columns = {
    "metric": pl.String,
    "baseline": pl.String,
    "strategy": pl.String,
    "dimension": pl.String,
    "slice": pl.String,
    "n_questions": pl.Int64,
    "n_documents": pl.Int64,
    "baseline_mean": pl.Float64,
    "mean": pl.Float64,
    "difference": pl.Float64,
    "ci_low": pl.Float64,
    "ci_high": pl.Float64,
    "p_holm": pl.Float64,
    "minimum_detectable_difference": pl.Float64,
    "verdict": pl.String,
}
CHANGES_SCHEMA: _Columns = {
    "baseline": pl.String,
    "strategy": pl.String,
    "question_id": pl.String,
    "change": pl.String,
    "metric": pl.String,
    "baseline_value": pl.Float64,
    "value": pl.Float64,
}

_Row = dict[str, Any]


@dataclass(frozen=True)
class Comparison:
    """`table` has a row per metric and strategy, the primary metric first and the best mean on
    top; `changes` a row per question that a strategy won or lost against the baseline, lost before
    won and the largest first; `slices` a row per part of the questions and strategy."""

    table: pl.DataFrame
    changes: pl.DataFrame
    slices: pl.DataFrame


@dataclass(frozen=True)
class _Test:
    """How differences are tested; `margin` is the difference they are tested against."""

    confidence: float
    resamples: int
    seed: int
    margin: float


@dataclass(frozen=True)
class _Aligned:
    """One metric's scores, strategies and questions sorted, and the document of each question.

    Arrays are (strategies, questions). `values` is float64, NaN where nothing was scored; `asked`
    is False where the metric does not apply; `why` is the kind of failure where a score is missing,
    if known. `noise` is the variance of a value that is the judge's, NaN if unknown; equal numbers
    in `judgements` are one judgement of the same texts, 0 is none.
    """

    metric: str
    strategies: list[str]
    questions: list[str]
    documents: list[str]
    values: np.ndarray
    asked: np.ndarray
    why: np.ndarray
    noise: np.ndarray
    judgements: np.ndarray

    def of(self, questions: np.ndarray) -> "_Aligned":
        """These questions only, bool (questions,)."""
        kept = np.flatnonzero(questions).tolist()
        return _Aligned(
            self.metric,
            self.strategies,
            [self.questions[n] for n in kept],
            [self.documents[n] for n in kept],
            *(
                part[:, questions]
                for part in (self.values, self.asked, self.why, self.noise, self.judgements)
            ),
        )

    def noise_against(self, reference: int) -> np.ndarray:
        """The judge's variance of each difference to a row: a judgement that both sides share has
        moved both alike."""
        shared = (self.judgements == self.judgements[reference]) & (self.judgements > 0)
        noise: np.ndarray = np.where(shared, 0.0, self.noise + self.noise[reference])
        return noise

    def is_unscored(self, strategy: str) -> bool:
        """Whether a strategy has no score, and nothing says why."""
        row = self.strategies.index(strategy)
        return bool(np.isnan(self.values[row]).all()) and not self.missing(row)

    def missing(self, row: int) -> str:
        """The scores one strategy misses, counted by what is known of the cause."""
        missed = self.why[row, self.asked[row] & np.isnan(self.values[row])]
        counted = Counter(why for why in missed.tolist() if why).most_common()
        return ", ".join(f"{count} {why}" for why, count in counted)


def beside(metric: str) -> str:
    """The same metric at an equal token budget, or at an equal number of chunks where the metric
    has a token budget already; empty for what is not cut.

    >>> beside("recall@5"), beside("recall@2000t"), beside("faithfulness")
    ('recall@1000t', 'recall@5', '')
    """
    name, _, cutoff = metric.partition("@")
    if not cutoff:
        return ""
    return f"{name}@5" if cutoff.endswith("t") else f"{name}@1000t"


def tokens_read(metric: str) -> str:
    """What a score costs to read: the context tokens at its cut-off; of an answer, those it was
    given.

    >>> tokens_read("recall@1000t"), tokens_read("faithfulness")
    ('context_tokens@1000t', 'context_tokens@served')
    """
    return f"context_tokens@{metric.partition('@')[2] or 'served'}"


def compare(
    scores: pl.DataFrame,
    clusters: Mapping[str, str],
    baseline: str,
    primary: str = "recall@5",
    exploratory: Sequence[str] = EXPLORATORY,
    *,
    judged: Sequence[str] = (),
    slices: pl.DataFrame | None = None,
    changed: Changed | None = None,
    distrust: str | None = None,
    confidence: float = 0.95,
    resamples: int = 10_000,
    seed: int = 20_260_101,
    margin: float = 0.0,
) -> Comparison:
    """Compare strategies on the questions both sides were scored on.

    `scores` has `strategy, question_id, metric, cutoff, value`; a null or NaN value was not scored,
    and neither is a question that has rows of others only. What it has besides counts too: `status`
    may say that there was nothing to score (`not_applicable`, `stale`), which is not missing, and
    `error_kind` why a score is missing; `judge_variance` is how far the value would vary if it were
    judged again, and an equal `judge_key` is one judgement. `clusters` names the document each
    question rests on. `slices` has `question_id, dimension, slice`.

    `changed` names, for metrics and strategies measured otherwise, what differs; such scores are
    not looked at. `distrust` says why the primary metric may decide nothing. `margin` is the
    difference a verdict is against.

    The primary metric at the other sort of cut-off (`beside`) is compared with the exploratory
    ones, the `judged` ones apart. Metrics nobody has a row of give no rows. The result depends on
    the content only, not on the order of rows.

    Raises:
        CorpusError: the baseline has no score of the primary metric, a question has no cluster,
            or a score is there twice.
    """
    of_metric = _Measured(scores, clusters, changed or {})
    deciding = of_metric.aligned(primary)
    if deciding is None or baseline not in deciding.strategies or deciding.is_unscored(baseline):
        raise CorpusError(
            f"the baseline {baseline!r} has no {primary} score. Score it first, or name another "
            "baseline or metric under `comparison:`."
        )
    test = _Test(confidence, resamples, seed, margin)
    made = {"baseline": baseline, "seed": seed, "resamples": resamples, "confidence": confidence}
    twin = beside(primary)
    on_spans = dict.fromkeys([*([twin] if twin else []), *exploratory])
    rows = [
        *_family([deciding], baseline, test, distrust),
        *_incomparable(primary, of_metric.changed_in(primary, baseline)),
    ]
    for row in rows:
        row["is_primary"] = True
    told = of_metric.changed_in(primary, baseline)
    for family in (on_spans, dict.fromkeys(judged)):
        others = [name for name in family if name != primary]
        rows += _family(of_metric.comparable(others, baseline), baseline, test)
        for name in others:
            what = of_metric.changed_in(name, baseline)
            rows += _incomparable(name, {s: w for s, w in what.items() if told.get(s) != w})
    return Comparison(
        _frame([{"is_primary": False, **row, **made} for row in rows], TABLE_SCHEMA),
        _changes(deciding, baseline),
        _frame(_slices(deciding, baseline, test, slices, distrust), SLICE_ROWS_SCHEMA),
    )


@dataclass(frozen=True)
class _Measured:
    """The scores as `compare` takes them, metric by metric."""

    scores: pl.DataFrame
    clusters: Mapping[str, str]
    changed: Changed

    def changed_in(self, metric: str, baseline: str) -> dict[str, Sequence[str]]:
        """What was measured otherwise, by strategy; all are if the baseline was."""
        of_metric = self.changed.get(metric.partition("@")[0], {})
        if what := of_metric.get(baseline):
            others = {*self.scores["strategy"], *of_metric} - {baseline}
            return dict.fromkeys(sorted(others), what)
        return {strategy: what for strategy, what in sorted(of_metric.items()) if what}

    def comparable(self, metrics: Sequence[str], baseline: str) -> list[_Aligned]:
        """Those that somebody and the baseline were measured in as is measured now."""
        aligned = (self.aligned(metric) for metric in metrics)
        return [a for a in aligned if a is not None and baseline in a.strategies]

    def aligned(self, metric: str) -> _Aligned | None:
        otherwise = [s for s, w in self.changed.get(metric.partition("@")[0], {}).items() if w]
        comparable = self.scores.filter(~pl.col("strategy").is_in(otherwise))
        return _aligned(comparable, metric, self.clusters)


def _family(
    metrics: Sequence[_Aligned], baseline: str, test: _Test, distrust: str | None = None
) -> list[_Row]:
    """The rows of metrics whose p-values are corrected together."""
    family = sum(len(aligned.strategies) - 1 for aligned in metrics)
    rows = [_differences(a, baseline, test, family, distrust) for a in metrics]
    _correct([row for of_metric in rows for row in of_metric])
    for of_metric in rows:
        _judge(of_metric)
    return [row for of_metric in rows for row in of_metric]


def _differences(
    aligned: _Aligned,
    baseline: str,
    test: _Test,
    family: int,
    distrust: str | None,
    *,
    is_ranked: bool = True,
) -> list[_Row]:
    """Every strategy against the baseline, best mean first; not enough scored, or none: last."""
    values, asked = aligned.values, aligned.asked
    reference = aligned.strategies.index(baseline)
    cost = is_cost(aligned.metric)
    coverage = [covered(*of, is_share=not cost) for of in zip(values, asked, strict=True)]
    is_enough = np.array([c.is_enough for c in coverage])
    results = paired_bootstrap(
        values,
        aligned.documents,
        reference,
        confidence=test.confidence,
        resamples=test.resamples,
        seed=test.seed,
        family=family,
        lower_is_better=cost,
        margin=test.margin,
        ranked=is_enough & is_ranked,
        noise=aligned.noise_against(reference),
    )
    rows = []
    for number, (strategy, result) in enumerate(zip(aligned.strategies, results, strict=True)):
        low, high = difference_bounds(
            values[number], values[reference], asked[number] & asked[reference], is_share=not cost
        )
        rows.append(
            {
                **asdict(result),
                "ci_low": _possible(result.ci_low, cost),
                "ci_high": _possible(result.ci_high, cost),
                **asdict(coverage[number]),
                **{f"baseline_{name}": n for name, n in asdict(coverage[reference]).items()},
                "metric": aligned.metric,
                "baseline": baseline,
                "strategy": strategy,
                "difference_low": low,
                "difference_high": high,
                "questions_needed": questions_needed(result, test.margin),
                "confidence": test.confidence,
                "margin": test.margin,
                "missing": aligned.missing(number),
                "baseline_missing": aligned.missing(reference),
                "distrust": distrust,
            }
        )

    def rank(row: _Row) -> tuple[bool, float, str]:
        mean = row["mean"]
        score = inf if mean is None else mean if cost else -mean
        return (row["coverage"] or 0) < MIN_COVERAGE, score, row["strategy"]

    return sorted(rows, key=rank)


def _possible(end: float | None, cost: bool) -> float | None:
    """An end of an interval: no difference of shares is beyond 1, however few the documents."""
    return end if end is None or cost else min(1.0, max(-1.0, end))


def _correct(rows: Sequence[_Row]) -> None:
    """Put `p_holm` into rows: both tests must agree, so the larger p-value is corrected."""
    compared = [row for row in rows if row["strategy"] != row["baseline"]]
    adjusted = holm([max(row["p_value"], row["p_randomisation"]) for row in compared])
    for row in rows:
        row["p_holm"] = 1.0
    for row, p in zip(compared, adjusted, strict=True):
        row["p_holm"] = p


def _judge(rows: Sequence[_Row]) -> None:
    """Put verdict, reason and state into the rows of one metric."""
    for row in rows:
        row["verdict"] = "baseline" if row["strategy"] == row["baseline"] else decide(row)
        row["reason"] = reason(row)
    for row, state in zip(rows, states(rows), strict=True):
        row["state"] = state


def _incomparable(metric: str, changed: Mapping[str, Sequence[str]]) -> list[_Row]:
    rows: list[_Row] = []
    for strategy, what in changed.items():
        row: _Row = {
            "metric": metric,
            "strategy": strategy,
            "n_questions": 0,
            "n_documents": 0,
            "difference": None,
            "verdict": "not comparable",
            "changed": ", ".join(what),
        }
        rows.append({**row, "reason": reason(row)})
    return rows


def _slices(
    deciding: _Aligned,
    baseline: str,
    test: _Test,
    slices: pl.DataFrame | None,
    distrust: str | None,
) -> list[_Row]:
    if slices is None:
        return []
    of_slice = slices.group_by("dimension", "slice").agg("question_id").sort("dimension", "slice")
    parts = [
        (dimension, name, deciding.of(inside))
        for dimension, name, questions in of_slice.iter_rows()
        # All of the questions are no slice of them, and would only be corrected for.
        if (inside := np.isin(deciding.questions, questions)).any() and not inside.all()
    ]
    rows = [
        {**row, "dimension": dimension, "slice": name}
        for dimension, name, part in parts
        for row in _differences(
            part, baseline, test, len(parts) * (len(part.strategies) - 1), distrust, is_ranked=False
        )
    ]
    # What is too small for a verdict is known before any score is looked at: no test is made.
    tested = [row for row in rows if withheld(row) is None]
    _correct(tested)
    for row in rows:
        row["verdict"] = "baseline" if row["strategy"] == baseline else None
    for row in tested:
        row["verdict"] = row["verdict"] or decide(row)
    return rows


def _frame(rows: Sequence[_Row], schema: _Columns) -> pl.DataFrame:
    return pl.DataFrame([{name: row.get(name) for name in schema} for row in rows], schema=schema)


def _aligned(scores: pl.DataFrame, name: str, clusters: Mapping[str, str]) -> _Aligned | None:
    """None if nobody scored the metric."""
    metric, _, cutoff = name.partition("@")
    rows = scores.filter((pl.col("metric") == metric) & (pl.col("cutoff") == cutoff))
    if rows.is_empty():
        return None
    twice = rows.filter(pl.struct("strategy", "question_id").is_duplicated())
    if not twice.is_empty():
        strategy, question = twice.select("strategy", "question_id").row(0)
        raise CorpusError(
            f"strategy {strategy!r} has several {name} scores of question {question!r}. "
            "Compare the scores of one evaluation only."
        )
    strategies = sorted(set(scores["strategy"]))
    questions = sorted(set(rows["question_id"]))
    at = (
        rows["strategy"].replace_strict(strategies, range(len(strategies))).to_numpy(),
        rows["question_id"].replace_strict(questions, range(len(questions))).to_numpy(),
    )
    shape = (len(strategies), len(questions))

    def spread(column: str, empty: float | str) -> np.ndarray:
        """A column as (strategies, questions), `empty` where there is no row or no value."""
        is_text = isinstance(empty, str)
        whole = np.full(shape, empty, dtype=object if is_text else np.float64)
        if column in rows.columns:
            values = rows[column].cast(pl.String if is_text else pl.Float64).fill_null(empty)
            whole[at] = values.to_numpy()
        return whole

    asked = ~np.isin(spread("status", ""), NOT_ASKED)
    keys = np.append("", spread("judge_key", "").ravel())
    return _Aligned(
        name,
        strategies,
        questions,
        _documents(questions, clusters),
        np.where(asked, spread("value", np.nan), np.nan),
        asked,
        spread("error_kind", ""),
        spread("judge_variance", np.nan),
        np.unique(keys, return_inverse=True)[1][1:].reshape(shape),
    )


def _documents(questions: Sequence[str], clusters: Mapping[str, str]) -> list[str]:
    unknown = [question for question in questions if question not in clusters]
    if unknown:
        raise CorpusError(
            f"question {unknown[0]!r} has scores but no document to group it by. "
            "Resolve the gold questions again, then score again."
        )
    return [clusters[question] for question in questions]


def _changes(deciding: _Aligned, baseline: str) -> pl.DataFrame:
    if is_cost(deciding.metric):  # a cost has no scale on which half would mean anything
        return pl.DataFrame(schema=CHANGES_SCHEMA)
    before = deciding.values[deciding.strategies.index(baseline)]
    moved = deciding.values - before
    rows = [
        {
            "baseline": baseline,
            "strategy": deciding.strategies[strategy],
            "question_id": deciding.questions[question],
            "change": "won" if moved[strategy, question] > 0 else "lost",
            "metric": deciding.metric,
            "baseline_value": float(before[question]),
            "value": float(deciding.values[strategy, question]),
        }
        for strategy, question in np.argwhere(np.abs(moved) >= CHANGE - 1e-9).tolist()
    ]
    size = (pl.col("value") - pl.col("baseline_value")).abs().round(9)
    return _frame(rows, CHANGES_SCHEMA).sort(
        "strategy", "change", size, "question_id", descending=[False, False, True, False]
    )
