from dataclasses import replace

import polars as pl
import pytest

from evals.gold_questions.load import GoldQuestion, Quote
from evals.gold_questions.resolve import (
    EVIDENCE_SCHEMA,
    QUESTIONS_SCHEMA,
    golden_version,
    resolve,
    scored_content,
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
        evidence=tuple((Quote(doc_id, quote),) for doc_id, quote in quotes),
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


def test_what_could_be_read_of_a_document_can_be_quoted() -> None:
    partial = documents(a=TEXT).with_columns(status=pl.lit("partial"))
    questions, _ = resolve([question(("a", "Fees"))], partial)
    assert questions["status"].item() == "active"


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
    assert version(TEXT, one, replace(two, answer="3 %")) != same


def test_a_question_that_went_stale_leaves_the_golden_version() -> None:
    one, two = (question(("a", quote), question_id=quote) for quote in ("Fees", "Later"))
    text = TEXT.replace("Later", "Today")
    assert version(text, one, two) == version(text, one) != version(TEXT, one, two)


def of_slots(*slots: tuple[Quote, ...], **changes) -> GoldQuestion:
    return replace(question(), evidence=slots, **changes)


def test_one_alternative_that_is_found_is_enough() -> None:
    asked = of_slots((Quote("a", "the fee is 9 %"), Quote("b", "Fees")), (Quote("a", "Later"),))
    questions, evidence = resolve([asked], documents(a=TEXT, b="Fees."))
    assert questions.select("status", "reason", "n_evidence").row(0) == ("active", None, 2)
    assert evidence.select("evidence", "alternative", "doc_id", "status").rows() == [
        (1, 1, "a", "missing_quote"),
        (1, 2, "b", "found"),
        (2, 1, "a", "found"),
    ]


def test_a_question_without_any_alternative_says_what_became_of_each() -> None:
    asked = of_slots((Quote("a", "the fee is 9 %"), Quote("gone", "Fees")))
    questions, _ = resolve([asked], documents(a=TEXT))
    assert questions["reason"].item() == (
        "evidence 1: none of 2 alternatives (quote not found in a, no document gone)"
    )


def test_an_occurrence_that_is_named_is_the_only_place() -> None:
    asked = of_slots((Quote("a", "the fee is 2 %", occurrence=2),))
    _, evidence = resolve([asked], documents(a=TEXT))
    (row,) = evidence.rows(named=True)
    assert (row["occurrence"], row["status"]) == (2, "found")
    assert row["start"] == TEXT.rindex("The fee")


def test_an_occurrence_that_is_not_there_makes_its_question_stale() -> None:
    asked = of_slots((Quote("a", "the fee is 2 %", occurrence=3),))
    questions, evidence = resolve([asked], documents(a=TEXT))
    assert evidence.select("occurrence", "status").row(0) == (0, "missing_quote")
    assert questions["reason"].item() == (
        "evidence 1: quote found only 2 times in a, and occurrence 3 is meant"
    )


def test_a_draft_is_located_and_never_active() -> None:
    found = of_slots((Quote("a", "Fees"),), status="draft")
    lost = of_slots((Quote("a", "the fee is 9 %"),), status="draft", question_id="lost")
    questions, evidence = resolve([found, lost], documents(a=TEXT))
    assert questions.select("status", "reason").rows() == [
        ("draft", None),
        ("draft", "evidence 1: quote not found in a"),
    ]
    assert evidence["status"].to_list() == ["found", "missing_quote"]
    approved = question(question_id="other")
    alone = resolve([approved], documents(a=TEXT))
    assert golden_version(*resolve([found, approved], documents(a=TEXT))) == golden_version(*alone)
    assert scored_content(*resolve([found, approved], documents(a=TEXT))) == scored_content(*alone)


def test_a_found_quote_keeps_the_text_around_it() -> None:
    _, evidence = resolve([question(("a", "Later the fee is 3 %"))], documents(a=TEXT))
    assert evidence.select("passage", "diff").row(0) == (TEXT, None)


def test_what_became_of_a_lost_passage_is_told_from_its_surroundings() -> None:
    asked = [question(("a", "Later the fee is 3 %"))]
    _, before = resolve(asked, documents(a=TEXT))
    edited = "A new beginning. " + TEXT.replace("Later the fee is 3 %", "From May on it is 4 %")
    _, after = resolve(asked, documents(a=edited), before)
    assert after["passage"].item() == TEXT
    assert after["diff"].item() == (
        "Fees. The fee is 2 %. [-Later the fee-]{+From May on it+} is [-3-]{+4+} %. The fee is 2 %."
    )
    _, much_later = resolve(asked, documents(a=edited.replace("4 %", "5 %")), after)
    assert "[-3-]{+5+}" in much_later["diff"].item()


def test_a_passage_is_remembered_while_its_document_is_gone() -> None:
    asked = [question(("a", "Later the fee is 3 %"))]
    _, before = resolve(asked, documents(a=TEXT))
    _, gone = resolve(asked, documents(), before)
    assert gone.select("status", "passage", "diff").row(0) == ("missing_document", TEXT, None)
    _, back = resolve(asked, documents(a=TEXT.replace("Later", "Now")), gone)
    assert "[-Later-]{+Now+} the fee is 3 %" in back["diff"].item()


def test_a_quote_that_was_never_found_is_compared_itself() -> None:
    _, evidence = resolve([question(("a", "later the fee was 3 %"))], documents(a=TEXT))
    assert evidence.select("passage", "diff").row(0) == (
        None,
        "Later the fee [-was-]{+is+} 3 %",
    )


def test_moving_evidence_into_alternatives_is_another_measurement() -> None:
    one, other = Quote("a", "Fees"), Quote("a", "Later")
    apart, together = of_slots((one,), (other,)), of_slots((one, other))
    ambiguous = of_slots((Quote("a", "the fee is 2 %"),))
    either = of_slots(
        (Quote("a", "the fee is 2 %", occurrence=1), Quote("a", "the fee is 2 %", occurrence=2))
    )
    versions = [version(TEXT, asked) for asked in (apart, together, ambiguous, either)]
    assert len(set(versions)) == 4


def test_what_only_people_read_changes_no_score() -> None:
    asked = [question(("a", "Later the fee is 3 %"))]
    frames = [resolve(asked, documents(a=text)) for text in (TEXT, TEXT + " More.")]
    assert frames[0][1]["passage"].item() != frames[1][1]["passage"].item()
    assert scored_content(*frames[0]) == scored_content(*frames[1])
