"""The graph and the commands over a workspace in a bucket."""

import json
import pickle
import sys
from types import SimpleNamespace

import dagster as dg
import duckdb
import pytest
from dagster._serdes import serialize_value
from s3_server import SECRETS

from chunking_assets.live_index.__main__ import main as live_index
from chunking_assets.live_index.promotion import live
from chunking_assets.storage import Conflict, StorageUnavailable
from chunking_assets.workspace import Workspace
from dagster_defs.cells import CONFLICTS, Built, attempt_each, attempt_together, report

ONE_VERSION = {
    "chunkers": {"recursive-20@1": {"kind": "recursive", "max_tokens": 20}},
    "strategies": {
        "hybrid": {"chunker": "recursive-20@1", "model": "hash", "profile": "hybrid"},
        "vector": {"chunker": "recursive-20@1", "model": "hash", "profile": "vector"},
    },
    "comparison": {"baseline": "hybrid", "metric": "recall@5", "resamples": 200},
    "storage": {"upload_database": True},
}


@pytest.fixture
def corpus(corpus_of, bucket, tmp_path, monkeypatch):
    corpus = corpus_of(workspace=bucket, **ONE_VERSION)
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path / "dagster"))
    monkeypatch.setattr(corpus.module("cells"), "AWAY_SECONDS", (0, 0))
    return corpus


@pytest.fixture
def impatient(monkeypatch):
    """The client of a bucket asks once."""
    monkeypatch.setattr("chunking_assets.s3_store.RETRIES", 0)


@pytest.fixture
def command(monkeypatch, capsys):
    def run(main, *arguments):
        monkeypatch.setattr(sys, "argv", ["command", *arguments])
        status = main()
        said = capsys.readouterr()
        assert status == 0, said.err
        return said.out

    return run


def test_everything_is_built_once_promoted_and_looked_after(
    corpus, bucket, command, monkeypatch, tmp_path, s3_server, capsys
):
    assert all(corpus.materialize().values())
    assert not any(corpus.materialize().values())

    store = corpus.workspace.store
    pointer = json.loads(store.read("evals/evals.json"))
    build = tmp_path / "downloaded.duckdb"
    build.write_bytes(s3_server.objects[f"{bucket.rpartition('/')[2]}/evals/{pointer['build']}"])
    with duckdb.connect(build, read_only=True) as connection:
        (rows,) = connection.execute("select count(*) from chunks").fetchone()
        assert rows == corpus.workspace.table("chunks").read_all().height

    before = store.read("evals/evals.json")
    for said in (b"{", b"[]", b'{"inputs": 1}'):
        store.write("evals/evals.json", said)
        assert all(run.success for run in corpus.run("eval_tables"))
        assert store.read("evals/evals.json") == before, "a damaged pointer is written anew"

    promotion, index = corpus.module("live").main, "recursive-20@1+hash"
    assert "live: hybrid" in command(promotion, "promote", "hybrid")
    assert "live: vector" in command(promotion, "promote", "vector", "--force")
    assert "live: hybrid" in command(promotion, "rollback")
    assert live(Workspace(bucket)).strategy == "hybrid"
    assert f"{index}, shard docs: nothing differs" in command(live_index, "reconcile")
    chunk_id = corpus.workspace.table("chunks").read_all()["chunk_id"][0]
    assert "served     hybrid from" in command(live_index, "explain", chunk_id)
    s3_server.denied = "/lance/"
    monkeypatch.setattr(sys, "argv", ["live_index", "explain", chunk_id])
    assert live_index() == 1
    shown = capsys.readouterr().err
    assert f"error: {bucket}: cannot list lance/" in shown
    assert "InvalidAccessKeyId" in shown
    assert not [secret for secret in SECRETS if secret in shown]
    s3_server.heal()
    assert "What is stored agrees" in command(live_index, "repair")
    assert f"| {index} |" in command(live_index, "maintain")
    corpus.write("docs/0.md", "Something else is said here.")
    before = dict(s3_server.objects)
    assert "chunk" in command(corpus.module("plan").main)
    assert s3_server.objects == before

    # What is only on the other machine is made here; all else is there.
    corpus.write("docs/0.md", s3_text(corpus, "docs/0.md"))
    monkeypatch.setenv("CORPUS_LOCAL", str(tmp_path / "another machine"))
    corpus.load()
    due = {asset for asset, count in corpus.materialize().items() if count}
    assert due <= {"strategy_comparison", "eval_tables", "report"}
    assert {"eval_tables", "report"} <= due
    assert corpus.workspace.eval_database.exists()


def s3_text(corpus, doc_id):
    rows = corpus.workspace.table("documents").read_all(columns=["doc_id", "text"])
    return dict(rows.iter_rows())[doc_id]


def test_a_bucket_that_refuses_in_the_middle_is_said_without_credentials(
    corpus, s3_server, tmp_path, bucket
):
    corpus.converge_until("chunk_sets")
    corpus.look()
    due = corpus.tick()["chunk_embeddings"]
    s3_server.denied = "/lance/"
    results = corpus.run("chunk_embeddings", *due)
    assert not any(result.success for result in results)
    task = corpus.module("assets.chunk_embeddings")._build
    on_ray = corpus.module("ray_tasks")._attempt(task, str(corpus.config.file), 1, "run", due[:1])
    assert [type(error) for error in on_ray.values()] == [StorageUnavailable]
    assert "Traceback" in "".join(on_ray[due[0]].__notes__)
    s3_server.denied = "/evals/"
    assert not any(result.success for result in corpus.run("eval_tables"))
    s3_server.denied = "/"
    corpus.run("chunk_embeddings", *due)
    logs = logged(corpus)
    assert [log for log in logs if bucket in log]
    files = [file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()]
    said = b"".join([*map(str.encode, logs), *files, pickle.dumps(on_ray)])
    assert not [secret for secret in SECRETS if secret.encode() in said]


def logged(corpus):
    return [
        serialize_value(entry)
        for run in corpus.instance.get_runs()
        for entry in corpus.instance.all_logs(run.run_id)
    ]


@pytest.mark.parametrize(
    ("asset", "before", "of"),
    [
        ("gold_questions", "parsed_elements", ""),
        ("chunk_sets", "parsed_elements", ""),
        ("chunk_embeddings", "chunk_sets", ".lance/data"),
        ("chunk_embeddings", "chunk_sets", ".lance/_versions"),
    ],
)
def test_a_bucket_that_is_away_for_a_moment_fails_no_run(
    impatient, corpus, s3_server, asset, before, of
):
    corpus.converge_until(before)
    due, away = corpus.tick()[asset], [1, 2]

    def be_away(method, key):
        if away and of in key and "/stamps/" not in key:
            away.pop()
            raise ConnectionAbortedError

    s3_server.before = be_away
    assert all(run.success for run in corpus.run(asset, *due))
    assert away == []


def test_what_failed_besides_is_said_before_the_step_is_tried_again(monkeypatch):
    # Its own module: others may have been loaded for a corpus of a test.
    monkeypatch.setitem(report.__globals__, "_compared", lambda context, built: built)
    logged = []
    context = SimpleNamespace(
        log=SimpleNamespace(error=logged.append, warning=logged.append),
        op_execution_context=SimpleNamespace(retry_number=0),
    )
    failed = {"a": ValueError("broken for good"), "b": StorageUnavailable("away")}
    with pytest.raises(dg.RetryRequested):
        list(report(context, failed))
    assert "a: broken for good" in logged


def test_a_bucket_that_stays_away_fails_a_run_that_says_so(impatient, corpus, s3_server, bucket):
    s3_server.denied = "/"
    (run,) = corpus.run("gold_questions")
    steps = [event.event_type_value for event in run.all_events if event.is_step_event]
    assert steps.count("STEP_START") + steps.count("STEP_RESTARTED") == 3
    (failure,) = (event for event in run.all_events if event.is_step_failure)
    said = failure.step_failure_data.error.to_string()
    assert said.count(f"StorageUnavailable: {bucket}: cannot read") == 1
    assert "403 Forbidden, InvalidAccessKeyId" in said


@pytest.mark.parametrize("others", [CONFLICTS, CONFLICTS + 5])
def test_a_partition_is_built_again_on_top_of_what_another_machine_wrote(others):
    left = {"each": others, "a": others, "b": 0}

    def build(key):
        left[key] -= 1
        if left[key] >= 0:
            raise Conflict("written by somebody else meanwhile")
        return Built(key)

    outcomes = attempt_each(["each"], build)
    outcomes |= attempt_together([["a", "b"]], lambda keys: {key: build(key) for key in keys})
    assert outcomes["b"] == Built("b")
    is_done = [isinstance(outcomes[key], Built) for key in ("each", "a")]
    assert is_done == [others == CONFLICTS] * 2
