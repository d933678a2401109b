"""SIGKILL while a shard is chunked in processes, then run again: as if nothing had happened."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from small_corpus import SmallCorpus, write_corpus, write_document

from chunking_assets.chunk_sets.build import CHUNKS, EXCLUDED_SPANS, update_chunk_sets

TESTS = Path(__file__).parents[1]
DOCUMENTS = 60
CHUNKERS = {
    "recursive-20@1": {"kind": "recursive", "max_tokens": 20},
    "clean@1": {"kind": "fixed", "max_tokens": 20, "clean": {"boilerplate": 0.5}},
}
STRATEGIES = {"one": {"chunker": "clean@1", "model": "hash", "profile": "vector"}}

PROGRAM = """
import sys
from pathlib import Path
from small_corpus import SmallCorpus
from chunking_assets.chunk_sets import build
from chunking_assets.workspace import Table

build.WORTH_PROCESSES, build.BATCHES_PER_PROCESS = 0, 6
corpus = SmallCorpus(Path(sys.argv[1]))
versions = list(corpus.config.chunker_versions.values())

def say(what):
    print(what, flush=True)
    sys.stdin.readline()

def publish(table, manifest, publish=Table._publish):
    drop_unnamed = publish(table, manifest)
    say("stored")
    return drop_unnamed

Table._publish = publish
print("begun", flush=True)
build.update_chunk_sets(
    corpus.workspace, "docs", versions, corpus.models, progress=lambda *done: say("chunked"), workers=2
)
print("ended", flush=True)
"""  # without a guard for __main__, as people write scripts


def document(number, revision=0):
    sentences = (f"Sentence {n} of {number}, revision {revision}, says so." for n in range(12))
    return f"# Document {number}\n\n" + "\n\n".join(sentences) + "\n\nAll rights reserved.\n"


def parsed(root, revision=0):
    texts = {f"{n:03}.md": document(n, revision) for n in range(DOCUMENTS)}
    file = write_corpus(root, texts, chunkers=CHUNKERS, strategies=STRATEGIES)
    corpus = SmallCorpus(file)
    corpus.parse()
    return corpus


def start(corpus, script):
    script.write_text(PROGRAM)
    return subprocess.Popen(
        [sys.executable, script, corpus.config.file],
        env={**os.environ, "PYTHONPATH": f"{TESTS}:{TESTS.parent}"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def chunk(corpus):
    versions = list(corpus.config.chunker_versions.values())
    return update_chunk_sets(corpus.workspace, "docs", versions, corpus.models)


def stored(corpus):
    tables = [corpus.workspace.table(name) for name in (CHUNKS, EXCLUDED_SPANS)]
    return {
        (table.name, partition): (table.manifest(partition).version, table.read(partition))
        for table in tables
        for partition in table.partitions()
    }


def assert_same(found, expected):
    assert found.keys() == expected.keys()
    for key, (version, rows) in expected.items():
        assert found[key][0] == version
        assert found[key][1].equals(rows)


def kill(corpus, script, times, what):
    """Kill the script when it has chunked so many batches, or stored so many tables; its processes
    end with it, or they would hold what it writes to."""
    with start(corpus, script) as run:
        while times:
            said = run.stdout.readline()
            assert said
            times -= said == f"{what}\n"
            if times:
                run.stdin.write("\n")
                run.stdin.flush()
        run.kill()
        run.communicate(timeout=60)


def test_a_shard_killed_anywhere_is_chunked_by_the_next_run(tmp_path):
    killed = parsed(tmp_path / "killed")
    shutil.copytree(tmp_path / "killed", tmp_path / "calm")
    calm = SmallCorpus(tmp_path / "calm" / "corpus.yaml")
    for revision, kills in enumerate([("9 chunked", "1 stored"), ("2 stored",)]):
        if revision:
            for corpus in (calm, killed):
                for number in range(0, DOCUMENTS, 3):
                    text = document(number, revision)
                    write_document(corpus.config.root, f"{number:03}.md", text)
                (corpus.config.root / "docs" / "001.md").unlink()
                corpus.parse()
        chunk(calm)
        for moment in kills:
            before, (times, what) = stored(killed), moment.split()
            kill(killed, tmp_path / "script.py", int(times), what)
            if what == "chunked":
                assert_same(stored(killed), before)
        chunk(killed)
        assert_same(stored(killed), stored(calm))


def test_a_script_without_a_guard_is_run_once(tmp_path):
    corpus = parsed(tmp_path)
    run = start(corpus, tmp_path / "script.py")
    output, _ = run.communicate("\n" * DOCUMENTS, timeout=60)
    assert run.returncode == 0
    lines = output.split()
    assert [line for line in lines if line != "chunked"] == ["begun", *["stored"] * 3, "ended"]
    assert lines.count("chunked") >= 12
    assert len(stored(corpus)) == 3
    assert sum(update.chunks_redone for update in chunk(corpus)) == 0
