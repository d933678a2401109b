"""The files of a git repository as they are in one revision; nothing is checked out.

Blob ids vouch for content, so a new commit costs the files it changed. The command line of git is
asked without a shell, and only with object ids that git itself gave.
"""

import os
import subprocess
import threading
import weakref
from collections.abc import Iterator
from typing import IO

from chunking_assets.errors import CorpusError
from chunking_assets.raw_documents.source import Skipped, SourceFile, is_left_alone

_KINDS = {"120000": "symbolic links are not followed", "160000": "submodules are not followed"}


class GitRevision:
    """The tree of `revision` (a branch, tag or commit) in the repository at `folder`."""

    is_local, readers = True, 1

    def __init__(self, folder: str, revision: str) -> None:
        self.folder, self.revision = folder, revision
        self._blobs: _Blobs | None = None

    def files(self, skipped: Skipped, after: str | None = None) -> Iterator[SourceFile]:
        commit = self._commit()
        seconds = int(self._git("log", "-1", "--no-show-signature", "--format=%ct", commit))
        tree = self._git("ls-tree", "-r", "-z", "-l", "--full-tree", commit)
        entries = [entry.partition(b"\t") for entry in tree.split(b"\0") if entry]
        for facts, _, raw in sorted(entries, key=lambda entry: entry[2]):
            path = os.fsdecode(raw)
            if (after is not None and raw <= os.fsencode(after)) or is_left_alone(path):
                continue
            mode, _, blob, size = facts.decode().split()
            if mode in _KINDS:
                skipped.append((path, _KINDS[mode]))
            else:
                yield SourceFile(path, int(size), seconds * 1_000_000_000, blob)

    def _commit(self) -> str:
        asked = ("rev-parse", "--verify", "--end-of-options", f"{self.revision}^{{commit}}")
        return self._git(*asked).decode().strip()

    def _git(self, *arguments: str) -> bytes:
        command = ["git", "-C", self.folder, *arguments]
        try:
            done = subprocess.run(command, capture_output=True, env=_environment(), check=False)  # noqa: S603
        except OSError as error:
            raise self._cannot_be_listed(str(error)) from error
        if done.returncode:
            raise self._cannot_be_listed(done.stderr.decode(errors="replace").strip())
        return done.stdout

    def _cannot_be_listed(self, reason: str) -> CorpusError:
        return CorpusError(
            f"git repository {self.folder} at {self.revision!r}: cannot be listed ({reason}). "
            "Nothing is taken as deleted; correct the collection's path or revision."
        )

    def read(self, file: SourceFile) -> bytes:
        if self._blobs is None:
            self._blobs = _Blobs(self.folder)
        return self._blobs.read(str(file.etag))


class _Blobs:
    """One `git cat-file --batch` for as long as somebody reads."""

    def __init__(self, folder: str) -> None:
        self._lock = threading.Lock()
        self._process = subprocess.Popen(  # noqa: S603
            ["git", "-C", folder, "cat-file", "--batch"],  # noqa: S607
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=_environment(),
        )
        weakref.finalize(self, _end, self._process)

    def read(self, blob: str) -> bytes:
        asked, answered = self._process.stdin, self._process.stdout
        assert asked is not None
        assert answered is not None
        with self._lock:
            asked.write(f"{blob}\n".encode())
            asked.flush()
            return _answer(answered, blob)


def _answer(answered: IO[bytes], blob: str) -> bytes:
    head = answered.readline().split()
    if len(head) != 3 or head[1] != b"blob":
        raise OSError(f"git has no blob {blob}")
    content = answered.read(int(head[2]))
    answered.read(1)
    return content


def _end(process: "subprocess.Popen[bytes]") -> None:
    process.kill()
    process.communicate()


def _environment() -> dict[str, str]:
    """No hook's or caller's repository, no replaced objects, no question at the terminal."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    return kept | {
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_OPTIONAL_LOCKS": "0",
        "LC_ALL": "C",
    }
