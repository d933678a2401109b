from pathlib import Path

import pytest

from chunking_assets.errors import CorpusError
from evals.gold_questions.load import GoldQuestion, Quote, load_questions

ANSWERABLE = """
questions:
  - id: notice-period
    question: What is the notice period?
    answer: 30 days.
    language: en
    tags: [contract, exact]
    evidence:
      - {doc_id: handbook/contract.md, quote: 30 days written notice}
"""


def write(folder: Path, text: str, name: str = "questions.yaml") -> Path:
    (folder / name).write_text(text, encoding="utf-8")
    return folder / name


def refused(folder: Path, text: str) -> str:
    with pytest.raises(CorpusError) as caught:
        load_questions([write(folder, text)], folder)
    return str(caught.value)


def test_a_question_is_read_with_its_file_relative_to_the_project(tmp_path: Path) -> None:
    assert load_questions([write(tmp_path, ANSWERABLE)], tmp_path) == [
        GoldQuestion(
            question_id="notice-period",
            question="What is the notice period?",
            answer="30 days.",
            language="en",
            tags=("contract", "exact"),
            answerable=True,
            evidence=((Quote("handbook/contract.md", "30 days written notice"),),),
            file="questions.yaml",
        )
    ]


def test_an_unanswerable_question_needs_neither_answer_nor_evidence(tmp_path: Path) -> None:
    text = "questions: [{id: q, question: Who, language: en, answerable: false}]"
    (question,) = load_questions([write(tmp_path, text)], tmp_path)
    assert (question.answer, question.evidence, question.answerable) == ("", (), False)


def test_questions_keep_the_order_of_files_and_of_entries(tmp_path: Path) -> None:
    entry = "{{id: {}, question: Who, language: en, answerable: false}}"
    files = [
        write(tmp_path, f"questions: [{', '.join(entry.format(i) for i in ids)}]", name)
        for name, ids in (("b.yaml", ["z", "a"]), ("a.yaml", ["m"]))
    ]
    assert [q.question_id for q in load_questions(files, tmp_path)] == ["z", "a", "m"]


def test_doc_ids_are_composed_as_the_listing_composes_them(tmp_path: Path) -> None:
    text = ANSWERABLE.replace("contract.md", "contrat\u0065\u0301.md")
    (question,) = load_questions([write(tmp_path, text)], tmp_path)
    assert question.evidence[0][0].doc_id == "handbook/contrat\u00e9.md"


def test_an_id_used_in_two_files_names_both(tmp_path: Path) -> None:
    files = [write(tmp_path, ANSWERABLE, name) for name in ("one.yaml", "two.yaml")]
    with pytest.raises(CorpusError, match=r"two.yaml: question 'notice-period'.*in one.yaml"):
        load_questions(files, tmp_path)


@pytest.mark.parametrize(
    ("written", "instead_of", "said"),
    [
        ("langauge: en", "language: en", "langauge: unknown key"),
        ("", "    language: en\n", "language: is missing"),
        ("language: no", "language: en", "language: Input should be a valid string (given: False)"),
        ("question: ' '", "question: What is the notice period?", "question: "),
        ("quote: ' '", "quote: 30 days written notice", "evidence.0.quote: "),
        ("qoute: x", "quote: 30 days written notice", "evidence.0.qoute: unknown key"),
        ("", "doc_id: handbook/contract.md, ", "evidence.0.doc_id: is missing"),
        ("answerable: false\n    tags: []", "tags: [contract, exact]", "but has evidence"),
    ],
)
def test_a_mistake_names_the_file_the_question_and_the_key(
    tmp_path: Path, written: str, instead_of: str, said: str
) -> None:
    assert instead_of in ANSWERABLE
    message = refused(tmp_path, ANSWERABLE.replace(instead_of, written))
    assert message.startswith("questions.yaml: question 'notice-period': ")
    assert said in message


def test_an_answerable_question_without_evidence_is_refused_with_the_cure(tmp_path: Path) -> None:
    message = refused(tmp_path, "questions: [{id: q, question: Who, language: en}]")
    assert "question 'q': has no evidence" in message
    assert "answerable: false" in message


def test_a_question_without_an_id_is_named_by_its_place(tmp_path: Path) -> None:
    message = refused(tmp_path, "questions: [{question: Who, language: en}]")
    assert "question number 1: id: is missing" in message


def test_an_id_that_yaml_reads_as_a_number_is_to_be_quoted(tmp_path: Path) -> None:
    message = refused(tmp_path, ANSWERABLE.replace("notice-period", "12"))
    assert "given: 12" in message
    assert "Put the value in quotes" in message


@pytest.mark.parametrize("text", ["", "[]", "question: []", "questions: {}", "questions: []\nx: 1"])
def test_a_file_that_is_not_one_list_of_questions_is_refused(tmp_path: Path, text: str) -> None:
    assert "is not one list of questions" in refused(tmp_path, text)


def test_broken_yaml_is_refused_with_its_line(tmp_path: Path) -> None:
    assert "questions.yaml: line 2" in refused(tmp_path, "questions:\n  - {id: [}\n")


def test_a_key_said_twice_is_refused(tmp_path: Path) -> None:
    text = ANSWERABLE.replace("answer: 30 days.", "answer: 30 days.\n    answer: 60 days.")
    assert "duplicate name 'answer'" in refused(tmp_path, text)


def test_a_file_that_is_not_there_is_one_error_with_the_cure(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match=r"gone.yaml: \(file\): cannot be read"):
        load_questions([tmp_path / "gone.yaml"], tmp_path)


def test_bytes_that_are_not_text_are_one_error(tmp_path: Path) -> None:
    (tmp_path / "bad.yaml").write_bytes(b"questions: \xff\xfe\x80")
    with pytest.raises(CorpusError, match=r"bad.yaml"):
        load_questions([tmp_path / "bad.yaml"], tmp_path)


ALTERNATIVES = """
questions:
  - id: q
    question: Who
    language: en
    evidence:
      - any_of:
          - {doc_id: a/x.md, quote: one}
          - {doc_id: a/y.md, quote: two, occurrence: 3}
"""


def test_alternatives_share_a_slot(tmp_path: Path) -> None:
    (question,) = load_questions([write(tmp_path, ALTERNATIVES)])
    assert question.evidence == ((Quote("a/x.md", "one"), Quote("a/y.md", "two", 3)),)


@pytest.mark.parametrize(
    ("written", "instead_of", "said"),
    [
        ("", "          - {doc_id: a/x.md, quote: one}\n", "evidence.0.any_of: List should have"),
        ("qoute: one", "quote: one", "evidence.0.any_of.0.qoute: unknown key"),
        ("doc_id: a/z.md\n        any_of:", "any_of:", "evidence.0.doc_id: stands beside any_of"),
        ("occurrence: 0", "occurrence: 3", "evidence.0.any_of.1.occurrence: "),
        (
            "{doc_id: a/x.md, quote: one}",
            "{doc_id: a/y.md, quote: two, occurrence: 3}",
            "evidence.0.any_of.1: is said twice",
        ),
    ],
)
def test_a_mistake_in_alternatives_names_its_key(
    tmp_path: Path, written: str, instead_of: str, said: str
) -> None:
    assert instead_of in ALTERNATIVES
    message = refused(tmp_path, ALTERNATIVES.replace(instead_of, written, 1))
    assert message.startswith("questions.yaml: question 'q': ")
    assert said in message


def test_a_question_is_approved_unless_it_says_draft(tmp_path: Path) -> None:
    draft = ANSWERABLE.replace("answer: 30 days.", "status: draft")
    (approved,) = load_questions([write(tmp_path, ANSWERABLE, "a.yaml")])
    (drafted,) = load_questions([write(tmp_path, draft, "b.yaml")])
    assert (approved.status, drafted.status) == ("approved", "draft")
    assert "status: Input should be 'draft' or 'approved'" in refused(
        tmp_path, draft.replace("draft", "done")
    )
