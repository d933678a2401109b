"""Quotes turned into spans of the documents as they are now, and what that says of a question.

Spans are derived anew from the canonical text, never stored with the question: an edit elsewhere
moves them, an edit of the evidence makes the question stale. A stale question is reported and left
out of the scores; only a person can say what its evidence has become.
"""

from collections.abc import Iterable, Mapping

import polars as pl

from chunking_assets.keys import digest
from evals.gold_questions.load import GoldQuestion, Quote
from evals.gold_questions.locate import FoldedText

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
    "doc_id": pl.String,
    "quote": pl.String,
    "occurrence": pl.Int64,
    "start": pl.Int64,
    "end": pl.Int64,
    "status": pl.String,
}


def resolve(
    questions: Iterable[GoldQuestion], documents: pl.DataFrame
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The `gold_questions` and `gold_evidence` rows for the documents as they are now.

    `documents` has `doc_id`, `text` and `status`; only documents with status `ok` have text to
    quote. A question is `active` (every quote found), `stale` (with the reason) or `unanswerable`.
    `gold_evidence` has one row per occurrence, both numbered from 1: `found`, `ambiguous` (several
    occurrences, any of them counts), or one row with occurrence 0 and no span: `missing_quote`,
    `missing_document`.
    """
    questions = list(questions)
    quotes: dict[str, set[Quote]] = {}
    for quote in (quote for question in questions for quote in question.evidence):
        quotes.setdefault(quote.doc_id, set()).add(quote)
    document_status: dict[str, str] = {}
    located: dict[Quote, list[tuple[int, int]]] = {}
    for doc_id, text, status in (
        documents.filter(pl.col("doc_id").is_in(list(quotes)))
        .select("doc_id", "text", "status")
        .iter_rows()
    ):
        document_status[doc_id] = status
        if status == "ok":
            folded = FoldedText(text)
            located |= {quote: folded.locate(quote.quote) for quote in quotes[doc_id]}

    question_rows, evidence_rows = [], []
    for question in questions:
        problems = []
        for number, quote in enumerate(question.evidence, start=1):
            evidence_rows += _evidence_rows(question.question_id, number, quote, located)
            if not located.get(quote):
                problems.append(f"evidence {number}: {_problem(quote.doc_id, document_status)}")
        found = "stale" if problems else "active"
        question_rows.append(
            {
                "question_id": question.question_id,
                "question": question.question,
                "answer": question.answer,
                "language": question.language,
                "tags": list(question.tags),
                "answerable": question.answerable,
                "status": found if question.answerable else "unanswerable",
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
        evidence.join(active.select("question_id"), on="question_id", how="semi")
        .select("question_id", "evidence", "doc_id", "start", "end")
        .sort(pl.all())
    )
    return digest("golden", asked.rows(), spans.rows())


def _evidence_rows(
    question_id: str, number: int, quote: Quote, located: Mapping[Quote, list[tuple[int, int]]]
) -> list[dict[str, object]]:
    row = {
        "question_id": question_id,
        "evidence": number,
        "doc_id": quote.doc_id,
        "quote": quote.quote,
    }
    spans = located.get(quote)
    if not spans:
        status = "missing_document" if spans is None else "missing_quote"
        return [{**row, "occurrence": 0, "start": None, "end": None, "status": status}]
    status = "found" if len(spans) == 1 else "ambiguous"
    return [
        {**row, "occurrence": occurrence, "start": start, "end": end, "status": status}
        for occurrence, (start, end) in enumerate(spans, start=1)
    ]


def _problem(doc_id: str, document_status: Mapping[str, str]) -> str:
    if doc_id not in document_status:
        return f"no document {doc_id}"
    if document_status[doc_id] != "ok":
        return f"document {doc_id} has no text (status {document_status[doc_id]})"
    return f"quote not found in {doc_id}"
