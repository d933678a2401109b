"""Neighbours, diversity and limits: smooth, expand, mmr, and how they fit k and budget."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_corpus import CONFIGURATION, SmallCorpus, write_corpus

from chunking_assets.retrieval.expand import Expand, neighbours, smooth
from chunking_assets.retrieval.hit import Hit
from chunking_assets.retrieval.mmr import mmr
from chunking_assets.retrieval.open import open_strategy
from chunking_assets.retrieval.select import select


def row(*scores, doc="d", tokens=10):
    """Chunks of one document in order, named by their place."""
    return [
        Hit(f"{doc}{n}", doc, n, n * 10, n * 10 + 10, "", "x" * 10, (), tokens, score)
        for n, score in enumerate(scores)
    ]


def beside(hits):
    return {(hit.doc_id, hit.ordinal): hit for hit in hits}


def ids(hits):
    return [hit.chunk_id for hit in hits]


def test_smoothing_adds_a_share_of_the_scores_on_both_sides():
    hits = row(1.0, 0.5, 0.8)
    smoothed = {h.chunk_id: h.score for h in smooth(hits, beside(hits), 0.5)}
    assert smoothed == pytest.approx({"d0": 1.25, "d1": 1.4, "d2": 1.05})


def test_a_chunk_of_another_document_is_no_neighbour():
    hits = [*row(1.0), *row(0.0, 1.0, doc="e")]
    assert {h.chunk_id: h.score for h in smooth(hits, beside(hits), 1.0)}["d0"] == 1.0


def test_expansion_ends_at_the_first_chunk_that_scores_too_little():
    hits = row(0.9, 0.1, 0.6, 1.0, 0.6, 0.6, 0.6)
    settings = Expand(before=3, after=2, share=0.5)
    assert ids(neighbours(hits[3], beside(hits), settings, 0.5)) == ["d2", "d4", "d5"]


def test_expansion_without_a_share_takes_what_there_is():
    hits = row(1.0, 0.0, 0.0)
    assert ids(neighbours(hits[0], beside(hits), Expand(before=2, after=2), None)) == ["d1", "d2"]


def test_a_hit_handed_on_as_a_neighbour_does_not_count_for_k():
    hits = row(1.0, 0.9, 0.2, 0.8)
    ranked = sorted(hits, key=lambda h: h.rank_key)
    around = beside(hits)
    selection = select(
        ranked, k=2, beside=lambda hit: neighbours(hit, around, Expand(after=1, before=0), None)
    )
    assert ids(selection.hits) == ["d0", "d1", "d3"]
    assert set(selection.dropped) == {"d2"}


@given(
    st.lists(st.floats(0, 1), min_size=1, max_size=12),
    st.integers(1, 6),
    st.integers(0, 150),
    st.integers(0, 3),
)
def test_no_limit_is_exceeded_and_nothing_is_handed_on_twice(scores, k, budget, reach):
    hits = row(*scores)
    ranked = sorted(hits, key=lambda h: h.rank_key)
    around = beside(hits)
    settings = Expand(before=reach, after=reach)
    selection = select(
        ranked, k=k, token_budget=budget, beside=lambda h: neighbours(h, around, settings, None)
    )
    assert sum(hit.n_tokens for hit in selection.hits) <= budget
    assert len({*ids(selection.hits)}) == len(selection.hits)
    assert len(selection.hits) <= k * (2 * reach + 1)
    assert {*ids(selection.hits)} | {*selection.dropped} == {*ids(ranked)}
    assert not {*ids(selection.hits)} & {*selection.dropped}


def test_mmr_puts_what_says_the_same_behind_what_does_not():
    hits = row(1.0, 0.99, 0.9)
    vectors = dict(zip(ids(hits), np.array([[1.0, 0], [1, 0], [0, 1]]), strict=True))
    assert ids(mmr(hits, vectors, 0.5, 3)) == ["d0", "d2", "d1"]
    assert ids(mmr(hits, vectors, 1.0, 3)) == ["d0", "d1", "d2"]


@given(st.lists(st.floats(0, 1), max_size=10), st.floats(0, 1), st.integers(0, 12))
def test_mmr_loses_and_doubles_nothing(scores, relevance, limit):
    hits = sorted(row(*scores), key=lambda h: h.rank_key)
    rng = np.random.default_rng(0)
    vectors = {hit.chunk_id: rng.normal(size=3) for hit in hits[1:]}
    found = mmr(hits, vectors, relevance, limit)
    assert sorted(ids(found)) == sorted(ids(hits))
    assert found[:1] == hits[:1]


SENTENCES = [
    "A heron stood in the cold river all day and did not move its head.",
    "Refunds of a card payment take ten working days to reach the account.",
    "They are sent to the card that the refund was paid with by the customer.",
    "The bicycle in the cellar needs a new chain and two tyres before spring.",
]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    expanded = {"search": "hybrid", "k": 1, "expand": {"before": 1, "after": 1}, "smooth": 0.2}
    profiles = {
        **CONFIGURATION["retrieval_profiles"],
        "expanded": expanded,
        "vectors": {**expanded, "search": "vector"},
        "words": {**expanded, "search": "bm25"},
        "ranks": {**expanded, "fusion": "ranks"},
        "share": {**expanded, "expand": {"before": 3, "after": 3, "share": 0.99}},
        "diverse": {"search": "hybrid", "k": 2, "mmr": 0.5},
        "budget": {"search": "hybrid", "k": 3, "cut": 0.2, "token_budget": 20},
    }
    strategies = {
        name: {"chunker": "recursive-20@1", "model": "hash", "profile": name} for name in profiles
    }
    corpus = SmallCorpus(
        write_corpus(
            tmp_path_factory.mktemp("neighbours"),
            {"a.md": "\n\n".join(SENTENCES), "b.md": "Nothing of the kind."},
            retrieval_profiles=profiles,
            strategies=strategies,
        )
    )
    corpus.update()
    return corpus


QUESTION = "how many working days until refunds of a card payment reach the account"


@pytest.mark.parametrize("strategy", ["expanded", "vectors", "words", "ranks"])
def test_every_way_to_search_hands_on_the_neighbours(corpus, strategy):
    (passage,) = open_strategy(corpus.workspace, corpus.config.strategies[strategy]).search(
        QUESTION
    )
    assert [hit.ordinal for hit in passage.hits] == [0, 1, 2]
    assert passage.text == "\n\n".join(SENTENCES[:3])


def test_a_neighbour_must_score_its_share(corpus):
    (passage,) = open_strategy(corpus.workspace, corpus.config.strategies["share"]).search(QUESTION)
    assert passage.text == SENTENCES[1]


def test_an_answer_says_what_became_of_every_candidate(corpus):
    reader = open_strategy(corpus.workspace, corpus.config.strategies["budget"])
    answer = reader.answer(QUESTION)
    fates = {hit.text: hit.dropped for hit in answer.candidates}
    assert len(fates) == len(answer.candidates) == 5
    assert fates[SENTENCES[1]] is None
    whys = {why.partition(":")[0] for why in fates.values() if why is not None}
    assert whys == {"cut", "token_budget"}
    handed_on = [hit for passage in answer.passages for hit in passage.hits]
    assert handed_on == [hit for hit in answer.candidates if hit.dropped is None]


def test_the_scores_of_every_step_are_told(corpus):
    reader = open_strategy(corpus.workspace, corpus.config.strategies["expanded"])
    best = reader.answer(QUESTION).candidates[0]
    assert best.vector_score > 0
    assert best.bm25_score > 0
    assert 0 < best.fused_score < best.score
    assert best.rerank_score is None


def test_mmr_needs_no_vector_search_of_its_own(corpus):
    reader = open_strategy(corpus.workspace, corpus.config.strategies["diverse"])
    assert len(reader.search(QUESTION)) == 2
