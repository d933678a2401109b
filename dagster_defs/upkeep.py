"""Jobs that keep the stores in order: repair what differs, retire a version, clean up weekly."""

from typing import Any

import dagster as dg

from chunking_assets.config import Config
from chunking_assets.errors import CorpusError
from chunking_assets.live_index.maintenance import Upkeep, maintain, report
from chunking_assets.live_index.promotion import retained
from chunking_assets.live_index.repair import remove_damaged, repair
from chunking_assets.live_index.retire import retire_version, undeclared_shards
from chunking_assets.workspace import Workspace
from dagster_defs.partitions import CORPUS_SHARD
from dagster_defs.resources import Corpus


class RetireConfig(dg.Config):
    """`version`: a chunker version no longer declared, or one index version of it."""

    version: str


@dg.op(description="Compare chunk sets, ledgers and tables; put in again exactly what differs.")
def repair_stores(context: dg.OpExecutionContext, corpus: Corpus) -> None:
    config, workspace, lost = corpus.config, corpus.workspace, None
    try:
        removed = remove_damaged(workspace)
    except CorpusError as error:
        removed, lost = [], error
    done = list(
        repair(
            workspace,
            list(config.index_versions.values()),
            list(config.shards()),
            corpus.models.embedder,
            config.embedding.batch_chunks,
        )
    )
    for line in (*removed, *map(str, done)):
        context.log.info(line)
    context.add_output_metadata(
        {
            "partitions_removed": len(removed),
            "cells_repaired": len(done),
            "vectors_embedded": sum(d.update.vectors_embedded for d in done),
            "what": dg.MetadataValue.md(
                "\n".join(f"- {line}" for line in (*removed, *done)) or "Everything agrees."
            ),
        }
    )
    if lost is not None:
        raise lost


@dg.job(name="repair", description="Find and heal what was changed behind our back.")
def repair_job() -> None:
    repair_stores()


@dg.op(description="Drop what is stored of a version; its scores stay.")
def retire_one_version(
    context: dg.OpExecutionContext, config: RetireConfig, corpus: Corpus
) -> None:
    declared = [*corpus.config.chunker_versions, *corpus.config.index_versions]
    kept = retained(corpus.workspace, corpus.config.promotion)
    dropped = retire_version(corpus.workspace, config.version, declared, kept)
    context.log.info(f"dropped: {', '.join(dropped) or 'nothing was left'}")


@dg.job(name="retire_version", description="Forget a version taken out of corpus.yaml.")
def retire_version_job() -> None:
    retire_one_version()


@dg.op(description="Compact tables, clean old versions, prune caches, report the disk.")
def maintain_stores(context: dg.OpExecutionContext, corpus: Corpus) -> None:
    upkeep = maintain(corpus.workspace, corpus.config.maintenance)
    context.add_output_metadata(disk_metadata(upkeep))
    context.log.info(report(upkeep))


@dg.job(name="maintain", description="Clean up, and say what takes the space.")
def maintain_job() -> None:
    maintain_stores()


weekly_maintenance = dg.ScheduleDefinition(
    name="weekly_maintenance",
    job=maintain_job,
    cron_schedule="0 4 * * 0",
    default_status=dg.DefaultScheduleStatus.RUNNING,
    description="Cleans up each Sunday night.",
)


def disk_metadata(upkeep: Upkeep) -> dict[str, Any]:
    """What people look at after a clean-up."""
    return {
        "disk": dg.MetadataValue.md(report(upkeep)),
        "bytes_freed": upkeep.tables + upkeep.files,
        "bytes_in_the_workspace": upkeep.total,
        **{f"bytes_of {size.index_version}": size.table for size in upkeep.sizes},
    }


def forget_partitions(
    instance: dg.DagsterInstance, config: Config, workspace: Workspace
) -> list[str]:
    """Take the shards out of Dagster that are neither declared nor stored; which they were."""
    declared = config.shards()
    stored = {*undeclared_shards(workspace, declared)}
    gone = {*instance.get_dynamic_partitions(CORPUS_SHARD)} - declared.keys() - stored
    for shard in sorted(gone):
        instance.delete_dynamic_partition(CORPUS_SHARD, shard)
    return sorted(gone)
