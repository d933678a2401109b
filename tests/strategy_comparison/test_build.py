import pytest
from measured_corpus import MeasuredCorpus, write_measured_corpus

from chunking_assets.errors import CorpusError
from chunking_assets.live_index.promotion import promote
from evals.gold_questions.build import GOLD_QUESTIONS
from evals.strategy_comparison.build import QUESTION_CHANGES, STRATEGY_COMPARISONS


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
    tables = [corpus.workspace.table(n) for n in (STRATEGY_COMPARISONS, QUESTION_CHANGES)]
    before = [table.files() for table in tables]
    corpus.compare()
    assert [table.files() for table in tables] == before


def test_scores_on_other_questions_are_not_compared(corpus):
    corpus.measure()
    gold = corpus.config.root / "gold.yaml"
    gold.write_text(gold.read_text().replace("what about closing", "how about closing"))
    corpus.resolve()
    corpus.score("recursive")
    corpus.compare()
    table = corpus.workspace.table(STRATEGY_COMPARISONS).read()
    assert set(table["strategy"]) == {"recursive"}


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
