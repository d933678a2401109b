"""What one machine's caches hold, for the other machines of a workspace in a bucket.

A cache is an SQLite file on this machine, which no bucket can hold. New rows go to the bucket as
immutable Parquet segments, and a miss looks for segments not fetched yet, before anything is
computed. A segment that is lost or damaged costs only that its rows are computed again.
"""

# ruff: noqa: S608 - the names of tables and columns are those of the caches' own code

import json
import logging
import sqlite3
import uuid
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from chunking_assets.s3_store import S3Store
from chunking_assets.storage import Bucket, Store, write_atomically

if TYPE_CHECKING:
    import polars as pl

MARK = "bucket.json"
"""The file that says, in the folder a bucket has on this machine, which bucket that is."""
ROWS_PER_SEGMENT = 8192
MANY_SEGMENTS = 64
"""So many are written anew as few by maintenance."""
_BUSY_SECONDS = 60
_log = logging.getLogger(__name__)


def mark(folder: Path, bucket: Bucket) -> None:
    """Say which bucket a folder belongs to, how it is reached, and nothing secret."""
    content = json.dumps(asdict(bucket), sort_keys=True).encode()
    if not (folder / MARK).exists() or (folder / MARK).read_bytes() != content:
        write_atomically(folder / MARK, content)


def segments_of(file: Path, table: str, key: str) -> "Segments | None":
    """Those of a table, unique by the column `key`, of a cache; None if its workspace is a folder.

    The cache is told from where it is, so that nobody has to hand its workspace on to it.
    """
    for folder in file.parents[:3]:
        if (folder / MARK).exists():
            bucket = Bucket(**json.loads((folder / MARK).read_bytes()))
            place = file.relative_to(folder).with_suffix("").as_posix()
            return Segments(file, S3Store(bucket, folder).below(f"{place}/{table}"), table, key)
    return None


class Segments:
    """The rows of one table, given and taken; safe for threads and processes."""

    def __init__(self, file: Path, store: Store, table: str, key: str) -> None:
        self._file, self._store, self._table, self._key = file, store, table, key
        self._unsent, self._taken = f"unsent_{table}", f"taken_{table}"
        with self._connection() as connection:
            for name, column in ((self._unsent, key), (self._taken, "name")):
                connection.execute(f"create table if not exists {name} ({column} text primary key)")
            connection.execute(
                f"create trigger if not exists {self._unsent}_new after insert on {table} begin "
                f"insert or ignore into {self._unsent} values (new.{key}); end"
            )

    def take(self) -> bool:
        """Fetch what others gave since the last time; whether there was something."""
        with self._connection() as connection:
            known = {name for (name,) in connection.execute(f"select name from {self._taken}")}
        new = [file.key for file in self._store.files() if file.key not in known]
        for name in new:
            self._take(name)
        return bool(new)

    def give(self, at_least: int = 1) -> None:
        """Put what nobody was given yet into the bucket, if there are so many rows of it."""
        while self._to_give() >= at_least:
            self._give(self._rows_to_give())

    def rewrite(self) -> None:
        """Put all rows of this machine in place of many small segments."""
        before = [file.key for file in self._store.files()]
        if len(before) < MANY_SEGMENTS:
            return
        self.take()  # what is given from here on is not among those before
        with self._connection() as connection:
            connection.execute(
                f"insert or ignore into {self._unsent} select {self._key} from {self._table}"
            )
        self.give()
        self._store.delete(before)

    def _take(self, name: str) -> None:
        import polars as pl

        copy = self._store.local(name)
        try:
            rows = pl.read_parquet(copy) if copy.exists() else pl.DataFrame()
        except (OSError, pl.exceptions.PolarsError) as error:
            _log.warning("%s/%s is damaged and passed over (%s)", self._store.uri, name, error)
            rows = pl.DataFrame()
        copy.unlink(missing_ok=True)
        with self._connection() as connection:
            columns = [c for c in self._columns(connection) if c in rows.columns]
            if self._key in columns:
                marks = ", ".join("?" * len(columns))
                connection.executemany(
                    f"insert or ignore into {self._table} ({', '.join(columns)}) values ({marks})",
                    rows.select(columns).iter_rows(),
                )
                self._sent(connection, rows)
            connection.execute(f"insert or ignore into {self._taken} values (?)", [name])

    def _to_give(self) -> int:
        with self._connection() as connection:
            counted = connection.execute(f"select count(*) from {self._unsent}").fetchone()
            return int(counted[0])

    def _rows_to_give(self) -> "pl.DataFrame":
        import polars as pl

        with self._connection() as connection:
            columns = self._columns(connection)
            connection.execute(  # what was forgotten meanwhile
                f"delete from {self._unsent} where {self._key} not in "
                f"(select {self._key} from {self._table})"
            )
            rows = connection.execute(
                f"select {', '.join(columns)} from {self._table} join {self._unsent} "
                f"using ({self._key}) limit {ROWS_PER_SEGMENT}"
            ).fetchall()
        return pl.DataFrame(rows, columns, orient="row", infer_schema_length=None)

    def _give(self, rows: "pl.DataFrame") -> None:
        if rows.is_empty():
            return
        name = f"{uuid.uuid4().hex}.parquet"
        draft = self._store.draft(name)
        rows.write_parquet(draft)
        self._store.keep(name)
        draft.unlink(missing_ok=True)
        with self._connection() as connection:
            connection.execute(f"insert into {self._taken} values (?)", [name])
            self._sent(connection, rows)

    def _sent(self, connection: sqlite3.Connection, rows: "pl.DataFrame") -> None:
        connection.executemany(
            f"delete from {self._unsent} where {self._key} = ?", rows.select(self._key).iter_rows()
        )

    def _columns(self, connection: sqlite3.Connection) -> list[str]:
        return [row[1] for row in connection.execute(f"pragma table_info({self._table})")]

    @contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        with closing(sqlite3.connect(self._file, timeout=_BUSY_SECONDS)) as connection, connection:
            connection.execute("pragma synchronous = normal")
            yield connection
