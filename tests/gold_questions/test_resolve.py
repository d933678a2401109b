import polars as pl
import pytest

from evals.gold_questions.load import GoldQuestion, Quote
from evals.gold_questions.resolve import (
    EVIDENCE_SCHEMA,
    QUESTIONS_SCHEMA,
    golden_version,
    resolve,
)

TEXT = "Fees. The fee is 2 %. Later the fee is 3 %. The fee is 2 %."


def question(*quotes: tuple[str, str], question_id: str = "q", answerable: bool = True):
    return GoldQuestion(
        question_id=question_id,
        question="How much?",
        answer="2 %",
        language="en",
        tags=("fees",),
        answerable=answerable,
        evidence=tuple(Quote(doc_id, quote) for doc_id, quote in quotes),
        file="questions.yaml",
    )


def documents(**texts: str | None) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "doc_id": list(texts),
            "text": [text or "" for text in texts.values()],
            "status": ["failed" if text is None else "ok" for text in texts.values()],
        },
        schema={"doc_id": pl.String, "text": pl.String, "status": pl.String},
    )


def test_a_quote_found_once_is_one_row_with_its_span() -> None:
    questions, evidence = resolve([question(("a", "later the fee is 3 %"))], documents(a=TEXT))
    assert questions.row(0, named=True) == {
        "question_id": "q",
        "question": "How much?",
        "answer": "2 %",
        "language": "en",
        "tags": ["fees"],
        "answerable": True,
        "status": "active",
        "reason": None,
        "file": "questions.yaml",
        "n_evidence": 1,
    }
    (row,) = evidence.rows(named=True)
    assert (row["evidence"], row["occurrence"], row["status"]) == (1, 1, "found")
    assert TEXT[row["start"] : row["end"]] == "Later the fee is 3 %"


def test_several_occurrences_are_ambiguous_rows_of_one_active_question() -> None:
    questions, evidence = resolve([question(("a", "the fee is 2 %"))], documents(a=TEXT))
    assert questions["status"].to_list() == ["active"]
    assert evidence["occurrence"].to_list() == [1, 2]
    assert evidence["status"].to_list() == ["ambiguous", "ambiguous"]
    assert [TEXT[s:e] for s, e in evidence.select("start", "end").iter_rows()] == [
        "The fee is 2 %"
    ] * 2


@pytest.mark.parametrize(
    ("doc_id", "status", "reason"),
    [
        ("a", "missing_quote", "evidence 2: quote not found in a"),
        ("gone", "missing_document", "evidence 2: no document gone"),
        ("b", "missing_document", "evidence 2: document b has no text (status failed)"),
    ],
)
def test_one_lost_quote_makes_the_question_stale_with_the_reason(
    doc_id: str, status: str, reason: str
) -> None:
    questions, evidence = resolve(
        [question(("a", "Fees"), (doc_id, "the fee is 9 %"))], documents(a=TEXT, b=None)
    )
    assert questions.select("status", "reason").row(0) == ("stale", reason)
    assert evidence["status"].to_list() == ["found", status]
    assert evidence.select("occurrence", "start", "end").row(1) == (0, None, None)


def test_an_unanswerable_question_is_neither_active_nor_stale() -> None:
    questions, evidence = resolve([question(answerable=False)], documents(a=TEXT))
    assert questions.select("status", "reason", "n_evidence").row(0) == ("unanswerable", None, 0)
    assert evidence.is_empty()


def test_no_questions_and_no_documents_give_empty_tables_of_the_same_shape() -> None:
    questions, evidence = resolve([], documents())
    assert dict(questions.schema) == QUESTIONS_SCHEMA
    assert dict(evidence.schema) == EVIDENCE_SCHEMA


def test_an_edit_elsewhere_moves_the_span_and_keeps_the_question_active() -> None:
    asked = [question(("a", "later the fee is 3 %"))]
    (before,), (after,) = (
        resolve(asked, documents(a=text))[1]["start"].to_list() for text in (TEXT, "New. " + TEXT)
    )
    assert after == before + len("New. ")


def test_the_same_quote_asked_for_by_two_questions_is_located_for_both() -> None:
    asked = [question(("a", "Fees"), question_id=name) for name in ("one", "two")]
    questions, evidence = resolve(asked, documents(a=TEXT))
    assert questions["status"].to_list() == ["active", "active"]
    assert evidence["question_id"].to_list() == ["one", "two"]


def version(text: str, *asked: GoldQuestion) -> str:
    return golden_version(*resolve(asked, documents(a=text)))


def test_the_golden_version_changes_with_spans_and_questions_but_not_with_order() -> None:
    one, two = (question(("a", quote), question_id=quote) for quote in ("Fees", "Later"))
    same = version(TEXT, one, two)
    assert version(TEXT, two, one) == same
    assert version(TEXT + " More.", one, two) == same
    assert version("New. " + TEXT, one, two) != same
    assert version(TEXT, one) != same


def test_a_question_that_went_stale_leaves_the_golden_version() -> None:
    one, two = (question(("a", quote), question_id=quote) for quote in ("Fees", "Later"))
    text = TEXT.replace("Later", "Today")
    assert version(text, one, two) == version(text, one) != version(TEXT, one, two)
