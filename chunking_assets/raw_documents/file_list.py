"""A list of URLs served over HTTP(S): the files of a collection that no file system can list.

The list is JSON, or one URL a line. It is somebody else's text: it may name no other scheme than
its own or https, and a path it gives is checked like any other.
"""

import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote, urljoin, urlsplit

from chunking_assets.errors import CorpusError
from chunking_assets.raw_documents.file_system import (
    LISTING_SECONDS,
    asked,
    cannot_be_listed,
    listed,
    open_file_system,
    read_url,
    time_ns,
)
from chunking_assets.raw_documents.source import (
    Skipped,
    SourceFile,
    has_credentials,
    is_left_alone,
    redacted,
)


class FileList:
    """The files named by the list at `url`.

    An entry is a URL, relative to the list's own if you like, or an object with `url` and, as far
    as known, `path`, `size` (bytes), `etag` and `modified` (ISO 8601 or HTTP date). An entry
    without `etag` and `modified` costs a HEAD request a look. The list, and each answer to a HEAD,
    is waited for so many `seconds`, a file ten times as long if something comes all the time.
    """

    is_local, readers = False, 16

    def __init__(self, url: str, seconds: float = LISTING_SECONDS) -> None:
        self.url, self.where, self._seconds = url, redacted(url), seconds
        self._system, _ = open_file_system(url, seconds)
        self._urls: dict[str, str] = {}

    def files(self, skipped: Skipped, after: str | None = None) -> Iterator[SourceFile]:
        entries: dict[str, dict[str, Any]] = {}
        for entry in self._entries():
            url = urljoin(self.url, entry["url"])
            path = str(entry.get("path") or self._path(url))
            reason = self._refused(url)
            if path in entries:
                reason = "the list has its path twice"
            if reason:
                skipped.append((redacted(path), reason))
            elif not is_left_alone(path):
                entries[path] = {**entry, "url": url}
        self._urls = {path: entry["url"] for path, entry in entries.items()}
        return (
            self._file(path, entry)
            for path, entry in sorted(entries.items())
            if after is None or path > after
        )

    def _entries(self) -> list[dict[str, Any]]:
        try:
            content = asked(self._system, "cat_file", self.url, seconds=self._seconds)
            text = bytes(content).decode("utf-8-sig")
        except Exception as error:  # clients raise their own
            raise cannot_be_listed(self.where, error) from None
        if not text.lstrip().startswith(("[", "{")):
            lines = (line.strip() for line in text.splitlines())
            return [{"url": line} for line in lines if line and not line.startswith("#")]
        try:
            found = json.loads(text)
        except ValueError as error:
            raise CorpusError(f"{self.where}: is no JSON ({error}). Correct the list.") from None
        entries = found.get("files") if isinstance(found, dict) else found
        if not isinstance(entries, list):
            raise CorpusError(f"{self.where}: has no list `files`. Correct the list.")
        return [self._entry(number, entry) for number, entry in enumerate(entries, 1)]

    def _entry(self, number: int, entry: object) -> dict[str, Any]:
        if isinstance(entry, str):
            return {"url": entry}
        if isinstance(entry, dict) and isinstance(entry.get("url"), str):
            return entry
        raise CorpusError(f"{self.where}: entry {number} has no `url`. Correct the list.")

    def _path(self, url: str) -> str:
        """Below the list's folder as it is there; elsewhere, with the host before it."""
        folder = urljoin(self.url, ".")
        if url.startswith(folder):
            return unquote(urlsplit(url[len(folder) :]).path)
        parts = urlsplit(url)
        return f"{parts.hostname or ''}{unquote(parts.path)}"

    def _refused(self, url: str) -> str | None:
        scheme = urlsplit(url).scheme
        if scheme not in {"https", urlsplit(self.url).scheme}:
            return f"a list served by {urlsplit(self.url).scheme} may not name {scheme}:"
        return "its URL has a password" if has_credentials(url) else None

    def _file(self, path: str, entry: dict[str, Any]) -> SourceFile:
        etag, modified = entry.get("etag"), entry.get("modified")
        if etag is None and modified is None:
            try:
                asking = asked(self._system, "info", entry["url"], seconds=self._seconds)
                return listed(path, asking)
            except Exception:  # what cannot be asked for is there, and is found to be unreadable
                return SourceFile(path)
        moment = None if modified is None else time_ns(str(modified))
        size = entry.get("size")
        return SourceFile(
            path,
            size if isinstance(size, int) else None,
            moment,
            None if etag is None else str(etag),
            moment,
        )

    def read(self, file: SourceFile) -> bytes:
        return read_url(self._system, self._urls[file.path], self._seconds)
