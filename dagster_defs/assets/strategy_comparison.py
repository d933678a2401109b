"""Asset: which strategy is better on these questions, and whether these questions can tell."""

from collections.abc import Iterator
from typing import Any

import dagster as dg

from dagster_defs.assets.sources import OWNERS
from dagster_defs.automation import when_out_of_date
from dagster_defs.cells import patient
from dagster_defs.inputs import begin
from dagster_defs.partitions import every_partition
from dagster_defs.resources import Corpus
from dagster_defs.tables import table_metadata
from evals.strategy_comparison.build import QuestionsMoved, update_strategy_comparison

NAME = "strategy_comparison"


@dg.asset(
    name=NAME,
    output_required=False,
    deps=[
        dg.AssetDep("retrieval_scores", partition_mapping=every_partition),
        dg.AssetDep("ragas_scores", partition_mapping=every_partition),
    ],
    group_name="verdict",
    kinds={"python", "parquet"},
    owners=OWNERS,
    code_version="3",
    automation_condition=when_out_of_date(),
    metadata=table_metadata("strategy_comparisons"),
    description=(
        "Paired bootstrap and randomisation test, by document, of every scored strategy against "
        "the live one (or the declared baseline). A winner is named only when the questions can "
        "tell; otherwise the verdict says how large a difference they could have shown. What a "
        "judge scored stands beside, and decides only if the judge agrees with people. If the "
        "questions changed since it was asked for, nothing is compared until they are scored."
    ),
)
@patient
def strategy_comparison(
    context: dg.AssetExecutionContext, corpus: Corpus
) -> Iterator[dg.MaterializeResult[Any]]:
    config, workspace = corpus.config, corpus.workspace
    stamp = begin(config, workspace, NAME)
    try:
        update = update_strategy_comparison(workspace, list(config.strategies), config.comparison)
    except QuestionsMoved as moved:  # while this run waited; it is due again with the new scores
        context.log.warning(f"Nothing was compared: {moved}")
        return
    if stamp is not None:
        workspace.stamps.write(NAME, stamp)
    yield dg.MaterializeResult(
        data_version=dg.DataVersion(update.version),
        metadata={
            "dagster/row_count": update.rows,
            "baseline": update.baseline,
            "verdict": dg.MetadataValue.md(update.verdict),
            "leaderboard": dg.MetadataValue.md(update.markdown),
            "judged": dg.MetadataValue.md(update.judged_markdown),
            "intervals": dg.MetadataValue.md(update.picture),
            "won_and_lost": dg.MetadataValue.md(update.changes_markdown),
        },
    )
