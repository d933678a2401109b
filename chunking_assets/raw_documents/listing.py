"""What lies in a collection's folder now: names and stats by one scan, content by hash.

Size, times and inode only pre-filter: a file they vouch for is not read again, any other is hashed,
and the hash decides. Symbolic links are never followed, hidden and unfinished files are left
alone, and whatever is passed over is reported with its reason.
"""

import json
import os
import time
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pathspec

from chunking_assets.errors import CorpusError
from chunking_assets.keys import digest, file_sha
from chunking_assets.raw_documents.collection import Collection
from chunking_assets.workspace import write_atomically

UNFINISHED_SUFFIXES = (".part", ".tmp", ".crdownload", ".swp", "~")
RACY_NS = 2_000_000_000
"""A file changed this shortly before it was hashed may change again under the same stat."""


@dataclass(frozen=True, slots=True)
class FileStat:
    """One file as the scan saw it. `doc_id` is collection + relative path (POSIX, NFC)."""

    doc_id: str
    path: Path
    size: int
    modified_ns: int
    changed_ns: int
    inode: int


@dataclass(frozen=True, slots=True)
class SourceDocument:
    """A file and the sha256 of its bytes: the revision of the document."""

    stat: FileStat
    doc_rev: str

    @property
    def doc_id(self) -> str:
        return self.stat.doc_id


@dataclass(frozen=True)
class Scan:
    """One look at a collection: its files by shard, those still being written, those passed over.

    `held` are doc_ids that exist but are not settled: neither new content nor an absence may be
    concluded from them. `skipped` pairs a path with the reason it is not a document.
    """

    files: Mapping[str, list[FileStat]]
    held: frozenset[str] = frozenset()
    skipped: list[tuple[str, str]] = field(default_factory=list)


def scan(name: str, collection: Collection, root: Path, now: float | None = None) -> Scan:
    """Walk a collection's folder once, with `stat` only; no file is opened.

    Raises:
        CorpusError: the folder is not there or cannot be read; nothing may be taken as deleted.
    """
    now = time.time() if now is None else now
    folder = collection.folder(root)
    include = pathspec.GitIgnoreSpec.from_lines(collection.include)
    exclude = pathspec.GitIgnoreSpec.from_lines(collection.exclude)
    files: dict[str, list[FileStat]] = {shard: [] for shard in collection.shards_of(name)}
    held: set[str] = set()
    skipped: list[tuple[str, str]] = []
    seen: set[str] = set()
    for entry in sorted(_walk(folder, skipped), key=lambda e: e.path):
        relative = os.path.relpath(entry.path, folder).replace(os.sep, "/")
        if not _is_utf8(relative):
            skipped.append((ascii(relative), "its name is not valid UTF-8"))
            continue
        if not include.match_file(relative) or exclude.match_file(relative):
            continue
        doc_id = f"{name}/{unicodedata.normalize('NFC', relative)}"
        if doc_id in seen:
            skipped.append((relative, "another file's name is the same after normalisation"))
            continue
        seen.add(doc_id)
        try:
            stat = entry.stat(follow_symlinks=False)
        except FileNotFoundError:
            continue  # gone since its folder was read
        # A time to come says nothing of writing; the clock of another machine may be ahead.
        if any(0 <= now - t < collection.settle_seconds for t in (stat.st_mtime, stat.st_ctime)):
            held.add(doc_id)
        files[collection.shard_of(name, doc_id)].append(
            FileStat(
                doc_id=doc_id,
                path=Path(entry.path),
                size=stat.st_size,
                modified_ns=stat.st_mtime_ns,
                changed_ns=stat.st_ctime_ns,
                inode=stat.st_ino,
            )
        )
    return Scan(files, frozenset(held), skipped)


def scan_settled(name: str, collection: Collection, root: Path) -> Scan:
    """As `scan`, after giving files that were just written one chance to settle."""
    first = scan(name, collection, root)
    if not first.held:
        return first
    time.sleep(collection.settle_seconds)
    return scan(name, collection, root)


def _walk(folder: Path, skipped: list[tuple[str, str]]) -> Iterator[os.DirEntry[str]]:
    stack = [str(folder)]
    while stack:
        current = stack.pop()
        try:
            entries = list(os.scandir(current))
        except OSError as error:
            if isinstance(error, FileNotFoundError) and current != str(folder):
                continue  # gone since its parent was read
            raise CorpusError(
                f"{current}: cannot be listed ({error.strerror}). Nothing is taken as deleted; "
                "make the folder readable, or correct the collection's path."
            ) from error
        for entry in entries:
            if entry.name.startswith(".") or entry.name.endswith(UNFINISHED_SUFFIXES):
                continue
            if entry.is_symlink():
                skipped.append((entry.path, "symbolic links are not followed"))
            elif entry.is_dir(follow_symlinks=False):
                stack.append(entry.path)
            elif entry.is_file(follow_symlinks=False):
                yield entry
            else:
                skipped.append((entry.path, "not a regular file"))


def _is_utf8(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


class FileIndex:
    """Revisions of files by their stats, one small file per shard: a cache, safe to delete."""

    def __init__(self, caches: Path, shard: str) -> None:
        self._file = caches / "files" / f"{shard}.json"

    def revisions(self, files: list[FileStat]) -> tuple[list[SourceDocument], list[str]]:
        """The revision of each file, hashing those whose stats are new; then the unreadable ones.

        A file that cannot be read, or vanishes meanwhile, is not in the first list; its doc_id is
        in the second.
        """
        known = self._load()
        now_ns = time.time_ns()
        fresh: dict[str, list[object]] = {}
        documents: list[SourceDocument] = []
        unreadable: list[str] = []
        for stat in files:
            mark = [stat.size, stat.modified_ns, stat.changed_ns, stat.inode]
            entry = known.get(stat.doc_id)
            if entry is not None and entry[:4] == mark:
                doc_rev = str(entry[4])
            else:
                try:
                    doc_rev = file_sha(stat.path)
                except OSError:
                    unreadable.append(stat.doc_id)
                    continue
            if max(stat.modified_ns, stat.changed_ns) < now_ns - RACY_NS:
                fresh[stat.doc_id] = [*mark, doc_rev]
            documents.append(SourceDocument(stat, doc_rev))
        if fresh != known:
            write_atomically(self._file, json.dumps(fresh, ensure_ascii=False).encode())
        return documents, unreadable

    def _load(self) -> dict[str, list[object]]:
        try:
            content = json.loads(self._file.read_bytes())
        except (FileNotFoundError, ValueError):
            return {}
        return content if isinstance(content, dict) else {}


def content_version(revisions: Mapping[str, str]) -> str:
    """Changes exactly when a document appears, vanishes or has other bytes; doc_id -> doc_rev."""
    return digest("raw_documents", sorted(revisions.items()))
