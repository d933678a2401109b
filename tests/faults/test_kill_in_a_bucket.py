"""SIGKILL at any request to a bucket, whether the server still obeys it or not: readers are served
whole content, and the next run ends with what a calm one leaves in a folder."""

import os
import random
import signal
import threading

import polars as pl
from fork_server import ForkServer
from small_corpus import SmallCorpus, write_corpus, write_document

from chunking_assets.chunk_embeddings.lance_index import LanceIndex

SEED = 11
KILLS_A_ROUND = int(os.environ.get("FAULTS", "200")) // 40
MOMENT = 1_700_000_000
ONE = {
    "chunkers": {"recursive-20@1": {"kind": "recursive", "max_tokens": 20}},
    "strategies": {"one": {"chunker": "recursive-20@1", "model": "hash", "profile": "hybrid"}},
}
OF_THE_MOMENT = {"at", "removed_at"}


def document(number, revision):
    return "\n\n".join(f"Sentence {n} of {number}, revision {revision}." for n in range(4))


def served(corpus):
    (name,) = corpus.config.index_versions
    index = LanceIndex(corpus.workspace, name)
    if index.served_version() is None:
        return []
    rows = pl.DataFrame(index.rows(served=True))
    return sorted(map(repr, rows.iter_rows()))


def held(corpus):
    found = {"index": served(corpus)}
    for table in corpus.workspace.tables():
        if table.name != "publications":
            rows = table.read_all()
            kept = rows.drop(*(OF_THE_MOMENT & {*rows.columns}))
            found[table.name] = sorted(map(repr, kept.iter_rows()))
    return found


class Killer:
    """Kills the process it is given at the n-th request, before or after the server obeys it."""

    def __init__(self, at, is_obeyed):
        self.left, self.is_obeyed = at, is_obeyed
        self.pid, self.is_known, self.lock = None, threading.Event(), threading.Lock()

    def __call__(self, method, key):
        with self.lock:
            self.left -= 1
            if self.left > 0:
                return
        self.is_known.wait(60)
        try:
            os.kill(self.pid, signal.SIGKILL)
        except ProcessLookupError:
            return
        if not self.is_obeyed:
            raise ConnectionAbortedError


def run_killed(stages, server, file, killer):
    server.before = killer
    (killer.pid,) = stages._begin([[file]])
    killer.is_known.set()
    (run,) = stages._ended(0, 1)
    server.heal()
    return run


def test_runs_killed_at_any_request_serve_whole_content_and_end_as_a_calm_one(
    tmp_path, bucket, s3_server
):
    files = [
        write_corpus(tmp_path / "calm", {}, **ONE),
        write_corpus(tmp_path / "killed", {}, workspace=bucket, **ONE),
    ]
    calm, killed = map(SmallCorpus, files)
    moments, before = random.Random(SEED), []
    with ForkServer("stages", tmp_path / "output") as stages:
        for revision in range(2):
            edit(calm.config.root, revision)
            edit(killed.config.root, revision)
            calm.update(confirm_deletions=True)
            whole, begun = [before, served(calm)], dict(s3_server.objects)
            before = served(calm)
            s3_server.requests.clear()
            stages.run(files[1])
            requests, kills = len(s3_server.requests), 0
            s3_server.objects = dict(begun)
            while kills < KILLS_A_ROUND:
                killer = Killer(moments.randint(1, requests), moments.random() < 0.5)
                if run_killed(stages, s3_server, files[1], killer).was_killed:
                    kills += 1
                else:  # killed runs got it done: again from the start
                    assert held(killed) == held(calm)
                    s3_server.objects = dict(begun)
                assert served(killed) in whole
            stages.run(files[1])
            assert held(killed) == held(calm)


def edit(root, revision):
    """All documents in the first revision; some of them, and one less, in the next."""
    for number in range(0, 8, 1 + 3 * revision):
        file = write_document(root, f"{number}.md", document(number, revision))
        os.utime(file, (MOMENT + revision,) * 2)
    if revision:
        (root / "docs" / "7.md").unlink()
