"""What a strategy would cost: to embed its whole index anew, and to keep it for a month.

Both follow from what its index holds now. Strategies over one index version share it, and its cost
is each one's: nobody pays twice for the pair.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from chunking_assets.chunk_embeddings.build import BATCH_CHUNKS, EMBEDDED_CHUNKS, ledger
from chunking_assets.chunk_embeddings.lance_index import LanceIndex
from chunking_assets.prices import Money, Prices
from chunking_assets.retrieval.strategy import Strategy
from chunking_assets.workspace import Workspace


@dataclass(frozen=True)
class StrategyCost:
    """The size of a strategy's index, and what it costs at today's prices.

    `vectors` are distinct, `tokens` those the model reads for them, `size` is in bytes on disk,
    indexes and versions not yet cleaned included. A cost is None without a price; `reindex` counts
    vectors that are looked at together at the price of a batch API where they are so many that the
    model would be asked so, and is also None where a chat model takes part in chunking, whose
    tokens nobody knows beforehand.
    """

    strategy: str
    index_version: str
    model: str
    vectors: int
    tokens: int
    size: int
    reindex: Money | None
    storage_per_month: Money | None


def strategy_cost(
    workspace: Workspace,
    strategy: Strategy,
    shards: Sequence[str],
    prices: Prices,
    batch_chunks: int = BATCH_CHUNKS,
) -> StrategyCost:
    """What the index of a strategy holds of these shards, and what that costs.

    `batch_chunks` is how many chunks an update looks at together (`embedding.batch_chunks`).
    """
    index = strategy.index
    rows = workspace.table(EMBEDDED_CHUNKS).read_all(
        [ledger(index.name, shard) for shard in shards], ["shard", "vec_key", "n_tokens"]
    )
    vectors = tokens = by_jobs = 0
    if rows is not None:
        distinct = rows.drop_nulls("vec_key").unique("vec_key", keep="first", maintain_order=True)
        vectors, tokens = distinct.height, int(distinct["n_tokens"].sum())
        by_jobs = _tokens_by_jobs(distinct, index.model.jobs_from(), batch_chunks)
    size = LanceIndex(workspace, index.name).disk_bytes()
    asks_chat = index.chunker_version.chunker.asks_chat()
    return StrategyCost(
        strategy=strategy.name,
        index_version=index.name,
        model=index.model_name,
        vectors=vectors,
        tokens=tokens,
        size=size,
        reindex=None if asks_chat else prices.of_embedding(index.model_name, tokens, by_jobs),
        storage_per_month=prices.of_storage(size),
    )


def _tokens_by_jobs(distinct: pl.DataFrame, least: int | None, batch_chunks: int) -> int:
    """Of batches with so many vectors that jobs of a batch API bring them, batches of a shard being
    full but for the last one."""
    if least is None:
        return 0
    numbered = distinct.with_columns(batch=pl.int_range(pl.len()).over("shard") // batch_chunks)
    is_enough = pl.len().over("shard", "batch") >= least
    return int(numbered.filter(is_enough)["n_tokens"].sum())


def strategy_costs_frame(costs: Sequence[StrategyCost]) -> pl.DataFrame:
    """The table `strategy_costs`: one row per strategy."""
    return pl.DataFrame(
        [
            {
                "strategy": c.strategy,
                "index_version": c.index_version,
                "embedding_model": c.model,
                "vectors": c.vectors,
                "tokens": c.tokens,
                "bytes": c.size,
                "reindex_cost": c.reindex and c.reindex.amount,
                "reindex_currency": c.reindex and c.reindex.currency,
                "storage_cost_per_month": c.storage_per_month and c.storage_per_month.amount,
                "storage_currency": c.storage_per_month and c.storage_per_month.currency,
            }
            for c in costs
        ],
        schema=STRATEGY_COSTS_SCHEMA,
    )


STRATEGY_COSTS_SCHEMA = pl.Schema(
    {
        "strategy": pl.String(),
        "index_version": pl.String(),
        "embedding_model": pl.String(),
        "vectors": pl.Int64(),
        "tokens": pl.Int64(),
        "bytes": pl.Int64(),
        "reindex_cost": pl.Float64(),
        "reindex_currency": pl.String(),
        "storage_cost_per_month": pl.Float64(),
        "storage_currency": pl.String(),
    }
)
