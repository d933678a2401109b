"""Cells as Ray tasks, on a real cluster of this machine: as in one process, and nobody else's."""

import json
import os
import signal
import subprocess
import sys
import tempfile
from contextlib import contextmanager

import pytest
from fork_server import TESTS, environment
from observer import Observed
from processes import end, free_port, listening, marked, wait_for

from chunking_assets.retrieval import reader

pytest.importorskip("ray", reason="the extra `ray` is not installed")

WITHIN = 300
"""Seconds, on a machine with much else to do."""
COLLECTIONS = {
    "docs": {"path": "docs", "shards": 2, "settle_seconds": 0},
    "notes": {"path": "notes", "settle_seconds": 0},
}
CLAIMS = {
    "models": {"hash": {"resources": {"embedder": 1}}},
    "versions": {"fixed-20@1": {"num_cpus": 0.5}},
}
FOLDER = "RAY_WORKERS_FOLDER"
MADE_BY = "[chunking_assets.embedding_models]\nhash = ray_workers:HashModel\n"


def of_the_test(root, port):
    """The environment of whoever works on the corpus in `root`, with the model as a plug-in."""
    offered = root / "site" / "ray_workers-1.dist-info"
    offered.mkdir(parents=True, exist_ok=True)
    (offered / "METADATA").write_text("Metadata-Version: 2.1\nName: ray-workers\nVersion: 1\n")
    (offered / "entry_points.txt").write_text(MADE_BY)
    told = root / "told"
    told.mkdir(exist_ok=True)
    variables = environment(
        CORPUS_CONFIG=str(root / "corpus.yaml"), CORPUS_EXECUTOR="ray",
        RAY_ADDRESS=f"127.0.0.1:{port}", RAY_worker_niceness="0", **{FOLDER: str(told)},
    )  # fmt: skip
    for name in ("RAY_AUTH_MODE", "RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"):
        variables.pop(name, None)
    variables["PYTHONPATH"] += f":{offered.parent}"
    return variables, told


@contextmanager
def running(command, output, variables):
    """A process and what it starts, as long as it is needed."""
    with output.open("w") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", *command], env=variables, cwd=TESTS.parent,
            stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
        )  # fmt: skip
    try:
        yield process
    finally:
        process.kill()
        process.wait()


@contextmanager
def cluster(variables, port, output):
    """`python -m dagster_defs.ray_cluster`; its files have short names, for sockets are among them."""
    with tempfile.TemporaryDirectory(dir="/tmp", prefix="ray") as folder:
        command = [
            "dagster_defs.ray_cluster", "--port", str(port), "--ray-client-server-port", str(free_port()),
            "--temp-dir", folder, "--num-cpus", "2", "--resources", '{"embedder": 4}',
        ]  # fmt: skip

        def has_started():
            return "runtime started" in output.read_text() or process.poll() is not None

        for _ in range(3):  # Ray gives up after half a minute, which may be too little
            with running(command, output, variables) as process:
                try:
                    wait_for(WITHIN, has_started)
                    if process.poll() is None:
                        yield
                        assert end(process, variables[FOLDER]) == []
                        return
                finally:
                    end(process, variables[FOLDER])
        raise AssertionError(output.read_text())


def refuses_who_has_no_token(port):
    import grpc

    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        ask = channel.unary_unary("/ray.rpc.NodeInfoGcsService/GetAllNodeInfo")
        with pytest.raises(grpc.RpcError) as refused:
            ask(b"", timeout=30)
    return refused.value.code() == grpc.StatusCode.UNAUTHENTICATED


def test_a_run_on_ray_with_a_killed_worker_ends_as_a_calm_run_and_is_reached_from_nowhere_else(
    corpus_of, tmp_path_factory, monkeypatch
):
    monkeypatch.setattr(reader, "FOLLOW_SECONDS", reader.FOLLOW_SECONDS)  # the observer sets it
    disturbed = tmp_path_factory.mktemp("disturbed")
    calm = corpus_of(
        collections=COLLECTIONS,
        embedding={"batch_chunks": 4},
        execution={"ray": CLAIMS},
    )
    assert len(calm.config.shards()) == 3
    for name in ("docs", "notes", "questions.yaml", "corpus.yaml"):
        (disturbed / name).symlink_to(calm.root / name)
    calm.materialize()

    port = free_port()
    variables, told = of_the_test(disturbed, port)
    mine, output = str(told), disturbed / "output.txt"
    with (
        cluster(variables, port, disturbed / "cluster.txt"),
        running(["dagster_defs.materialize"], output, variables) as run,
    ):
        # Its neighbours, of the same table, were built while this cell embeds.
        wait_for(WITHIN, lambda: (told / "waits").exists() or run.poll() is not None)
        assert run.poll() is None, output.read_text()
        listens = listening(marked(mine))
        assert refuses_who_has_no_token(port)
        os.kill(int((told / "waits").read_text()), signal.SIGKILL)
        assert run.wait(WITHIN) == 0, output.read_text()

    assert (disturbed / ".corpus" / "ray" / "token").stat().st_mode & 0o777 == 0o600
    assert port in {port for _, port in listens}
    assert len(listens) > 5
    assert {str(address) for address, _ in listens if not address.is_loopback} == set()
    claimed = [json.loads(file.read_text()) for file in told.glob("*.json")]
    assert {(c["CPU"], c["embedder"]) for c in claimed} == {(1, 1), (0.5, 1)}
    expected = Observed(calm.config.file).content()
    assert len(expected) > 10
    assert Observed(disturbed / "corpus.yaml").content() == expected
