"""Is a collection still alive? Documents that change daily and have not for a week were not synced.

How long is normal is declared per collection (`late_after_hours`). Dagster's own freshness policy
is of an asset, so it can only say that not even the liveliest collection changed; a check names
those that are late. It is evaluated by a sensor, as nothing runs when nothing changes, and recorded
only when its answer differs from the last one. It has no partitions: Dagster stores one evaluation
without a run for a partition, and refuses a second.
"""

import json
import time
from datetime import timedelta
from typing import Any

import dagster as dg

from chunking_assets.config import Config
from dagster_defs.inputs import RAW_DOCUMENTS
from dagster_defs.resources import Corpus

CHECK = "collections_fresh"
SECONDS_PER_HOUR = 3600.0


def freshness_policy(config: Config) -> dg.FreshnessPolicy | None:
    """Late once the liveliest collection is: then every other that has a limit may be, or not."""
    limits = [c.late_after_hours for c in config.collections.values() if c.late_after_hours]
    return dg.FreshnessPolicy.time_window(timedelta(hours=min(limits))) if limits else None


def late_collections(config: Config, instance: dg.DagsterInstance, now: float) -> dict[str, float]:
    """Hours since a document changed, of the collections that are past their limit.

    One that was never seen is not late.
    """
    late = {}
    for name, collection in config.collections.items():
        if collection.late_after_hours is None:
            continue
        changes = [
            record.timestamp
            for shard in collection.shards_of(name)
            for record in instance.fetch_materializations(
                dg.AssetRecordsFilter(dg.AssetKey(RAW_DOCUMENTS), asset_partitions=[shard]), limit=1
            ).records
        ]
        hours = (now - max(changes)) / SECONDS_PER_HOUR if changes else 0.0
        if hours > collection.late_after_hours:
            late[name] = hours
    return late


def _found(late: dict[str, float]) -> dict[str, dg.MetadataValue[Any]]:
    listed = "\n".join(f"- `{name}`: {hours:.0f} hours" for name, hours in late.items())
    return {
        "late_collections": dg.MetadataValue.int(len(late)),
        "without_a_change_for": dg.MetadataValue.md(listed or "none is late"),
    }


@dg.asset_check(
    name=CHECK,
    asset=RAW_DOCUMENTS,
    description=(
        "In every collection some document changed within its `late_after_hours`. Evaluated by the "
        "sensor `watch_freshness`, whenever the answer changes."
    ),
)
def collections_fresh(
    context: dg.AssetCheckExecutionContext, corpus: Corpus
) -> dg.AssetCheckResult:
    late = late_collections(corpus.config, context.instance, time.time())
    return dg.AssetCheckResult(
        passed=not late, severity=dg.AssetCheckSeverity.WARN, metadata=_found(late)
    )


@dg.sensor(
    name="watch_freshness",
    minimum_interval_seconds=300,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="Says when a collection has not changed for longer than it should, and when again.",
)
def watch_freshness(context: dg.SensorEvaluationContext, corpus: Corpus) -> dg.SensorResult:
    late = late_collections(corpus.config, context.instance, time.time())
    said = json.dumps(sorted(late))
    if said == (context.cursor or "[]"):
        return dg.SensorResult(skip_reason=f"late as before: {', '.join(late) or 'none'}")
    evaluation = dg.AssetCheckEvaluation(
        asset_key=dg.AssetKey(RAW_DOCUMENTS),
        check_name=CHECK,
        passed=not late,
        severity=dg.AssetCheckSeverity.WARN,
        metadata=_found(late),
    )
    return dg.SensorResult(asset_events=[evaluation], cursor=said)
