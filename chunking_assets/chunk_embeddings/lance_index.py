"""One LanceDB table per index version, and the tag its readers follow.

A shard's rows are replaced in one commit, and only if something differs; readers keep the version
behind the tag until `publish` has indexed the new rows and moves the tag. One table per version,
because tags, rollback and the vectors' dimensions belong to a table.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from chunking_assets.errors import CorpusError
from chunking_assets.keys import digest
from chunking_assets.workspace import Workspace

if TYPE_CHECKING:
    import pyarrow as pa

SERVED = "served"
KEY, CHECK, TEXT, VECTOR = "chunk_id", "row_sha", "embed_text", "vector"
INDEXED = ("doc_id", "shard", TEXT)
PRIMARY_KEY_MARK = b"lance-schema:unenforced-primary-key:position"
KEEP_OLD_VERSIONS = timedelta(days=1)
"""How long a reader may hold a version that is served no longer."""
SAFETY_MARGIN = timedelta(hours=2)
"""LanceDB tells times of versions in local time, which may be set back by an hour."""
LONGEST_WORD = 100
"""Words above this many bytes are not searchable; hashes and identifiers are, encoded blobs not."""


def table_name(index_version: str) -> str:
    """
    >>> table_name("recursive-400@1+e5-small")
    'recursive-400_v1__e5-small'
    """
    chunker_version, _, model = index_version.partition("+")
    return f"{chunker_version.replace('@', '_v')}__{model}"


def sql_literal(value: str) -> str:
    """A string as a literal of LanceDB's SQL filters.

    >>> sql_literal("it's")
    "'it''s'"
    """
    return "'" + value.replace("'", "''") + "'"


class LanceIndex:
    """The table of one index version, for its one writer at a time and any readers."""

    def __init__(
        self, workspace: Workspace, index_version: str, dimensions: int | None = None
    ) -> None:
        """`dimensions` is needed to write; a reader leaves it out."""
        self.name = table_name(index_version)
        self._workspace, self._index_version = workspace, index_version
        self._dimensions = dimensions

    def is_stored(self) -> bool:
        """Whether the table's folder is there; told without opening it."""
        return (self._workspace.lance / f"{self.name}.lance").is_dir()

    def exists(self) -> bool:
        return self._open() is not None

    def replace_documents(
        self, rows: "pa.Table", shard: str, doc_ids: Sequence[str] | None = None
    ) -> bool:
        """Make `rows` all that the table holds of these documents (None: of the shard).

        One commit, and none if nothing differs; says whether there was one. Rows of other
        documents stay. Nothing is served before `publish`.

        Raises:
            CorpusError: a vector is not finite or zero, a chunk_id stands for two different
                rows, a row is outside the scope, or the table holds vectors of another size.
        """
        source = self._checked(rows, shard, doc_ids)
        scope = f"shard = {sql_literal(shard)}"
        if doc_ids is not None:
            listed = ", ".join(sql_literal(doc_id) for doc_id in sorted({*doc_ids}))
            scope += f" AND doc_id IN ({listed or 'NULL'})"
        with self._locked():
            table = self._open_or_create()
            before = _scan(table, [KEY, CHECK], scope)
            if before.num_rows == source.num_rows and _row_shas(before) == _row_shas(source):
                return False
            if source.num_rows == 0:
                table.delete(scope)
            else:
                (
                    table.merge_insert(KEY)
                    .when_matched_update_all(where=f"target.{CHECK} != source.{CHECK}")
                    .when_not_matched_insert_all()
                    .when_not_matched_by_source_delete(scope)
                    .execute(source, on_bad_vectors="null")  # checked above; null is not bad
                )
            return True

    def delete_shard(self, shard: str) -> None:
        """Remove every row of a shard. Nothing is seen of it before `publish`."""
        scope = f"shard = {sql_literal(shard)}"
        with self._locked():
            table = self._open()
            if table is not None and table.count_rows(scope):
                table.delete(scope)

    def publish(self) -> int:
        """Index what is new, then show it to readers; the version now served.

        Versions older than a day and older than the one served until now are removed.
        """
        with self._locked():
            table = self._open_or_create()
            tags = table.tags.list()
            served = tags[SERVED]["version"] if SERVED in tags else None
            if served == table.version and not _unindexed(table):
                return int(table.version)
            _create_missing_indexes(table)
            # Cleaning raises if it meets a tagged version, so it stops short of the oldest one.
            table.optimize(cleanup_older_than=_cleanable_age(table, tags))
            if served is None:
                table.tags.create(SERVED, table.version)
            else:
                table.tags.update(SERVED, table.version)
            return int(table.version)

    def rows(
        self,
        shard: str | None = None,
        columns: Sequence[str] | None = None,
        *,
        served: bool = False,
    ) -> "pa.Table":
        """Columns (all if None) of the rows of a shard (of all if None): the newest, or those
        that readers are served.

        Raises:
            CorpusError: the table was never written, or never published.
        """
        table = self.open_served() if served else self._open()
        if table is None:
            raise self._missing()
        names = list(columns) if columns is not None else list(table.schema.names)
        return _scan(table, names, None if shard is None else f"shard = {sql_literal(shard)}")

    def served_version(self) -> int | None:
        """The table version that readers follow; None if nothing was published."""
        table = self._open()
        tags = {} if table is None else table.tags.list()
        return int(tags[SERVED]["version"]) if SERVED in tags else None

    def open_served(self) -> Any:
        """The LanceDB table at the served version; it refuses writes.

        A vector search should select `_distance` with its columns, or LanceDB warns every time.

        Raises:
            CorpusError: nothing was published.
        """
        table = self._open()
        if table is None or SERVED not in table.tags.list():
            raise self._missing()
        table.checkout(SERVED)
        return table

    def unindexed_rows(self) -> int:
        """Rows of the newest version that some index does not cover yet."""
        table = self._open()
        return 0 if table is None else _unindexed(table)

    def drop(self) -> None:
        """Remove the table with all its versions."""
        with self._locked():
            if self._open() is not None:
                self._connect().drop_table(self.name)

    def _locked(self) -> Any:
        return self._workspace.lock(f"lance {self.name}")

    def _missing(self) -> CorpusError:
        return CorpusError(
            f"index {self._index_version} was never published. Build chunk_embeddings first."
        )

    def _connect(self) -> Any:
        import lancedb

        return lancedb.connect(self._workspace.lance)

    def _open(self) -> Any | None:
        if not self.is_stored():
            return None
        return self._connect().open_table(self.name)

    def _open_or_create(self) -> Any:
        table = self._open()
        if table is None:
            table = self._connect().create_table(self.name, schema=self._schema())
        # Readers of concurrent inserts rely on the key; a crash may have come before it was set.
        if PRIMARY_KEY_MARK not in (table.schema.field(KEY).metadata or {}):
            table.set_unenforced_primary_key(KEY)
        if self._dimensions is not None and (
            (stored := table.schema.field(VECTOR).type.list_size) != self._dimensions
        ):
            raise CorpusError(
                f"index {self._index_version} holds vectors of {stored} dimensions, the model "
                f"gives {self._dimensions}. Declare the model under a new name."
            )
        return table

    def _schema(self) -> "pa.Schema":
        import pyarrow as pa

        if self._dimensions is None:
            raise self._missing()
        return pa.schema(
            [
                pa.field(KEY, pa.string(), nullable=False),
                pa.field("shard", pa.string()),
                pa.field("doc_id", pa.string()),
                pa.field("ordinal", pa.int64()),
                pa.field("start", pa.int64()),
                pa.field("end", pa.int64()),
                pa.field("prefix", pa.string()),
                pa.field("text", pa.string()),
                pa.field(TEXT, pa.string()),
                pa.field("heading_path", pa.list_(pa.string())),
                pa.field("level", pa.int64()),
                pa.field("parent_id", pa.string()),
                pa.field("searched", pa.bool_()),
                pa.field("n_tokens", pa.int64()),
                pa.field("vec_key", pa.string()),
                pa.field(VECTOR, pa.list_(pa.float32(), self._dimensions)),
                pa.field(CHECK, pa.string()),
            ]
        )

    def _checked(self, rows: "pa.Table", shard: str, doc_ids: Sequence[str] | None) -> "pa.Table":
        """The rows as the table stores them: cast, proven, each chunk_id once, with a digest."""
        import pyarrow as pa

        schema = self._schema()
        stored = rows.select([n for n in schema.names if n != CHECK])
        facts = stored.drop_columns([VECTOR]).to_pylist()
        _check_scope(facts, shard, doc_ids)
        _check_vectors(stored, self._index_version)
        stored = stored.append_column(CHECK, pa.array([digest(f) for f in facts], pa.string()))
        first: dict[str, int] = {}
        shas = stored[CHECK].to_pylist()
        for at, fact in enumerate(facts):
            seen = first.setdefault(fact[KEY], at)
            if shas[seen] != shas[at]:
                raise CorpusError(
                    f"chunk {fact[KEY]} of document {fact['doc_id']} stands for two different rows "
                    f"in {self._index_version}. Build chunk_sets of shard {shard} again."
                )
        return stored.take(pa.array(first.values(), pa.int64())).cast(schema)


def _check_scope(
    facts: Sequence[dict[str, Any]], shard: str, doc_ids: Sequence[str] | None
) -> None:
    owned = None if doc_ids is None else {*doc_ids}
    for fact in facts:
        if fact["shard"] != shard or (owned is not None and fact["doc_id"] not in owned):
            raise CorpusError(
                f"chunk {fact[KEY]} of document {fact['doc_id']} (shard {fact['shard']}) is not "
                f"among the documents to replace in shard {shard}. Nothing was written."
            )


def _check_vectors(rows: "pa.Table", index_version: str) -> None:
    """LanceDB stores infinite and zero vectors and never finds them again: refuse them here.

    A chunk that is not searched has none.
    """
    import numpy as np
    import pyarrow.compute as pc

    if pc.any(pc.not_equal(rows[VECTOR].is_valid(), rows["searched"])).as_py():
        raise CorpusError(
            f"a searched chunk of {index_version} has no vector, or one that is only read has one. "
            "Nothing was written."
        )
    rows = rows.filter(rows["searched"])
    if rows.num_rows == 0:
        return
    vectors = rows[VECTOR].combine_chunks()
    values = vectors.flatten().to_numpy(zero_copy_only=False).reshape(rows.num_rows, -1)
    usable = np.isfinite(values).all(axis=1) & (values != 0).any(axis=1)
    if not usable.all():
        row = rows.slice(int(np.argmin(usable)), 1).to_pylist()[0]
        raise CorpusError(
            f"the vector of chunk {row[KEY]} of document {row['doc_id']} in {index_version} is "
            "not finite, or zero, and could not be found again. Embed it with another model."
        )


def _row_shas(rows: "pa.Table") -> dict[str, str]:
    return dict(zip(rows[KEY].to_pylist(), rows[CHECK].to_pylist(), strict=True))


def _scan(table: Any, columns: list[str], where: str | None) -> "pa.Table":
    query = table.search().select(columns).limit(None)
    return (query if where is None else query.where(where)).to_arrow()


def _create_missing_indexes(table: Any) -> None:
    """Full text word for word, whatever the language, and the columns that filters use."""
    from lancedb.index import FTS, BTree

    full_text = FTS(
        base_tokenizer="simple",
        lower_case=True,
        ascii_folding=True,
        stem=False,
        remove_stop_words=False,
        with_position=False,
        max_token_length=LONGEST_WORD,
    )
    for column in _missing_indexes(table):
        table.create_index(column, config=full_text if column == TEXT else BTree())


def _missing_indexes(table: Any) -> list[str]:
    indexed = {column for index in table.list_indices() for column in index.columns}
    return [column for column in INDEXED if column not in indexed]


def _unindexed(table: Any) -> int:
    if _missing_indexes(table):
        return int(table.count_rows())
    stats = (table.index_stats(index.name) for index in table.list_indices())
    return max(int(s.num_unindexed_rows) for s in stats)


def _cleanable_age(table: Any, tags: dict[str, Any]) -> timedelta:
    tagged = {tag["version"] for tag in tags.values()}
    made: list[datetime] = [v["timestamp"] for v in table.list_versions() if v["version"] in tagged]
    ages = [datetime.now(tz=m.tzinfo) - m + SAFETY_MARGIN for m in made]
    return max([KEEP_OLD_VERSIONS, *ages])
