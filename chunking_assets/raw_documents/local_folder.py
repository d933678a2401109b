"""Files below a folder of this machine. Symbolic links are never followed."""

import os
from collections.abc import Iterator
from pathlib import Path

from chunking_assets.errors import CorpusError
from chunking_assets.raw_documents.source import UNFINISHED_SUFFIXES, Skipped, SourceFile


class LocalFolder:
    """A folder, walked folder by folder in the order of names."""

    is_local, readers = True, 1

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def files(self, skipped: Skipped, after: str | None = None) -> Iterator[SourceFile]:
        return self._walk("", after.split("/") if after else [], skipped)

    def _walk(self, folder: str, after: list[str], skipped: Skipped) -> Iterator[SourceFile]:
        first, *rest = after or [""]
        for entry in self._entries(folder):
            if entry.name.startswith(".") or entry.name.endswith(UNFINISHED_SUFFIXES):
                continue
            if entry.name < first or (entry.name == first and not rest):
                continue
            path = f"{folder}{entry.name}"
            if entry.is_symlink():
                skipped.append((path, "symbolic links are not followed"))
            elif entry.is_dir(follow_symlinks=False):
                yield from self._walk(f"{path}/", rest if entry.name == first else [], skipped)
            elif entry.is_file(follow_symlinks=False):
                try:
                    stat = entry.stat(follow_symlinks=False)
                except FileNotFoundError:
                    continue  # gone since its folder was read
                yield _file(path, stat)
            else:
                skipped.append((path, "not a regular file"))

    def _entries(self, folder: str) -> list[os.DirEntry[str]]:
        try:
            with os.scandir(self.folder / folder) as entries:
                return sorted(entries, key=lambda entry: entry.name)
        except OSError as error:
            if isinstance(error, FileNotFoundError) and folder:
                return []  # gone since its parent was read
            raise CorpusError(
                f"{self.folder / folder}: cannot be listed ({error.strerror}). Nothing is taken "
                "as deleted; make the folder readable, or correct the collection's path."
            ) from error

    def read(self, file: SourceFile) -> bytes:
        with os.fdopen(
            os.open(self.folder / file.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb"
        ) as handle:
            before = os.fstat(handle.fileno())
            content = handle.read()
            if _file(file.path, os.fstat(handle.fileno())) != _file(file.path, before):
                raise OSError(f"{file.path} was written to while it was read")
        return content


def _file(path: str, stat: os.stat_result) -> SourceFile:
    # The change time cannot be set by hand: a forged or restored mtime does not hide an edit.
    etag = f"{stat.st_mtime_ns:x}-{stat.st_ctime_ns:x}-{stat.st_ino:x}"
    touched_ns = max(stat.st_mtime_ns, stat.st_ctime_ns)
    return SourceFile(path, stat.st_size, stat.st_mtime_ns, etag, touched_ns)
