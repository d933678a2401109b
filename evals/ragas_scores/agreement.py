"""How far a judge agrees with people, before anything is decided by its scores.

Accuracy alone flatters a judge that says yes to everything where most is right, so Cohen's kappa
(1960, https://doi.org/10.1177/001316446002000104) stands beside it, and each kind of error has a
row of its own: a judge may see every wrong number and no swapped role.
"""

import asyncio
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from chunking_assets.chat_models.chat_endpoint import CallFailed, ChatEndpoint
from chunking_assets.chat_models.endpoint import endpoint_from_environment
from chunking_assets.chat_models.response_cache import CACHE_FILE, ResponseCache
from evals.coverage import MIN_COVERAGE, NO_JUDGE
from evals.ragas_scores.availability import ragas_problem
from evals.ragas_scores.event_loop import in_own_loop
from evals.ragas_scores.frames import Schema
from evals.ragas_scores.instructions import ENGLISH, Instructions
from evals.ragas_scores.judge import Judge, Judgement
from evals.ragas_scores.labels import LabelledAnswer, LabelledText
from evals.ragas_scores.metrics.metric import Sample
from evals.ragas_scores.metrics.registry import METRICS

if TYPE_CHECKING:
    from chunking_assets.config import JudgeSettings

ALL = "all"
MIN_LABELS = 30
"""With fewer labels judged, kappa may be off by more than it is worth."""
MEASURE = "python -m evals.ragas_scores agreement"

_Z = 1.959963984540054

AGREEMENT: Schema = {
    "judge": pl.String,
    "labels": pl.String,
    "kind": pl.String,
    "n_labels": pl.Int64,
    "n_judged": pl.Int64,
    "both_supported": pl.Int64,
    "only_judge_supported": pl.Int64,
    "only_people_supported": pl.Int64,
    "neither_supported": pl.Int64,
    "accuracy": pl.Float64,
    "accuracy_low": pl.Float64,
    "accuracy_high": pl.Float64,
    "kappa": pl.Float64,
    "error_kind": pl.String,
}


@dataclass(frozen=True, slots=True)
class JudgedLabel:
    """A person's label and the judge's; `judged` is None where it failed, `reason` says why."""

    label: LabelledText
    judged: bool | None
    reason: str
    error_kind: str | None = None


@dataclass(frozen=True)
class Agreement:
    """One row of `judge_agreement`: the labels of one `kind`, or `all`.

    `judge` is None where there was none to ask, `labels` the digest of their file. Accuracy has
    its Wilson interval (95 %); kappa is None where chance alone would agree always, and all are
    None where nothing was judged. `error_kind` is the first failure, if any.
    """

    judge: str | None
    labels: str
    kind: str
    n_labels: int
    n_judged: int
    both_supported: int
    only_judge_supported: int
    only_people_supported: int
    neither_supported: int
    accuracy: float | None
    accuracy_low: float | None
    accuracy_high: float | None
    kappa: float | None
    error_kind: str | None

    def __str__(self) -> str:
        if self.accuracy is None:
            return f"{self.kind}: none of {self.n_labels} judged ({self.error_kind})"
        kappa = "-" if self.kappa is None else f"{self.kappa:.2f}"
        return (
            f"{self.kind}: accuracy {self.accuracy:.2f} "
            f"({self.accuracy_low:.2f} to {self.accuracy_high:.2f}), kappa {kappa}, "
            f"{self.n_judged} of {self.n_labels} judged"
        )


def judge_labels(
    labels: Sequence[LabelledAnswer],
    settings: "JudgeSettings",
    cache_folder: Path,
    instructions: Instructions = ENGLISH,
) -> tuple[str | None, list[JudgedLabel]]:
    """The judge's name, and its word on every label, in order.

    An answer counts as found faithful if every statement of it is supported. Without a judge the
    name is None, and the labels read `no_judge` or `ragas_unavailable`.

    Raises:
        CorpusError: the cache cannot be used, or `instructions` do not fit.
    """
    endpoint = endpoint_from_environment()
    problem = None if endpoint is None else ragas_problem()
    if endpoint is None or problem:
        kind = "ragas_unavailable" if problem else NO_JUDGE
        return None, [
            JudgedLabel(label, None, problem or "", kind)
            for answer in labels
            for label in _labels_of(answer)
        ]

    async def judged() -> tuple[str, list[JudgedLabel]]:
        with ResponseCache(cache_folder / CACHE_FILE) as cache:
            async with ChatEndpoint(
                endpoint, cache, concurrency=settings.concurrency, timeout=settings.timeout
            ) as chat:
                judge = Judge(chat, settings.judge_model, instructions)
                name = judge.name("faithfulness")
                found = await asyncio.gather(*(_judged(judge, answer) for answer in labels))
        return name, [label for of_answer in found for label in of_answer]

    return in_own_loop(judged)


def agreements(
    judge: str | None, labels_digest: str, judged: Sequence[JudgedLabel]
) -> list[Agreement]:
    """`all` first, then the kinds in alphabetical order."""
    kinds = sorted({each.label.kind for each in judged} - {""})
    of_kind = [(k, [j for j in judged if j.label.kind == k]) for k in kinds]
    return [
        _agreement(judge, labels_digest, kind, some) for kind, some in [(ALL, judged), *of_kind]
    ]


def agreement_frame(rows: Sequence[Agreement]) -> pl.DataFrame:
    return pl.DataFrame([asdict(row) for row in rows], schema=AGREEMENT)


def distrust(agreement: pl.DataFrame | None, judge: str, least_kappa: float) -> str | None:
    """Why nothing may be decided by the scores of a judge, with the cure; None if it may.

    `agreement` is the table `judge_agreement`, if there is one; `judge` as the scores name it.
    """
    found = _of_all_labels(agreement, judge)
    if found is None:
        return (
            "this judge was not compared with people. Name a file of labels under "
            f"ragas.judge_labels, then: {MEASURE}"
        )
    n_judged, n_labels, kappa = found.n_judged, found.n_labels, found.kappa
    if n_judged < MIN_LABELS or n_judged < MIN_COVERAGE * n_labels:
        needed = max(MIN_LABELS, math.ceil(MIN_COVERAGE * n_labels))
        return (
            f"this judge was compared with people on {n_judged} of {n_labels} labels, {needed} are "
            f"needed. Label more answers, then: {MEASURE}"
        )
    if kappa is None:
        return (
            "all labels, and all the judge says of them, are alike, so agreement may be chance. "
            f"Label answers of the other kind too, then: {MEASURE}"
        )
    if kappa < least_kappa:
        return (
            f"this judge agrees with people by kappa {kappa:.2f}, {least_kappa:g} is needed "
            f"(comparison.min_kappa). See where it does not: {MEASURE}"
        )
    return None


def agreement_in_words(agreement: pl.DataFrame | None, judge: str) -> str:
    """How far a judge of faithfulness agrees with people, or that nobody knows."""
    found = _of_all_labels(agreement, judge)
    return "not compared with people" if found is None else f"against people, {found}"


def _of_all_labels(agreement: pl.DataFrame | None, judge: str) -> Agreement | None:
    rows = [] if agreement is None else agreement.filter(kind=ALL, judge=judge).rows(named=True)
    return Agreement(**rows[0]) if rows else None


def cohens_kappa(both: int, only_judge: int, only_people: int, neither: int) -> float | None:
    """Agreement beyond chance, 1 at most; None where chance alone would agree always.

    >>> cohens_kappa(20, 5, 10, 15)
    0.4
    """
    n = both + only_judge + only_people + neither
    by_chance = (both + only_judge) * (both + only_people) + (neither + only_judge) * (
        neither + only_people
    )
    if by_chance == n * n:
        return None
    return ((both + neither) * n - by_chance) / (n * n - by_chance)


def wilson(successes: int, n: int) -> tuple[float, float]:
    """The 95 % interval of a share (Wilson 1927), for small `n` too.

    >>> [round(bound, 3) for bound in wilson(8, 10)]
    [0.49, 0.943]
    """
    share, square = successes / n, _Z * _Z
    middle = (share + square / (2 * n)) / (1 + square / n)
    half = _Z * math.sqrt(share * (1 - share) / n + square / (4 * n * n)) / (1 + square / n)
    return max(0.0, middle - half), min(1.0, middle + half)


def _labels_of(answer: LabelledAnswer) -> tuple[LabelledText, ...]:
    return answer.statements if answer.whole is None else (answer.whole,)


async def _judged(judge: Judge, answer: LabelledAnswer) -> list[JudgedLabel]:
    judgement = Judgement()
    try:
        if answer.whole is None:
            texts = [statement.text for statement in answer.statements]
            given = await judge.verdicts(texts, answer.contexts, judgement)
            return [
                JudgedLabel(label, verdict.verdict == 1, verdict.reason)
                for label, verdict in zip(answer.statements, given, strict=True)
            ]
        sample = Sample(answer.question, answer.answer, "", answer.contexts)
        await judge.judge(METRICS["faithfulness"], sample, judgement)
    except CallFailed as failure:
        return [
            JudgedLabel(label, None, failure.message, failure.kind) for label in _labels_of(answer)
        ]
    if judgement.value is None:
        return [JudgedLabel(answer.whole, None, "", "no_statements")]
    against = [v for v in judgement.said.verdicts if not v.verdict]
    reason = "; ".join(f"{v.statement} ({v.reason})" for v in against)
    return [JudgedLabel(answer.whole, not against, reason)]


def _agreement(
    judge: str | None, labels_digest: str, kind: str, judged: Sequence[JudgedLabel]
) -> Agreement:
    pairs = [(j.judged, j.label.is_supported) for j in judged if j.judged is not None]
    both, only_judge = pairs.count((True, True)), pairs.count((True, False))
    only_people, neither = pairs.count((False, True)), pairs.count((False, False))
    agreed, n = both + neither, len(pairs)
    low, high = wilson(agreed, n) if n else (None, None)
    return Agreement(
        judge=judge,
        labels=labels_digest,
        kind=kind,
        n_labels=len(judged),
        n_judged=n,
        both_supported=both,
        only_judge_supported=only_judge,
        only_people_supported=only_people,
        neither_supported=neither,
        accuracy=agreed / n if n else None,
        accuracy_low=low,
        accuracy_high=high,
        kappa=cohens_kappa(both, only_judge, only_people, neither) if n else None,
        error_kind=next((j.error_kind for j in judged if j.error_kind), None),
    )
