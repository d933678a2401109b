"""Replies of the endpoint, kept on disk: what was answered once is never asked or paid for again.

Only replies that passed every check are stored, under a key of everything that was sent, so a
killed run continues where it stopped and a failed call is asked anew.
"""

import fcntl
import sqlite3
import time
from pathlib import Path
from types import TracebackType

from chunking_assets.errors import CorpusError
from chunking_assets.shared_cache import Segments, segments_of

CACHE_FILE = "chat_replies.sqlite"
"""The name of the file below the workspace's caches."""

GIVEN_AT_LEAST = 32
"""Replies given to other machines at a time."""

_BUSY_SECONDS = 60.0
_LOOK_SECONDS = 60.0
"""How often a reply that is not here is looked for among those of other machines."""
_SECONDS_PER_DAY = 86_400


def _today() -> int:
    """The day, counted from 1970 on."""
    return int(time.time() // _SECONDS_PER_DAY)


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
                self._database.execute(
                    "create table if not exists paid (key text primary key, tokens integer)"
                )
                columns = [row[1] for row in self._database.execute("pragma table_info(responses)")]
                if "used_on" not in columns:
                    # What an earlier release stored counts as used today.
                    self._database.execute(
                        "alter table responses add column used_on integer not null "
                        f"default {_today()}"
                    )
        except sqlite3.DatabaseError as error:
            self._database.close()
            raise CorpusError(
                f"the cache of model replies {file} cannot be used ({error}). "
                "Remove it and run again: its replies will be asked for anew."
            ) from error
        tables = (segments_of(file, table, "key") for table in ("paid", "responses"))
        self._segments: list[Segments] = [segments for segments in tables if segments]
        self._looked = -_LOOK_SECONDS

    def get(self, key: str) -> str | None:
        row = self._row(key)
        if row is None and self._segments and time.monotonic() - self._looked > _LOOK_SECONDS:
            self._looked = time.monotonic()
            for segments in self._segments:
                segments.take()
            row = self._row(key)
        if row is None:
            return None
        if row[1] < _today():
            self._database.execute(
                "update responses set used_on = ? where key = ?", (_today(), key)
            )
        return row[0]

    def _row(self, key: str) -> tuple[str, int] | None:
        found: tuple[str, int] | None = self._database.execute(
            "select output, used_on from responses where key = ?", (key,)
        ).fetchone()
        return found

    def prune(self, days: float) -> int:
        """Forget the replies that nobody asked for in so many days; how many there were. The file
        gets smaller."""
        deleted = self._database.execute(
            "delete from responses where used_on <= ?", [_today() - days]
        ).rowcount
        if deleted:
            self._database.execute("delete from paid where key not in (select key from responses)")
            self._database.execute("vacuum")
        for segments in self._segments:
            segments.rewrite()
        return int(deleted)

    def put(self, key: str, output: str, tokens: int | None = None) -> None:
        """Keep a reply, and how many tokens were sent and received for it, if that is known."""
        self._database.execute("insert or replace into paid values (?, ?)", (key, tokens))
        self._database.execute(
            "insert or replace into responses (key, output, used_on) values (?, ?, ?)",
            (key, output, _today()),
        )
        self._give(GIVEN_AT_LEAST)

    def _give(self, at_least: int) -> None:
        for segments in self._segments:
            segments.give(at_least)

    def tokens(self, key: str) -> int | None:
        """The tokens a stored reply took; None if nobody knows."""
        row = self._database.execute("select tokens from paid where key = ?", (key,)).fetchone()
        return None if row is None else row[0]

    def __enter__(self) -> "ResponseCache":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            self._give(1)
        finally:
            self._database.close()
