"""A failed blocking check is one event that others can subscribe to.

One event for a check in a run, whatever the number of partitions: a line of `alerts.jsonl` in the
workspace and, if `CORPUS_ALERT_URL` is set, the same object by POST. The line is written once, by
its id. A POST that fails is sent again at the next look, so whoever receives them ignores an id
seen before.
"""

import json
import os
import urllib.error
import urllib.request
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import dagster as dg
from dagster._core.storage.asset_check_execution_record import AssetCheckExecutionRecordStatus

from chunking_assets.errors import CorpusError
from chunking_assets.keys import digest
from chunking_assets.workspace import Workspace
from dagster_defs.checks import CHECKS
from dagster_defs.resources import Corpus

ALERT_URL_VARIABLE = "CORPUS_ALERT_URL"
FILE = "alerts.jsonl"
LOOKED_AT = 1000
"""The last failures of a check that a tick looks at: those of one run, at least."""

RANGE = "dagster/asset_partition_range_start"
POST_SECONDS = 10.0


@dg.sensor(
    name="alert_on_failed_checks",
    minimum_interval_seconds=30,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description=(
        "Writes one line to alerts.jsonl for every blocking check that failed, and sends it to "
        "CORPUS_ALERT_URL."
    ),
)
def alert_on_failed_checks(context: dg.SensorEvaluationContext, corpus: Corpus) -> dg.SensorResult:
    before = json.loads(context.cursor or "[]")
    told: list[str] = before if isinstance(before, list) else []
    failed = sorted(_failed(context.instance), key=lambda alert: str(alert["at"]))
    told = [alert["id"] for alert in failed if alert["id"] in told]
    problem, count = "", 0
    for alert in failed:
        if alert["id"] in told:
            continue
        try:
            deliver(corpus.workspace, alert)
        except CorpusError as error:
            problem = str(error)
            break
        told.append(alert["id"])
        count += 1
    said = f"{count} failed" if count else "no blocking check failed"
    return dg.SensorResult(cursor=json.dumps(told), skip_reason=problem or said)


def deliver(workspace: Workspace, alert: dict[str, Any]) -> None:
    """Write the line, unless it is there, and send it.

    Raises:
        CorpusError: it was not received; the line is there.
    """
    file = workspace.root / FILE
    with workspace.lock("alerts"):
        written = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
        if alert["id"] not in {json.loads(line)["id"] for line in written}:
            file.parent.mkdir(parents=True, exist_ok=True)
            with file.open("a", encoding="utf-8") as lines:
                lines.write(json.dumps(alert, ensure_ascii=False) + "\n")
                lines.flush()
                os.fsync(lines.fileno())
    url = os.environ.get(ALERT_URL_VARIABLE)
    if url:
        _post(url, alert)


def _post(url: str, alert: dict[str, Any]) -> None:
    if not url.startswith(("http://", "https://")):
        raise CorpusError(f"{ALERT_URL_VARIABLE} is not an http(s) address: {url!r}. Correct it.")
    request = urllib.request.Request(  # noqa: S310  # http(s), looked at above
        url, json.dumps(alert).encode(), {"content-type": "application/json"}
    )
    try:
        with urllib.request.urlopen(request, timeout=POST_SECONDS):  # noqa: S310
            pass
    except (urllib.error.URLError, TimeoutError, OSError) as error:
        raise CorpusError(
            f"alert {alert['id']} was not received at {ALERT_URL_VARIABLE} ({error}); it is sent "
            f"again at the next look, and stands in {FILE}."
        ) from error


def _failed(instance: dg.DagsterInstance) -> Iterator[dict[str, Any]]:
    """An alert for each of the last failures, told or not.

    Not by their place in the log: the one of a check that is planned early and ends late is in
    front of others that were seen, and a log that is kept by run has no such place.
    """
    blocking = [spec.key for check in CHECKS for spec in check.check_specs if spec.blocking]
    is_range: dict[str, bool] = {}
    for key in blocking:
        records = instance.event_log_storage.get_asset_check_execution_history(
            key, limit=LOOKED_AT, status={AssetCheckExecutionRecordStatus.FAILED}
        )
        for record in records:
            entry = record.event
            if entry is None or entry.dagster_event is None:
                continue
            found = entry.dagster_event.asset_check_evaluation_data
            if entry.run_id not in is_range:
                run = instance.get_run_by_id(entry.run_id)
                is_range[entry.run_id] = run is not None and RANGE in run.tags
            # A run over a range says it for each partition, and then once for all: that one counts.
            if found.partition is None or not is_range[entry.run_id]:
                yield _alert(entry, found)


def _alert(entry: dg.EventLogEntry, found: dg.AssetCheckEvaluation) -> dict[str, Any]:
    asset = found.asset_key.to_user_string()
    metadata = {name: value.value for name, value in found.metadata.items()}
    partitions = [found.partition] if found.partition else metadata.pop("failed", [])
    return {
        "id": digest("alert", entry.run_id, asset, found.check_name, entry.timestamp),
        "at": datetime.fromtimestamp(entry.timestamp, UTC).isoformat(),
        "asset": asset,
        "check": found.check_name,
        "partitions": partitions,
        "run_id": entry.run_id,
        "found": metadata,
    }
