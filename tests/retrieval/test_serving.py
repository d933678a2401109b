"""One reader for many: threads, batches, coroutines, promotions, a web service, other libraries."""

import asyncio
import importlib.util
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from small_corpus import CONFIGURATION, HashEmbedder, SmallCorpus, write_corpus, write_document

from chunking_assets.errors import CorpusError
from chunking_assets.live_index.promotion import promote
from chunking_assets.live_index.serve import open_live
from chunking_assets.retrieval import reader as reader_module
from chunking_assets.retrieval.filters import Filters
from chunking_assets.retrieval.open import open_strategy

ROOT = Path(__file__).parents[2]
DOCUMENTS = {f"{n}.md": f"Subject {word} has a page of its own." for n, word in enumerate(
    ["heron", "bicycle", "refund", "contract", "winter", "terminal", "river", "invoice"]
)}  # fmt: skip
QUESTIONS = [f"which page is about the subject {word.split()[1]}" for word in DOCUMENTS.values()]


@pytest.fixture
def corpus(tmp_path, monkeypatch):
    monkeypatch.setattr(reader_module, "FOLLOW_SECONDS", 0.0)
    profiles = {"hybrid": {"search": "hybrid", "expand": {}, "bm25": {"stem": True}}}
    corpus = SmallCorpus(
        write_corpus(
            tmp_path,
            DOCUMENTS,
            retrieval_profiles={**CONFIGURATION["retrieval_profiles"], **profiles},
        )
    )
    corpus.update()
    return corpus


def opened(corpus, strategy="recursive"):
    return open_strategy(corpus.workspace, corpus.config.strategies[strategy])


def go_live(corpus, strategy, **options):
    shards = list(corpus.config.shards())
    return promote(corpus.workspace, corpus.config.strategies[strategy], shards, **options)


@pytest.mark.parametrize("strategy", ["recursive", "fixed"])
def test_a_batch_is_answered_as_its_questions_are(corpus, strategy):
    reader = opened(corpus, strategy)
    assert reader.search_many(QUESTIONS) == [reader.search(question) for question in QUESTIONS]
    assert reader.search_many([]) == []


def test_a_batch_is_embedded_at_once(corpus):
    class Counting(HashEmbedder):
        def embed_queries(self, texts):
            asked.append(len(texts))
            return super().embed_queries(texts)

    asked = []
    strategy = corpus.config.strategies["recursive"]
    open_strategy(corpus.workspace, strategy, lambda: Counting(512)).search_many(QUESTIONS)
    assert asked == [len(QUESTIONS)]


def test_coroutines_are_answered_as_threads_are(corpus):
    reader = opened(corpus)

    async def ask():
        one = asyncio.gather(*(reader.asearch(question) for question in QUESTIONS))
        return await one, await reader.asearch_many(QUESTIONS), await reader.aanswer(QUESTIONS[0])

    each, batch, answer = asyncio.run(ask())
    assert each == batch == reader.search_many(QUESTIONS)
    assert answer == reader.answer(QUESTIONS[0])


def test_threads_share_one_reader_while_the_index_changes(corpus):
    go_live(corpus, "recursive")
    reader = open_live(corpus.workspace)
    alone = reader.search_many(QUESTIONS)
    expected = {q: found[0].doc_id for q, found in zip(QUESTIONS, alone, strict=True)}
    with ThreadPoolExecutor(8) as pool:
        asked = [pool.submit(reader.search, question) for question in QUESTIONS * 12]
        for n in range(3):
            write_document(corpus.config.root, f"new-{n}.md", f"Something else, number {n}.")
            corpus.update()
        answers = [future.result() for future in asked]
    assert [found[0].doc_id for found in answers] == [expected[q] for q in QUESTIONS * 12]


def test_a_reader_follows_a_promotion_with_batches_of_one_strategy(corpus, monkeypatch):
    monkeypatch.setattr("chunking_assets.live_index.serve.FOLLOW_SECONDS", 0.0)
    go_live(corpus, "recursive")
    reader = open_live(corpus.workspace)
    assert reader.search(QUESTIONS[0])[0].hits[0].bm25_score is not None
    go_live(corpus, "fixed", force=True)
    assert reader.strategy == "fixed"
    for found in reader.search_many(QUESTIONS):
        assert {hit.bm25_score for passage in found for hit in passage.hits} == {None}


def test_an_embedder_with_another_fingerprint_is_refused(corpus):
    strategy = corpus.config.strategies["recursive"]
    with pytest.raises(CorpusError, match="embedding_model_fingerprints"):
        open_strategy(corpus.workspace, strategy, lambda: HashEmbedder(99)).search("anything")


def test_the_web_service_answers_and_explains(corpus, monkeypatch):
    from starlette.testclient import TestClient

    go_live(corpus, "recursive")
    monkeypatch.setenv("CORPUS_HOME", str(corpus.config.home))
    spec = importlib.util.spec_from_file_location("serve", ROOT / "docs" / "serve_questions.py")
    service = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(service)
    with TestClient(service.app) as client:
        reply = client.get("/search", params={"q": QUESTIONS[2]}).json()
        assert reply["strategy"] == "recursive"
        assert reply["passages"][0]["doc_id"] == "docs/2.md"
        assert client.get("/search").status_code == 400
        swedish = client.get("/search", params={"q": QUESTIONS[2], "language": ["sv", "da"]})
        assert swedish.json()["passages"] == []
        assert len(client.get("/explain", params={"q": QUESTIONS[2]}).json()) == len(DOCUMENTS)


def test_langchain_is_given_documents(corpus):
    from chunking_assets.retrieval.langchain import LangChainRetriever

    retriever = LangChainRetriever(reader=opened(corpus), filters=Filters(path=("2.md",)))
    (document,) = retriever.invoke(QUESTIONS[2])
    assert document.page_content == DOCUMENTS["2.md"]
    assert document.metadata["spans"] == [[0, len(DOCUMENTS["2.md"])]]
    assert asyncio.run(retriever.ainvoke(QUESTIONS[2])) == [document]


def test_llama_index_is_given_nodes(corpus):
    from chunking_assets.retrieval.llama_index import LlamaIndexRetriever

    retriever = LlamaIndexRetriever(opened(corpus), Filters(path=("2.md",)))
    (found,) = retriever.retrieve(QUESTIONS[2])
    assert found.node.text == DOCUMENTS["2.md"]
    assert found.node.metadata["doc_id"] == "docs/2.md"
    (same,) = asyncio.run(retriever.aretrieve(QUESTIONS[2]))
    assert same.node.id_ == found.node.id_


def test_no_other_library_is_loaded_for_the_reader():
    import subprocess

    code = (
        "import sys, chunking_assets.live_index.serve\n"
        "print([m for m in ('langchain_core', 'llama_index', 'lancedb', 'onnxruntime', 'Stemmer')"
        " if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert done.stdout.strip() == "[]", done.stderr
