"""Where results live: immutable Parquet files named by manifests, stamps, and declared versions.

A table partition is one `_manifest.json`, replaced atomically, that names its Parquet files; a
file is written once under a name nobody else uses and never changed. A reader takes the file list
from a manifest and never from a directory, so it sees the old content or the new, whole. Nothing
is recorded before what it vouches for is on disk. Whether that is a folder or a bucket is said in
`storage.py` alone.
"""

import fcntl
import json
import os
import time
import uuid
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote

import numpy as np
import polars as pl

from chunking_assets.errors import CorpusError
from chunking_assets.keys import digest
from chunking_assets.shared_cache import mark
from chunking_assets.storage import (
    Bucket,
    Conflict,
    Place,
    StorageUnavailable,
    Store,
    StoredFile,
    place_of,
    store_of,
)
from chunking_assets.storage import write_atomically as write_atomically

if TYPE_CHECKING:
    from pyarrow.parquet import ParquetFile

MANIFEST = "_manifest.json"
UNREFERENCED_GRACE_SECONDS = 3600
"""How long a replaced file stays for readers that hold the old manifest."""

ROW_GROUP_BYTES = 4 << 20
"""Row groups end once they hold so much before compression: the least that is read or written at
once, so what bounds the memory of whoever goes through a table piece by piece."""

APPENDED, APPENDS_TOLD = "appended", 64
"""Which appends a manifest tells of, and of how many: more than come before a lost answer is
noticed."""

HISTORY = ("promotions", "tombstones", "builds", "costs")
"""Tables that say what happened, which nothing else remembers."""

CACHES = "caches"
"""The folder of what can be computed again."""

WHOLE = "all"
"""The one partition of a table that is not partitioned."""


class Workspace:
    """One place that holds everything derived from the documents: a folder, or s3://bucket/prefix.

    `root` is the folder on this machine: the workspace itself, or, of a bucket, where its models,
    caches, locks and pages are.
    """

    def __init__(self, place: Place | str) -> None:
        self.place = place_of(place)
        self.store: Store = store_of(self.place)
        self.root = self.store.here

    def __reduce__(self) -> tuple[object, ...]:
        return Workspace, (self.place,)  # on another machine, the folder there

    def table(self, name: str) -> "Table":
        return Table(self.store.below(f"tables/{name}"), name)

    def tables(self) -> list["Table"]:
        """Every table of which something is stored."""
        return [self.table(name) for name in self.store.below("tables").folders()]

    @property
    def stamps(self) -> "Stamps":
        return Stamps(self.store.below("stamps"))

    @property
    def lance(self) -> Store:
        return self.store.below("lance")

    @property
    def models(self) -> Path:
        return self.root / "models"

    @property
    def caches(self) -> Path:
        """On this machine; of a bucket, what it tells other machines is in `shared_cache.py`."""
        if isinstance(self.place, Bucket):
            mark(self.root, self.place)
        return self.root / CACHES

    @property
    def eval_database(self) -> Path:
        """The published DuckDB file: a link to the newest build."""
        return self.root / "evals" / "evals.duckdb"

    @property
    def uploads_database(self) -> bool:
        return isinstance(self.place, Bucket) and self.place.upload_database

    def record_declaration(self, section: str, name: str, declared: Mapping[str, object]) -> None:
        """Record a declaration at its first use, or check it against the record.

        Raises:
            CorpusError: `name` was first used with another declaration. Nothing was written.
        """
        self.check_declaration(section, name, declared)
        if self.declaration(section, name) is None:
            try:
                self.store.write_if_absent(self._declaration(section, name), _json(declared))
            except Conflict:  # another machine was faster
                self.check_declaration(section, name, declared)

    def check_declaration(self, section: str, name: str, declared: Mapping[str, object]) -> None:
        """As `record_declaration`, but writes nothing."""
        recorded = self.declaration(section, name)
        current = json.loads(_json(declared))
        if recorded is None or recorded == current:
            return
        changed = sorted(
            key for key in {*recorded, *current} if recorded.get(key) != current.get(key)
        )
        raise CorpusError(
            f"{section}.{name} was first used with other settings "
            f"({', '.join(f'{k}: {recorded.get(k)!r} → {current.get(k)!r}' for k in changed)}). "
            "A version never changes: restore them, or declare the new settings under a new name."
        )

    def declaration(self, section: str, name: str) -> Mapping[str, Any] | None:
        """What was recorded of a declaration at its first use; None if it was never used."""
        key = self._declaration(section, name)
        found = _read_json(self.store, key)
        self.store.forget(key)  # it never changes: what another machine writes there is the same
        return found

    @staticmethod
    def _declaration(section: str, name: str) -> str:
        return f"declarations/{section}/{encode(name)}.json"

    @contextmanager
    def lock(self, name: str, waiting: Callable[[], None] | None = None) -> Iterator[None]:
        """Exclude other processes and threads of this machine from `name`; a crash releases it.

        Other machines are not kept out: a table of which something was read in here is replaced
        only if it is still as it was read. `waiting` is called if somebody else is inside.
        """
        file = self.root / "locks" / f"{encode(name)}.lock"
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("w") as handle:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if waiting:
                    waiting()
                fcntl.flock(handle, fcntl.LOCK_EX)
            with self.store.transaction():
                yield

    @contextmanager
    def locks(self, names: Iterable[str]) -> Iterator[None]:
        """Several locks at once, taken in one order so that nobody waits in a circle."""
        with ExitStack() as held:
            for name in sorted(names):
                held.enter_context(self.lock(name))
            yield


@dataclass(frozen=True)
class Manifest:
    """What one partition of a table holds.

    `keys` says for each owner of rows (a document, a question) what its rows were made from;
    `version` changes exactly when the content does; `details` are small facts worth keeping.
    """

    table: str
    partition: str
    files: tuple[str, ...]
    rows: int
    version: str
    keys: Mapping[str, str] = field(default_factory=dict)
    details: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class Snapshot:
    """The rows of a table at one moment: what is read stays the same whatever is written since."""

    table: str
    files: tuple[Path, ...]
    place: str
    """Of the first file, for who has to remove it."""

    def read(
        self, columns: Sequence[str] | None = None, where: pl.Expr | None = None
    ) -> pl.DataFrame:
        """These columns of the rows for which `where` holds; row groups that the bounds of their
        values rule out are not read.

        Raises:
            CorpusError: a file is damaged, or gone.
        """
        try:
            rows = pl.scan_parquet([*self.files], glob=False)
            if where is not None:
                rows = rows.filter(where)
            return (rows if columns is None else rows.select(*columns)).collect()
        except (OSError, pl.exceptions.PolarsError) as error:
            raise self._unreadable(error) from error

    def pieces(
        self, column: str | None = None, values: Collection[str] = ()
    ) -> Iterator[pl.DataFrame]:
        """All rows in their order, a row group at a time; or those where `column` has one of
        `values`, without reading the row groups that its bounds rule out."""
        from pyarrow import ArrowException
        from pyarrow.parquet import ParquetFile

        wanted = pl.Series(sorted(values), dtype=pl.String)
        try:
            for name in self.files:
                with ParquetFile(name) as file:
                    for number in range(file.num_row_groups):
                        if column is None:
                            yield pl.DataFrame(file.read_row_group(number))
                        elif _may_hold(file, number, column, wanted):
                            rows = pl.DataFrame(file.read_row_group(number))
                            yield rows.filter(pl.col(column).is_in(wanted.implode()))
        except (OSError, ArrowException) as error:
            raise self._unreadable(error) from error

    def _unreadable(self, error: Exception) -> CorpusError:
        cure = (
            "It is history and cannot be computed again: restore it from a copy."
            if self.table in HISTORY
            else f"Remove its folder {self.place} and run again: it will be rebuilt."
        )
        return CorpusError(f"table {self.table} cannot be read ({error}). {cure}")


def _may_hold(file: "ParquetFile", number: int, column: str, values: pl.Series) -> bool:
    """Whether some of `values`, sorted, lie between the bounds of a row group's column."""
    group = file.metadata.row_group(number)
    columns = map(group.column, range(group.num_columns))
    bounds = next(c.statistics for c in columns if c.path_in_schema == column)
    if bounds is None or not bounds.has_min_max:
        return True
    return bool(
        values.search_sorted(bounds.min, "left") < values.search_sorted(bounds.max, "right")
    )


def one_of(column: str, values: Iterable[str]) -> pl.Expr:
    """Whether a column has one of these values, at least one; their bounds rule out row groups."""
    some = pl.Series(sorted(values))
    bounds = pl.lit(some[0]), pl.lit(some[-1])
    return pl.col(column).is_between(*bounds) & pl.col(column).is_in(some.implode())


class Table:
    """A partitioned table of immutable Parquet files."""

    def __init__(self, store: Store, name: str) -> None:
        self.store, self.name = store, name

    def partitions(self) -> list[str]:
        """The partitions that have a manifest, sorted."""
        return sorted(map(unquote, self.store.folders_with(MANIFEST)))

    def manifest(self, partition: str = WHOLE) -> Manifest | None:
        content = _read_json(self.store, _manifest(partition))
        if content is None:
            return None
        return Manifest(**{**content, "files": tuple(content["files"])})

    def files(self, partitions: Iterable[str] | None = None) -> list[Path]:
        """The Parquet files of these partitions (all of them if None), from their manifests."""
        names = self.partitions() if partitions is None else partitions
        return [
            file
            for partition in names
            if (manifest := self.manifest(partition)) is not None
            for file in self.snapshot(manifest).files
        ]

    def read(self, partition: str = WHOLE, columns: list[str] | None = None) -> pl.DataFrame | None:
        """The rows of one partition, or None if it was never written."""
        return self.read_all([partition], columns)

    def read_all(
        self, partitions: Iterable[str] | None = None, columns: list[str] | None = None
    ) -> pl.DataFrame | None:
        """The rows of several partitions (all of them if None), or None if there are none."""
        names = self.partitions() if partitions is None else list(partitions)
        files = self.files(names)
        if not all(file.exists() for file in files):
            files = self.files(names)  # replaced, and the grace over, since the manifest was read
        return self._snapshot(names[0], files).read(columns) if files else None

    def snapshot(self, manifest: Manifest) -> Snapshot:
        """The rows a manifest of this table names."""
        keys = (_file(manifest.partition, file) for file in manifest.files)
        return self._snapshot(manifest.partition, map(self.store.local, keys))

    def _snapshot(self, partition: str, files: Iterable[Path]) -> Snapshot:
        return Snapshot(self.name, tuple(files), f"{self.store.uri}/{encode(partition)}")

    def replace(
        self,
        rows: pl.DataFrame,
        partition: str = WHOLE,
        *,
        keys: Mapping[str, str] | None = None,
        version: str | None = None,
        details: Mapping[str, object] | None = None,
    ) -> Manifest:
        """Make `rows` the whole content of a partition, in one atomic step.

        `version` defaults to the digest of `keys`.
        """
        with self.replacement(rows.schema, partition) as content:
            content.add(rows)
            return content.commit(keys=keys, version=version, details=details)

    def replacement(self, schema: pl.Schema, partition: str = WHOLE) -> "Replacement":
        """As `replace`, for rows that come piece by piece."""
        return Replacement(self, schema, partition)

    def append(self, rows: pl.DataFrame, partition: str = WHOLE) -> Manifest:
        """Add `rows` to a partition that only grows, such as a log of events.

        What another machine adds meanwhile is kept, and no row is added twice: of a write whose
        answer was lost the manifest says whether it got through, also below what others added.

        Raises:
            Conflict: it was added after the partition was read under the lock that is held, so
                that `rows` may not know of it.
            StorageUnavailable: nobody can tell now whether they were added.
        """
        ours = uuid.uuid4().hex
        with self.store.transaction():
            rests_on_it = self.store.has_read(_manifest(partition))
            while True:
                before = self.manifest(partition)
                past = _appended(before)
                whole = [*([self.snapshot(before).read()] if before else []), rows]
                try:
                    return self.replace(
                        pl.concat(whole, how="diagonal_relaxed"),
                        partition,
                        version=ours,
                        details={APPENDED: [*past, ours][-APPENDS_TOLD:]},
                    )
                except (Conflict, StorageUnavailable) as error:
                    self.forget(partition)
                    found = self.manifest(partition)
                    if found is not None and ours in _appended(found):
                        return found
                    if rests_on_it or isinstance(error, StorageUnavailable):
                        raise

    def forget(self, partition: str) -> None:
        """Let what is written next rest on what is read next, and not on what was read before."""
        self.store.forget(_manifest(partition))

    def remove(self, partition: str = WHOLE) -> None:
        """Forget a partition; its files go with it."""
        self.store.delete([_manifest(partition)])
        self.store.delete_below(encode(partition))

    def damage(self, partition: str = WHOLE) -> str | None:
        """What is wrong with the files of a partition, told from their last bytes; None if nothing
        is, or it was never written.

        Raises:
            StorageUnavailable: nobody can tell now.
        """
        from pyarrow import ArrowException
        from pyarrow.parquet import read_metadata

        where = f"table {self.name}, partition {partition}"
        try:
            manifest = self.manifest(partition)
        except StorageUnavailable:
            raise
        except CorpusError as error:
            return str(error)
        if manifest is None:
            lost = any(f.key.endswith(".parquet") for f in self.store.files(encode(partition)))
            return f"{where}: its manifest is lost" if lost else None
        try:
            for file in manifest.files:
                self.store.local(_file(partition, file), checked=True)
            rows = sum(read_metadata(file).num_rows for file in self.snapshot(manifest).files)
        except (OSError, ArrowException) as error:
            return f"{where}: a file cannot be read ({error})"
        if rows != manifest.rows:
            return f"{where}: it has {rows} rows, its manifest says {manifest.rows}"
        return None

    def drop_unnamed(self, grace_seconds: float = UNREFERENCED_GRACE_SECONDS) -> int:
        """Delete the files that no manifest names and nobody wrote to for so long; their bytes."""
        folders: dict[str, list[StoredFile]] = defaultdict(list)
        for file in self.store.files():
            folders[file.key.partition("/")[0]].append(file)
        freed = 0
        for folder, files in folders.items():
            manifest = self.manifest(unquote(folder))
            freed += self._drop_unnamed(files, manifest.files if manifest else (), grace_seconds)
        return freed

    def size(self, begins: str = "") -> int:
        """The bytes of every partition whose name begins so, with files no manifest names."""
        return sum(f.size for f in self.store.files() if f.key.startswith(encode(begins)))

    def _publish(self, manifest: Manifest) -> Callable[[], int]:
        """What is left to do then drops the files whose time is over."""
        partition = manifest.partition
        with self.store.transaction():
            replaced = self._begin_grace(partition)
            files = list(self.store.files(encode(partition)))
            self.store.replace(_manifest(partition), _json(asdict(manifest)))
        named = (*manifest.files, *replaced)
        return partial(self._drop_unnamed, files, named, UNREFERENCED_GRACE_SECONDS)

    def _begin_grace(self, partition: str) -> Sequence[str]:
        """Files about to be replaced count as unreferenced from now on, however old they are."""
        before = self.manifest(partition)
        replaced = before.files if before else ()
        for file in replaced:
            self.store.touch(_file(partition, file))
        return replaced

    def _drop_unnamed(
        self, files: Sequence[StoredFile], named: Iterable[str], grace_seconds: float
    ) -> int:
        """Of the `files` of a partition, those not named for so long; their bytes."""
        limit, names = time.time() - grace_seconds, {MANIFEST, *named}
        beside = {file.key: file for file in files}
        over = [
            file
            for file in files
            if file.key.rpartition("/")[2] not in names
            and self.store.dropped_since(file, beside) < limit
        ]
        self.store.delete(file.key for file in over)
        return sum(file.size for file in over)


def _appended(manifest: Manifest | None) -> list[str]:
    """The last appends to a partition, each by a name of its own."""
    told = manifest.details.get(APPENDED, []) if manifest else []
    return list(map(str, told)) if isinstance(told, list) else []


def _manifest(partition: str) -> str:
    return _file(partition, MANIFEST)


def _file(partition: str, name: str) -> str:
    return f"{encode(partition)}/{name}"


class Replacement:
    """The next content of a partition, written as it comes; nobody sees it before `commit`.

    How the rows come makes no difference to the file. Leaving the `with` block without a commit
    leaves the partition as it was.
    """

    def __init__(self, table: Table, schema: pl.Schema, partition: str) -> None:
        from pyarrow.parquet import ParquetWriter

        self._table, self._partition = table, partition
        self._key = _file(partition, f"{uuid.uuid4().hex}.parquet")
        self._file = table.store.draft(self._key)
        self._handle = self._file.open("wb")
        self._writer = ParquetWriter(
            self._handle,
            schema.to_frame().to_arrow().schema,
            compression="zstd",
            compression_level=3,
        )
        self._pending = schema.to_frame()
        self._rows, self._is_committed = 0, False

    def add(self, rows: pl.DataFrame) -> None:
        """Rows of the declared schema, after those added before."""
        self._pending = pl.concat([self._pending, rows])
        ends = np.cumsum(_bytes_of_rows(self._pending))
        first = written = 0
        while len(ends) > first and ends[-1] - written >= ROW_GROUP_BYTES:
            last = int(np.searchsorted(ends, written + ROW_GROUP_BYTES)) + 1
            self._write(self._pending[first:last])
            first, written = last, ends[last - 1]
        self._pending = self._pending[first:]

    def commit(
        self,
        *,
        keys: Mapping[str, str] | None = None,
        version: str | None = None,
        details: Mapping[str, object] | None = None,
    ) -> Manifest:
        """Make what was added the whole content of the partition, in one atomic step."""
        self._write(self._pending)
        self._writer.close()
        self._handle.flush()
        os.fsync(self._handle.fileno())
        self._table.store.keep(self._key)
        keys = dict(keys or {})
        manifest = Manifest(
            table=self._table.name,
            partition=self._partition,
            files=(self._file.name,),
            rows=self._rows,
            version=version if version is not None else digest(keys),
            keys=keys,
            details=dict(details or {}),
        )
        try:
            drop_unnamed = self._table._publish(manifest)
        except BaseException as error:
            # Interrupted, or without an answer: the manifest may be there, and name the file.
            self._is_committed = not isinstance(error, Conflict | OSError)
            raise
        self._is_committed = True
        drop_unnamed()
        return manifest

    def __enter__(self) -> "Replacement":
        return self

    def __exit__(self, *error: object) -> None:
        if not self._is_committed:
            with suppress(OSError):  # of a full disk, which was said already
                self._writer.close()
        self._handle.close()
        if not self._is_committed:
            with suppress(StorageUnavailable):  # said already; `drop_unnamed` will find the file
                self._table.store.delete([self._key])

    def _write(self, rows: pl.DataFrame) -> None:
        if rows.height:
            self._writer.write_table(rows.rechunk().to_arrow(), row_group_size=rows.height)
            self._rows += rows.height


def _bytes_of_rows(rows: pl.DataFrame) -> np.ndarray:
    """About what each row holds in memory: its strings, and a little for everything else."""
    sizes = np.full(rows.height, 16 * rows.width, np.int64)
    for column in rows.iter_columns():
        if column.dtype == pl.String:
            sizes += column.str.len_bytes().fill_null(0).to_numpy()
    return sizes


def disk_bytes(path: Path) -> int:
    """The bytes of a file, or of every file below a folder; 0 if it is not there."""
    total = 0
    for file in path.rglob("*") if path.is_dir() else [path]:
        with suppress(FileNotFoundError):  # deleted meanwhile
            total += 0 if file.is_dir() else file.lstat().st_size
    return total


class Stamps:
    """Which inputs each asset partition was last built from: small files, replaced whole."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def read(self, asset: str, partition: str = WHOLE) -> str | None:
        content = _read_json(self._store, self._key(asset, partition))
        return None if content is None else content["inputs"]

    def write(self, asset: str, inputs: str, partition: str = WHOLE) -> None:
        if self.read(asset, partition) != inputs:
            self._store.write(self._key(asset, partition), _json({"inputs": inputs}))

    def remove(self, asset: str, partition: str = WHOLE) -> None:
        self._store.delete([self._key(asset, partition)])

    def partitions(self, asset: str) -> list[str]:
        """The partitions of an asset that have a stamp, sorted."""
        names = (Path(file.key).name for file in self._store.files(encode(asset)))
        return sorted(unquote(name[: -len(".json")]) for name in names if name.endswith(".json"))

    def _key(self, asset: str, partition: str) -> str:
        return f"{encode(asset)}/{encode(partition)}.json"


def encode(name: str) -> str:
    """A name as one path component that cannot leave its folder.

    >>> encode("recursive-400@1|help/center"), encode("..")
    ('recursive-400@1%7Chelp%2Fcenter', '%2E%2E')
    """
    encoded = quote(name, safe="@+ ")
    return encoded.replace(".", "%2E") if encoded.startswith(".") else encoded


def _json(content: object) -> bytes:
    return json.dumps(content, ensure_ascii=False, sort_keys=True, indent=1).encode()


def _read_json(store: Store, key: str) -> dict[str, Any] | None:
    content = store.read(key)
    if content is None:
        return None
    try:
        found: dict[str, Any] = json.loads(content)
    except ValueError as error:
        raise CorpusError(
            f"{store.uri}/{key} is damaged ({error}). Remove it and run again: it will be rebuilt."
        ) from error
    return found
