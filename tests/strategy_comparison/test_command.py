"""What a person reads in the terminal, and what a continuous integration makes of it."""

import re
import shutil

import polars as pl
import pytest
import yaml
from measured_corpus import MeasuredCorpus, question, write_measured_corpus

from chunking_assets.live_index.promotion import promote
from evals.retrieval_scores.build import RETRIEVAL_SCORES
from evals.strategy_comparison.__main__ import main
from evals.strategy_comparison.build import STRATEGY_COMPARISONS

PASS, FAIL, UNDECIDED = 0, 1, 2


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    """A project's folder with everything built, to be copied."""
    root = tmp_path_factory.mktemp("measured")
    file = write_measured_corpus(root)
    gold = root / "gold.yaml"
    gold.write_text(gold.read_text().replace("language: en", "language: pt", 5))
    MeasuredCorpus(file).measure()
    return root


@pytest.fixture
def corpus(measured, tmp_path, monkeypatch):
    file = shutil.copytree(measured, tmp_path / "project") / "corpus.yaml"
    monkeypatch.setenv("CORPUS_CONFIG", str(file))
    return MeasuredCorpus(file)


def give(corpus, strategy, given, metric="recall"):
    """Replace a strategy's scores at 5 by these values, in the order of the questions' names."""
    table = corpus.workspace.table(RETRIEVAL_SCORES)
    manifest = table.manifest(strategy)
    rows = table.read(strategy)
    names = sorted(rows["question_id"].unique())
    values = pl.DataFrame({"question_id": names, "given": given}, strict=False)
    is_given = (pl.col("metric") == metric) & (pl.col("cutoff") == "5")
    rows = rows.join(values, on="question_id").with_columns(
        value=pl.when(is_given).then("given").otherwise("value")
    )
    table.replace(rows.drop("given"), strategy, version=manifest.version, details=manifest.details)


def make_better(corpus):
    give(corpus, "recursive", [0.0] * 10 + [1.0, 0.5])
    give(corpus, "fixed", [1.0] * 10 + [0.0, 0.5])


def make_equal(corpus):
    give(corpus, "recursive", [0.5] * 12)
    give(corpus, "fixed", [0.6, 0.4] * 6)


def printed(capsys, *arguments, status=0):
    assert main(arguments) == status
    shown = capsys.readouterr()
    return shown.out + shown.err


def test_a_comparison_says_the_verdict_first_then_what_was_lost_and_won(corpus, capsys):
    give(corpus, "recursive", [0.0] * 11 + [1.0])
    give(corpus, "fixed", [1.0] * 11 + [0.0])
    text = printed(capsys, "compare", "fixed", "recursive")
    lines = text.splitlines()
    assert lines[0] == "fixed against recursive, by recall@5"
    assert lines[2].startswith("  better: +83.3 points (95% interval ")
    assert "91.7 against 8.3 on 12 questions over 12 documents, corrected for 1 strategy" in text
    assert "  best so far; first in 100% of resamples" in lines
    assert re.search(r"\n  these questions could show \d+\.\d points\n", text)
    order = [text.index(part) for part in ("better", "at equal tokens", "Lost: 1", "Won: 11")]
    assert order == sorted(order)
    lost = lines[lines.index("Lost: 1") + 1]
    assert lost == "  1.00 → 0.00  q9  what about passwords expire after ninety?"
    assert "… and 1 more, in the table question_changes" in text
    assert any(line.split()[:3] == ["language", "en", "7"] for line in lines)
    assert "Other metrics, which decide nothing" in text


def test_a_comparison_by_another_metric_says_that_it_does_not_decide(corpus, capsys):
    text = printed(capsys, "compare", "fixed", "recursive", "--metric", "recall@1000t")
    assert "by recall@1000t\n(not the metric that decides, which is recall@5)" in text
    assert "at equal k, recall@5: " in text


def test_a_cost_is_shown_in_tokens(corpus, capsys):
    text = printed(capsys, "compare", "fixed", "recursive", "--metric", "context_tokens@5")
    assert " tokens" in text
    assert "Lost" not in text


def test_a_comparison_writes_nothing(corpus, capsys):
    before = sorted(corpus.config.home.rglob("*"))
    printed(capsys, "compare", "fixed", "recursive")
    printed(capsys, "gate", "fixed", "--against", "recursive", status=UNDECIDED)
    assert sorted(corpus.config.home.rglob("*")) == before


def test_the_terminal_says_what_the_table_of_verdicts_says(corpus, capsys):
    (row,) = (
        corpus.workspace.table(STRATEGY_COMPARISONS)
        .read()
        .filter(pl.col("is_primary") & (pl.col("strategy") == "fixed"))
        .rows(named=True)
    )
    text = printed(capsys, "compare", "fixed", "recursive")
    assert f"{row['verdict']}: {row['reason']}" in text


def test_what_was_measured_otherwise_is_said_in_a_comparison(corpus, capsys):
    ask_otherwise(corpus)
    corpus.score("recursive")
    text = printed(capsys, "compare", "fixed", "recursive")
    assert "not comparable: measured with other questions or evidence" in text


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["compare", "fixed", "gone"], "unknown strategy 'gone'. Declared: fixed, recursive"),
        (["compare", "fixed", "fixed"], "compared with itself"),
        (["compare", "fixed", "live"], "nothing is live yet"),
        (["compare", "fixed", "recursive", "--metric", "recall@7"], "no recall@7 score"),
    ],
)
def test_a_comparison_that_cannot_be_made_is_an_error(corpus, capsys, arguments, said):
    assert said in printed(capsys, *arguments, status=1)


def test_a_better_strategy_passes_the_gate_and_a_worse_one_fails(corpus, capsys):
    make_better(corpus)
    text = printed(capsys, "gate", "fixed", "--against", "recursive", status=PASS)
    assert text.startswith("pass: fixed against recursive, recall@5: +75.0 points (95% interval")
    text = printed(capsys, "gate", "recursive", "--against", "fixed", status=FAIL)
    assert text.startswith("fail: recursive against fixed, recall@5: -75.0 points")


def test_the_gate_is_against_what_is_live_unless_told_otherwise(corpus, capsys):
    make_better(corpus)
    assert "nothing is live yet" in printed(capsys, "gate", "fixed", status=UNDECIDED)
    promote(corpus.workspace, corpus.config.strategies["recursive"], list(corpus.config.shards()))
    assert "fixed against recursive" in printed(capsys, "gate", "fixed", status=PASS)


def test_what_the_questions_cannot_tell_does_not_pass(corpus, capsys):
    make_equal(corpus)
    text = printed(capsys, "gate", "fixed", "--against", "recursive", status=UNDECIDED)
    assert text.startswith("cannot decide: fixed against recursive, recall@5: difference +0.0")


def test_a_strategy_may_be_asked_to_be_better_by_some_or_not_worse_by_more(corpus, capsys):
    make_equal(corpus)
    gate = ("gate", "fixed", "--against", "recursive", "--min-difference")
    assert "at least -20.0 points asked for" in printed(capsys, *gate, "-0.2", status=PASS)
    assert "at least +20.0 points asked for" in printed(capsys, *gate, "0.2", status=FAIL)
    printed(capsys, *gate, "0.05", status=UNDECIDED)


def test_where_less_is_better_a_difference_asked_for_is_so_much_less(corpus, capsys):
    file = corpus.config.file
    comparison = {"metric": "context_tokens@5", "resamples": 200, "baseline": "recursive"}
    declared = yaml.safe_load(file.read_text()) | {"comparison": comparison}
    file.write_text(yaml.safe_dump(declared))
    give(corpus, "recursive", [500 + n for n in range(12)], "context_tokens")
    give(corpus, "fixed", [400 + n % 3 for n in range(12)], "context_tokens")
    gate = ("gate", "fixed", "--against", "recursive", "--min-difference")
    assert "at least +50.0 tokens" in printed(capsys, *gate, "50", status=PASS)
    printed(capsys, *gate, "150", status=FAIL)


@pytest.mark.parametrize("margin", ["nan", "inf", "much"])
def test_a_difference_that_is_no_number_does_not_pass(corpus, margin):
    with pytest.raises(SystemExit) as ended:
        main(["gate", "fixed", "--against", "recursive", "--min-difference", margin])
    assert ended.value.code == UNDECIDED


def edit_questions(corpus):
    gold = corpus.config.root / "gold.yaml"
    gold.write_text(gold.read_text().replace("what about closing", "how about closing"))


def ask_otherwise(corpus):
    edit_questions(corpus)
    corpus.resolve()


def measure_otherwise(corpus):
    ask_otherwise(corpus)
    corpus.score("recursive")


def edit_a_document(corpus):
    file = corpus.config.root / "docs" / "0.md"
    file.write_text(file.read_text().replace("nothing new", "hardly anything new"))
    corpus.update()


def lose_scores(corpus):
    corpus.workspace.table(RETRIEVAL_SCORES).remove("fixed")


def lose_all_scores(corpus):
    for name in corpus.config.strategies:
        corpus.workspace.table(RETRIEVAL_SCORES).remove(name)


@pytest.mark.parametrize(
    ("harm", "said"),
    [
        (edit_questions, "the question files, or the documents they quote, changed since"),
        (measure_otherwise, "fixed was measured with other questions or evidence"),
        (ask_otherwise, "no strategy is scored on the gold questions as they are now"),
        (edit_a_document, "fixed was scored on another state of its index"),
        (lose_scores, "fixed has no scores"),
        (lose_all_scores, "no strategy is scored"),
    ],
)
def test_the_gate_does_not_decide_on_scores_that_are_not_of_now(corpus, capsys, harm, said):
    make_better(corpus)
    harm(corpus)
    text = printed(capsys, "gate", "fixed", "--against", "recursive", status=UNDECIDED)
    assert said in text
    assert "uild" in text


def test_what_it_is_held_against_must_be_of_now_too(corpus, capsys):
    make_better(corpus)
    file = corpus.config.root / "docs" / "0.md"
    file.write_text(f"{file.read_text()}\nA line that moves no evidence.\n")
    corpus.update()
    corpus.resolve()
    corpus.score("recursive")
    text = printed(capsys, "gate", "recursive", "--against", "fixed", status=UNDECIDED)
    assert "fixed was scored on another state of its index" in text


def test_a_question_file_that_cannot_be_read_does_not_pass(corpus, capsys):
    make_better(corpus)
    (corpus.config.root / "gold.yaml").write_text("questions: [{id: a}]")
    text = printed(capsys, "gate", "fixed", "--against", "recursive", status=UNDECIDED)
    assert text.startswith("error: gold.yaml: question 'a': question: is missing")


def test_a_draft_is_no_change_of_the_questions(corpus, capsys):
    make_better(corpus)
    gold = corpus.config.root / "gold.yaml"
    draft = question(0, id="draft", status="draft")
    questions = [*yaml.safe_load(gold.read_text())["questions"], draft]
    gold.write_text(yaml.safe_dump({"questions": questions}))
    printed(capsys, "gate", "fixed", "--against", "recursive", status=PASS)


def test_without_a_scored_question_the_gate_does_not_decide(tmp_path, monkeypatch, capsys):
    corpus = MeasuredCorpus(write_measured_corpus(tmp_path, questions=[]))
    monkeypatch.setenv("CORPUS_CONFIG", str(corpus.config.file))
    corpus.measure()
    text = printed(capsys, "gate", "fixed", "--against", "recursive", status=UNDECIDED)
    assert text == "cannot decide: no gold question could be scored\n"
    text = printed(capsys, "compare", "fixed", "recursive", status=1)
    assert "no gold question could be scored" in text
