"""Where documents come from: one protocol, so that listing, change feed and parsing know no
difference between a folder, a bucket, a list of URLs and a revision in git.

A source says which files there are and what vouches for each one's content, and reads one. A
listing that fails raises: half a listing would read as a deletion. A name that cannot safely be a
document's is passed over with a reason and never used as a path.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

UNFINISHED_SUFFIXES = (".part", ".tmp", ".crdownload", ".swp", "~")

Skipped = list[tuple[str, str]]
"""Paths that are not documents, with the reason."""


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file as its source lists it.

    `path` is its name in the source, with forward slashes. `size` is in bytes, None where the
    source does not say; `modified_ns` is Unix time. `etag` changes when the content does;
    `touched_ns` is the last sign that somebody wrote, None where a file appears only whole.
    """

    path: str
    size: int | None = None
    modified_ns: int | None = None
    etag: str | None = None
    touched_ns: int | None = None

    @property
    def mark(self) -> list[object] | None:
        """Equal marks, equal content; None if the source says too little to tell."""
        if self.etag is not None:
            return [self.size, self.etag]
        return None if self.modified_ns is None else [self.size, self.modified_ns]


class Source(Protocol):
    """The files of a collection, wherever they are.

    `is_local` says that reading costs next to nothing, `readers` how many reads at once pay.
    """

    is_local: bool
    readers: int

    def files(self, skipped: Skipped, after: str | None = None) -> Iterator[SourceFile]:
        """Every file in an order of the source's own, from the first one `after` a path.

        Raises:
            CorpusError: the source cannot be listed; nothing may be taken as deleted.
        """
        ...

    def read(self, file: SourceFile) -> bytes:
        """
        Raises:
            OSError: the file cannot be read, is gone, or changed meanwhile.
        """
        ...


def hostile(path: str) -> str | None:
    """Why a listed name cannot be a document's; None if it can.

    >>> hostile("en/refunds.md"), hostile("../etc/passwd")
    (None, "a part of its path is empty, '.' or '..'")
    """
    if "\0" in path:
        return "its name has a NUL"
    if path.startswith("/"):
        return "its path is absolute"
    if any(part in ("", ".", "..") for part in path.split("/")):
        return "a part of its path is empty, '.' or '..'"
    try:
        path.encode()
    except UnicodeEncodeError:
        return "its name is not valid UTF-8"
    return None


def is_left_alone(path: str) -> bool:
    """Hidden files and unfinished downloads are nobody's documents.

    >>> is_left_alone("en/.cache/a.md"), is_left_alone("a.md.part"), is_left_alone("a.md")
    (True, True, False)
    """
    return path.endswith(UNFINISHED_SUFFIXES) or any(
        part.startswith(".") and part not in (".", "..") for part in path.split("/")
    )


def redacted(text: str) -> str:
    """A text without the credentials that its URLs may carry.

    >>> redacted("https://user:secret@host/a.md?sig=secret failed")
    'https://host/a.md failed'
    """
    text = re.sub(r"(?<=://)[^/@\s]*@", "", text)
    return re.sub(r"(://[^\s?'\"]*)\?[^\s'\")]*", r"\1", text)


def has_credentials(url: str) -> bool:
    return re.search(r"://[^/\s]*@", url) is not None
