import polars as pl
import pytest
from measured_corpus import MeasuredCorpus, document, write_measured_corpus
from small_corpus import write_document

from chunking_assets.errors import CorpusError
from evals.retrieval_scores.build import (
    CUTOFFS,
    RETRIEVAL_SCORES,
    RETRIEVED_CHUNKS,
    SERVED_PASSAGES,
)
from evals.retrieval_scores.registry import METRICS


@pytest.fixture
def corpus(tmp_path):
    corpus = MeasuredCorpus(write_measured_corpus(tmp_path))
    corpus.update()
    corpus.resolve()
    return corpus


def value(corpus, strategy, question, metric, cutoff):
    rows = corpus.workspace.table(RETRIEVAL_SCORES).read(strategy)
    return rows.filter(question_id=question, metric=metric, cutoff=cutoff)["value"].item()


def test_every_active_question_has_every_metric_at_every_cutoff(corpus):
    corpus.score("recursive")
    rows = corpus.workspace.table(RETRIEVAL_SCORES).read("recursive")
    assert rows.height == 12 * len(CUTOFFS) * len(METRICS)
    assert rows["value"].is_finite().all()


def test_the_words_of_the_evidence_find_it(corpus):
    assert corpus.score("recursive").means["recall@5"] == 1.0


def test_scores_are_those_of_what_was_retrieved(corpus):
    corpus.score("recursive")
    retrieved = corpus.workspace.table(RETRIEVED_CHUNKS).read("recursive")
    first = retrieved.filter(question_id="q3").sort("rank").row(0, named=True)
    text = document(3)
    evidence = text.index("payouts"), text.rindex(".")
    covered = min(first["end"], evidence[1]) - max(first["start"], evidence[0])
    assert first["doc_id"] == "docs/3.md"
    assert value(corpus, "recursive", "q3", "recall", "5") >= covered / (evidence[1] - evidence[0])
    assert value(corpus, "recursive", "q3", "context_tokens", "5") == sum(
        retrieved.filter(question_id="q3").sort("rank")["n_tokens"][:5]
    )


def test_a_token_budget_is_kept(corpus):
    corpus.score("recursive")
    rows = corpus.workspace.table(RETRIEVAL_SCORES).read("recursive")
    tokens = rows.filter(metric="context_tokens", cutoff="500t")["value"]
    assert 0 < tokens.max() <= 500


def test_an_unanswerable_question_is_asked_and_not_scored(corpus):
    corpus.score("recursive")
    scored = corpus.workspace.table(RETRIEVAL_SCORES).read("recursive")["question_id"]
    served = corpus.workspace.table(SERVED_PASSAGES).read("recursive")["question_id"]
    assert "moon" not in scored
    assert "moon" in served


def test_scoring_again_asks_nothing(corpus):
    assert corpus.score("recursive").asked == 13
    before = corpus.workspace.table(RETRIEVAL_SCORES).files()
    assert corpus.score("recursive").asked == 0
    assert corpus.workspace.table(RETRIEVAL_SCORES).files() == before


def test_a_changed_document_is_scored_again(corpus):
    corpus.score("recursive")
    write_document(corpus.config.root, "3.md", "Unrelated.\n\n" + document(3))
    corpus.update()
    corpus.resolve()
    assert corpus.score("recursive").asked == 13


def test_a_stale_question_is_left_out(corpus):
    write_document(corpus.config.root, "3.md", "Something else.")
    corpus.update()
    corpus.resolve()
    corpus.score("recursive")
    scored = corpus.workspace.table(RETRIEVAL_SCORES).read("recursive")["question_id"]
    assert "q3" not in scored
    assert scored.n_unique() == 11


def test_an_index_that_is_not_there_is_named(tmp_path):
    corpus = MeasuredCorpus(write_measured_corpus(tmp_path))
    corpus.parse()
    corpus.resolve()
    with pytest.raises(CorpusError, match=r"recursive-20@1\+hash was never published"):
        corpus.score("recursive")


def test_vector_scores_are_cosines_and_orders_are_those_of_the_score(corpus):
    corpus.score("recursive")
    rows = corpus.workspace.table(RETRIEVED_CHUNKS).read("recursive")
    assert rows["vector_score"].is_between(-1.001, 1.001).all()
    for _, ranked in rows.sort("rank").group_by("question_id"):
        assert ranked["score"].is_sorted(descending=True)
    assert rows.filter(pl.col("bm25_score").is_not_null()).height > 0


def test_a_question_is_embedded_once_whatever_strategy_asks(corpus, monkeypatch):
    asked = []
    embed = corpus.embedder.embed_queries
    monkeypatch.setattr(corpus.embedder, "embed_queries", lambda t: asked.extend(t) or embed(t))
    corpus.score("recursive")
    corpus.score("fixed")
    assert len(asked) == len(set(asked)) == 12  # two questions share their words
