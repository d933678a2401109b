"""One question's scores: every metric at every cutoff, from passages and located evidence."""

from collections.abc import Mapping, Sequence

import polars as pl

from evals.retrieval_scores.registry import METRICS
from evals.retrieval_scores.spans import AnyOf, Convention, Evidence, Passage, Retrieval, Slot, Span


def score_question(
    passages_by_cutoff: Mapping[str, Sequence[Passage]],
    evidence: Evidence,
    convention: Convention = "half-open",
) -> dict[tuple[str, str], float]:
    """Scores by (metric, cutoff); always finite, and 0 where nothing was retrieved.

    `passages_by_cutoff` holds, best first, the passages within each cutoff;
    `evidence` holds for each slot a quote's occurrences, or alternatives.

    Raises:
        ValueError: there is no evidence: stale and unanswerable questions have no such scores.

    >>> passages = [Passage("a", 0, 10, 3)]
    >>> scores = score_question({"5": passages}, [[Span("a", 5, 15)]])
    >>> scores["recall", "5"], scores["precision", "5"], scores["hit", "5"]
    (0.5, 0.5, 0.0)
    """
    return {
        (name, cutoff): metric(retrieval)
        for cutoff, passages in passages_by_cutoff.items()
        for retrieval in [Retrieval(passages, evidence, convention)]
        for name, metric in METRICS.items()
    }


def evidence_by_question(gold_evidence: pl.DataFrame) -> dict[str, list[Slot]]:
    """The `gold_evidence` rows as `score_question` wants them, by question id.

    An alternative that was not found is left out, and so is a question with a slot without any:
    it is stale.
    """
    rows = gold_evidence.sort("question_id", "evidence", "alternative", "occurrence")
    slots: dict[str, dict[int, dict[int, list[Span]]]] = {}
    for question, number, alternative, doc_id, start, end in rows.select(
        "question_id", "evidence", "alternative", "doc_id", "start", "end"
    ).iter_rows():
        slot = slots.setdefault(question, {}).setdefault(number, {})
        if start is not None:
            slot.setdefault(alternative, []).append(Span(doc_id, start, end))
    return {
        question: [_slot(list(slot.values())) for slot in by_number.values()]
        for question, by_number in slots.items()
        if all(by_number.values())
    }


def _slot(alternatives: list[list[Span]]) -> Slot:
    return AnyOf(alternatives) if len(alternatives) > 1 else alternatives[0]
