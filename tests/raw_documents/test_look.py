"""A look in several sittings finds what one long look finds, and reads nothing twice."""

import itertools
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from chunking_assets.raw_documents import look as looking
from chunking_assets.raw_documents.collection import Collection
from chunking_assets.raw_documents.local_folder import LocalFolder
from chunking_assets.raw_documents.look import Look, Unfinished, look

DOCS = Collection(path="docs", shards=3, settle_seconds=0)
COUNT = 60


@pytest.fixture
def reads(monkeypatch):
    """The paths that were read, in order."""
    read, paths = LocalFolder.read, []

    def counted(self, file):
        paths.append(file.path)
        return read(self, file)

    monkeypatch.setattr(LocalFolder, "read", counted)
    return paths


@pytest.fixture
def root(tmp_path):
    for number in range(COUNT):
        write(tmp_path, f"{number % 7}/{number}.md", f"text {number}")
    return tmp_path


def write(root, name, text):
    """A file last written so long ago that its mark vouches for it."""
    file = root / "docs" / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


def ticks(root, collection=DOCS, seconds=5):
    """Sittings of so many seconds until the look is whole; each look at the clock takes one."""
    for _ in range(1000):
        clock = itertools.count().__next__
        found = look("docs", collection, root, root / "caches", until=seconds, clock=clock)
        yield found
        if isinstance(found, Look):
            return


def whole(root, collection=DOCS):
    return look("docs", collection, root, root / "other-caches")


def test_a_sitting_ends_with_its_time_and_the_last_one_has_found_everything(root, reads):
    *unfinished, last = ticks(root)
    assert all(isinstance(found, Unfinished) for found in unfinished)
    assert [found.files for found in unfinished] == list(range(6, COUNT + 1, 6))
    assert len(reads) == len(set(reads)) == COUNT
    assert last == whole(root)


def test_files_that_need_not_be_read_are_listed_in_bulk(root, monkeypatch):
    monkeypatch.setattr(looking, "FILES_BETWEEN_CLOCKS", 10)
    monkeypatch.setattr("chunking_assets.raw_documents.listing.RACY_NS", -(10**12))
    look("docs", DOCS, root, root / "caches")
    *unfinished, last = ticks(root, seconds=1)
    assert [found.files for found in unfinished] == [20, 40, 60]
    assert last == whole(root)


def test_a_sitting_without_any_time_still_gets_on(root):
    assert len(list(ticks(root, seconds=0))) == COUNT + 1


def test_what_changed_behind_the_place_reached_is_seen_by_the_next_look(root):
    sittings = ticks(root)
    next(sittings)
    first = sorted((root / "docs/0").iterdir())[0]
    first.write_text("changed meanwhile")
    (root / "docs/6/another.md").write_text("new")
    *_, found = sittings
    doc_ids = {doc_id for shard in found.revisions.values() for doc_id in shard}
    assert "docs/6/another.md" in doc_ids
    *_, found = ticks(root)
    assert found == whole(root)


def test_a_look_without_a_limit_sees_what_changed_behind_an_unfinished_one(root):
    next(ticks(root))
    sorted((root / "docs/0").iterdir())[0].write_text("changed meanwhile")
    assert look("docs", DOCS, root, root / "caches") == whole(root)


def test_another_declaration_begins_anew(root):
    next(ticks(root))
    fewer = DOCS.model_copy(update={"include": ("6/**",)})
    *_, found = ticks(root, fewer)
    assert found == whole(root, fewer)


@pytest.mark.parametrize("content", ["{", "[]", '{"declared": "of an older release"}'])
def test_a_damaged_memory_of_the_last_sitting_begins_anew(root, content):
    next(ticks(root))
    (root / "caches/files/docs.look").write_text(content)
    *_, found = ticks(root)
    assert found == whole(root)


def test_a_file_still_being_written_and_one_that_cannot_be_read_are_told_apart(root, monkeypatch):
    read = LocalFolder.read

    def refusing(self, file):
        if file.path == "0/7.md":
            raise PermissionError(13, "Permission denied")
        return read(self, file)

    monkeypatch.setattr(LocalFolder, "read", refusing)
    long_ago = time.time() - 1000
    for file in (root / "docs").rglob("*.md"):
        os.utime(file, (long_ago, long_ago))
    slow = DOCS.model_copy(update={"settle_seconds": 500.0})
    assert len(look("docs", slow, root, root / "caches").held) == COUNT  # the change time counts
    *_, found = ticks(root)
    assert (found.held, found.unreadable) == (frozenset(), {"docs/0/7.md"})
    assert sum(map(len, found.revisions.values())) == COUNT - 1


KILLED = """
import os, signal, sys
from pathlib import Path
from chunking_assets.raw_documents.collection import Collection
from chunking_assets.raw_documents.look import look

calls = 0

def clock():
    global calls
    calls += 1
    if calls == int(sys.argv[2]):
        os.kill(os.getpid(), signal.SIGKILL)
    return calls

root = Path(sys.argv[1])
docs = Collection(path="docs", shards=3, settle_seconds=0)
while True:
    look("docs", docs, root, root / "caches", until=clock() + 7, clock=clock)
"""


def test_a_killed_sitting_loses_nothing(root):
    command = [sys.executable, "-c", KILLED, str(root), "31"]
    source = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    assert subprocess.run(command, env=source, timeout=60).returncode == -signal.SIGKILL
    *_, found = ticks(root)
    assert found == whole(root)
