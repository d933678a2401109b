"""A process that only reads: what is served, and what every table holds, for who asks by a line.

A process of its own, because the stores are read while another process writes and is killed. What
it is told to look at stays open, as in a service that answers questions.
"""

import hashlib
import json
import subprocess
import sys
from pathlib import Path

from fork_server import TESTS, environment

OF_THE_MOMENT = {"at", "run_id", "seconds", "removed_at", "latency_s", "event_id"}
"""Columns that say when and not what."""


class Observer:
    """The questions to the process, and its answers."""

    def __init__(self, **changes):
        """`changes` are of the environment."""
        self.process = subprocess.Popen(
            [sys.executable, __file__],
            env=environment(**changes),
            cwd=TESTS.parent,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def served(self, file):
        """By strategy: a digest of all the chunks that a question finds."""
        return self._ask("served", file)

    def content(self, file):
        """By table: a digest of its rows in an order of their own, without what says when."""
        return self._ask("content", file)

    def reopen(self, file):
        """Forget what is open: another workspace was put in its place."""
        return self._ask("reopen", file)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.process.kill()
        self.process.communicate()

    def _ask(self, what, file):
        print(json.dumps([what, str(file)]), file=self.process.stdin, flush=True)
        line = self.process.stdout.readline()
        assert line, f"{what} of {file} cannot be read"
        return json.loads(line)


def digest_of(rows):
    return hashlib.blake2b(repr(sorted(rows)).encode(), digest_size=8).hexdigest()


class Observed:
    """One corpus.yaml, its readers and its tables."""

    def __init__(self, file):
        from small_corpus import HashEmbedder

        from chunking_assets import config as configuration
        from chunking_assets.retrieval import reader
        from chunking_assets.retrieval.open import open_strategy
        from chunking_assets.workspace import Workspace

        reader.FOLLOW_SECONDS = 0.0
        self.config = configuration.load(Path(file))
        self.workspace = Workspace(self.config.home)
        self.readers = {
            name: open_strategy(self.workspace, strategy, lambda: HashEmbedder(512))
            for name, strategy in self.config.strategies.items()
        }

    def served(self):
        from chunking_assets.chunk_embeddings.lance_index import LanceIndex

        found = {}
        for name, reader in self.readers.items():
            index = LanceIndex(self.workspace, self.config.strategies[name].index.name)
            if index.served_version() is not None:
                hits = reader.chosen(reader.rank("sentence of a document"))
                found[name] = digest_of((hit.chunk_id, hit.text) for hit in hits)
        for table in self.tables():
            for partition in table.partitions():
                assert (damage := table.damage(partition)) is None, damage
        return found

    def content(self):
        import duckdb
        import polars as pl

        from chunking_assets.chunk_embeddings.lance_index import LanceIndex

        found = {}
        for table in self.tables():
            rows = table.read_all()
            kept = rows.drop(*(OF_THE_MOMENT & set(rows.columns)))
            found[table.name] = digest_of(map(repr, kept.iter_rows()))
        for name in self.config.index_versions:
            rows = pl.DataFrame(LanceIndex(self.workspace, name).open_served().to_arrow())
            found[name] = digest_of(map(repr, rows.iter_rows()))
        if self.workspace.eval_database.exists():
            with duckdb.connect(self.workspace.eval_database, read_only=True) as connection:
                rows = connection.execute("select * from leaderboard").fetchall()
            found["leaderboard"] = digest_of(
                repr([round(v, 9) if isinstance(v, float) else v for v in row]) for row in rows
            )
        return found

    def tables(self):
        """All but a log of what was done, which is not the same, and of when versions were served."""
        for table in self.workspace.tables():
            if table.name not in ("builds", "publications", "costs"):
                yield table


def _answer():
    observed = {}
    for line in sys.stdin:
        what, file = json.loads(line)
        if file not in observed or what == "reopen":
            observed[file] = Observed(file)
        said = None if what == "reopen" else getattr(observed[file], what)()
        print(json.dumps(said), flush=True)


if __name__ == "__main__":
    _answer()
