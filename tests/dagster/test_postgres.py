"""Dagster's state in a real PostgreSQL, and the processes of a deployment around it."""

import contextlib
import json
import os
import secrets
import shutil
import subprocess
import sys
import tempfile
import urllib.request
from pathlib import Path

import dagster as dg
import pytest
from fork_server import TESTS
from processes import end, free_port, listening, marked, wait_for

pytest.importorskip("dagster_postgres", reason="the extra `postgres` is not installed")
DEPLOY = TESTS.parent / "deploy" / "postgres"
SCRIPT = [sys.executable, str(DEPLOY / "run.py")]
WITHIN = 300
"""Seconds, on a machine with much else to do."""
HAS_POSTGRES = shutil.which("initdb") or [*Path("/usr/lib/postgresql").glob("*/bin/initdb")]
OFFERED = "[chunking_assets.embedding_models]\nhash = small_corpus:HashModel\n"

pytestmark = pytest.mark.skipif(
    not HAS_POSTGRES, reason="PostgreSQL is not installed: apt-get install postgresql"
)


@pytest.fixture
def deployment(tmp_path, monkeypatch):
    """A running database, and the environment of whoever uses it."""
    site = tmp_path / "site" / "small_corpus-1.dist-info"
    site.mkdir(parents=True)
    (site / "METADATA").write_text("Metadata-Version: 2.1\nName: small-corpus\nVersion: 1\n")
    (site / "entry_points.txt").write_text(OFFERED)
    path = os.pathsep.join(map(str, (TESTS, TESTS.parent, site.parent)))
    for name, value in {
        "DAGSTER_POSTGRES_PASSWORD": secrets.token_urlsafe(),
        "DAGSTER_POSTGRES_HOST": "127.0.0.1",
        "DAGSTER_POSTGRES_PORT": str(free_port()),
        "DAGSTER_CODE_PORT": str(free_port()),
        "DAGSTER_WEB_PORT": str(free_port()),
        "DAGSTER_DISABLE_TELEMETRY": "yes",
        "PYTHONPATH": path,
    }.items():
        monkeypatch.setenv(name, value)
    # Not below pytest's own folder: the user who runs PostgreSQL must get there.
    with tempfile.TemporaryDirectory(dir="/tmp", prefix="postgres") as folder:
        Path(folder).chmod(0o711)
        data = Path(folder) / "data"
        subprocess.run([*SCRIPT, "start", str(data)], check=True, timeout=WITHIN)
        try:
            yield data
        finally:
            subprocess.run([*SCRIPT, "stop", str(data)], check=True, timeout=WITHIN)


def ask(query, **variables):
    """What the web server says, as the UI asks it; None as long as it does not."""
    request = urllib.request.Request(
        f"http://127.0.0.1:{os.environ['DAGSTER_WEB_PORT']}/graphql",
        json.dumps({"query": query, "variables": variables}).encode(),
        {"content-type": "application/json"},
    )
    try:
        with urllib.request.urlopen(request, timeout=60) as response:
            return json.load(response)["data"]
    except OSError:
        return None


@contextlib.contextmanager
def serving(output):
    """`run.py serve`, once the UI knows what the code server has."""
    with output.open("w") as log:
        process = subprocess.Popen([*SCRIPT, "serve"], stdout=log, stderr=subprocess.STDOUT)
    locations = "{workspaceOrError {... on Workspace {locationEntries {loadStatus name}}}}"

    def has_loaded():
        said = ask(locations) if process.poll() is None else {}
        return said is not None and (not said or said["workspaceOrError"]["locationEntries"])

    try:
        wait_for(WITHIN, has_loaded)
        assert process.poll() is None, output.read_text()
        yield
    finally:
        left = end(process, f"DAGSTER_HOME={os.environ['DAGSTER_HOME']}")
    assert left == []


LAUNCH = """mutation ($execution: ExecutionParams!) {
  launchPipelineExecution(executionParams: $execution) {
    __typename ... on LaunchRunSuccess { run { runId } } ... on PythonError { message } } }"""
SELECTOR = {
    "repositoryLocationName": "chunking_assets",
    "repositoryName": "__repository__",
    "pipelineName": "__ASSET_JOB",
    "assetSelection": [{"path": ["gold_questions"]}],
}


def test_what_was_built_is_in_postgres_and_the_queue_of_a_deployment_goes_on_from_there(
    corpus_of, deployment, monkeypatch, tmp_path
):
    home = tmp_path / "dagster_home"
    home.mkdir()
    shutil.copyfile(DEPLOY / "dagster.yaml", home / "dagster.yaml")
    monkeypatch.setenv("DAGSTER_HOME", str(home))
    corpus = corpus_of()
    with dg.DagsterInstance.get() as instance:
        corpus.instance = instance
        built = corpus.materialize("chunk_embeddings")
        assert built == {"parsed_elements": 2, "chunk_sets": 4, "chunk_embeddings": 4}
        before = {run.run_id for run in instance.get_runs()}
    assert not [*home.rglob("*.db")]

    with serving(tmp_path / "served.txt"):
        of_deployment = marked(f"DAGSTER_HOME={home}")
        listens = listening(of_deployment)
        execution = {"selector": SELECTOR, "mode": "default"}
        launched = ask(LAUNCH, execution=execution)["launchPipelineExecution"]
        assert launched["__typename"] == "LaunchRunSuccess", launched
        with dg.DagsterInstance.get() as instance:  # another connection
            assert before < {run.run_id for run in instance.get_runs()}
            cells = instance.get_materialized_partitions(dg.AssetKey("chunk_embeddings"))
            assert len(cells) == 4

            def has_ended():
                return instance.get_run_by_id(launched["run"]["runId"]).is_finished

            wait_for(WITHIN, has_ended)
            assert instance.get_run_by_id(launched["run"]["runId"]).is_success
            told = instance.get_records_for_run(launched["run"]["runId"]).records
            assert {record.event_log_entry.dagster_event_type for record in told} >= {
                dg.DagsterEventType.RUN_ENQUEUED,
                dg.DagsterEventType.RUN_STARTING,
                dg.DagsterEventType.ASSET_MATERIALIZATION,
            }
    assert {int(os.environ[f"DAGSTER_{name}_PORT"]) for name in ("CODE", "WEB")} <= {
        port for _, port in listens
    }
    assert {str(address) for address, _ in listens} == {"127.0.0.1"}

    password = os.environ["DAGSTER_POSTGRES_PASSWORD"].encode()
    files = [f for f in (*tmp_path.rglob("*"), *deployment.rglob("*")) if f.is_file()]
    assert len(files) > 100
    assert [file for file in files if password in file.read_bytes()] == []


def test_a_database_without_a_password_is_not_made(tmp_path, monkeypatch):
    monkeypatch.delenv("DAGSTER_POSTGRES_PASSWORD", raising=False)
    refused = subprocess.run(
        [*SCRIPT, "start", str(tmp_path / "data")], capture_output=True, text=True, timeout=WITHIN
    )
    assert refused.returncode == 1
    assert refused.stderr.startswith("error: DAGSTER_POSTGRES_PASSWORD is not set.")
    assert not (tmp_path / "data").exists()
