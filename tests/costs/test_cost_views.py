"""Analysts see what was spent, and never a 0 where a price is missing."""

import duckdb
import pytest

from chunking_assets.cost_ledger import Entry, record_costs
from chunking_assets.live_index.strategy_cost import StrategyCost, strategy_costs_frame
from chunking_assets.prices import Money, Price, Prices
from chunking_assets.workspace import Workspace
from evals.database import publish

PRICES = Prices([Price(model="priced", unit="1M input tokens", price=1.0, as_of="2020-01-01")])


@pytest.fixture
def spending(tmp_path):
    workspace = Workspace(tmp_path)
    for model, tokens in (("priced", 1_000_000), ("priced", 500_000), ("free?", 7)):
        entry = Entry(work="embed", model=model, tokens_sent=tokens, requests=1)
        partition = "fixed@1+e5|docs"
        record_costs(workspace, PRICES, "chunk_embeddings", partition, "run", [entry])
    answer = Entry(
        work="answer", model="priced", strategy="one", question_id="q", tokens_sent=10, requests=1
    )
    record_costs(workspace, PRICES, "ragas_scores", "one", "run", [answer])
    shared = [
        StrategyCost(name, "fixed@1+e5", "priced", 3, 90, 4096, Money(0.5, "USD"), None)
        for name in ("one", "two")
    ]
    published = publish(workspace, {"strategy_costs": strategy_costs_frame(shared)})
    with duckdb.connect(published.path, read_only=True) as connection:
        rows = connection.execute(
            "select strategy, work, model, tokens_sent, cost, rows_without_a_cost from spending"
        ).fetchall()
    return {(strategy, work, model): rest for strategy, work, model, *rest in rows}


def test_vectors_are_counted_for_every_strategy_over_their_index(spending):
    for strategy in ("one", "two"):
        assert spending[strategy, "embed", "priced"] == [1_500_000, 1.5, 0]


def test_work_for_one_strategy_is_its_own(spending):
    assert spending["one", "answer", "priced"][0] == 10
    assert ("two", "answer", "priced") not in spending


def test_what_has_no_price_has_no_cost(spending):
    assert spending["one", "embed", "free?"] == [7, None, 1]
