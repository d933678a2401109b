"""The code location: everything Dagster loads, listed once."""

import os

import dagster as dg

from chunking_assets import config as configuration
from dagster_defs.alerts import alert_on_failed_checks
from dagster_defs.assets.chunk_embeddings import chunk_embeddings
from dagster_defs.assets.chunk_sets import chunk_sets
from dagster_defs.assets.eval_tables import eval_tables
from dagster_defs.assets.gold_questions import gold_questions
from dagster_defs.assets.live_index import live_index
from dagster_defs.assets.parsed_elements import parsed_elements
from dagster_defs.assets.ragas_scores import ragas_scores
from dagster_defs.assets.report import report
from dagster_defs.assets.retrieval_scores import retrieval_scores
from dagster_defs.assets.sources import declared_versions, raw_documents
from dagster_defs.assets.strategy_comparison import strategy_comparison
from dagster_defs.checks import CHECKS
from dagster_defs.embedding_jobs import embedding_jobs
from dagster_defs.executors import executor
from dagster_defs.freshness import watch_freshness
from dagster_defs.jobs import (
    evaluate_everything,
    plan_job,
    promote_job,
    retire_job,
    roll_back_job,
)
from dagster_defs.pages import shown
from dagster_defs.partitions import CONFIG
from dagster_defs.resources import Corpus
from dagster_defs.schedules import nightly_evaluation, nightly_retry
from dagster_defs.sensors import keep_index_current, watch_documents
from dagster_defs.upkeep import (
    maintain_job,
    repair_job,
    retire_version_job,
    weekly_maintenance,
)

os.environ.setdefault("RAGAS_DO_NOT_TRACK", "true")  # read once, at ragas' first use

configuration.check_recorded(CONFIG)

defs = dg.Definitions(
    assets=shown(
        [
            raw_documents,
            declared_versions,
            parsed_elements,
            chunk_sets,
            chunk_embeddings,
            gold_questions,
            retrieval_scores,
            ragas_scores,
            strategy_comparison,
            eval_tables,
            report,
            live_index,
        ]
    ),
    asset_checks=CHECKS,
    jobs=[
        plan_job,
        evaluate_everything,
        promote_job,
        roll_back_job,
        retire_job,
        retire_version_job,
        repair_job,
        maintain_job,
    ],
    sensors=[
        watch_documents,
        keep_index_current,
        embedding_jobs,
        watch_freshness,
        alert_on_failed_checks,
    ],
    schedules=[nightly_evaluation, nightly_retry, weekly_maintenance],
    resources={"corpus": Corpus(config_file=str(CONFIG.file))},
    executor=executor(),
)
