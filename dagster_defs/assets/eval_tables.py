"""Asset: the DuckDB file analysts open, rebuilt, verified, and flipped into place."""

from typing import Any

import dagster as dg

from chunking_assets.live_index.strategy_cost import strategy_cost, strategy_costs_frame
from dagster_defs.assets.sources import OWNERS
from dagster_defs.automation import when_out_of_date
from dagster_defs.cells import patient
from dagster_defs.inputs import begin
from dagster_defs.partitions import every_partition
from dagster_defs.pools import EVAL_DATABASE
from dagster_defs.resources import Corpus
from evals.database import index_rows, publish, strategy_rows, table_comment, table_names

NAME = "eval_tables"


@dg.asset(
    name=NAME,
    deps=[
        "strategy_comparison",
        dg.AssetDep("ragas_scores", partition_mapping=every_partition),
        "live_index",
    ],
    group_name="verdict",
    kinds={"duckdb"},
    owners=OWNERS,
    code_version="1",
    automation_condition=when_out_of_date(),
    pool=EVAL_DATABASE,
    metadata={
        "dagster/uri": "evals/evals.duckdb below the workspace",
        "dagster/column_schema": dg.TableSchema(
            [dg.TableColumn(t, "table", description=table_comment(t)) for t in table_names()]
        ),
    },
    description=(
        "Documented tables and views in one DuckDB file. A build is verified before a link is "
        "flipped to it, so whoever has the file open is never blocked and never blocks."
    ),
)
@patient
def eval_tables(context: dg.AssetExecutionContext, corpus: Corpus) -> dg.MaterializeResult[Any]:
    config, workspace = corpus.config, corpus.workspace
    stamp = begin(config, workspace, NAME)
    strategies, shards = config.strategies.values(), list(config.shards())
    prices, batch = config.prices, config.embedding.batch_chunks
    costs = [strategy_cost(workspace, s, shards, prices, batch) for s in strategies]
    published = publish(
        workspace,
        {
            "strategies": strategy_rows(strategies),
            "declared_indexes": index_rows(workspace, config.index_versions.values()),
            "strategy_costs": strategy_costs_frame(costs),
        },
    )
    if stamp is not None:
        workspace.stamps.write(NAME, stamp)
    return dg.MaterializeResult(
        data_version=dg.DataVersion(published.inputs),
        metadata={
            "path": dg.MetadataValue.path(str(published.path)),
            "dagster/row_count": sum(published.rows.values()),
            "rows": dg.MetadataValue.md(
                "\n".join(f"- `{table}`: {rows:,}" for table, rows in published.rows.items())
            ),
        },
    )
