"""Every setting of a profile reaches the step it is of: answers differ by it, and in its way."""

import pytest
from small_corpus import SmallCorpus, write_corpus

from chunking_assets.retrieval.fuse import reciprocal_rank
from chunking_assets.retrieval.open import open_index
from chunking_assets.retrieval.profile import RetrievalProfile

WORDS = [
    *("heron", "river", "winter", "bicycle", "chain", "terminal"),
    *("invoice", "contract", "cellar", "spring", "lamp", "garden"),
]
DOCUMENTS = {
    "refund.md": "Refunds reach the card after ten working days, refunds of vouchers at once.",
    "copy.md": "Refunds reach the card after ten working days, refunds of vouchers at once.",
    "other.md": "Who pays with a card may ask for refunds within a year of the payment.",
    **{
        f"{n}.md": f"The {WORDS[n % 12]} and the {WORDS[(5 * n + 3) % 12]} of page {n} cost {n * n}."
        for n in range(30)
    },
}
QUESTION = "after how many days do refunds reach the card"


@pytest.fixture(scope="module")
def reader(tmp_path_factory):
    chunkers = {"recursive-60@1": {"kind": "recursive", "max_tokens": 60}}
    strategies = {"one": {"chunker": "recursive-60@1", "model": "hash", "profile": "hybrid"}}
    root = tmp_path_factory.mktemp("settings")
    corpus = SmallCorpus(write_corpus(root, DOCUMENTS, chunkers=chunkers, strategies=strategies))
    corpus.update()
    index = corpus.config.strategies["one"].index

    def reader(**profile):
        settings = RetrievalProfile.model_validate(profile)
        return open_index(corpus.workspace, index.name, "hash", index.model, settings)

    return reader


def found(reader):
    return {hit.doc_id.removeprefix("docs/"): hit for hit in reader.rank(QUESTION).hits}


def test_the_weight_of_vectors_goes_from_words_alone_to_vectors_alone(reader):
    by_words = [*found(reader(search="hybrid", vector_weight=0)).values()]
    assert [hit.bm25_score for hit in by_words] == sorted(
        (hit.bm25_score for hit in by_words), reverse=True
    )
    by_vectors = [*found(reader(search="hybrid", vector_weight=1)).values()]
    assert [hit.vector_score for hit in by_vectors] == sorted(
        (hit.vector_score for hit in by_vectors), reverse=True
    )
    assert [hit.doc_id for hit in by_words] != [hit.doc_id for hit in by_vectors]


@pytest.mark.parametrize(("constant", "weight"), [(60, 0.5), (0, 0.5), (60, 0.9)])
def test_ranks_are_fused_with_the_constant_and_the_weight_declared(reader, constant, weight):
    arms = [list(reader(search=arm).rank(QUESTION).hits) for arm in ("vector", "bm25")]
    expected = {h.chunk_id: h.score for h in reciprocal_rank(*arms, constant, weight)}
    settings = {"rank_constant": constant, "vector_weight": weight}
    hits = reader(search="hybrid", fusion="ranks", **settings).rank(QUESTION).hits
    assert {hit.chunk_id: hit.score for hit in hits} == pytest.approx(expected)
    assert [hit.score for hit in hits] == sorted(expected.values(), reverse=True)


def test_no_arm_hands_on_more_candidates_than_declared(reader):
    assert len(found(reader(search="vector"))) == len(DOCUMENTS)
    for arm in ("vector", "bm25"):
        assert 0 < len(found(reader(search=arm, candidates=20))) <= 20


@pytest.mark.parametrize(
    ("settings", "holds"),
    [
        ({"k1": 0}, lambda plain, other: other["refund.md"] < plain["refund.md"]),
        ({"b": 0}, lambda plain, other: other["other.md"] > plain["other.md"]),
        ({"stop_words": True}, lambda plain, other: other["0.md"] == 0 < plain["0.md"]),
        ({"stem": True}, lambda plain, other: other["other.md"] > plain["other.md"]),
    ],
)
def test_full_text_scores_follow_the_settings_of_bm25(reader, settings, holds):
    question = "the refund of the card within a year" + ("" if "stem" in settings else ", refunds")

    def scores(**profile):
        hits = reader(search="hybrid", **profile).rank(question).hits
        return {hit.doc_id.removeprefix("docs/"): hit.bm25_score for hit in hits}

    assert holds(scores(), scores(bm25={"language": "en", **settings}))


def test_diversity_hands_on_what_is_not_said_yet(reader):
    def chosen(**profile):
        answer = reader(search="vector", k=2, merge=False, **profile).search(QUESTION)
        return [passage.doc_id.removeprefix("docs/") for passage in answer]

    assert chosen() == ["copy.md", "refund.md"]
    assert chosen(mmr=0.5)[0] == "copy.md"
    assert chosen(mmr=0.5)[1] not in ("copy.md", "refund.md")
