"""What lies in a collection now: names and marks by one listing, content by hash.

What a source vouches by (size, times, inode, etag) only pre-filters: a file whose mark is known is
not read again, any other is hashed, and the hash decides. Whatever is passed over is reported with
its reason, under a name that is nobody's path.
"""

import json
import time
import unicodedata
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path, PurePosixPath
from urllib.parse import quote

from chunking_assets.keys import digest
from chunking_assets.raw_documents.collection import Collection
from chunking_assets.raw_documents.source import Skipped, Source, SourceFile, hostile
from chunking_assets.workspace import write_atomically

RACY_NS = 2_000_000_000
"""A file changed this shortly before it was hashed may change again under the same mark."""


@dataclass(frozen=True, slots=True)
class ListedFile:
    """One file of a collection. `doc_id` is collection + relative path (POSIX, NFC)."""

    doc_id: str
    file: SourceFile
    source: Source

    @property
    def name(self) -> str:
        return PurePosixPath(self.file.path).name

    @property
    def size(self) -> int:
        """Bytes, as far as the source says."""
        return self.file.size or 0

    def read(self) -> bytes:
        """
        Raises:
            OSError: it cannot be read.
        """
        return self.source.read(self.file)

    def is_settling(self, seconds: float, now: float) -> bool:
        """Whether it was written to in the last `seconds`. A time to come says nothing of writing;
        the clock of another machine may be ahead."""
        touched = self.file.touched_ns
        return touched is not None and 0 <= now - touched / 1e9 < seconds

    @property
    def unread_revision(self) -> str:
        """Stands for the hash of a file that is not read: changes with what its listing says."""
        return f"unread-{digest(self.file.mark or [self.file.size])}"


@dataclass(frozen=True)
class Scan:
    """One look at a collection: its files by shard, those still being written, those passed over.

    `held` are doc_ids that exist but are not settled: neither new content nor an absence may be
    concluded from them. `skipped` pairs a path with the reason it is not a document.
    """

    files: Mapping[str, list[ListedFile]]
    held: frozenset[str] = frozenset()
    skipped: Skipped = field(default_factory=list)


SAME_NAME = "another file's name is the same after normalisation"


def listed_files(
    name: str,
    collection: Collection,
    source: Source,
    skipped: Skipped,
    after: str | None = None,
    seen: Container[str] = (),
) -> Iterator[ListedFile]:
    """The documents of a collection in its source's order, from the first one `after` a path;
    `seen` are those before it. No file is opened.

    Raises:
        CorpusError: it cannot be listed; nothing may be taken as deleted.
    """
    taken: set[str] = set()
    for file in source.files(skipped, after):
        if reason := hostile(file.path):
            skipped.append((file.path, reason))
            continue
        if not collection.includes(file.path):
            continue
        doc_id = f"{name}/{unicodedata.normalize('NFC', file.path)}"
        if doc_id in taken or doc_id in seen:
            skipped.append((file.path, SAME_NAME))
            continue
        taken.add(doc_id)
        yield ListedFile(doc_id, file, source)


def scan(name: str, collection: Collection, root: Path, now: float | None = None) -> Scan:
    """List a collection once, whole.

    Raises:
        CorpusError: it cannot be listed; nothing may be taken as deleted.
    """
    now = time.time() if now is None else now
    skipped: Skipped = []
    files: dict[str, list[ListedFile]] = {shard: [] for shard in collection.shards_of(name)}
    held = set()
    for file in listed_files(name, collection, collection.source(root), skipped):
        if file.is_settling(collection.settle_seconds, now):
            held.add(file.doc_id)
        files[collection.shard_of(name, file.doc_id)].append(file)
    reported = [
        (_escaped(path) if why == SAME_NAME or hostile(path) else path, why)
        for path, why in skipped
        if not collection.excludes(path)
    ]
    return Scan(files, frozenset(held), reported)


def scan_settled(name: str, collection: Collection, root: Path) -> Scan:
    """As `scan`, after giving files that were just written one chance to settle."""
    first = scan(name, collection, root)
    if not first.held:
        return first
    time.sleep(collection.settle_seconds)
    return scan(name, collection, root)


def _escaped(path: str) -> str:
    """A name that is passed over for its spelling, so that it can be shown and is like no other.

    >>> _escaped("../a.md"), _escaped("cafe\u0301.md")
    ('%2E%2E/a.md', 'cafe%CC%81.md')
    """
    return "/".join(
        "%2E" * len(part) if part in (".", "..") else quote(part, " ", errors="surrogateescape")
        for part in path.split("/")
    )


class FileIndex:
    """Revisions of files by their marks, one small file per shard: a cache, safe to delete."""

    def __init__(self, caches: Path, shard: str) -> None:
        self._file = caches / "files" / f"{shard}.json"
        self._stored = _load(self._file)
        self._marks = dict(self._stored)

    def known(self, file: ListedFile) -> str | None:
        """The revision its mark vouches for, if it was read under that mark."""
        entry, mark = self._marks.get(file.doc_id), file.file.mark
        if entry is None or mark is None or entry[:-1] != mark:
            return None
        return str(entry[-1])

    def learn(self, file: ListedFile, doc_rev: str, read_at_ns: int) -> None:
        """Remember what was read, unless the file was written to just before. (A distant one is
        held until it has settled: not to remember it would be to read it again.)"""
        mark, touched = file.file.mark, file.file.touched_ns
        is_racy = file.source.is_local and touched is not None and touched >= read_at_ns - RACY_NS
        if mark is not None and not is_racy:
            self._marks[file.doc_id] = [*mark, doc_rev]

    def revision(self, file: ListedFile, max_bytes: int) -> str:
        """What a look takes for the revision of a file: its hash, where that is known or costs a
        read of this machine's disk only.

        Raises:
            OSError: it cannot be read.
        """
        if file.size > max_bytes:
            return file.unread_revision
        known = self.known(file)
        if known is not None:
            return known
        if not file.source.is_local and file.file.mark is not None:
            return file.unread_revision
        now_ns = time.time_ns()
        doc_rev = sha256(file.read()).hexdigest()
        self.learn(file, doc_rev, now_ns)
        return doc_rev

    def save(self, doc_ids: Container[str] | None = None) -> None:
        """Keep what is known, of these documents only if they are given."""
        if doc_ids is not None:
            self._marks = {d: entry for d, entry in self._marks.items() if d in doc_ids}
        if self._marks != self._stored:
            write_atomically(self._file, json.dumps(self._marks).encode())
            self._stored = dict(self._marks)


def _load(file: Path) -> dict[str, list[object]]:
    try:
        content = json.loads(file.read_bytes())
    except (FileNotFoundError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def content_version(revisions: Mapping[str, str]) -> str:
    """Changes exactly when a document appears, vanishes or has other bytes; doc_id -> doc_rev."""
    return digest("raw_documents", sorted(revisions.items()))
