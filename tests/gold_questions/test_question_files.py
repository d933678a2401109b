"""CSV and JSON lines say what the YAML says, and their mistakes name the line."""

import json

import pytest
import yaml

from chunking_assets.errors import CorpusError
from evals.gold_questions.load import GoldQuestionError, Quote, load_questions, read_questions
from evals.gold_questions.write import write_questions

ENTRIES = [
    {
        "id": "notice",
        "question": "What, in days, is the notice period?",
        "answer": "30 days.",
        "language": "en",
        "tags": ["contract", "exact"],
        "status": "draft",
        "evidence": [
            {"doc_id": "docs/a.md", "quote": 'thirty days "written" notice', "occurrence": 2},
            {"any_of": [{"doc_id": "docs/a.md", "quote": "one,\ntwo"},
                        {"doc_id": "docs/b.md", "quote": "three"}]},
        ],
    },
    {"id": "moon", "question": "Is it made of cheese?", "language": "en", "answerable": False},
]  # fmt: skip
CSV = """id,question,answer,language,tags,answerable,status,evidence,doc_id,quote,occurrence
notice,"What, in days, is the notice period?",30 days.,en,contract; exact,,draft,,docs/a.md,"thirty days ""written"" notice",2
,,,,,,,2,docs/a.md,"one,
two",
,,,,,,,2,docs/b.md,three,

moon,Is it made of cheese?,,en,,false,,,,,
"""
LEAST = "id,question,language,doc_id,quote\n"


def write(folder, name, content):
    file = folder / name
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    return file


def refused(folder, name, content):
    with pytest.raises(GoldQuestionError) as caught:
        load_questions([write(folder, name, content)], folder)
    return str(caught.value)


def without_file(questions):
    return [(q.question_id, q.question, q.answer, q.language, q.tags, q.answerable, q.status,
             q.evidence) for q in questions]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("q.jsonl", "\n".join(map(json.dumps, ENTRIES))),
        ("q.csv", CSV),
        ("q.CSV", CSV.replace("\n", "\r\n").replace("one,\r\n", "one,\n")),
        ("q.csv", "\ufeff" + CSV),
        ("q.jsonl", "\ufeff" + json.dumps(ENTRIES[0]) + "\r\n\r\n" + json.dumps(ENTRIES[1])),
    ],
)
def test_every_format_says_the_same(tmp_path, name, content):
    expected = load_questions([write(tmp_path, "q.yaml", yaml.safe_dump({"questions": ENTRIES}))])
    found = load_questions([write(tmp_path, name, content)])
    assert without_file(found) == without_file(expected)
    assert found[0].evidence == (
        (Quote("docs/a.md", 'thirty days "written" notice', 2),),
        (Quote("docs/a.md", "one,\ntwo"), Quote("docs/b.md", "three")),
    )


@pytest.mark.parametrize("separator", [";", "\t"])
def test_cells_may_be_separated_as_a_spreadsheet_of_another_country_does(tmp_path, separator):
    rows = [["id", "question", "language", "answerable"], ["a", "Who, and why?", "fr", "false"]]
    content = "\n".join(separator.join(row) for row in rows)
    (question,) = load_questions([write(tmp_path, "q.csv", content)])
    assert question.question == "Who, and why?"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (LEAST.replace("quote", "qoute"), "line 1: 'qoute' is no column. The first line names"),
        (LEAST.replace("quote", "doc_id"), "line 1: 'doc_id' stands twice"),
        ("", "line 1: has no column 'id'"),
        (LEAST + "a,Who,en,docs/a.md,x,y\n", "line 2: has 6 cells for 5 columns"),
        (LEAST + ",,,docs/a.md,x\n", "line 2: id: is missing"),
        (LEAST + "a,Who,en,d/a,x\n,Why,,d/a,y\n", "line 3: question: is said in a row without an"),
        (LEAST + "a,Who,,d/a,x\n", "line 2, question 'a': language: is missing"),
        (LEAST + "a,Who,en,d/a,\n", "line 2, question 'a': evidence.0.quote: is missing"),
        (LEAST + 'a,"Who\nis it",en,d/a,x\nb,Who,,d/a,x\n', "line 4, question 'b': language"),
        (LEAST + 'a,"Who,en,d/a,x\n', "line 2: is not CSV"),
        (b"\xff\xfeid", "(file): is not UTF-8"),
    ],
)
def test_a_mistake_in_csv_names_its_line(tmp_path, content, said):
    assert f"q.csv: {said}" in refused(tmp_path, "q.csv", content)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ('{"id": "a", "question": "Who"', "line 1: is not JSON"),
        ('\n{"id": "a", "id": "b"}', "line 2: is not JSON (duplicate name 'id')"),
        ("[1]", "line 1: entry: Input should be a valid dictionary"),
        ("null", "line 1: entry: "),
        ('{"id": "a", "langauge": "en"}', "line 1, question 'a': langauge: unknown key"),
        (b'{"id": "\xff"}', "line 1: is not JSON"),
        ("[" * 100_000, "line 1: is not JSON"),
        ('{"id": "a", "question": "\\ud800", "language": "en"}', "line 1, question 'a': question"),
    ],
)
def test_a_mistake_in_json_lines_names_its_line(tmp_path, content, said):
    assert f"q.jsonl: {said}" in refused(tmp_path, "q.jsonl", content)


def test_a_file_of_another_kind_is_refused_with_the_cure(tmp_path):
    message = refused(tmp_path, "q.xlsx", b"PK")
    assert message == (
        "q.xlsx: (file): is not a kind of file read here (.xlsx). "
        "End its name in .yaml, .yml, .csv, .jsonl."
    )


def test_every_mistake_of_every_file_is_found_in_one_reading(tmp_path):
    good = json.dumps(ENTRIES[1])
    files = [
        write(tmp_path, "a.jsonl", f"{{\n{good}\n{{}}\n{good}"),
        write(tmp_path, "b.csv", LEAST + "moon,Who,en,d/a,x\nother,Who,en,d/a,\n"),
        tmp_path / "gone.yaml",
    ]
    questions, mistakes = read_questions(files, tmp_path)
    assert [q.question_id for q in questions] == ["moon"]
    assert [(m.file, m.question) for m in mistakes] == [
        ("a.jsonl", "line 1"),
        ("a.jsonl", "line 3"),
        ("a.jsonl", "line 4, question 'moon'"),
        ("b.csv", "line 2, question 'moon'"),
        ("b.csv", "line 3, question 'other'"),
        ("gone.yaml", "(file)"),
    ]


@pytest.mark.parametrize("name", ["q.yaml", "q.jsonl"])
def test_what_is_written_is_read_again(tmp_path, name):
    asked = load_questions([write(tmp_path, "source.csv", CSV)])
    write_questions(tmp_path / name, asked, "About\nthese.")
    assert without_file(load_questions([tmp_path / name])) == without_file(asked)


@pytest.mark.parametrize("name", ["q.yaml", "q.csv"])
def test_a_file_that_is_there_or_of_another_format_is_not_written(tmp_path, name):
    write(tmp_path, "q.yaml", "mine")
    with pytest.raises(CorpusError, match="Name"):
        write_questions(tmp_path / name, [], "")
    assert (tmp_path / "q.yaml").read_text() == "mine"
