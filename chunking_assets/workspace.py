"""Where results live: immutable Parquet files named by manifests, stamps, and declared versions.

A table partition is one `_manifest.json`, replaced atomically, that names its Parquet files; a
file is written once under a name nobody else uses and never changed. A reader takes the file list
from a manifest and never from a directory, so it sees the old content or the new, whole. Nothing
is recorded before what it vouches for is on disk.
"""

import fcntl
import json
import os
import time
import uuid
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote

import numpy as np
import polars as pl

from chunking_assets.errors import CorpusError
from chunking_assets.keys import digest

if TYPE_CHECKING:
    from pyarrow.parquet import ParquetFile

MANIFEST = "_manifest.json"
UNREFERENCED_GRACE_SECONDS = 3600
"""How long a replaced file stays for readers that hold the old manifest."""

ROW_GROUP_BYTES = 4 << 20
"""Row groups end once they hold so much before compression: the least that is read or written at
once, so what bounds the memory of whoever goes through a table piece by piece."""

HISTORY = ("promotions", "tombstones", "builds", "costs")
"""Tables that say what happened, which nothing else remembers."""

WHOLE = "all"
"""The one partition of a table that is not partitioned."""


class Workspace:
    """One folder that holds everything derived from the documents."""

    def __init__(self, root: Path) -> None:
        self.root = Path(root)

    def table(self, name: str) -> "Table":
        return Table(self.root / "tables" / name, name)

    @property
    def stamps(self) -> "Stamps":
        return Stamps(self.root / "stamps")

    @property
    def lance(self) -> Path:
        return self.root / "lance"

    @property
    def models(self) -> Path:
        return self.root / "models"

    @property
    def caches(self) -> Path:
        return self.root / "caches"

    @property
    def eval_database(self) -> Path:
        """The published DuckDB file: a link to the newest build."""
        return self.root / "evals" / "evals.duckdb"

    def record_declaration(self, section: str, name: str, declared: Mapping[str, object]) -> None:
        """Record a declaration at its first use, or check it against the record.

        Raises:
            CorpusError: `name` was first used with another declaration. Nothing was written.
        """
        file = self._declaration_file(section, name)
        self.check_declaration(section, name, declared)
        if not file.exists():
            write_atomically(file, _json(declared))

    def check_declaration(self, section: str, name: str, declared: Mapping[str, object]) -> None:
        """As `record_declaration`, but writes nothing."""
        recorded = _read_json(self._declaration_file(section, name))
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
        return _read_json(self._declaration_file(section, name))

    def _declaration_file(self, section: str, name: str) -> Path:
        return self.root / "declarations" / section / f"{encode(name)}.json"

    @contextmanager
    def lock(self, name: str, waiting: Callable[[], None] | None = None) -> Iterator[None]:
        """Exclude other processes and threads of this machine from `name`; a crash releases it.

        `waiting` is called if somebody else is inside.
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
            else f"Remove its folder {self.files[0].parent} and run again: it will be rebuilt."
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

    def __init__(self, folder: Path, name: str) -> None:
        self.folder, self.name = folder, name

    def partitions(self) -> list[str]:
        """The partitions that have a manifest, sorted."""
        return sorted(unquote(m.parent.name) for m in self.folder.glob(f"*/{MANIFEST}"))

    def manifest(self, partition: str = WHOLE) -> Manifest | None:
        content = _read_json(self._folder(partition) / MANIFEST)
        if content is None:
            return None
        return Manifest(**{**content, "files": tuple(content["files"])})

    def files(self, partitions: Iterable[str] | None = None) -> list[Path]:
        """The Parquet files of these partitions (all of them if None), from their manifests."""
        names = self.partitions() if partitions is None else partitions
        return [
            self._folder(partition) / file
            for partition in names
            if (manifest := self.manifest(partition)) is not None
            for file in manifest.files
        ]

    def read(self, partition: str = WHOLE, columns: list[str] | None = None) -> pl.DataFrame | None:
        """The rows of one partition, or None if it was never written."""
        return self.read_all([partition], columns)

    def read_all(
        self, partitions: Iterable[str] | None = None, columns: list[str] | None = None
    ) -> pl.DataFrame | None:
        """The rows of several partitions (all of them if None), or None if there are none."""
        names = None if partitions is None else list(partitions)
        files = self.files(names)
        if not all(file.exists() for file in files):
            files = self.files(names)  # replaced, and the grace over, since the manifest was read
        return Snapshot(self.name, tuple(files)).read(columns) if files else None

    def snapshot(self, manifest: Manifest) -> Snapshot:
        """The rows a manifest of this table names."""
        folder = self._folder(manifest.partition)
        return Snapshot(self.name, tuple(folder / file for file in manifest.files))

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
        """Add `rows` to a partition that only grows, such as a log of events."""
        before = self.read(partition)
        whole = rows if before is None else pl.concat([before, rows], how="diagonal_relaxed")
        return self.replace(whole, partition, version=uuid.uuid4().hex)

    def remove(self, partition: str = WHOLE) -> None:
        """Forget a partition; its files go with it."""
        folder = self._folder(partition)
        (folder / MANIFEST).unlink(missing_ok=True)
        for file in folder.glob("*"):
            file.unlink()
        if folder.exists():
            folder.rmdir()

    def damage(self, partition: str = WHOLE) -> str | None:
        """What is wrong with the files of a partition, told from their last bytes; None if nothing
        is, or it was never written."""
        from pyarrow import ArrowException
        from pyarrow.parquet import read_metadata

        where = f"table {self.name}, partition {partition}"
        try:
            manifest = self.manifest(partition)
        except CorpusError as error:
            return str(error)
        if manifest is None:
            folder = self._folder(partition)
            lost = folder.is_dir() and any(folder.glob("*.parquet"))
            return f"{where}: its manifest is lost" if lost else None
        try:
            rows = sum(read_metadata(file).num_rows for file in self.snapshot(manifest).files)
        except (OSError, ArrowException) as error:
            return f"{where}: a file cannot be read ({error})"
        if rows != manifest.rows:
            return f"{where}: it has {rows} rows, its manifest says {manifest.rows}"
        return None

    def drop_unnamed(self, grace_seconds: float = UNREFERENCED_GRACE_SECONDS) -> int:
        """Delete the files that no manifest names and nobody wrote to for so long; their bytes."""
        limit, freed = time.time() - grace_seconds, 0
        for folder in self.folder.glob("*/"):
            manifest = self.manifest(unquote(folder.name))
            named = {MANIFEST, *(manifest.files if manifest else ())}
            freed += sum(_unlink_older(f, limit) for f in folder.iterdir() if f.name not in named)
        return freed

    def _folder(self, partition: str) -> Path:
        return self.folder / encode(partition)

    def _publish(self, manifest: Manifest) -> None:
        folder = self._folder(manifest.partition)
        self._begin_grace(manifest.partition)
        write_atomically(folder / MANIFEST, _json(asdict(manifest)))
        self._drop_unreferenced(folder, manifest)

    def _begin_grace(self, partition: str) -> None:
        """Files about to be replaced count as unreferenced from now on, however old they are."""
        for file in self.files([partition]):
            if file.exists():
                os.utime(file)

    @staticmethod
    def _drop_unreferenced(folder: Path, manifest: Manifest) -> None:
        limit = time.time() - UNREFERENCED_GRACE_SECONDS
        for file in folder.iterdir():
            if file.name != MANIFEST and file.name not in manifest.files:
                _unlink_older(file, limit)


class Replacement:
    """The next content of a partition, written as it comes; nobody sees it before `commit`.

    How the rows come makes no difference to the file. Leaving the `with` block without a commit
    leaves the partition as it was.
    """

    def __init__(self, table: Table, schema: pl.Schema, partition: str) -> None:
        from pyarrow.parquet import ParquetWriter

        self._table, self._partition = table, partition
        folder = table._folder(partition)
        folder.mkdir(parents=True, exist_ok=True)
        self._file = folder / f"{uuid.uuid4().hex}.parquet"
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
        self._table._publish(manifest)
        self._is_committed = True
        return manifest

    def __enter__(self) -> "Replacement":
        return self

    def __exit__(self, *error: object) -> None:
        if not self._is_committed:
            with suppress(OSError):  # of a full disk, which was said already
                self._writer.close()
            self._file.unlink(missing_ok=True)
        self._handle.close()

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


def _unlink_older(file: Path, limit: float) -> int:
    """Delete a file last written to before `limit` (seconds since the epoch); its bytes, or 0."""
    try:
        found = file.stat()
        if found.st_mtime < limit:
            file.unlink()
            return found.st_size
    except FileNotFoundError:
        pass  # somebody else dropped it first
    return 0


def disk_bytes(path: Path) -> int:
    """The bytes of a file, or of every file below a folder; 0 if it is not there."""
    total = 0
    for file in path.rglob("*") if path.is_dir() else [path]:
        with suppress(FileNotFoundError):  # deleted meanwhile
            total += 0 if file.is_dir() else file.lstat().st_size
    return total


class Stamps:
    """Which inputs each asset partition was last built from: small files, renamed into place."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def read(self, asset: str, partition: str = WHOLE) -> str | None:
        content = _read_json(self._file(asset, partition))
        return None if content is None else content["inputs"]

    def write(self, asset: str, inputs: str, partition: str = WHOLE) -> None:
        if self.read(asset, partition) != inputs:
            write_atomically(self._file(asset, partition), _json({"inputs": inputs}))

    def remove(self, asset: str, partition: str = WHOLE) -> None:
        self._file(asset, partition).unlink(missing_ok=True)

    def partitions(self, asset: str) -> list[str]:
        """The partitions of an asset that have a stamp, sorted."""
        return sorted(unquote(file.stem) for file in (self.folder / asset).glob("*.json"))

    def _file(self, asset: str, partition: str) -> Path:
        return self.folder / asset / f"{encode(partition)}.json"


def encode(name: str) -> str:
    """A name as one path component that cannot leave its folder.

    >>> encode("recursive-400@1|help/center"), encode("..")
    ('recursive-400@1%7Chelp%2Fcenter', '%2E%2E')
    """
    encoded = quote(name, safe="@+ ")
    return encoded.replace(".", "%2E") if encoded.startswith(".") else encoded


def write_atomically(file: Path, content: bytes) -> None:
    """Write beside the target, flush to disk, rename over it."""
    file.parent.mkdir(parents=True, exist_ok=True)
    temporary = file.with_name(f".{file.name}.{uuid.uuid4().hex}.tmp")
    try:
        with temporary.open("wb") as handle:
            handle.write(content)
            handle.flush()
            os.fsync(handle.fileno())
        temporary.replace(file)
    finally:
        temporary.unlink(missing_ok=True)


def _json(content: object) -> bytes:
    return json.dumps(content, ensure_ascii=False, sort_keys=True, indent=1).encode()


def _read_json(file: Path) -> dict[str, Any] | None:
    try:
        content = file.read_bytes()
    except FileNotFoundError:
        return None
    try:
        found: dict[str, Any] = json.loads(content)
    except ValueError as error:
        raise CorpusError(
            f"{file} is damaged ({error}). Remove it and run again: it will be rebuilt."
        ) from error
    return found
