"""A failed blocking check is told once, in a file and to whoever listens."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import dagster as dg
import pytest

SHARDS = ("docs", "notes")
CELLS = [f"{version}|{shard}" for version in ("fixed-20@1", "recursive-20@1") for shard in SHARDS]


class Subscriber:
    """A server on loopback that keeps what it is sent, and may be out of order."""

    def __init__(self):
        subscriber, self.received, self.status = self, [], 204

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["content-length"]))
                if subscriber.status == 204:
                    subscriber.received.append(json.loads(body))
                self.send_response(subscriber.status)
                self.end_headers()

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/alerts"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


@pytest.fixture
def subscriber(monkeypatch):
    subscriber = Subscriber()
    monkeypatch.setenv("CORPUS_ALERT_URL", subscriber.url)
    yield subscriber
    subscriber.server.shutdown()
    subscriber.server.server_close()


@pytest.fixture
def damaged(corpus, built_until):
    """Every cell is chunked, and two chunks were altered behind everyone's back. The instance is
    stored, in a log for each run, as that of `make dev` is."""
    with dg.instance_for_test() as corpus.instance:
        yield _damaged(built_until("chunk_sets"))


def _damaged(corpus):
    for key in CELLS[:2]:
        table = corpus.workspace.table("chunks")
        rows = table.read(key)
        altered = rows.with_columns(text="altered " + rows["text"])
        table.replace(altered, key, keys=table.manifest(key).keys)
    return corpus


def listen(corpus, cursor):
    """One tick of the sensor; the cursor after it, and what it said."""
    with dg.build_sensor_context(
        instance=corpus.instance, cursor=cursor, resources=corpus.resources
    ) as context:
        result = corpus.module("alerts").alert_on_failed_checks(context)
    return result.cursor, result.skip_reason.skip_message


def lines(corpus):
    file = corpus.workspace.root / "alerts.jsonl"
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def test_a_failed_check_of_a_run_over_many_cells_is_one_event(damaged, subscriber):
    damaged.job.execute_in_process(
        instance=damaged.instance,
        asset_selection=[dg.AssetKey("chunk_sets")],
        tags={
            "dagster/asset_partition_range_start": CELLS[0],
            "dagster/asset_partition_range_end": CELLS[-1],
        },
        run_config=damaged.module("materialize").QUIET,
        raise_on_error=False,
    )
    cursor, said = listen(damaged, None)
    (alert,) = lines(damaged)
    assert said == "1 failed"
    assert (alert["asset"], alert["check"]) == ("chunk_sets", "spans_exact")
    assert alert["partitions"] == CELLS[:2]
    assert damaged.instance.get_run_by_id(alert["run_id"]) is not None
    assert subscriber.received == [alert]
    assert listen(damaged, cursor) == (cursor, "no blocking check failed")
    listen(damaged, None)  # the sensor was reset
    assert lines(damaged) == [alert]


def test_a_failed_check_of_one_cell_says_what_was_found(damaged, subscriber):
    damaged.run("chunk_sets", CELLS[0])
    listen(damaged, None)
    (alert,) = subscriber.received
    assert alert["partitions"] == [CELLS[0]]
    assert alert["found"]["inexact"] != "none"


def test_what_was_not_received_is_sent_again_and_written_once(damaged, subscriber):
    subscriber.status = 503
    damaged.run("chunk_sets", CELLS[0])
    cursor, said = listen(damaged, None)
    assert "was not received" in said
    assert (subscriber.received, len(lines(damaged))) == ([], 1)
    subscriber.status = 204
    listen(damaged, cursor)
    assert subscriber.received == lines(damaged)


def test_a_warning_is_no_alert_and_nobody_need_listen(damaged, monkeypatch):
    monkeypatch.delenv("CORPUS_ALERT_URL", raising=False)
    damaged.run("chunk_sets", CELLS[2])
    assert listen(damaged, None)[1] == "no blocking check failed"
    assert lines(damaged) == []
