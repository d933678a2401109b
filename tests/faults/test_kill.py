"""SIGKILL anywhere in a full run, then run again: every table equals that of an undisturbed run."""

import os
import random
import shutil
import subprocess
import sys
import time
from pathlib import Path

import duckdb
import polars as pl
import yaml
from small_corpus import write_corpus, write_document

from chunking_assets import config as configuration
from chunking_assets.chunk_embeddings.lance_index import LanceIndex
from chunking_assets.workspace import Workspace

TESTS = Path(__file__).parents[1]
SEED = 7
KILLS = 6
OF_THE_MOMENT = {"at", "run_id", "seconds", "removed_at", "latency_s", "event_id"}
"""Columns that say when and not what."""


def document(number, revision=0):
    return "\n\n".join(
        f"# Part {part} of {number}\n\nSentence {part} of document {number} in revision {revision}."
        for part in range(6)
    )


def write_inputs(root, documents):
    """Documents, gold questions about them, and the configuration."""
    questions = [
        {
            "id": f"question-{number}",
            "question": f"What does part 3 of document {number} say?",
            "answer": "A sentence.",
            "language": "en",
            "evidence": [
                {"doc_id": f"docs/{number}.md", "quote": f"Sentence 3 of document {number}"}
            ],
        }
        for number in range(12)
    ]
    root.mkdir(parents=True, exist_ok=True)
    (root / "gold.yaml").write_text(yaml.safe_dump({"questions": questions}))
    return write_corpus(
        root,
        {f"{number}.md": document(number) for number in range(documents)},
        collections={"docs": {"path": "docs", "shards": 2, "settle_seconds": 0}},
        questions=["gold.yaml"],
        comparison={"metric": "recall@5", "resamples": 200},
    )


def edit(root):
    """An edit, a deletion, an addition; the same in every corpus, times included."""
    for name, text in (("3.md", document(3, revision=1)), ("new.md", document(99))):
        os.utime(write_document(root, name, text), (1_700_000_000, 1_700_000_000))
    (root / "docs" / "20.md").unlink()


def start(file):
    environment = {
        **os.environ,
        "CORPUS_CONFIG": str(file),
        "PYTHONPATH": f"{TESTS}:{TESTS.parent}",
        "DAGSTER_DISABLE_TELEMETRY": "yes",
    }
    for name in ("DAGSTER_HOME", "CORPUS_HOME", "OPENAI_API_KEY", "OPENAI_BASE_URL"):
        environment.pop(name, None)
    command = [sys.executable, str(TESTS / "materialize_small.py"), "--promote-first"]
    run = subprocess.Popen(
        command,
        env=environment,
        cwd=TESTS.parent,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert run.stdout is not None
    assert run.stdout.readline() == "ready\n", run.stdout.read()
    return run


def kill(run):
    """Kill and reap. Dagster's log watchers hold the pipe until the dead process is reaped, so
    reading it to its end first would wait for ever."""
    run.kill()
    run.wait()
    run.stdout.close()


def finish(file):
    """Run to the end; what was printed, and how many seconds the work took."""
    run = start(file)
    begun = time.monotonic()
    output, _ = run.communicate(timeout=300)
    assert run.returncode == 0, output
    return output, time.monotonic() - begun


def content(file):
    """Every table, in an order of its own, without what says when."""
    config = configuration.load(file)
    workspace = Workspace(config.home)
    found = {}
    for folder in sorted((workspace.root / "tables").iterdir()):
        if folder.name == "builds":
            continue  # a log of what was done, which is not the same
        rows = workspace.table(folder.name).read_all()
        kept = rows.drop(*(OF_THE_MOMENT & set(rows.columns)))
        found[folder.name] = sorted(map(repr, kept.iter_rows()))
    for name in config.index_versions:
        rows = pl.DataFrame(LanceIndex(workspace, name).open_served().to_arrow())
        found[name] = sorted(map(repr, rows.iter_rows()))
    with duckdb.connect(workspace.eval_database, read_only=True) as connection:
        leaderboard = connection.execute("select * from leaderboard order by strategy")
        found["leaderboard"] = [
            [round(value, 9) if isinstance(value, float) else value for value in row]
            for row in leaderboard.fetchall()
        ]
    return found


def assert_same(found, expected):
    assert found.keys() == expected.keys()
    different = [name for name in expected if found[name] != expected[name]]
    assert not different


def test_a_run_killed_again_and_again_ends_as_if_nothing_had_happened(tmp_path):
    calm, killed = tmp_path / "calm", tmp_path / "killed"
    file = write_inputs(calm, 24)
    shutil.copytree(calm, killed)
    _, seconds = finish(file)

    moments = random.Random(SEED)
    for _ in range(KILLS):
        run = start(killed / "corpus.yaml")
        time.sleep(moments.uniform(0, seconds))
        kill(run)
    finish(killed / "corpus.yaml")
    assert_same(content(killed / "corpus.yaml"), content(file))

    for root in (calm, killed):
        edit(root)
    _, seconds = finish(file)
    for _ in range(KILLS // 2):
        run = start(killed / "corpus.yaml")
        time.sleep(moments.uniform(0, seconds))
        kill(run)
    finish(killed / "corpus.yaml")
    assert_same(content(killed / "corpus.yaml"), content(file))

    output, _ = finish(killed / "corpus.yaml")
    assert "Nothing changed" in output
