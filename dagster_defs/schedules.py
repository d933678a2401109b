"""Schedules."""

import dagster as dg

from dagster_defs.jobs import SCORE_AGAIN
from dagster_defs.partitions import CONFIG


@dg.schedule(
    name="nightly_evaluation",
    cron_schedule="0 3 * * *",
    target=dg.AssetSelection.assets("retrieval_scores", "ragas_scores"),
    default_status=dg.DefaultScheduleStatus.RUNNING,
    description=(
        "Asks and scores every question for every strategy each night, changed or not; judgements "
        "that failed are tried again, those that succeeded are kept."
    ),
)
def nightly_evaluation(context: dg.ScheduleEvaluationContext) -> dg.RunRequest:
    versions = list(CONFIG.chunker_versions)
    return dg.RunRequest(
        run_config=SCORE_AGAIN,
        tags={
            "dagster/asset_partition_range_start": versions[0],
            "dagster/asset_partition_range_end": versions[-1],
        },
    )
