"""Quotes turned into spans of the documents as they are now, and what that says of a question.

Spans are derived anew from the canonical text, never stored with the question: an edit elsewhere
moves them, an edit of the evidence makes the question stale. A stale question is reported, with
what its passage has become, and left out of the scores; only a person can say what it should be.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import polars as pl

from chunking_assets.keys import digest
from chunking_assets.parsed_elements.parse import READABLE
from evals.gold_questions.drift import Words, passage_around
from evals.gold_questions.load import GoldQuestion, Quote, Slot
from evals.gold_questions.locate import FoldedText

VERSION = 2
"""Raised when the same files and texts would give other rows."""

_Columns = dict[str, pl.DataType | type[pl.DataType]]
QUESTIONS_SCHEMA: _Columns = {
    "question_id": pl.String,
    "question": pl.String,
    "answer": pl.String,
    "language": pl.String,
    "tags": pl.List(pl.String),
    "answerable": pl.Boolean,
    "status": pl.String,
    "reason": pl.String,
    "file": pl.String,
    "n_evidence": pl.Int64,
}
EVIDENCE_SCHEMA: _Columns = {
    "question_id": pl.String,
    "evidence": pl.Int64,
    "alternative": pl.Int64,
    "doc_id": pl.String,
    "quote": pl.String,
    "occurrence": pl.Int64,
    "start": pl.Int64,
    "end": pl.Int64,
    "status": pl.String,
    "passage": pl.String,
    "diff": pl.String,
}
NOT_SCORED = ("passage", "diff")
"""Columns of the evidence that are for people: no score depends on them."""


@dataclass(frozen=True, slots=True)
class _Located:
    """Where a quote stands: (occurrence, start, end, passage). `total` counts all occurrences."""

    places: Sequence[tuple[int, int, int, str]]
    total: int
    passage: str | None = None
    diff: str | None = None


@dataclass(frozen=True)
class _Now:
    """The quotes of all questions in the documents as they are now."""

    status: dict[str, str] = field(default_factory=dict)
    located: dict[Quote, _Located] = field(default_factory=dict)
    last: Mapping[tuple[str, str], str] = field(default_factory=dict)

    def problem(self, quote: Quote) -> str | None:
        """Why a quote is not found."""
        doc_id, located = quote.doc_id, self.located.get(quote)
        if located is None:
            if doc_id not in self.status:
                return f"no document {doc_id}"
            return f"document {doc_id} has no text (status {self.status[doc_id]})"
        if located.places:
            return None
        if located.total:
            times = f"only {located.total} times" if located.total > 1 else "once"
            return f"quote found {times} in {doc_id}, and occurrence {quote.occurrence} is meant"
        return f"quote not found in {doc_id}"


def resolve(
    questions: Iterable[GoldQuestion],
    documents: pl.DataFrame,
    before: pl.DataFrame | None = None,
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The `gold_questions` and `gold_evidence` rows for the documents as they are now.

    `documents` has `doc_id`, `text` and `status`; only readable ones (`ok`, `partial`) have text
    to quote. `before` are the last `gold_evidence` rows, which know the passages as they were.

    A question is `active` (every slot has an alternative that is found), `stale` (with the reason),
    `unanswerable`, or a `draft`, with what would make it stale as its reason. `gold_evidence` has
    one row per slot, alternative and occurrence, all numbered from 1: `found`, `ambiguous`
    (several occurrences, any of them counts), or one row with occurrence 0 and no span:
    `missing_quote`, `missing_document`. `passage` is the quote with the text around it, as last
    found; `diff` says what has become of the passage of a missing quote, where anything has.
    """
    questions = list(questions)
    now = _locate(questions, documents, before)
    question_rows, evidence_rows = [], []
    for question in questions:
        problems = []
        for number, slot in enumerate(question.evidence, start=1):
            for alternative, quote in enumerate(slot, start=1):
                key = {
                    "question_id": question.question_id,
                    "evidence": number,
                    "alternative": alternative,
                    "doc_id": quote.doc_id,
                    "quote": quote.quote,
                }
                evidence_rows += [{**key, **row} for row in _rows(quote, now)]
            if problem := _slot_problem(slot, now):
                problems.append(f"evidence {number}: {problem}")
        question_rows.append(
            {
                "question_id": question.question_id,
                "question": question.question,
                "answer": question.answer,
                "language": question.language,
                "tags": list(question.tags),
                "answerable": question.answerable,
                "status": _status(question, problems),
                "reason": "; ".join(problems) or None,
                "file": question.file,
                "n_evidence": len(question.evidence),
            }
        )
    return (
        pl.DataFrame(question_rows, schema=QUESTIONS_SCHEMA),
        pl.DataFrame(evidence_rows, schema=EVIDENCE_SCHEMA),
    )


def golden_version(questions: pl.DataFrame, evidence: pl.DataFrame) -> str:
    """A digest of the active questions and their spans: scores compare only when it is equal.

    Takes the two frames of `resolve`; the order of their rows does not matter.
    """
    active = questions.filter(pl.col("status") == "active")
    asked = active.select("question_id", "question", "answer").sort("question_id")
    spans = (
        evidence.filter(pl.col("start").is_not_null())
        .join(active.select("question_id"), on="question_id", how="semi")
        .select("question_id", "evidence", "alternative", "doc_id", "start", "end")
        .sort(pl.all())
    )
    return digest("golden", asked.rows(), spans.rows())


def scored_content(questions: pl.DataFrame, evidence: pl.DataFrame) -> str:
    """A digest of all that scores are made from or shown with: drafts, and passages that only
    people read, are left out."""
    kept = questions.filter(pl.col("status") != "draft")
    quoted = evidence.join(kept.select("question_id"), on="question_id", how="semi")
    ordered = quoted.drop(NOT_SCORED).sort("question_id", "evidence", "alternative", "occurrence")
    return digest("gold", kept.sort("question_id").write_json(), ordered.write_json())


def _locate(
    questions: Iterable[GoldQuestion], documents: pl.DataFrame, before: pl.DataFrame | None
) -> _Now:
    quotes: dict[str, set[Quote]] = {}
    for question in questions:
        for quote in (quote for slot in question.evidence for quote in slot):
            quotes.setdefault(quote.doc_id, set()).add(quote)
    now = _Now(last=_last_passages(before))
    for doc_id, text, status in (
        documents.filter(pl.col("doc_id").is_in(list(quotes)))
        .select("doc_id", "text", "status")
        .iter_rows()
    ):
        now.status[doc_id] = status
        if status in READABLE:
            now.located.update(_in_text(text, quotes[doc_id], now.last))
    return now


def _in_text(
    text: str, quotes: Iterable[Quote], last: Mapping[tuple[str, str], str]
) -> Iterator[tuple[Quote, _Located]]:
    folded, words = FoldedText(text), Words(text)
    for quote in quotes:
        spans = folded.locate(quote.quote)
        places = [
            (number, start, end, passage_around(text, start, end))
            for number, (start, end) in enumerate(spans, start=1)
            if quote.occurrence in (None, number)
        ]
        passage = None if places else last.get((quote.doc_id, quote.quote))
        diff = None if spans else words.diff(passage or quote.quote)
        yield quote, _Located(places, len(spans), passage, diff)


def _last_passages(before: pl.DataFrame | None) -> dict[tuple[str, str], str]:
    """By document and quote, the passage of its first occurrence."""
    if before is None or "passage" not in before.columns:
        return {}
    known = before.filter(pl.col("passage").is_not_null()).sort("occurrence", descending=True)
    return {(d, q): passage for d, q, passage in known.select("doc_id", "quote", "passage").rows()}


def _rows(quote: Quote, now: _Now) -> list[dict[str, object]]:
    located = now.located.get(quote)
    if located is None:
        missing, passage = "missing_document", now.last.get((quote.doc_id, quote.quote))
    else:
        missing, passage = "missing_quote", located.passage
    if located is None or not located.places:
        row = {"occurrence": 0, "start": None, "end": None, "status": missing}
        return [{**row, "passage": passage, "diff": located.diff if located else None}]
    status = "found" if len(located.places) == 1 else "ambiguous"
    return [
        {"occurrence": occurrence, "start": start, "end": end, "status": status}
        | {"passage": passage, "diff": None}
        for occurrence, start, end, passage in located.places
    ]


def _slot_problem(slot: Slot, now: _Now) -> str | None:
    """Why no alternative of a slot is found."""
    found = [now.problem(quote) for quote in slot]
    problems = [problem for problem in found if problem]
    if len(problems) < len(slot):
        return None
    if len(slot) == 1:
        return problems[0]
    return f"none of {len(slot)} alternatives ({', '.join(problems)})"


def _status(question: GoldQuestion, problems: Sequence[str]) -> str:
    if question.status == "draft":
        return "draft"
    if not question.answerable:
        return "unanswerable"
    return "stale" if problems else "active"
