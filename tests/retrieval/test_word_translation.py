"""A question's words are looked for in another language as the nearest words of its texts."""

from hashlib import sha256

import numpy as np
import pytest
from pydantic import ValidationError
from small_corpus import DIMENSIONS, HashEmbedder, SmallCorpus, write_corpus, write_document

from chunking_assets.embedding_models.vector_cache import VECTORS, CachedQueries
from chunking_assets.retrieval.bm25 import Bm25Settings
from chunking_assets.retrieval.profile import RetrievalProfile
from chunking_assets.retrieval.reader import Reader

QUESTION = "Qual é o prazo para o pagamento de uma venda T2?"
MEANINGS = ({"prazo", "deadline"}, {"pagamento", "payment"}, {"venda", "sale"}, {"é", "is"})
REST = " We will not tell you more than this about it, and that is what you should know of it."
ENGLISH = {
    "payment.md": "The deadline of a payment is told to you on the day on which it is made." + REST,
    "dogs.md": "The dogs of the house are out in the garden and they will not come back." + REST,
    "cats.md": "The cats of the house are in the kitchen and they will not come out to us." + REST,
}
PORTUGUESE = {"vendas.md": "O prazo para o pagamento de uma venda é de dez dias depois da venda."}


class Translating(HashEmbedder):
    """To it a word and its translation are the same, and no two others."""

    def __init__(self):
        super().__init__(512)
        self.asked = []

    def embed_queries(self, texts):
        self.asked += texts
        meant = [next((min(m) for m in MEANINGS if text in m), text) for text in texts]
        seeds = [int.from_bytes(sha256(text.encode()).digest()[:8]) for text in meant]
        vectors = [np.random.default_rng(seed).normal(size=DIMENSIONS) for seed in seeds]
        unit = np.array(vectors) / np.linalg.norm(vectors, axis=1, keepdims=True)
        return unit.astype(np.float32)


@pytest.fixture
def corpus(tmp_path):
    strategy = {"chunker": "recursive-20@1", "model": "hash", "profile": "hybrid"}
    file = write_corpus(tmp_path, ENGLISH | PORTUGUESE, strategies={"asked": strategy})
    corpus = SmallCorpus(file)
    corpus.update()
    return corpus


def reader_of(corpus, **profile):
    (index,) = corpus.config.index_versions.values()
    embedder = Translating()
    settings = {"search": "hybrid", "k": 1, "vector_weight": 0, "other_languages": 1}
    asked = RetrievalProfile(**settings | {"translate": True} | profile)
    return Reader(corpus.workspace, index.name, asked, lambda: embedder), embedder


def test_the_text_with_the_words_that_mean_the_same_comes_along(corpus):
    reader, _ = reader_of(corpus)
    found = [passage.doc_id for passage in reader.search(QUESTION)]
    assert found == ["docs/vendas.md", "docs/payment.md"]


def test_hits_tell_the_score_of_the_translated_words(corpus):
    reader, _ = reader_of(corpus)
    (_, abroad) = reader.chosen(reader.rank(QUESTION))
    assert abroad.bm25_score > 0


def test_names_with_digits_stay_and_small_words_of_both_languages_do_not(corpus):
    reader, _ = reader_of(corpus)
    reader.search(QUESTION)
    translator = reader._follow().translator
    (weighed,) = translator.weigh(QUESTION, "pt", ["en"], Bm25Settings())
    words = {word for term in weighed.terms for word in term.forms}
    assert {"deadline", "payment", "t2"} <= words
    assert not words & {"is", "uma", "para"}


def test_the_words_of_an_index_are_embedded_once(corpus):
    reader, first = reader_of(corpus)
    reader.search(QUESTION)
    assert "kitchen" in first.asked
    again, second = reader_of(corpus)
    assert [p.doc_id for p in again.search(QUESTION)] == [p.doc_id for p in reader.search(QUESTION)]
    assert "kitchen" not in second.asked


def test_of_every_candidate_in_every_language_it_is_told_what_became_of_it(corpus, tmp_path):
    for n in range(30):
        write_document(tmp_path, f"{n}.md", f"The box {n} is in the room, and it is full." + REST)
    corpus.update()
    reader, _ = reader_of(corpus, candidates=20)
    ranking, answer = reader.rank(QUESTION), reader.answer(QUESTION)
    assert {h.chunk_id for h in ranking.translated} - {h.chunk_id for h in ranking.hits}
    told = [hit.chunk_id for hit in answer.candidates]
    assert sorted(told) == sorted({h.chunk_id for h in (*ranking.hits, *ranking.translated)})
    handed_on = [hit.doc_id for hit in answer.candidates if not hit.dropped]
    assert handed_on == ["docs/vendas.md", "docs/payment.md"]


def test_words_are_kept_by_who_keeps_questions(corpus):
    kept = []

    def load():
        kept.append(CachedQueries(Translating(), corpus.workspace.caches / VECTORS))
        return kept[0]

    reader, _ = reader_of(corpus)
    reader._load_embedder = load
    reader.search(QUESTION)
    assert reader._follow().translator._embedder is kept[0]


def test_a_reader_writes_nothing_to_the_bucket(bucket, s3_server, tmp_path):
    strategy = {"chunker": "recursive-20@1", "model": "hash", "profile": "hybrid"}
    file = write_corpus(
        tmp_path, ENGLISH | PORTUGUESE, strategies={"asked": strategy}, workspace=bucket
    )
    corpus = SmallCorpus(file)
    corpus.update()
    s3_server.requests.clear()
    reader, embedder = reader_of(corpus)
    found = [passage.doc_id for passage in reader.search(QUESTION)]
    assert found == ["docs/vendas.md", "docs/payment.md"]
    assert "kitchen" in embedder.asked
    assert {method for method, _, _ in s3_server.requests} <= {"GET", "HEAD"}


def test_filters_hold_in_every_language(corpus):
    reader, _ = reader_of(corpus, filters={"path": ["vendas.md"]})
    assert [passage.doc_id for passage in reader.search(QUESTION)] == ["docs/vendas.md"]


@pytest.mark.parametrize(
    "settings",
    [
        {"search": "hybrid"},
        {"search": "vector", "other_languages": 1},
        {"search": "hybrid", "other_languages": 1, "fusion": "ranks"},
    ],
)
def test_translating_needs_words_and_vectors_in_one_score(settings):
    with pytest.raises(ValidationError, match="translate"):
        RetrievalProfile(translate=True, **settings)
