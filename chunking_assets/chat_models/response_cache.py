"""Replies of the endpoint, kept on disk: what was answered once is never asked or paid for again.

Only replies that passed every check are stored, under a key of everything that was sent, so a
killed run continues where it stopped and a failed call is asked anew.
"""

import fcntl
import sqlite3
from pathlib import Path
from types import TracebackType

from chunking_assets.errors import CorpusError

CACHE_FILE = "chat_replies.sqlite"
"""The name of the file below the workspace's caches."""

_BUSY_SECONDS = 60.0


class ResponseCache:
    """A table of key → reply (JSON) in one SQLite file; any number of processes share it.

    Raises:
        CorpusError: the file is not a database of replies.
    """

    def __init__(self, file: Path) -> None:
        self.file = file
        file.parent.mkdir(parents=True, exist_ok=True)
        self._database = sqlite3.connect(file, timeout=_BUSY_SECONDS, isolation_level=None)
        try:
            # SQLite does not wait for a lock while it switches to WAL, so first users queue here.
            with file.with_name(f"{file.name}.lock").open("w") as handle:
                fcntl.flock(handle, fcntl.LOCK_EX)
                self._database.execute("pragma journal_mode = wal")
                self._database.execute(
                    "create table if not exists responses "
                    "(key text primary key, output text not null)"
                )
        except sqlite3.DatabaseError as error:
            self._database.close()
            raise CorpusError(
                f"the cache of model replies {file} cannot be used ({error}). "
                "Remove it and run again: its replies will be asked for anew."
            ) from error

    def get(self, key: str) -> str | None:
        row = self._database.execute(
            "select output from responses where key = ?", (key,)
        ).fetchone()
        return None if row is None else row[0]

    def put(self, key: str, output: str) -> None:
        self._database.execute("insert or replace into responses values (?, ?)", (key, output))

    def __enter__(self) -> "ResponseCache":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._database.close()
