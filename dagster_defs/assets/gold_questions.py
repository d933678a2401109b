"""Asset: gold questions with their evidence located in the documents as they are now."""

from typing import Any

import dagster as dg

from dagster_defs.assets.sources import OWNERS
from dagster_defs.automation import when_out_of_date
from dagster_defs.cells import patient
from dagster_defs.inputs import begin
from dagster_defs.partitions import every_partition
from dagster_defs.resources import Corpus
from dagster_defs.tables import table_metadata
from evals.gold_questions.build import update_gold_questions
from evals.gold_questions.report import lost_passages

NAME = "gold_questions"


@dg.asset(
    name=NAME,
    deps=[dg.AssetDep("parsed_elements", partition_mapping=every_partition)],
    group_name="evaluation",
    kinds={"yaml", "parquet"},
    owners=OWNERS,
    code_version="2",
    automation_condition=when_out_of_date(),
    metadata=table_metadata("gold_questions"),
    description=(
        "Questions with evidence as exact quotes, found in the text of the documents as they are. "
        "A quote that is no longer there makes its question stale: reported with what its passage "
        "has become, and left out of the scores until a person mends it."
    ),
)
@patient
def gold_questions(context: dg.AssetExecutionContext, corpus: Corpus) -> dg.MaterializeResult[Any]:
    config, workspace = corpus.config, corpus.workspace
    stamp = begin(config, workspace, NAME)
    update = update_gold_questions(
        workspace, config.question_files(), config.root, list(config.shards())
    )
    if stamp is not None:
        workspace.stamps.write(NAME, stamp)
    return dg.MaterializeResult(
        data_version=dg.DataVersion(update.version),
        metadata={
            "dagster/row_count": update.total,
            "active": update.active,
            "unanswerable": update.unanswerable,
            "drafts": update.drafts,
            "stale": len(update.stale),
            "stale_questions": dg.MetadataValue.md(
                "\n".join(f"- `{question}`: {reason}" for question, reason in update.stale)
                or "none"
            ),
            "lost_quotes": dg.MetadataValue.md(lost_passages(update.lost)),
        },
    )
