"""Other layouts become documents and questions that `check` finds nothing wrong with."""

import csv
import json

import pytest
import yaml
from small_corpus import write_corpus

from chunking_assets.errors import CorpusError
from evals.gold_questions.__main__ import main
from evals.gold_questions.import_beir import import_beir
from evals.gold_questions.import_chunking_benchmark import import_chunking_benchmark
from evals.gold_questions.import_must_contain import (
    MOST_DOCUMENTS,
    MOST_PLACES,
    shortest_stretch,
)
from evals.gold_questions.imports import file_name, question_id
from evals.gold_questions.load import Quote, load_questions

# BEIR

CORPUS = [
    {"_id": "MED-1", "title": "Fish", "text": "Fish breathe with gills.\nAll of them."},
    {"_id": "a/b", "title": "", "text": "Cats sleep sixteen hours a day.", "metadata": {}},
    {"_id": ".x", "title": "Dogs bark", "text": ""},
    {"_id": "dots", "title": "Same words", "text": "Same words"},
    {"_id": "empty", "title": "", "text": ""},
]
QUERIES = [
    {"_id": "q 1", "text": "How do fish breathe?"},
    {"_id": "q2", "text": "sleep of pets"},
    {"_id": "q3", "text": "not judged"},
    {"_id": "q4", "text": "its document is gone"},
    {"_id": "q5", "text": "its document has no words"},
    {"_id": "q6", "text": "which words are the same"},
]
JUDGED = {
    "test": "q 1\tMED-1\t2\nq 1\ta/b\t0\nq2\ta/b\t1\nq2\t.x\t1\nq4\tgone\t1\nq5\tempty\t1\n",
    "dev": "q6\tdots\t1\nq2\ta/b\t1\nunknown\tMED-1\t1\n",
}


def lines(entries):
    return "".join(json.dumps(entry) + "\n" for entry in entries)


@pytest.fixture
def beir(tmp_path):
    folder = tmp_path / "beir"
    (folder / "qrels").mkdir(parents=True)
    (folder / "corpus.jsonl").write_text(lines(CORPUS))
    (folder / "queries.jsonl").write_text(lines(QUERIES))
    for split, rows in JUDGED.items():
        (folder / "qrels" / f"{split}.tsv").write_text(f"query-id\tcorpus-id\tscore\n{rows}")
    return folder


def test_beir_documents_are_quoted_whole_and_each_relevant_one_is_needed(beir, tmp_path):
    imported = import_beir(beir, tmp_path / "pets", "pets")
    assert {q.question: q.evidence for q in imported.questions} == {
        "How do fish breathe?": (
            (Quote("pets/MED-1.txt", "Fish breathe with gills.\nAll of them."),),
        ),
        "sleep of pets": (
            (Quote("pets/a%2Fb.txt", "Cats sleep sixteen hours a day."),),
            (Quote("pets/%2Ex.txt", "Dogs bark"),),
        ),
        "which words are the same": ((Quote("pets/dots.txt", "Same words"),),),
    }
    assert (tmp_path / "pets" / "MED-1.txt").read_text() == (
        "Fish\n\nFish breathe with gills.\nAll of them."
    )
    assert imported.documents == len(CORPUS)
    assert {q.question: q.tags for q in imported.questions}["sleep of pets"] == ("dev", "test")


def test_what_beir_cannot_say_is_skipped_with_the_reason(beir, tmp_path):
    skipped = import_beir(beir, tmp_path / "pets", "pets").skipped
    assert skipped == [
        "corpus.jsonl: line 5: 'empty' has no words to quote",
        "qrels: query 'unknown': no such query",
        "qrels: query 'q4': a relevant document is missing",
        "qrels: query 'q5': a relevant document is missing",
    ]


def test_one_split_can_be_taken_alone(beir, tmp_path):
    imported = import_beir(beir, tmp_path / "pets", "pets", split="dev", language="de")
    assert {q.question for q in imported.questions} == {"sleep of pets", "which words are the same"}
    assert {q.language for q in imported.questions} == {"de"}


@pytest.mark.parametrize(
    ("file", "content", "said"),
    [
        ("corpus.jsonl", "{", r"corpus.jsonl: line 1: is not JSON"),
        ("corpus.jsonl", '{"title": "x"}', r"corpus.jsonl: line 1: _id: is missing. Add it"),
        ("corpus.jsonl", lines([CORPUS[0], CORPUS[0]]), "line 2: _id: 'MED-1' is used twice"),
        ("queries.jsonl", '{"_id": "q", "text": 1}', r"queries.jsonl: line 1: text: "),
        ("qrels/test.tsv", "a\tb\t1\nc\td\n", "test.tsv: line 2: is not query-id, corpus-id"),
        ("qrels/test.tsv", b"\xff\xfe", "test.tsv is not text"),
        ("corpus.jsonl", None, "corpus.jsonl cannot be read"),
    ],
)
def test_a_damaged_beir_file_is_named(beir, tmp_path, file, content, said):
    if content is None:
        (beir / file).unlink()
    else:
        (beir / file).write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(CorpusError, match=said):
        import_beir(beir, tmp_path / "pets", "pets")


def test_documents_are_never_put_among_others(beir, tmp_path):
    (tmp_path / "pets").mkdir()
    (tmp_path / "pets" / "mine.md").write_text("mine")
    with pytest.raises(CorpusError, match=r"pets is not empty. Name a new folder"):
        import_beir(beir, tmp_path / "pets", "pets")
    assert [f.name for f in (tmp_path / "pets").iterdir()] == ["mine.md"]


@pytest.mark.parametrize("named", [question_id, file_name])
def test_names_of_others_stay_apart(named):
    names = ["a/b", "a-b", "a b", "a%b", "x" * 300, "x" * 301, ".", "..", "é", "e\u0301"]
    given = [named(name) for name in names]
    assert len(set(given)) == len(names)
    assert all(len(name) <= 128 and "/" not in name for name in given)
    assert not any(file_name(name).startswith(".") for name in names)


# The chunking benchmark

TEXT = "# Fees\n\nA payment costs 1,400 cents.\n\nA payment costs 1,400 cents.\n\nIt arrives.\n"


@pytest.fixture
def benchmark(tmp_path):
    folder = tmp_path / "benchmark"
    (folder / "corpora").mkdir(parents=True)
    (folder / "corpora" / "help.md").write_text(TEXT)
    return folder


def write_rows(folder, *rows):
    with (folder / "questions_df.csv").open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["question", "references", "corpus_id"])
        for question, corpus, *excerpts in rows:
            spans = [
                {"content": text, "start_index": start, "end_index": start + len(text)}
                for text, start in excerpts
            ]
            table.writerow([question, json.dumps(spans), corpus])


def test_excerpts_become_quotes_that_are_found_where_they_were(benchmark, tmp_path):
    sentence = "A payment costs 1,400 cents."
    second = TEXT.rindex(sentence)
    write_rows(
        benchmark,
        ("What does it cost?", "help", (sentence, second), ("It arrives.", TEXT.index("It arr"))),
        ("How much?", "help", ("yment costs 1,4", TEXT.index("yment"))),
        ("And spaces?", "help", ("\nIt arrives.\n", TEXT.index("\nIt arr"))),
    )
    imported = import_chunking_benchmark(benchmark, tmp_path / "copied", "copied")
    assert [q.evidence for q in imported.questions] == [
        ((Quote("copied/help.md", sentence, 2),), (Quote("copied/help.md", "It arrives."),)),
        ((Quote("copied/help.md", "payment costs 1,400", 1),),),
        ((Quote("copied/help.md", "It arrives."),),),
    ]
    assert [q.question_id for q in imported.questions] == ["help-001", "help-002", "help-003"]
    assert (tmp_path / "copied" / "help.md").read_text() == TEXT
    assert imported.skipped == []


def test_excerpts_that_are_not_where_they_say_are_skipped(benchmark, tmp_path):
    write_rows(
        benchmark,
        ("Moved?", "help", ("It arrives.", 0)),
        ("Which?", "other", ("It arrives.", 0)),
        ("None?", "help"),
        ("Right?", "help", ("It arrives.", TEXT.index("It arr"))),
    )
    imported = import_chunking_benchmark(benchmark, tmp_path / "copied", "copied")
    assert [q.question for q in imported.questions] == ["Right?"]
    assert imported.skipped == [
        "questions_df.csv: line 2: an excerpt is not where it says",
        "questions_df.csv: line 3: no corpora/other.md",
        "questions_df.csv: line 4: references: are not excerpts",
    ]


def test_a_folder_of_another_layout_is_named(tmp_path):
    with pytest.raises(CorpusError, match=r"has no questions_df.csv and corpora"):
        import_chunking_benchmark(tmp_path, tmp_path / "copied", "copied")


# must_contain, and the commands

DOCUMENTS = {
    "fees.md": "# Fees\n\nThe fee is 2 % of each sale. " + "Filler text stands here. " * 60
    + "It is due on the last day of March.\n",
    "terms.md": "# Terms\n\nThe fee is 2 %. Notice is thirty days, in writing.\n",
    **{f"{n}.md": f"# Page {n}\n\nThis page says common words.\n" for n in range(MOST_DOCUMENTS + 1)},
    "many.md": "Often again. " * (MOST_PLACES + 1),
}  # fmt: skip


@pytest.fixture
def configured(tmp_path, monkeypatch):
    monkeypatch.setenv("CORPUS_CONFIG", str(write_corpus(tmp_path, DOCUMENTS)))
    return tmp_path


@pytest.fixture
def required(configured, capsys):
    """Imports these entries: evidence by question, and what was skipped."""

    def run(*entries, name="list.yaml"):
        (configured / name).write_text(
            lines(entries) if name.endswith("jsonl") else yaml.safe_dump([*entries])
        )
        out = configured / "out.yaml"
        status = main(["import-must-contain", str(configured / name), "--out", str(out)])
        questions = load_questions([out]) if status == 0 else []
        return {q.question: q.evidence for q in questions}, capsys.readouterr().err

    return run


@pytest.mark.parametrize("name", ["list.yaml", "list.jsonl"])
def test_the_shortest_stretch_with_all_strings_is_the_quote(required, name):
    found, _ = required(
        {"question": "How long?", "must_contain": ["In Writing", "thirty days"]}, name=name
    )
    assert found == {"How long?": ((Quote("docs/terms.md", "thirty days, in writing"),),)}


def test_of_several_stretches_the_shortest_is_taken_wherever_it_stands():
    assert shortest_stretch([[(0, 3), (60, 63)], [(20, 22), (65, 67)]]) == (60, 67)
    assert shortest_stretch([[(0, 3), (50, 53)], [(5, 7), (90, 92)]]) == (0, 7)


def test_documents_that_hold_the_strings_are_alternatives_unless_one_is_named(required):
    found, _ = required(
        {"question": "Any?", "must_contain": "2 %"},
        {"question": "One?", "must_contain": "2 %", "doc": "terms.md"},
        {"question": "Named?", "must_contain": "2 %", "doc": "docs/fees.md"},
    )
    fees, terms = Quote("docs/fees.md", "2 %"), Quote("docs/terms.md", "2 %")
    assert found == {"Any?": ((fees, terms),), "One?": ((terms,),), "Named?": ((fees,),)}


def test_strings_far_apart_are_quoted_one_by_one(required):
    found, _ = required({"question": "When?", "must_contain": ["2 %", "last day of March"]})
    fees = "docs/fees.md"
    assert found["When?"] == ((Quote(fees, "2 %"),), (Quote(fees, "last day of March"),))


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ({"must_contain": "nowhere"}, "no document has all of these as whole words"),
        ({"must_contain": "day"}, None),
        ({"must_contain": "ays"}, "no document has all of these as whole words"),
        ({"must_contain": "common words"}, "6 documents have them; name the one with `doc`"),
        ({"must_contain": "often"}, "one document has them 21 times; give more or longer"),
        ({"must_contain": "2 %", "doc": "gone.md"}, "doc: no document ends in gone.md"),
    ],
)
def test_strings_that_do_not_say_where_the_answer_is_are_skipped(required, entry, said):
    found, printed = required(
        {"question": "Sure?", "must_contain": "in writing"}, {"question": "This?", **entry}
    )
    assert ("This?" in found) == (said is None)
    assert (f"skipped: list.yaml: entry 2: {said or ''}" in printed.replace("must_contain: ", "")) == bool(said)  # fmt: skip


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (
            "- {question: Who, must_contain: []}",
            "entry 1: must_contain: Value should have at least",
        ),
        ("- {question: Who, contains: x}", "entry 1: contains: unknown key"),
        ("questions: []", "is not a list. Start each entry with"),
        ("- {question: [}", "line 1: "),
    ],
)
def test_a_mistake_in_the_list_is_one_line(configured, capsys, content, said):
    (configured / "list.yaml").write_text(content)
    out = str(configured / "out.yaml")
    assert main(["import-must-contain", str(configured / "list.yaml"), "--out", out]) == 1
    error = capsys.readouterr().err
    assert error.startswith(f"error: {configured / 'list.yaml'}: ")
    assert said in error
    assert error.count("\n") == 1


def test_nothing_imported_is_an_error_and_writes_nothing(required, configured):
    found, printed = required({"question": "Who?", "must_contain": "nowhere"})
    assert (found, "error: no question could be imported" in printed) == ({}, True)
    assert not (configured / "out.yaml").exists()


def test_a_file_that_is_there_is_refused_before_anything_is_done(configured, capsys):
    (configured / "out.yaml").write_text("mine")
    with pytest.raises(SystemExit) as exited:
        main(["import-beir", "x", "--documents", "y", "--out", str(configured / "out.yaml")])
    assert exited.value.code == 2
    assert "is there already. Name another file, or remove it." in capsys.readouterr().err


def test_imported_documents_and_questions_pass_the_check(
    beir, benchmark, tmp_path, monkeypatch, capsys
):
    write_rows(benchmark, ("How much?", "help", ("yment costs 1,4", TEXT.index("yment"))))
    for command, folder, name in (
        ("import-beir", beir, "pets"),
        ("import-chunking-benchmark", benchmark, "copied"),
    ):
        documents, out = tmp_path / name, tmp_path / f"{name}.jsonl"
        given = [command, str(folder), "--documents", str(documents), "--out", str(out)]
        assert main(given) == 0
    collections = {name: {"path": name, "settle_seconds": 0} for name in ("pets", "copied")}
    questions = ["pets.jsonl", "copied.jsonl"]
    file = write_corpus(tmp_path, {}, collections=collections, questions=questions)
    monkeypatch.setenv("CORPUS_CONFIG", str(file))
    capsys.readouterr()
    assert main([]) == 0
    printed = capsys.readouterr()
    assert "questions   4 " in printed.out
    assert "error" not in printed.err
    assert "not found" not in printed.out
