"""Files below an fsspec URL: s3://, gs:// and every other file system that has a back end.

Credentials come from the environment or the cloud's own chain, never from the URL, and no message
repeats what a URL may carry beside its path.
"""

import threading
from collections.abc import Iterator, Mapping
from datetime import datetime
from email.utils import parsedate_to_datetime
from queue import Empty, SimpleQueue
from typing import Any

from chunking_assets.errors import CorpusError
from chunking_assets.raw_documents.source import (
    Skipped,
    SourceFile,
    hostile,
    is_left_alone,
    redacted,
)

EXTRAS = {"s3": "s3", "s3a": "s3", "gs": "gcs", "gcs": "gcs", "http": "http", "https": "http"}
"""URL schemes and the optional dependencies of this package that read them."""

_ETAGS = ("ETag", "etag", "md5Hash", "Content-MD5", "Digest")
_TIMES = ("LastModified", "last_modified", "Last-Modified", "mtime", "updated", "created")


LISTING_SECONDS = 15.0
"""What a source is given for an answer, unless its collection says otherwise."""
READING = 10
"""So many times as long a file may take: it may be large, while something of it always comes."""


class FileSystem:
    """Everything below a URL, listed folder by folder in the order of names.

    A folder that is not listed within `seconds` fails the listing; a file takes ten times as long
    at most, if something comes all the time.

    Raises:
        CorpusError: the back end is not installed.
    """

    is_local, readers = False, 16

    def __init__(self, url: str, seconds: float = LISTING_SECONDS) -> None:
        self.where, self._seconds = redacted(url), seconds
        self._system, self._root = open_file_system(url, seconds)

    def files(self, skipped: Skipped, after: str | None = None) -> Iterator[SourceFile]:
        self._system.invalidate_cache()
        return self._walk("", after.split("/") if after else [], skipped)

    def _walk(self, folder: str, after: list[str], skipped: Skipped) -> Iterator[SourceFile]:
        first, *rest = after or [""]
        for name, info in self._entries(folder):
            if after and (name < first or (name == first and not rest)):
                continue
            if is_left_alone(name):
                continue
            path = f"{folder}{name}"
            if info.get("islink"):
                skipped.append((path, "symbolic links are not followed"))
            elif info["type"] == "directory":
                if reason := hostile(path):
                    skipped.append((path, reason))
                else:
                    yield from self._walk(f"{path}/", rest if name == first else [], skipped)
            else:
                yield listed(path, info)

    def _entries(self, folder: str) -> list[tuple[str, Mapping[str, Any]]]:
        """Names below a folder. One that is not a direct child keeps the whole of its path."""
        at = f"{self._root}/{folder}".rstrip("/")
        try:
            found = asked(self._system, "ls", at, seconds=self._seconds, detail=True)
        except FileNotFoundError as error:
            if folder:
                return []  # gone since its parent was read
            raise cannot_be_listed(self.where, error) from None
        except Exception as error:  # back ends raise what their clients raise
            raise cannot_be_listed(self.where, error) from None
        inside = at.strip("/")
        entries = []
        for entry in found:
            name, is_folder = str(entry["name"]).strip("/"), entry["type"] == "directory"
            if name != inside:
                entries.append((name.removeprefix(f"{inside}/"), entry))
            elif is_folder:  # of "a//b": a folder without a name, below "a"
                entries.append(("", entry))
            # else the empty object that some tools leave in a folder
        return sorted(entries, key=lambda named: named[0])

    def read(self, file: SourceFile) -> bytes:
        content = read_url(self._system, f"{self._root}/{file.path}", self._seconds)
        if file.size is not None and len(content) != file.size:
            raise OSError(f"{file.path}: {len(content):,} bytes came of {file.size:,}")
        return content


def open_file_system(url: str, seconds: float = LISTING_SECONDS) -> tuple[Any, str]:
    """The fsspec file system of a URL, and the path in it. Its client gives a server up that sends
    nothing for so many seconds.

    Raises:
        CorpusError: its back end is not installed; the message names the extra.
    """
    import fsspec

    scheme = url.partition("://")[0]
    try:
        system, path = fsspec.core.url_to_fs(
            url, use_listings_cache=False, **_patience(scheme, seconds)
        )
    except (ImportError, ValueError) as error:
        cure = (
            f"Install it: pip install 'chunking-assets[{EXTRAS[scheme]}]'."
            if scheme in EXTRAS
            else "Install the fsspec package that reads it, or correct the URL."
        )
        raise CorpusError(
            f"{redacted(url)}: nothing here reads {scheme}:// ({redacted(str(error))}). {cure}"
        ) from None
    return system, str(path).rstrip("/")


def _patience(scheme: str, seconds: float) -> dict[str, Any]:
    """Options of the clients that can be told how long to wait for the next bytes."""
    connect = min(5.0, seconds)
    if EXTRAS.get(scheme) == "s3":
        return {"config_kwargs": {"connect_timeout": connect, "read_timeout": seconds}}
    if EXTRAS.get(scheme) == "http":
        from aiohttp import ClientTimeout

        return {
            "client_kwargs": {"timeout": ClientTimeout(sock_connect=connect, sock_read=seconds)}
        }
    return {}


def asked(system: Any, what: str, *arguments: Any, seconds: float, **options: Any) -> Any:
    """The answer of a file system, if it comes within so many seconds. Clients repeat what failed,
    and some wait for ever: what holds them is left to itself.

    Raises:
        TimeoutError: no answer came.
    """
    from fsspec.asyn import sync
    from fsspec.exceptions import FSTimeoutError

    late = TimeoutError("no answer within the timeout_seconds of its collection")
    if getattr(system, "async_impl", False):
        call = getattr(system, f"_{what}")
        try:
            return sync(system.loop, call, *arguments, timeout=seconds, **options)
        except FSTimeoutError:
            raise late from None
    answers: SimpleQueue[tuple[Any, Exception | None]] = SimpleQueue()

    def ask() -> None:
        try:
            answers.put((getattr(system, what)(*arguments, **options), None))
        except Exception as error:  # back ends raise what their clients raise
            answers.put((None, error))

    threading.Thread(target=ask, daemon=True).start()
    try:
        answer, error = answers.get(timeout=seconds)
    except Empty:
        raise late from None
    if error is not None:
        raise error
    return answer


def cannot_be_listed(where: str, error: Exception) -> CorpusError:
    return CorpusError(
        f"{where}: cannot be listed ({said_by(error)}). Nothing is taken as deleted; make it "
        "reachable and readable, or correct the collection's path."
    )


def said_by(error: Exception) -> str:
    """An error of a client library in one line, without what its URLs carry."""
    text = redacted(" ".join(str(error).split()))[:300]
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def read_url(system: Any, url: str, seconds: float) -> bytes:
    """
    Raises:
        OSError: it cannot be read, or takes more than ten times as many seconds.
    """
    try:
        content = asked(system, "cat_file", url, seconds=READING * seconds)
    except Exception as error:  # back ends raise what their clients raise
        raise OSError(said_by(error)) from None
    return bytes(content)


def listed(path: str, info: Mapping[str, Any]) -> SourceFile:
    """A file from what a back end says of it; each has names of its own for size, tag and time."""
    etag = next((str(info[key]) for key in _ETAGS if info.get(key)), None)
    modified_ns = next((_ns(info[key]) for key in _TIMES if info.get(key)), None)
    size = info.get("size")
    return SourceFile(path, None if size is None else int(size), modified_ns, etag, modified_ns)


def _ns(moment: object) -> int | None:
    if isinstance(moment, datetime):
        return int(moment.timestamp() * 1e9)
    if isinstance(moment, int | float):
        return int(moment * 1e9)
    return time_ns(str(moment))


def time_ns(text: str) -> int | None:
    """Unix time of an ISO 8601 or an HTTP date; None if it is neither.

    >>> time_ns("2026-01-31T12:00:00Z") == time_ns("Sat, 31 Jan 2026 12:00:00 GMT")
    True
    """
    for read in (datetime.fromisoformat, parsedate_to_datetime):
        try:
            return int(read(text).timestamp() * 1e9)
        except ValueError:
            continue
    return None
