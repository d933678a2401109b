"""Schedules."""

import dagster as dg

from dagster_defs.partitions import CONFIG


@dg.schedule(
    name="nightly_evaluation",
    cron_schedule="0 3 * * *",
    target=dg.AssetSelection.assets("retrieval_scores", "ragas_scores"),
    default_status=dg.DefaultScheduleStatus.RUNNING,
    description="Scores every strategy each night, also those no change has touched.",
)
def nightly_evaluation(context: dg.ScheduleEvaluationContext) -> dg.RunRequest:
    versions = list(CONFIG.chunker_versions)
    return dg.RunRequest(
        tags={
            "dagster/asset_partition_range_start": versions[0],
            "dagster/asset_partition_range_end": versions[-1],
        }
    )
