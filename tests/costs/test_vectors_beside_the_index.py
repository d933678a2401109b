"""Vectors of questions, and of sentences that decide where a text is cut, are in the ledger too."""

import numpy as np
import pytest
from embedding_costs import CountingEmbedder
from small_corpus import DIMENSIONS, HashEmbedder

from chunking_assets.chat_models.metered import asked_for
from chunking_assets.cost_ledger import EMBED_QUESTIONS, EMBED_SENTENCES, Entry, added
from chunking_assets.embedding_models.loaded import Models
from chunking_assets.embedding_models.metered import MeteredModels, MeteredQueries
from chunking_assets.workspace import Workspace


class CountedQuestions(CountingEmbedder):
    """Its server counts 5 tokens a question."""

    def embed_queries(self, texts):
        self.spent += type(self.spent)(requests=1, prompt_tokens=5 * len(texts))
        return super().embed_queries(texts)


@pytest.fixture
def queries(tmp_path):
    return MeteredQueries(CountedQuestions(), tmp_path, "hash", "one")


def test_questions_are_one_entry_of_the_strategy_that_asked_them(queries):
    vectors = queries.embed_queries(["a", "b"])
    queries.embed_queries(["c"])
    assert vectors.shape == (2, DIMENSIONS)
    assert queries.spent == Entry(
        work=EMBED_QUESTIONS,
        model="hash",
        strategy="one",
        tokens_sent=15,
        requests=2,
        seconds=queries.spent.seconds,
    )


def test_a_question_asked_again_is_saved(queries):
    queries.embed_queries(["two words"])
    queries.embed_queries(["two words"])
    assert (queries.spent.tokens_sent, queries.spent.tokens_saved) == (5, 2)


def test_questions_that_failed_after_they_were_sent_are_counted(tmp_path):
    class Dying(CountedQuestions):
        def embed_queries(self, texts):
            super().embed_queries(texts)
            raise RuntimeError("the connection is lost")

    queries = MeteredQueries(Dying(), tmp_path, "hash")
    with pytest.raises(RuntimeError):
        queries.embed_queries(["a"])
    assert (queries.spent.tokens_sent, queries.spent.requests) == (5, 1)


@pytest.fixture
def models(tmp_path):
    class Loaded(Models):
        def embedder(self, name):
            return HashEmbedder(512)

    return MeteredModels(Loaded({}, Workspace(tmp_path)))


def test_sentences_are_counted_for_the_version_whose_cuts_they_decide(models):
    with asked_for("semantic-20@1"):
        first = models.vectors("hash", ["one two three", "four"])
        models.vectors("hash", ["five"])
    with asked_for("cluster-20@1"):
        again = models.vectors("hash", ["one two three", "four"])
    np.testing.assert_array_equal(first, again)
    found = models.spent
    assert found.keys() == {"semantic-20@1", "cluster-20@1"}
    (computed,), (saved,) = found["semantic-20@1"], found["cluster-20@1"]
    assert (computed.work, computed.tokens_sent, computed.requests) == (EMBED_SENTENCES, 5, 2)
    assert (saved.tokens_sent, saved.tokens_saved, saved.requests) == (0, 4, 0)


def test_what_is_not_known_of_one_part_is_not_known_of_the_whole():
    known = Entry(work="embed", model="m", tokens_sent=3, requests=1)
    assert added(known, Entry(work="embed", model="m", tokens_sent=None)).tokens_sent is None
    assert added(known, known).tokens_sent == 6
