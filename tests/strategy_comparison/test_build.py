import polars as pl
import pytest
from measured_corpus import MeasuredCorpus, write_measured_corpus

from chunking_assets.errors import CorpusError
from chunking_assets.live_index.promotion import promote
from evals.gold_questions.build import GOLD_QUESTIONS
from evals.retrieval_scores.build import RETRIEVAL_SCORES
from evals.strategy_comparison.build import (
    QUESTION_CHANGES,
    STRATEGY_COMPARISONS,
    STRATEGY_SLICES,
)

TABLES = (STRATEGY_COMPARISONS, QUESTION_CHANGES, STRATEGY_SLICES)


@pytest.fixture
def corpus(tmp_path):
    return MeasuredCorpus(write_measured_corpus(tmp_path))


def test_every_strategy_has_a_verdict_against_the_declared_baseline(corpus):
    update = corpus.measure()
    assert update.baseline == "recursive"
    primary = corpus.workspace.table(STRATEGY_COMPARISONS).read().filter("is_primary")
    assert set(primary["strategy"]) == {"recursive", "fixed"}
    assert set(primary["verdict"]) <= {"baseline", "better", "worse", "cannot tell"}
    assert primary["n_questions"].to_list() == [12, 12]


def test_what_is_live_is_the_baseline(corpus):
    corpus.measure()
    promote(corpus.workspace, corpus.config.strategies["fixed"], list(corpus.config.shards()))
    assert corpus.compare().baseline == "fixed"


def test_comparing_again_writes_nothing(corpus):
    corpus.measure()
    tables = [corpus.workspace.table(n) for n in TABLES]
    before = [table.files() for table in tables]
    corpus.compare()
    assert [table.files() for table in tables] == before


def test_the_three_tables_are_of_one_version(corpus):
    update = corpus.measure()
    manifests = [corpus.workspace.table(name).manifest() for name in TABLES]
    assert {manifest.version for manifest in manifests} == {update.version}


def test_slices_are_of_the_questions_as_they_are_asked(tmp_path):
    file = write_measured_corpus(tmp_path)
    gold = tmp_path / "gold.yaml"
    gold.write_text(gold.read_text().replace("language: en", "language: pt", 5))
    corpus = MeasuredCorpus(file)
    corpus.measure()
    slices = corpus.workspace.table(STRATEGY_SLICES).read()
    assert set(slices.select("strategy", "dimension", "slice", "n_questions").rows()) == {
        (strategy, "language", language, questions)
        for strategy in ("fixed", "recursive")
        for language, questions in (("pt", 5), ("en", 7))
    }


def test_what_the_questions_could_show_stands_beside_every_difference(corpus):
    shown = corpus.measure().markdown.splitlines()
    table = corpus.workspace.table(STRATEGY_COMPARISONS).read().filter("is_primary")
    for line, row in zip(shown[2:], table.rows(named=True), strict=True):
        detectable = row["minimum_detectable_difference"]
        assert line.split("|")[4].strip() == ("" if detectable is None else f"{detectable:.3f}")


def test_the_verdict_is_shown_at_equal_tokens_too(corpus):
    (line,) = corpus.measure().verdict.splitlines()
    assert line.startswith("- `fixed` (")
    assert " At recall@1000t: " in line


def test_scores_on_other_questions_are_not_comparable_until_scored_again(corpus):
    corpus.measure()
    gold = corpus.config.root / "gold.yaml"
    gold.write_text(gold.read_text().replace("what about closing", "how about closing"))
    corpus.resolve()
    corpus.score("recursive")
    assert "`fixed` (not ranked): not comparable: measured with other questions" in (
        corpus.compare().verdict
    )
    table = corpus.workspace.table(STRATEGY_COMPARISONS).read()
    (row,) = table.filter(pl.col("strategy") == "fixed").rows(named=True)
    assert (row["verdict"], row["changed"]) == ("not comparable", "golden_version")
    corpus.score("fixed")
    assert "not comparable" not in corpus.compare().verdict


def test_scores_by_another_scorer_are_not_comparable(corpus):
    corpus.measure()
    table = corpus.workspace.table(RETRIEVAL_SCORES)
    details = {**table.manifest("fixed").details, "scorer": 0, "cutoffs": ["5"]}
    table.replace(table.read("fixed"), "fixed", version="otherwise", details=details)
    corpus.compare()
    compared = corpus.workspace.table(STRATEGY_COMPARISONS).read()
    (row,) = compared.filter(pl.col("strategy") == "fixed").rows(named=True)
    assert (row["verdict"], row["changed"]) == ("not comparable", "scorer, cutoffs")


def test_a_baseline_that_is_not_scored_is_named(corpus):
    corpus.update()
    corpus.resolve()
    corpus.score("fixed")
    with pytest.raises(CorpusError, match="the baseline recursive is not scored"):
        corpus.compare()


def test_nothing_scored_is_an_error_with_a_cure(corpus):
    corpus.update()
    corpus.resolve()
    with pytest.raises(CorpusError, match="Build retrieval_scores first"):
        corpus.compare()
    assert corpus.workspace.table(GOLD_QUESTIONS).manifest() is not None


def test_without_a_question_to_score_there_is_no_verdict(tmp_path):
    corpus = MeasuredCorpus(write_measured_corpus(tmp_path, questions=[]))
    assert "No gold question could be scored" in corpus.measure().verdict


def test_pictures_are_self_contained(corpus):
    picture = corpus.measure().picture
    assert picture.count("data:image/svg+xml;base64,") == 2
