"""The UI's own server: definitions load, partitions build when asked for, and it stops cleanly."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
STARTS_WITHIN, RUNS_WITHIN, STOPS_WITHIN = 60, 120, 30
HOME = """\
telemetry: {enabled: false}
nux: {enabled: false}
run_coordinator: {module: dagster._core.run_coordinator, class: DefaultRunCoordinator}
"""
LOCATION = "import small_corpus\nfrom dagster_defs.definitions import defs\n"
"""The code location with the test model; runs, which are processes of their own, load it too."""

SERVE = """
import runpy, signal
signal.signal(signal.SIGINT, signal.default_int_handler)
runpy.run_module("dagster_webserver", run_name="__main__")
"""
"""Dagster stops by SIGINT, which a shell may have told its background jobs to ignore."""

LAUNCH = """
mutation ($execution: ExecutionParams!) {
  launchPipelineExecution(executionParams: $execution) {
    __typename
    ... on LaunchRunSuccess { run { runId } }
    ... on PythonError { message }
  }
}"""
RUN = """
query ($run: ID!) { runOrError(runId: $run) { ... on Run { status eventConnection {
  events { ... on MaterializationEvent { partition metadataEntries {
    label ... on IntMetadataEntry { intValue } ... on MarkdownMetadataEntry { mdStr } } }
    ... on ExecutionStepFailureEvent { error { message } } } } } } }"""


class Server:
    """A running dagster-webserver, asked through GraphQL as the UI does."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}/graphql"

    def ask(self, query, **variables):
        request = urllib.request.Request(
            self.url,
            json.dumps({"query": query, "variables": variables}).encode(),
            {"content-type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=60) as response:
            answer = json.load(response)
        assert "errors" not in answer, answer["errors"]
        return answer["data"]

    def build(self, asset, **tags):
        """Build a partition as the launchpad does; returns the metadata of its materialization."""
        selector = {
            "repositoryLocationName": "small_location",
            "repositoryName": "__repository__",
            "pipelineName": "__ASSET_JOB",
            "assetSelection": [{"path": [asset]}],
        }
        marks = [{"key": f"dagster/{key}", "value": value} for key, value in tags.items()]
        execution = {"selector": selector, "mode": "default", "executionMetadata": {"tags": marks}}
        launched = self.ask(LAUNCH, execution=execution)["launchPipelineExecution"]
        assert launched["__typename"] == "LaunchRunSuccess", launched
        run_id = launched["run"]["runId"]
        run = wait_for(RUNS_WITHIN, lambda: self._finished(run_id))
        events = run["eventConnection"]["events"]
        assert run["status"] == "SUCCESS", [e["error"] for e in events if "error" in e]
        (built,) = (event for event in events if "metadataEntries" in event)
        return built["partition"], {
            entry["label"]: entry.get("intValue", entry.get("mdStr"))
            for entry in built["metadataEntries"]
        }

    def _finished(self, run_id):
        run = self.ask(RUN, run=run_id)["runOrError"]
        return run if run["status"] in ("SUCCESS", "FAILURE", "CANCELED") else None


def wait_for(seconds, look):
    """What `look` returns once it is something; asked often, and not for ever."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        found = look()
        if found:
            return found
        time.sleep(0.3)
    raise AssertionError(f"nothing after {seconds} s")


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.fixture
def server(corpus, tmp_path):
    corpus.look()  # the shards are known to `home`, as the sensor would have made them known
    home, location = tmp_path / "dagster_home", tmp_path / "location"
    for folder, name, text in (
        (home, "dagster.yaml", HOME),
        (location, "small_location.py", LOCATION),
    ):
        folder.mkdir()
        (folder / name).write_text(text)
    environment = {
        **os.environ,
        "CORPUS_CONFIG": str(corpus.config.file),
        "DAGSTER_HOME": str(home),
        "DAGSTER_DISABLE_TELEMETRY": "yes",
        "PYTHONPATH": os.pathsep.join(map(str, (location, REPOSITORY, REPOSITORY / "tests"))),
    }
    port, log = free_port(), tmp_path / "server.log"
    command = [
        sys.executable, "-c", SERVE, "-m", "small_location", "-h", "127.0.0.1", "-p", str(port),
    ]  # fmt: skip
    with log.open("w") as output:
        process = subprocess.Popen(
            command,
            env=environment,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        started = Server(port)
        wait_for(STARTS_WITHIN, lambda: process.poll() is not None or answers(started))
        assert process.poll() is None, log.read_text()
        yield started
        process.send_signal(signal.SIGTERM)
        process.wait(STOPS_WITHIN)
        wait_for(STOPS_WITHIN, lambda: not group_is_alive(process.pid))
    finally:
        if group_is_alive(process.pid):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def answers(server):
    try:
        return server.ask("{version}")
    except OSError:
        return None


def group_is_alive(group):
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def test_the_ui_serves_the_graph_and_builds_partitions_that_are_asked_for(server):
    nodes = server.ask("{assetNodes {assetKey {path} isPartitioned groupName}}")["assetNodes"]
    assert len(nodes) == 12
    add = """mutation ($key: String!) { addDynamicPartition(repositorySelector: {
        repositoryLocationName: "small_location", repositoryName: "__repository__"},
        partitionsDefName: "corpus_shard", partitionKey: $key) { __typename } }"""
    for shard in ("docs", "notes"):
        added = server.ask(add, key=shard)["addDynamicPartition"]
        assert added == {"__typename": "AddDynamicPartitionSuccess"}

    partition, parsed = server.build("parsed_elements", partition="docs")
    assert partition == "docs"
    assert (parsed["dagster/row_count"], parsed["documents_added"]) == (3, 3)
    assert "- added `docs/0.md`" in parsed["changed"]

    partition, chunked = server.build(
        "chunk_sets",
        partition="recursive-20@1|docs",
        **{"partition/corpus_shard": "docs", "partition/chunker_version": "recursive-20@1"},
    )
    assert partition == "recursive-20@1|docs"
    assert (chunked["dagster/row_count"], chunked["chunks_redone"]) == (12, 12)
    assert "data:image/svg+xml" in chunked["sizes"]
