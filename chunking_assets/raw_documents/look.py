"""One look at a collection, in as many sittings as it takes.

A sensor has seconds, and a collection may take minutes to list and to hash. What a sitting found is
kept beside the other caches, with the path it got to, so the next one goes on from there: after a
kill with what the last sitting kept, and after a change of the declaration from the start.
"""

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import Any

from chunking_assets.keys import digest
from chunking_assets.raw_documents.collection import Collection
from chunking_assets.raw_documents.listing import FileIndex, ListedFile, listed_files
from chunking_assets.workspace import write_atomically

FILES_BETWEEN_CLOCKS = 256
"""How many files are listed before the clock is read; it is read after every hash as well."""

Clock = Callable[[], float]


@dataclass(frozen=True)
class Look:
    """A collection as it is now: shard -> doc_id -> revision of what can be read and is settled;
    `held` is still being written, `unreadable` is there and cannot be read."""

    revisions: Mapping[str, Mapping[str, str]]
    held: frozenset[str] = frozenset()
    unreadable: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Unfinished:
    """A look that ran out of time after so many files; the next call goes on."""

    files: int


def look(
    name: str,
    collection: Collection,
    root: Path,
    caches: Path,
    *,
    until: float = inf,
    clock: Clock = time.monotonic,
) -> Look | Unfinished:
    """Look at a collection, until a time of the `clock` in seconds; without one, all of it anew.

    However little time there is, some files are looked at.

    Raises:
        CorpusError: it cannot be listed; nothing may be taken as deleted.
    """
    sitting = _Sitting(name, collection, caches, goes_on=until < inf)
    now = time.time()
    source = collection.source(root)
    listed = listed_files(name, collection, source, [], sitting.after, sitting.seen)
    for number, file in enumerate(listed, 1):
        was_read = sitting.add(file, now)
        if (was_read or number % FILES_BETWEEN_CLOCKS == 0) and clock() >= until:
            return sitting.leave()
    return sitting.finish()


def look_settled(name: str, collection: Collection, root: Path, caches: Path) -> Look:
    """A whole look, after giving files that were just written one chance to settle."""
    found = look(name, collection, root, caches)
    if isinstance(found, Look) and found.held:
        time.sleep(collection.settle_seconds)
        found = look(name, collection, root, caches)
    assert isinstance(found, Look)
    return found


class _Sitting:
    """What was found so far, and the path the look got to."""

    def __init__(self, name: str, collection: Collection, caches: Path, goes_on: bool) -> None:
        self.name, self.collection = name, collection
        self.indexes = {shard: FileIndex(caches, shard) for shard in collection.shards_of(name)}
        self.kept = caches / "files" / f"{name}.look"
        self.declared = digest(collection.model_dump(mode="json"))
        before = self._load() if goes_on else {}
        self.after: str | None = before.get("after")
        self.found: dict[str, dict[str, str]] = before.get("found", {s: {} for s in self.indexes})
        self.held: set[str] = {*before.get("held", [])}
        self.unreadable: set[str] = {*before.get("unreadable", [])}
        self.seen = self.held.union(self.unreadable, *self.found.values())

    def _load(self) -> dict[str, Any]:
        try:
            before = json.loads(self.kept.read_bytes())
        except (FileNotFoundError, ValueError):
            return {}
        same = isinstance(before, dict) and before.get("declared") == self.declared
        return before if same else {}

    def add(self, file: ListedFile, now: float) -> bool:
        """Find out a file's revision; whether its content had to be read for that."""
        self.after = file.file.path
        if file.is_settling(self.collection.settle_seconds, now):
            self.held.add(file.doc_id)
            return False
        shard = self.collection.shard_of(self.name, file.doc_id)
        index = self.indexes[shard]
        known = index.known(file)
        try:
            doc_rev = known or index.revision(file, self.collection.max_bytes)
            self.found[shard][file.doc_id] = doc_rev
        except OSError:
            self.unreadable.add(file.doc_id)
        return known is None

    def leave(self) -> Unfinished:
        for index in self.indexes.values():
            index.save()
        state = {
            "declared": self.declared,
            "after": self.after,
            "found": self.found,
            "held": sorted(self.held),
            "unreadable": sorted(self.unreadable),
        }
        write_atomically(self.kept, json.dumps(state).encode())
        return Unfinished(sum(map(len, (self.held, self.unreadable, *self.found.values()))))

    def finish(self) -> Look:
        absent = self.held | self.unreadable
        for shard, index in self.indexes.items():
            index.save(self.found[shard].keys() | absent)
        self.kept.unlink(missing_ok=True)
        return Look(self.found, frozenset(self.held), frozenset(self.unreadable))
