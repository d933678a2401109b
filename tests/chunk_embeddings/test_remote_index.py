"""An index whose model is asked at an endpoint that refuses texts, or takes its time."""

import polars as pl
import pytest
from chat_server import serving, without_endpoint
from embedding_server import DIMENSIONS, EmbeddingServer, word_tokenizer
from small_corpus import SmallCorpus, write_corpus, write_document

from chunking_assets.chunk_embeddings.build import DocumentsRefused, ledger, update_index
from chunking_assets.chunk_embeddings.lance_index import LanceIndex
from chunking_assets.cost_ledger import COSTS, record_costs
from chunking_assets.embedding_models.batch_jobs import BatchPending
from chunking_assets.live_index.promotion import promote
from chunking_assets.live_index.serve import open_live
from chunking_assets.prices import Price, Prices

DOCUMENTS = {f"{n}.md": f"Text number {n} says what number {n} is for." for n in range(4)}


@pytest.fixture
def server(monkeypatch):
    without_endpoint(monkeypatch)
    with serving(EmbeddingServer()) as running:
        yield running


@pytest.fixture
def corpus_at(server, tmp_path):
    tokenizer = word_tokenizer(tmp_path)

    def make(model, **settings):
        remote = {
            "kind": "openai", "model": model, "base_url": server.url, "dimensions": DIMENSIONS,
            "max_tokens": 200, "tokenizer": tokenizer, **settings,
        }  # fmt: skip
        file = write_corpus(
            tmp_path,
            DOCUMENTS,
            embedding_models={"remote": remote},
            chunkers={"recursive-20@1": {"kind": "recursive", "max_tokens": 20}},
            strategies={
                "one": {"chunker": "recursive-20@1", "model": "remote", "profile": "vector"}
            },
        )
        corpus = SmallCorpus(file)
        corpus.parse()
        corpus.chunk()
        return corpus

    return make


def embed(corpus, **options):
    (index,) = corpus.config.index_versions.values()
    return update_index(corpus.workspace, index, ["docs"], corpus.models.embedder, **options)


def served(corpus):
    (index,) = corpus.config.index_versions.values()
    table = LanceIndex(corpus.workspace, index.name).open_served()
    rows = pl.from_arrow(table.search().select(["doc_id", "text"]).to_arrow())
    stated = corpus.workspace.table("embedded_chunks").read(ledger(index.name, "docs"))
    assert sorted(stated["doc_id"]) == sorted(rows["doc_id"])
    return dict(rows.sort("doc_id").iter_rows())


def test_a_text_the_model_refuses_holds_up_its_document_only(corpus_at, tmp_path):
    corpus = corpus_at("poison")
    embed(corpus)
    write_document(tmp_path, "0.md", "A new text.")
    write_document(tmp_path, "1.md", "This is poison.")
    write_document(tmp_path, "new.md", "More poison.")
    (tmp_path / "docs" / "2.md").unlink()
    corpus.parse()
    corpus.chunk()
    with pytest.raises(DocumentsRefused, match="2 documents have a text") as caught:
        embed(corpus)
    assert caught.value.reasons.keys() == {"docs/1.md", "docs/new.md"}
    assert served(corpus) == {
        "docs/0.md": "A new text.",
        "docs/1.md": DOCUMENTS["1.md"],
        "docs/3.md": DOCUMENTS["3.md"],
    }
    with pytest.raises(DocumentsRefused):
        embed(corpus)  # it is tried again, and only it

    write_document(tmp_path, "1.md", "This is fine.")
    (tmp_path / "docs" / "new.md").unlink()
    corpus.parse()
    corpus.chunk()
    embed(corpus)
    assert served(corpus)["docs/1.md"] == "This is fine."


def test_texts_of_every_batch_are_sent_before_anything_is_waited_for(
    corpus_at, server, monkeypatch
):
    monkeypatch.setattr("chunking_assets.embedding_models.batch_jobs.POLL_SECONDS", 0)
    corpus = corpus_at("good", batch_from=1)
    with pytest.raises(BatchPending):
        embed(corpus, batch_chunks=1)
    sent = b"".join(server.files[job["input_file_id"]] for job in server.jobs.values())
    assert sent.count(b"Text number") == 4
    server.finish()
    (update,) = embed(corpus, batch_chunks=1)
    assert (update.chunks, server.requests) == (4, [])
    assert served(corpus).keys() == {f"docs/{n}.md" for n in range(4)}


FULL = Price(model="remote", unit="1M input tokens", price=2.0, as_of="2020-01-01")
HALF = Price(model="remote", unit="1M batch input tokens", price=1.0, as_of="2020-01-01")


@pytest.mark.parametrize(("prices", "per_token"), [([FULL, HALF], 1e-6), ([FULL], None)])
def test_what_jobs_brought_has_its_own_price_and_was_not_saved(
    corpus_at, server, monkeypatch, prices, per_token
):
    monkeypatch.setattr("chunking_assets.embedding_models.batch_jobs.POLL_SECONDS", 0)
    corpus = corpus_at("good", batch_from=1)

    def spending(shard, entry):
        record_costs(corpus.workspace, Prices(prices), "chunk_embeddings", shard, "1", [entry])

    with pytest.raises(BatchPending):
        embed(corpus, spending=spending)
    server.finish()
    embed(corpus, spending=spending)
    rows = corpus.workspace.table(COSTS).read_all()
    (brought,) = rows.filter(pl.col("work") == "embed_batch").rows(named=True)
    words = sum(len(text.split()) for text in DOCUMENTS.values())
    assert brought["tokens_sent"] == words  # by the server's count
    assert brought["cost"] == (per_token and pytest.approx(brought["tokens_sent"] * per_token))
    others = rows.filter(pl.col("work") == "embed")
    assert others["tokens_sent"].sum() == 0
    told = corpus.workspace.table("embedded_chunks").read_all()["n_tokens"].sum()
    assert others["tokens_saved"].sum() == told - brought["tokens_sent"]


def test_progress_tells_the_tokens_that_were_read(corpus_at):
    corpus, told = corpus_at("good"), []
    embed(corpus, progress=lambda *numbers: told.append(numbers), batch_chunks=2)
    n_tokens = corpus.workspace.table("embedded_chunks").read_all()["n_tokens"].sum()
    assert told[-1] == (4, 4, n_tokens)
    assert [done for done, _, _ in told] == sorted(done for done, _, _ in told)
    assert [tokens for _, _, tokens in told] == sorted(tokens for _, _, tokens in told)


def test_chunks_of_which_a_server_reads_less_are_marked_and_stay_so(corpus_at, tmp_path):
    corpus = corpus_at("cuts-at-5", truncate=True)
    write_document(tmp_path, "short.md", "Three short words.")
    corpus.parse()
    corpus.chunk()

    def marked():
        rows = corpus.workspace.table("embedded_chunks").read_all()
        return dict(rows.select("doc_id", "n_windows").iter_rows())

    expected = {**{f"docs/{n}.md": 2 for n in range(4)}, "docs/short.md": 1}
    (update,) = embed(corpus)
    assert (len(update.windowed), marked()) == (4, expected)
    (index,) = corpus.config.index_versions.values()
    corpus.workspace.table("embedded_chunks").remove(ledger(index.name, "docs"))
    corpus.models._embedders.clear()  # as in another run, which finds every vector
    (update,) = embed(corpus)
    assert (update.vectors_embedded, marked()) == (0, expected)


def test_a_live_reader_asks_the_model_where_it_is_declared_now(corpus_at, server):
    corpus = corpus_at("good")
    embed(corpus)
    promote(corpus.workspace, corpus.config.strategies["one"], ["docs"])
    remote = corpus.config.embedding_models["remote"]
    with serving(EmbeddingServer()) as elsewhere:
        moved = remote.model_copy(update={"base_url": elsewhere.url})
        open_live(corpus.workspace, {"remote": moved}).search("where?")
        assert elsewhere.texts == ["where?"]
        another = moved.model_copy(update={"revision": "2"})
        open_live(corpus.workspace, {"remote": another}).search("what was promoted?")
        open_live(corpus.workspace).search("then?")
    assert elsewhere.texts == ["where?"]
    assert server.texts[-2:] == ["what was promoted?", "then?"]
