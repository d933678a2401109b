from unicodedata import normalize

import pytest
import yaml
from measured_corpus import SUBJECTS, MeasuredCorpus, document, question, write_measured_corpus
from small_corpus import write_document

from evals.gold_questions.__main__ import LISTED, main
from evals.gold_questions.check import other_language


@pytest.fixture
def file(tmp_path, monkeypatch):
    monkeypatch.setenv("CORPUS_CONFIG", str(write_measured_corpus(tmp_path)))
    return tmp_path / "gold.yaml"


@pytest.fixture
def checked(file, capsys):
    """Checks these questions: the exit status, and the lines of each kind."""

    def check(*entries, arguments=()):
        file.write_text(yaml.safe_dump({"questions": list(entries)}))
        status = main(arguments)
        printed = capsys.readouterr()
        lines = [*printed.err.splitlines(), *printed.out.splitlines()]
        return status, {
            kind: [line.removeprefix(f"{kind}: ") for line in lines if line.startswith(f"{kind}: ")]
            for kind in ("error", "warning", "note")
        }

    return check


def quoted(number, *quotes, **changes):
    evidence = [{"doc_id": d, "quote": q} for d, q in quotes]
    return question(number, evidence=evidence, **changes)


def test_right_questions_are_counted(file, capsys):
    entries = [*(question(n) for n in range(3)), question(4, status="draft")]
    entries.append(question(5, answerable=False, evidence=[], answer=""))
    file.write_text(yaml.safe_dump({"questions": entries}))
    assert main([]) == 0
    printed = capsys.readouterr()
    assert printed.out == "  questions   5 (1 of them unanswerable, 1 are drafts)\n"
    assert printed.err == ""


def test_a_mistake_is_one_line_with_its_cure(file, capsys):
    file.write_text(yaml.safe_dump({"questions": [question(0, answer=1924)]}))
    assert main([]) == 1
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "gold.yaml: question 'q0': answer: " in error
    assert "Put the value in quotes." in error


def test_everything_that_is_wrong_is_said_at_once(checked):
    status, lines = checked(
        question(0, answer=1924), question(1), question(1), quoted(2, ("docs/2.md", "not there"))
    )
    assert status == 1
    assert [line.split(": ")[1] for line in lines["error"]] == [
        "question 'q0'",
        "question 'q1'",
        "question 'q2'",
    ]


def test_a_quote_that_is_not_found_shows_what_is_most_like_it(checked):
    lost = SUBJECTS[0].replace("twelve", "nine")
    status, lines = checked(quoted(0, ("docs/0.md", lost)))
    assert status == 1
    assert lines["error"] == [
        "gold.yaml: question 'q0': evidence.0.quote: not found in docs/0.md. Quote the document's "
        "own words, whole ones. What is most like it: refunds take [-nine-]{+twelve+} working days "
        "to arrive at the bank of the buyer"
    ]


def test_a_document_that_is_not_there_is_an_error_with_the_nearest(checked):
    status, lines = checked(quoted(0, ("docs/0.mdx", "anything")))
    assert status == 1
    assert "evidence.0.doc_id: no document docs/0.mdx. The nearest is docs/" in lines["error"][0]


def test_a_document_without_text_is_an_error(checked, file):
    (file.parent / "docs" / "scan.png").write_bytes(b"\x89PNG\r\n\x1a\n\x00")
    status, lines = checked(quoted(0, ("docs/scan.png", "anything")))
    assert status == 1
    assert "docs/scan.png has no text (status unsupported)" in lines["error"][0]


def test_a_quote_that_stands_several_times_is_a_warning_until_it_says_which(checked):
    twice = "adds nothing new here"
    status, lines = checked(quoted(0, ("docs/0.md", twice)))
    assert status == 0
    assert "evidence.0.quote: stands 4 times in docs/0.md" in lines["warning"][0]
    assert "`occurrence: 1` to 4" in lines["warning"][0]
    pinned = [{"doc_id": "docs/0.md", "quote": twice, "occurrence": 4}]
    assert checked(question(0, evidence=pinned)) == (0, {"error": [], "warning": [], "note": []})


def test_an_occurrence_that_is_not_there_is_an_error(checked):
    evidence = [{"doc_id": "docs/0.md", "quote": "adds nothing new here", "occurrence": 5}]
    status, lines = checked(question(0, evidence=evidence))
    assert status == 1
    assert "evidence.0: does not stand 5 times in docs/0.md" in lines["error"][0]


def test_a_lost_alternative_is_a_warning_and_losing_all_is_an_error(checked):
    def either(*quotes):
        return question(
            0, evidence=[{"any_of": [{"doc_id": "docs/0.md", "quote": q} for q in quotes]}]
        )

    status, lines = checked(either(SUBJECTS[0], "nowhere"))
    assert (status, lines["error"]) == (0, [])
    assert "evidence.0.any_of.1.quote: not found" in lines["warning"][0]
    status, lines = checked(either("no", "nowhere"))
    assert (status, len(lines["error"])) == (1, 2)


def test_the_same_words_asked_twice_are_a_warning_that_names_the_first(checked):
    asked = question(0)["question"]
    status, lines = checked(question(0), question(1, question=f"  {asked.upper()}!"))
    assert status == 0
    assert (
        "question 'q1': question: the same words as 'q0' in gold.yaml. Ask it once"
        in (lines["warning"][0])
    )


def test_letters_encoded_otherwise_are_the_same_words(checked):
    _, lines = checked(
        question(0, question="Is the café open?"),
        question(1, question=normalize("NFD", "Is the café open?")),
        question(2, question="Is it the ＦＥＥ of 2 %?", answer="The fee of 2 %."),
    )
    same, holding = lines["warning"]
    assert "question 'q1': question: the same words as 'q0'" in same
    assert "question 'q2': question: contains its answer" in holding


@pytest.mark.parametrize(
    ("asked", "answer", "said"),
    [
        ("退款需要七个工作日吗?", "七个工作日", "contains its answer"),
        ("Is it twelve working days?", "Twelve working days.", "contains its answer"),
        ("Is it 12 days?", "12", None),
        ("Is there no fee?", "No", None),
        ("Which days are they?", "Twelve working days.", None),
        (f"Why is it that {SUBJECTS[0]}?", "Banks.", "contains the quote of evidence.0"),
    ],
)
def test_a_question_that_contains_its_answer_is_a_warning(checked, asked, answer, said):
    status, lines = checked(question(0, question=asked, answer=answer))
    assert status == 0
    assert [said in line for line in lines["warning"]] == ([True] if said else [])


def test_a_question_may_name_what_a_quote_of_a_word_or_two_names(checked):
    asked = "How long is it for an order in euros, by working days?"
    quotes = [("docs/0.md", "working days"), ("docs/0.md", SUBJECTS[0])]
    assert checked(quoted(0, *quotes, question=asked))[1]["warning"] == []


PORTUGUESE = "Quanto tempo demora até o reembolso chegar à conta bancária do comprador, em dias?"


@pytest.mark.parametrize(
    ("language", "is_said"), [("en", True), ("pt", False), ("pt-BR", False), ("por", False)]
)
def test_words_clearly_in_another_language_are_a_warning(checked, language, is_said):
    _, lines = checked(question(0, question=PORTUGUESE, answer="Doze", language=language))
    said = "language: en is declared, the words look like pt. Correct the tag."
    assert [said in line for line in lines["warning"]] == ([True] if is_said else [])


def test_a_few_words_say_nothing_of_their_language():
    assert other_language("en", "Quanto custa?", "Quanto custa? Nada.") is None


def test_norwegian_is_not_another_language_than_bokmal():
    text = "Hvor lang tid tar det før pengene er tilbake på kontoen til kunden etter et kjøp?"
    assert [other_language(tag, text) for tag in ("no", "nb", "nn", "da")] == [None] * 3 + ["no"]


def test_questions_that_no_single_document_answers_are_named_and_allowed(checked):
    both = (("docs/0.md", SUBJECTS[0]), ("docs/1.md", SUBJECTS[1]))
    either = [{"any_of": [{"doc_id": d, "quote": q} for d, q in both]}]
    one_has_all = [*either, {"doc_id": "docs/0.md", "quote": "Page 0"}]
    status, lines = checked(
        quoted(0, *both), question(1, evidence=either), question(2, evidence=one_has_all)
    )
    assert status == 0
    assert lines["note"] == ["no single document answers q0: retrieval needs several."]


def test_drafts_are_checked_like_the_others(checked):
    status, lines = checked(quoted(0, ("docs/0.md", "not there"), status="draft"))
    assert (status, len(lines["error"])) == (1, 1)


def test_much_of_a_kind_is_cut_unless_all_is_asked_for(checked):
    entries = [
        quoted(0, ("docs/0.md", "adds nothing new here"), id=f"q{n}", question=f"What is fact {n}?")
        for n in range(LISTED + 3)
    ]
    _, lines = checked(*entries)
    assert len(lines["warning"]) == LISTED + 1
    assert "3 more (ambiguous); --all lists them" in lines["warning"][-1]
    _, lines = checked(*entries, arguments=["check", "--all"])
    assert len(lines["warning"]) == LISTED + 3


def test_files_are_read_as_they_are_now_whatever_was_built(checked, file):
    corpus = MeasuredCorpus(file.with_name("corpus.yaml"))
    corpus.parse()
    assert checked(question(3))[0] == 0
    write_document(file.parent, "3.md", "Something else.")
    assert checked(question(3))[0] == 1
    write_document(file.parent, "3.md", document(3))
    assert checked(question(3))[0] == 0


def test_a_document_parsed_already_is_not_parsed_again(checked, file, monkeypatch):
    MeasuredCorpus(file.with_name("corpus.yaml")).parse()
    monkeypatch.setattr("evals.gold_questions.documents.parse_document", None)
    assert checked(question(3))[0] == 0


def test_nothing_is_written(checked, file):
    before = sorted(file.parent.rglob("*"))
    checked(question(0), quoted(1, ("docs/1.md", "not there")))
    assert sorted(file.parent.rglob("*")) == before
