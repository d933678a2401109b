"""Every strategy against the baseline: one table of verdicts, one of questions won and lost.

One metric, named before looking, decides; the others are there to explain and are corrected as a
family of their own. Only questions scored on both sides are compared.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from math import inf
from typing import Any

import polars as pl

from chunking_assets.errors import CorpusError
from evals.retrieval_scores.registry import LOWER_IS_BETTER
from evals.strategy_comparison.bootstrap import PairedDifference, paired_bootstrap
from evals.strategy_comparison.holm import holm
from evals.strategy_comparison.verdict import decide

VERSION = 1
"""Raised when the same scores would be given another verdict."""

EXPLORATORY = ("precision@5", "iou@5", "ndcg@10", "mrr@10")

CHANGE = 0.5
"""A question is won or lost when the primary metric moves by at least this much.

For a hit that is 0 to 1 or back; for recall, half of the evidence found or lost. Smaller moves are
mostly chunk borders that shifted by a few words.
"""

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
    "p_holm": pl.Float64,
    "p_best": pl.Float64,
    "minimum_detectable_difference": pl.Float64,
    "verdict": pl.String,
    "is_primary": pl.Boolean,
    "seed": pl.Int64,
    "resamples": pl.Int64,
    "confidence": pl.Float64,
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


@dataclass(frozen=True)
class Comparison:
    """`table` has a row per metric and strategy, the primary metric first and the best mean on
    top; `changes` a row per question that a strategy won or lost against the baseline."""

    table: pl.DataFrame
    changes: pl.DataFrame


def compare(
    scores: pl.DataFrame,
    clusters: Mapping[str, str],
    baseline: str,
    primary: str = "recall@5",
    exploratory: Sequence[str] = EXPLORATORY,
    *,
    confidence: float = 0.95,
    resamples: int = 10_000,
    seed: int = 20_260_101,
) -> Comparison:
    """Compare strategies on the questions both sides were scored on.

    `scores` has `strategy, question_id, metric, cutoff, value`; a null or NaN value was not
    scored. `clusters` names the document each question rests on. Exploratory metrics nobody scored
    give no rows. The result depends on the content only, not on the order of rows.

    Raises:
        CorpusError: the baseline has no score of the primary metric, a question has no cluster,
            or a score is there twice.
    """
    aligned = {
        name: wide
        for name in dict.fromkeys([primary, *exploratory])
        if not (wide := _aligned(scores, name)).is_empty()
    }
    values = aligned.get(primary)
    if values is None or baseline not in values.columns or values[baseline].count() == 0:
        raise CorpusError(
            f"the baseline {baseline!r} has no {primary} score. Score it first, or name another "
            "baseline or metric under `comparison:`."
        )
    families = [[primary], [name for name in aligned if name != primary]]
    rows: list[dict[str, Any]] = []
    for family in families:
        results = [
            (name, strategy, result)
            for name in family
            for strategy, result in _results(
                aligned[name],
                _documents(aligned[name], clusters),
                baseline,
                confidence=confidence,
                resamples=resamples,
                seed=seed,
                family=len(family) * (len(aligned[name].columns) - 2),
                lower_is_better=_lower_is_better(name),
            )
        ]
        compared = [entry for entry in results if entry[1] != baseline]
        adjusted = holm([result.p_value for _, _, result in compared])
        p_holm = {entry[:2]: p for entry, p in zip(compared, adjusted, strict=True)}
        rows += [
            {
                **asdict(result),
                "metric": name,
                "baseline": baseline,
                "strategy": strategy,
                "p_holm": p_holm.get((name, strategy), 1.0),
                "verdict": "baseline"
                if strategy == baseline
                else decide(
                    result,
                    p_holm[name, strategy],
                    confidence,
                    lower_is_better=_lower_is_better(name),
                ),
                "is_primary": name == primary,
                "seed": seed,
                "resamples": resamples,
                "confidence": confidence,
            }
            for name, strategy, result in results
        ]
    return Comparison(pl.DataFrame(rows, schema=TABLE_SCHEMA), _changes(values, baseline, primary))


def _results(
    values: pl.DataFrame, documents: list[str], baseline: str, *, lower_is_better: bool, **how: Any
) -> list[tuple[str, PairedDifference]]:
    """Every strategy's result, best mean first, those without a pair last."""
    strategies = values.columns[1:]
    results = paired_bootstrap(
        values.select(strategies).to_numpy().T,
        documents,
        strategies.index(baseline),
        lower_is_better=lower_is_better,
        **how,
    )
    sign = 1 if lower_is_better else -1

    def rank(entry: tuple[str, PairedDifference]) -> tuple[float, str]:
        strategy, result = entry
        return (inf if result.mean is None else sign * result.mean, strategy)

    return sorted(zip(strategies, results, strict=True), key=rank)


def _aligned(scores: pl.DataFrame, name: str) -> pl.DataFrame:
    """`question_id` and a column of scores per strategy, both sorted; null: not scored."""
    metric, _, cutoff = name.partition("@")
    of_measure = scores.filter(
        (pl.col("metric") == metric) & (pl.col("cutoff") == cutoff)
    ).with_columns(pl.col("value").cast(pl.Float64).fill_nan(None))
    if of_measure.is_empty():
        return of_measure
    twice = of_measure.filter(pl.struct("strategy", "question_id").is_duplicated())
    if not twice.is_empty():
        strategy, question = twice.select("strategy", "question_id").row(0)
        raise CorpusError(
            f"strategy {strategy!r} has several {name} scores of question {question!r}. "
            "Compare the scores of one evaluation only."
        )
    strategies = sorted(set(scores["strategy"]))
    wide = of_measure.pivot(
        on="strategy", on_columns=strategies, index="question_id", values="value"
    )
    return wide.select("question_id", *strategies).sort("question_id")


def _documents(values: pl.DataFrame, clusters: Mapping[str, str]) -> list[str]:
    unknown = [question for question in values["question_id"] if question not in clusters]
    if unknown:
        raise CorpusError(
            f"question {unknown[0]!r} has scores but no document to group it by. "
            "Resolve the gold questions again, then score again."
        )
    return [clusters[question] for question in values["question_id"]]


def _changes(values: pl.DataFrame, baseline: str, name: str) -> pl.DataFrame:
    moved = pl.col("value") - pl.col("baseline_value")
    if _lower_is_better(name):  # a cost has no scale on which half would mean anything
        return pl.DataFrame(schema=CHANGES_SCHEMA)
    return (
        values.rename({baseline: "baseline_value"})
        .unpivot(
            index=["question_id", "baseline_value"], variable_name="strategy", value_name="value"
        )
        .filter(moved.abs() >= CHANGE - 1e-9)
        .with_columns(
            baseline=pl.lit(baseline),
            metric=pl.lit(name),
            change=pl.when(moved > 0).then(pl.lit("won")).otherwise(pl.lit("lost")),
        )
        .select(CHANGES_SCHEMA.keys())
        .sort("strategy", "change", "question_id")
    )


def _lower_is_better(name: str) -> bool:
    return name.partition("@")[0] in LOWER_IS_BETTER
