"""The analysts' database: one DuckDB file, rebuilt from the tables' manifests, published whole.

DuckDB lets one process write or many read, so nobody ever writes to a file that somebody reads: a
build is made under its own name, verified, and served by an atomic flip of a link. A reader keeps
the build it opened. What the tables and their columns mean is said once, in `sql/`.
"""

import json
import os
import re
import shutil
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from graphlib import TopologicalSorter
from importlib.resources import files
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

import polars as pl

from chunking_assets.chunk_sets.settings import all_settings
from chunking_assets.errors import CorpusError
from chunking_assets.keys import digest
from chunking_assets.storage import Store
from chunking_assets.workspace import HISTORY, Workspace

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

    from chunking_assets.chunk_embeddings.version import IndexVersion
    from chunking_assets.retrieval.strategy import Strategy

STORAGE_VERSION = "v1.5.0"
"""The oldest DuckDB release that opens the file: what DBeaver and notebooks still carry."""

KEPT_BUILDS = 3
POINTER = "evals.json"
"""The file in a bucket that names the newest build there."""
TRIED_ROWS = 2_000
"""Rows of each table that every view is run on before a build is served."""
MEMORY_LIMIT = "2GB"

_PARQUET_NAMES = {
    "start_char": "start",
    "end_char": "end",
    "recorded_at": "at",
    "requested_by": "by",
}
"""Columns that an analyst would have to quote under the name they have in Parquet."""


_BUILD_TABLE = """
create table _build (build varchar, inputs varchar, built_at timestamptz);
comment on table _build is 'One row: which build of the database this is.';
comment on column _build.build is 'Name of the build.';
comment on column _build.inputs is 'Digest of tables, views and rows: equal digest, equal content.';
comment on column _build.built_at is 'When it was built.';
"""


@dataclass(frozen=True)
class Published:
    """The served file: `path` is the link to open, `build` the file behind it.

    `rows` counts the rows of each table; `inputs` is the digest of what was published: equal
    digest, equal content; `is_new` is False when the served build held it already and nothing was
    written.
    """

    path: Path
    build: Path
    inputs: str
    rows: Mapping[str, int]
    is_new: bool


class Column(NamedTuple):
    """A column as `sql/tables` declares it; `type` is a DuckDB type in lower case."""

    name: str
    type: str
    comment: str


def publish(
    workspace: Workspace, dimensions: Mapping[str, pl.DataFrame] = MappingProxyType({})
) -> Published:
    """Build, verify and serve the database of everything the workspace holds now.

    `dimensions` are the tables that come from configuration, by name, such as `strategies`.
    A table that was never written is there, empty. A crash or an error leaves the served file as
    it was. Of a workspace in a bucket the file is served on this machine, and in the bucket too
    where `storage.upload_database` says so.

    Raises:
        CorpusError: `dimensions` names an unknown table, or rows break a declared column or
            constraint; the message names the table.
    """
    with workspace.lock("eval-database"):
        sources = _sources(workspace, dimensions)
        inputs = _digest(sources)
        rows = {name: source.rows for name, source in sources.items()}
        link = workspace.eval_database
        served = link.parent / link.readlink() if link.is_symlink() and link.exists() else None
        if served is not None and served.stem.endswith(inputs):
            _upload(workspace, served, inputs)
            return Published(link, served, inputs, rows, is_new=False)
        builds = link.parent / "builds"
        build = builds / f"evals-{datetime.now(UTC):%Y%m%dT%H%M%S%fZ}-{inputs}.duckdb"
        unfinished = builds / f".{build.name}"
        builds.mkdir(parents=True, exist_ok=True)
        try:
            _build(unfinished, build.stem, inputs, sources)
            _verify(unfinished, rows)
            _flush(unfinished)
            unfinished.chmod(0o444)
            unfinished.rename(build)
            _flush(builds)
            _serve(link, build)
        finally:
            _clear_unfinished(builds)
        _drop_old_builds(builds, build)
        _upload(workspace, build, inputs)
    return Published(link, build, inputs, rows, is_new=True)


def definition() -> str:
    """A digest of the tables and views as `sql/` defines them."""
    return digest(STORAGE_VERSION, _statements("tables"), _statements("views"))


@cache
def table_names() -> tuple[str, ...]:
    """The tables of the published file, sorted."""
    return tuple(_statements("tables"))


@cache
def view_names() -> tuple[str, ...]:
    """The views of the published file, sorted."""
    return tuple(_statements("views"))


@cache
def table_columns(name: str) -> tuple[Column, ...]:
    """The columns of a table in order, read from `sql/tables` without opening a database.

    >>> table_columns("embedded_chunks")[0].name, table_columns("gold_questions")[4].type
    ('index_version', 'varchar[]')
    """
    statement = _statements("tables")[name]
    body = statement.partition(" (\n")[2].partition("\n);")[0]
    comments = dict(re.findall(rf"comment on column {name}\.(\w+) is '((?:[^']|'')*)';", statement))
    return tuple(
        Column(column, kind, comments.get(column, "").replace("''", "'"))
        for column, kind in re.findall(r"^ {4}(?!check\b)(\w+) (\w+(?:\[\])?)", body, re.MULTILINE)
    )


def table_comment(name: str) -> str:
    """What one row of a table is, read from `sql/tables`."""
    found = re.search(rf"comment on table {name} is '((?:[^']|'')*)';", _statements("tables")[name])
    return found[1].replace("''", "'") if found else ""


def strategy_rows(strategies: Iterable["Strategy"]) -> pl.DataFrame:
    """The `strategies` table: one row per declared strategy."""
    return pl.DataFrame(
        [
            {
                "strategy": s.name,
                "chunker_version": s.index.chunker_version.name,
                "chunker_kind": s.index.chunker_version.chunker.kind,
                "embedding_model": s.index.model_name,
                "index_version": s.index.name,
                "profile": s.profile_name,
                "search": s.profile.search,
                "k": s.profile.k,
                "settings": json.dumps(
                    {
                        "chunker": all_settings(s.index.chunker_version.chunker.declaration()),
                        "embedding_model": s.index.model.declaration(),
                        "profile": s.profile.model_dump(mode="json"),
                    },
                    sort_keys=True,
                ),
                "strategy_digest": s.digest,
            }
            for s in strategies
        ],
        schema=_frame_schema("strategies"),
    )


def index_rows(workspace: Workspace, indexes: Iterable["IndexVersion"]) -> pl.DataFrame:
    """The `declared_indexes` table: one row per index version, with what the workspace knows of
    its model.

    Raises:
        CorpusError: a stored index cannot be read.
    """
    # Publishing needs none of what indexing imports.
    from chunking_assets.chunk_embeddings.build import FINGERPRINTS
    from chunking_assets.chunk_embeddings.lance_index import VECTOR, LanceIndex

    rows = []
    for index in indexes:
        lance = LanceIndex(workspace, index.name)
        is_served = lance.served_version() is not None
        known = workspace.declaration(FINGERPRINTS, index.model_name) or {}
        rows.append(
            {
                "index_version": index.name,
                "chunker_version": index.chunker_version.name,
                "chunker_kind": index.chunker_version.chunker.kind,
                "embedding_model": index.model_name,
                "model_kind": index.model.kind,
                "precision": index.precision,
                "dimensions": (
                    lance.open_served().schema.field(VECTOR).type.list_size if is_served else None
                ),
                "revision": known.get("revision"),
                "fingerprint": known.get("fingerprint"),
            }
        )
    return pl.DataFrame(rows, schema=_frame_schema("declared_indexes"))


def _frame_schema(table: str) -> pl.Schema:
    """Of a table whose rows come from configuration: numbers and texts only."""
    return pl.Schema(
        {c.name: pl.Int64() if c.type == "bigint" else pl.String() for c in table_columns(table)}
    )


@dataclass(frozen=True)
class _Source:
    """What a table is filled from; `version` changes when the rows do."""

    rows: int
    version: object
    files: tuple[Path, ...] = ()
    frame: pl.DataFrame | None = None


def _sources(workspace: Workspace, dimensions: Mapping[str, pl.DataFrame]) -> dict[str, _Source]:
    if unknown := dimensions.keys() - set(table_names()):
        raise CorpusError(
            f"no table is called {', '.join(sorted(unknown))}. Declare it in sql/tables, or use "
            f"one of: {', '.join(table_names())}."
        )
    return {name: _source(workspace, name, dimensions.get(name)) for name in table_names()}


def _digest(sources: Mapping[str, _Source]) -> str:
    return digest(
        STORAGE_VERSION,
        _statements("tables"),
        _statements("views"),
        {name: source.version for name, source in sources.items()},
    )


def _source(workspace: Workspace, name: str, frame: pl.DataFrame | None) -> _Source:
    if frame is not None:
        return _Source(frame.height, [str(frame.schema), frame.write_json()], frame=frame)
    table = workspace.table(name)
    # Read once: a manifest replaced meanwhile must not give files of one version and the
    # digest of another.
    manifests = [m for p in table.partitions() if (m := table.manifest(p)) is not None]
    return _Source(
        rows=sum(m.rows for m in manifests),
        version=[
            # A manifest without keys may not know its content's version; its file names do.
            [m.partition, m.version, m.rows, *(m.files if not m.keys else ())]
            for m in manifests
        ],
        files=tuple(file for m in manifests for file in table.snapshot(m).files),
    )


def _build(file: Path, name: str, inputs: str, sources: Mapping[str, _Source]) -> None:
    import duckdb

    config: dict[str, str | bool | int | float | list[str]] = {
        "memory_limit": MEMORY_LIMIT,
        "preserve_insertion_order": False,
        "temp_directory": f"{file}.spill",
    }
    with duckdb.connect(config=config) as connection:
        connection.execute(
            f"attach '{_quoted(file)}' as build (storage_version '{STORAGE_VERSION}')"
        )
        # Views are stored as text: they must not name the database they are created in.
        connection.execute("use build")
        connection.execute("begin")  # one flush to disk, not one a statement
        for table, statement in _statements("tables").items():
            connection.execute(statement)
            _fill(connection, table, sources[table])
        for view, statement in _in_order_of_use(_statements("views")):
            try:
                connection.execute(statement)
            except duckdb.Error as error:
                raise CorpusError(f"sql/views/{view}.sql: {error}") from error
        connection.execute(_BUILD_TABLE)
        connection.execute("insert into _build values (?, ?, ?)", [name, inputs, datetime.now(UTC)])
        connection.execute("commit")
        connection.execute("use memory")
        connection.execute("checkpoint build")
        connection.execute("detach build")
    # What is renamed is one file: verification must see it without a log beside it.
    _write_ahead_log(file).unlink(missing_ok=True)


def _fill(connection: "DuckDBPyConnection", table: str, source: _Source) -> None:
    import duckdb

    if source.frame is None and not source.files:
        return
    names = [column.name for column in table_columns(table)]
    if table in HISTORY and source.files:
        # What happened before a column was kept has no value for it.
        kept = {column for file in source.files for column in pl.read_parquet_schema(file)}
        names = [name for name in names if _PARQUET_NAMES.get(name, name) in kept]
    values = ", ".join(f'"{_PARQUET_NAMES.get(name, name)}"' for name in names)
    insert = f"insert into {table} ({', '.join(names)}) select {values} from"
    try:
        if source.frame is not None:
            connection.register("dimension", source.frame.to_arrow())
            connection.execute(f"{insert} dimension")
            connection.unregister("dimension")
        else:
            connection.execute(
                f"{insert} read_parquet(?, union_by_name = true, hive_partitioning = false)",
                [[str(file) for file in source.files]],
            )
    except duckdb.Error as error:
        raise CorpusError(
            f"table {table} cannot be published: {str(error).splitlines()[0]} "
            f"(columns and constraints: sql/tables/{table}.sql). Correct what writes its rows and "
            "build them again; the published file has not changed."
        ) from error


def _verify(file: Path, rows: Mapping[str, int]) -> None:
    import duckdb

    with duckdb.connect(file, read_only=True) as connection:
        for table, expected in rows.items():
            counted = connection.execute(f"select count(*) from {table}").fetchone()  # noqa: S608
            if counted != (expected,):
                raise CorpusError(
                    f"table {table}: {counted} rows were published of {expected} that its "
                    "manifests name. Build the table again; the published file has not changed."
                )
    _try_views(file)


def _try_views(file: Path) -> None:
    """Run every view on the first rows of every table: on all of a million that would take longer
    than to store them."""
    import duckdb

    with duckdb.connect() as connection:
        connection.execute(f"attach '{_quoted(file)}' as build (read_only)")
        for table in table_names():
            connection.execute(f"create table {table} as from build.{table} limit {TRIED_ROWS}")
        for view, statement in _in_order_of_use(_statements("views")):
            try:
                connection.execute(statement.partition("\ncomment on ")[0])
                # The hash of a row needs each of its columns; a count would need none.
                connection.execute(f"select max(hash(v)) from {view} as v")  # noqa: S608
            except duckdb.Error as error:
                raise CorpusError(
                    f"sql/views/{view}.sql fails on the rows there are: {error}. Correct the view; "
                    "the published file has not changed."
                ) from error


def _serve(link: Path, build: Path) -> None:
    flip = link.with_name(f".{link.name}.{uuid.uuid4().hex}")
    flip.symlink_to(build.relative_to(link.parent))
    flip.replace(link)
    _flush(link.parent)


def _upload(workspace: Workspace, build: Path, inputs: str) -> None:
    """The build under its own name, and last the small file that names the newest one; nothing if
    it is not asked for, or there."""
    store, name = workspace.store.below("evals"), f"builds/{build.name}"
    if not workspace.uploads_database or _is_uploaded(store, inputs):
        return
    shutil.copyfile(build, store.draft(name))
    store.keep(name)
    store.local(name).unlink()
    pointer = {"build": name, "inputs": inputs, "bytes": build.stat().st_size}
    store.write(POINTER, json.dumps(pointer, sort_keys=True).encode())
    builds = sorted(file.key for file in store.files("builds"))
    store.delete(builds[:-KEPT_BUILDS])


def _is_uploaded(store: Store, inputs: str) -> bool:
    """Whether the newest build there is of these inputs; a damaged pointer is written anew."""
    try:
        pointer = json.loads(store.read(POINTER) or b"{}")
        build = pointer["build"] if pointer["inputs"] == inputs else None
    except (ValueError, KeyError, TypeError):
        return False
    return build in {file.key for file in store.files("builds")}


def _drop_old_builds(builds: Path, served: Path) -> None:
    """A reader that has a dropped file open keeps it until it closes."""
    others = sorted(b for b in builds.glob("evals-*.duckdb") if b != served)
    for old in others[: -(KEPT_BUILDS - 1)]:
        old.unlink()
        # A log of somebody who opened that build for writing belongs to nothing else.
        _write_ahead_log(old).unlink(missing_ok=True)


def _clear_unfinished(builds: Path) -> None:
    """Remove what this publication or a killed one left; the lock keeps others from starting."""
    for leftover in [*builds.glob(".evals-*"), *builds.parent.glob(".evals.duckdb.*")]:
        if leftover.is_dir() and not leftover.is_symlink():
            shutil.rmtree(leftover)
        else:
            leftover.unlink()


def _quoted(file: Path) -> str:
    return str(file).replace("'", "''")


def _write_ahead_log(file: Path) -> Path:
    return file.with_name(f"{file.name}.wal")


def _flush(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@cache
def _statements(folder: str) -> Mapping[str, str]:
    """The SQL texts of one folder of `sql/` by name, sorted."""
    texts = {
        file.name.removesuffix(".sql"): file.read_text(encoding="utf-8")
        for file in (files("sql") / folder).iterdir()
        if file.name.endswith(".sql")
    }
    return dict(sorted(texts.items()))


def _in_order_of_use(views: Mapping[str, str]) -> Iterable[tuple[str, str]]:
    """A view after the views it selects from."""
    needs = {
        name: views.keys() & set(re.findall(r"\b(?:from|join)\s+(\w+)", text)) - {name}
        for name, text in views.items()
    }
    return [(name, views[name]) for name in TopologicalSorter(needs).static_order()]
