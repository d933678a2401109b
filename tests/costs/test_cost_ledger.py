"""The ledger says what was sent, once, and survives whatever comes after it."""

import pytest
from embedding_costs import CountingEmbedder, DyingEmbedder
from small_corpus import SmallCorpus, write_corpus, write_document

from chunking_assets.chunk_embeddings.build import update_index
from chunking_assets.cost_ledger import COSTS, Entry, record_costs
from chunking_assets.live_index.strategy_cost import strategy_cost
from chunking_assets.prices import NO_PRICES, Price, Prices

DOCUMENTS = {"refunds.md": "Money goes back within 120 days.", "fees.md": "A card costs 1 percent."}
PRICES = Prices([Price(model="hash", unit="1M input tokens", price=2.0, as_of="2020-01-01")])


@pytest.fixture
def corpus(tmp_path):
    corpus = SmallCorpus(write_corpus(tmp_path, DOCUMENTS))
    corpus.parse()
    corpus.chunk()
    return corpus


def embed(corpus, name="recursive", embedder=None, prices=PRICES, run="1"):
    index = corpus.config.strategies[name].index

    def spending(shard, entry):
        partition = f"{index.name}|{shard}"
        record_costs(corpus.workspace, prices, "chunk_embeddings", partition, run, [entry])

    embedder = embedder or corpus.embedder
    return update_index(corpus.workspace, index, ["docs"], lambda _: embedder, spending=spending)


def costs(corpus):
    rows = corpus.workspace.table(COSTS).read_all()
    return [] if rows is None else rows.sort("at").rows(named=True)


def test_embedding_is_recorded_with_its_cost(corpus):
    (update,) = embed(corpus)
    (row,) = costs(corpus)
    assert row["tokens_sent"] == update.tokens_embedded > 0
    assert row["cost"] == pytest.approx(update.tokens_embedded * 2e-6)
    assert (row["currency"], row["model"], row["run_id"]) == ("USD", "hash", "1")
    assert (row["partition"], row["work"]) == ("recursive-20@1+hash|docs", "embed")


def test_a_run_that_finds_everything_done_adds_nothing(corpus):
    embed(corpus)
    embed(corpus, run="2")
    assert len(costs(corpus)) == 1


def test_what_the_cache_held_is_saved_and_costs_nothing(corpus):
    (update,) = embed(corpus)
    embed(corpus, "fixed", run="2")
    _, row = costs(corpus)
    assert (row["tokens_sent"], row["cost"]) == (0, 0.0)
    assert row["tokens_saved"] == update.tokens_embedded


def test_a_model_without_a_price_has_no_cost_rather_than_0(corpus):
    embed(corpus, prices=NO_PRICES)
    (row,) = costs(corpus)
    assert (row["cost"], row["currency"]) == (None, None)
    assert row["tokens_sent"] > 0


def test_earlier_runs_stay_as_they_were(corpus):
    embed(corpus)
    first = costs(corpus)
    write_document(corpus.config.root, "fees.md", "A card costs 2 percent now.")
    corpus.parse()
    corpus.chunk()
    embed(corpus, prices=NO_PRICES, run="2")
    assert costs(corpus)[:1] == first
    assert costs(corpus)[1]["run_id"] == "2"


def test_an_endpoints_own_counts_are_recorded(corpus):
    embedder = CountingEmbedder()
    embed(corpus, embedder=embedder)
    (row,) = costs(corpus)
    assert (row["tokens_sent"], row["requests"], row["retries"]) == (1000, 3, 2)


def test_what_was_sent_before_a_failure_is_recorded(corpus):
    with pytest.raises(RuntimeError):
        embed(corpus, embedder=DyingEmbedder())
    (row,) = costs(corpus)
    assert (row["tokens_sent"], row["requests"]) == (1000, 3)


def test_tokens_an_endpoint_did_not_count_have_no_cost(corpus):
    record_costs(
        corpus.workspace,
        PRICES,
        "a",
        "p",
        "1",
        [Entry(work="embed", model="hash", requests=1, tokens_sent=None)],
    )
    (row,) = costs(corpus)
    assert (row["tokens_sent"], row["cost"]) == (None, None)


def test_a_strategys_projected_cost_is_that_of_embedding_it_anew(corpus):
    (update,) = embed(corpus)
    shown = strategy_cost(corpus.workspace, corpus.config.strategies["recursive"], ["docs"], PRICES)
    assert (shown.tokens, shown.vectors) == (update.tokens_embedded, update.vectors_embedded)
    assert shown.reindex.amount == pytest.approx(update.tokens_embedded * 2e-6)
    assert shown.size > 0
    assert shown.storage_per_month is None


@pytest.mark.parametrize(
    ("batch_from", "batch_chunks", "per_token"), [(2, 2, 1e-6), (99, 99, 2e-6), (2, 1, 2e-6)]
)
def test_a_projected_cost_is_that_of_the_batch_api_where_jobs_would_embed(
    corpus, monkeypatch, batch_from, batch_chunks, per_token
):
    (update,) = embed(corpus)
    strategy = corpus.config.strategies["recursive"]
    monkeypatch.setattr(type(strategy.index.model), "jobs_from", lambda _: batch_from)
    half = Price(model="hash", unit="1M batch input tokens", price=1.0, as_of="2020-01-01")

    def cost(*prices):
        known = Prices(prices)
        return strategy_cost(corpus.workspace, strategy, ["docs"], known, batch_chunks).reindex

    both = cost(*PRICES.entries, half)
    assert both.amount == pytest.approx(update.tokens_embedded * per_token)
    assert (cost(half) is None) == (per_token == 2e-6)
