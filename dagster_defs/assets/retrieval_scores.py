"""Asset: every gold question answered by every strategy of a chunker version, and scored."""

from collections.abc import Iterator
from typing import Any

import dagster as dg

from chunking_assets.cost_ledger import Entry, record_costs
from chunking_assets.keys import digest
from dagster_defs.assets.sources import OWNERS
from dagster_defs.automation import when_out_of_date
from dagster_defs.cells import Built, attempt_each, patient, report
from dagster_defs.inputs import begin
from dagster_defs.partitions import by_version, chunker_versions
from dagster_defs.progress import logged
from dagster_defs.resources import Corpus
from dagster_defs.tables import table_metadata
from evals.retrieval_scores.build import update_retrieval_scores

NAME = "retrieval_scores"


class ScoringConfig(dg.Config):
    """`again` scores also strategies that nothing has touched since they were scored."""

    again: bool = False


@dg.asset(
    name=NAME,
    partitions_def=chunker_versions,
    deps=[dg.AssetDep("chunk_embeddings", partition_mapping=by_version), "gold_questions"],
    group_name="evaluation",
    kinds={"python", "parquet"},
    owners=OWNERS,
    code_version="1",
    backfill_policy=dg.BackfillPolicy.single_run(),
    automation_condition=when_out_of_date(),
    metadata=table_metadata("retrieval_scores"),
    description=(
        "Recall, precision, IoU, hit, MRR, nDCG and context tokens per question, on character "
        "spans, through the code that serves; at fixed k, at equal token budgets, and as served."
    ),
)
@patient
def retrieval_scores(
    context: dg.AssetExecutionContext, config: ScoringConfig, corpus: Corpus
) -> Iterator[dg.MaterializeResult[Any] | dg.AssetMaterialization]:
    def build(version: str) -> Built:
        declared, workspace = corpus.config, corpus.workspace

        def tell(entry: Entry) -> None:
            strategy = str(entry.strategy)
            record_costs(workspace, declared.prices, NAME, strategy, context.run_id, [entry])

        stamp = begin(declared, workspace, NAME, version)
        updates = [
            update_retrieval_scores(
                workspace,
                strategy,
                list(declared.shards()),
                corpus.models.embedder,
                logged(context.log, f"{strategy.name}: asked", "questions"),
                tell,
                again=config.again,
            )
            for strategy in declared.strategies_of(version)
        ]
        if stamp is not None:
            workspace.stamps.write(NAME, stamp, version)
        means = {
            f"{update.strategy}: {metric}": value
            for update in updates
            for metric, value in update.means.items()
        }
        return Built(
            digest(sorted((u.strategy, u.version) for u in updates)),
            {"dagster/row_count": sum(u.rows for u in updates), **means},
        )

    yield from report(context, attempt_each(context.partition_keys, build))
