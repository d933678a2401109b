"""Schedules: score all of it each night, and read again what could not be read."""

import dagster as dg

from chunking_assets.parsed_elements.build import has_documents_to_retry
from dagster_defs.jobs import SCORE_AGAIN
from dagster_defs.partitions import CONFIG, CORPUS_SHARD
from dagster_defs.resources import Corpus
from dagster_defs.run_requests import run_requests

PARSED = "parsed_elements"


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


@dg.schedule(
    name="nightly_retry",
    cron_schedule="0 2 * * *",
    target=dg.AssetSelection.assets(PARSED),
    default_status=dg.DefaultScheduleStatus.RUNNING,
    description=(
        "Reads documents again each night that could not be opened, whose parser crashed or took "
        "too long, or that are served as they were before: nothing else would start it, as long "
        "as they do not change."
    ),
)
def nightly_retry(
    context: dg.ScheduleEvaluationContext, corpus: Corpus
) -> list[dg.RunRequest] | dg.SkipReason:
    shards = corpus.config.shards()
    known = context.instance.get_dynamic_partitions(CORPUS_SHARD)
    due = [s for s in known if s in shards and has_documents_to_retry(corpus.workspace, s)]
    if not due:
        return dg.SkipReason("no document is worth another try")
    assert context.repository_def is not None
    return run_requests(PARSED, due, context.repository_def.asset_graph, context.instance)
