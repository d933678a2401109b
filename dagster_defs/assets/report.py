"""Asset: the page for the meeting, one file that needs no network."""

from typing import Any

import dagster as dg

from dagster_defs.assets.sources import OWNERS
from dagster_defs.automation import when_out_of_date
from dagster_defs.cells import patient
from dagster_defs.inputs import begin
from dagster_defs.partitions import every_partition
from dagster_defs.resources import Corpus
from evals.strategy_comparison.meeting_report import SECTIONS, write_configured

NAME = "report"


@dg.asset(
    name=NAME,
    deps=[
        "strategy_comparison",
        dg.AssetDep("ragas_scores", partition_mapping=every_partition),
    ],
    group_name="verdict",
    kinds={"html"},
    owners=OWNERS,
    code_version="1",
    automation_condition=when_out_of_date(),
    metadata={
        "dagster/uri": "reports/report.html below the workspace",
        "dagster/column_schema": dg.TableSchema(
            [dg.TableColumn(name, "section", description=what) for name, what in SECTIONS.items()]
        ),
    },
    description=(
        "The verdict and what it rests on, to look at together: intervals, quality against cost, "
        "parts of the questions, the questions that flipped with the texts side by side, chunk "
        "sizes, stale questions, and how far the judge can be trusted."
    ),
)
@patient
def report(context: dg.AssetExecutionContext, corpus: Corpus) -> dg.MaterializeResult[Any]:
    stamp = begin(corpus.config, corpus.workspace, NAME)
    update = write_configured(corpus.config)
    if stamp is not None:
        corpus.workspace.stamps.write(NAME, stamp)
    return dg.MaterializeResult(
        data_version=dg.DataVersion(update.version),
        metadata={
            "path": dg.MetadataValue.path(str(update.path)),
            "page": dg.MetadataValue.url(update.path.as_uri()),
            "verdict": update.headline,
            "flipped_questions": update.flipped,
            "flipped_questions_shown": update.flipped_shown,
            "size_bytes": update.size,
        },
    )
