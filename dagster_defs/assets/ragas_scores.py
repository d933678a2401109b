"""Asset: answers over the retrieved passages, judged by RAGAS; or rows that say why not."""

from collections.abc import Iterator
from typing import Any

import dagster as dg

from chunking_assets.errors import CorpusError
from chunking_assets.keys import digest
from dagster_defs.assets.sources import OWNERS
from dagster_defs.automation import when_out_of_date
from dagster_defs.cells import Built, attempt_each, report
from dagster_defs.inputs import wanted
from dagster_defs.partitions import chunker_versions
from dagster_defs.progress import logged
from dagster_defs.resources import Corpus
from dagster_defs.tables import table_metadata
from evals.ragas_scores.build import update_ragas_scores

NAME = "ragas_scores"


@dg.asset(
    name=NAME,
    partitions_def=chunker_versions,
    deps=["retrieval_scores"],
    group_name="evaluation",
    kinds={"openai", "parquet"},
    owners=OWNERS,
    code_version="1",
    backfill_policy=dg.BackfillPolicy.single_run(),
    automation_condition=when_out_of_date(),
    metadata=table_metadata("ragas_scores"),
    description=(
        "RAGAS faithfulness and context recall over answers from an OpenAI-compatible endpoint "
        "(OPENAI_BASE_URL, OPENAI_API_KEY). Without one every row reads skipped / no_judge; a "
        "failed, refused or truncated judgement is a row with a status and no value."
    ),
)
def ragas_scores(
    context: dg.AssetExecutionContext, corpus: Corpus
) -> Iterator[dg.MaterializeResult[Any] | dg.AssetMaterialization]:
    def build(version: str) -> Built:
        config, workspace = corpus.config, corpus.workspace
        stamp = wanted(config, workspace, NAME, version)
        updates = [
            update_ragas_scores(
                workspace,
                strategy.name,
                config.ragas,
                logged(context.log, f"{strategy.name}: judged", "questions"),
            )
            for strategy in config.strategies_of(version)
        ]
        stopped = [f"{u.strategy}: {u.stopped}" for u in updates if u.stopped]
        if stopped:
            raise CorpusError("the endpoint cannot be used; " + "; ".join(stopped))
        if stamp is not None:
            workspace.stamps.write(NAME, stamp, version)
        counts = {
            f"{update.strategy}: {status}": count
            for update in updates
            for status, count in update.statuses.items()
        }
        means = {
            f"{update.strategy}: {metric}": value
            for update in updates
            for metric, value in update.means.items()
        }
        return Built(
            digest(sorted((u.strategy, u.version) for u in updates)),
            {
                "dagster/row_count": sum(u.rows for u in updates),
                "requests": sum(u.requests for u in updates),
                "adaptations": dg.MetadataValue.json(
                    {u.strategy: dict(u.adaptations) for u in updates if u.adaptations}
                ),
                **counts,
                **means,
            },
        )

    yield from report(context, attempt_each(context.partition_keys, build))
