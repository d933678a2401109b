"""One LanceDB table per index version, and the tag its readers follow.

An update may take several commits: nobody sees them before `publish` has indexed the new rows and
moves the tag, and the next writer undoes what an update that died left behind. One table per
version, because tags, rollback and the vectors' dimensions belong to a table.
"""

import json
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import PurePath
from threading import get_ident
from typing import TYPE_CHECKING, Any

from chunking_assets.chunk_embeddings.ann import create_ann_index
from chunking_assets.chunk_embeddings.int8 import column_as_int8, holds_int8
from chunking_assets.chunk_embeddings.publications import (
    KEEP_SUPERSEDED,
    PUBLICATIONS,
    READER_GRACE,
    Publication,
    expired,
    publications,
    record_publication,
)
from chunking_assets.chunk_embeddings.version import precision_of
from chunking_assets.errors import CorpusError
from chunking_assets.keys import digest
from chunking_assets.storage import (
    Conflict,
    StorageUnavailable,
    asking_bucket,
    without_credentials,
)
from chunking_assets.workspace import Workspace

if TYPE_CHECKING:
    import pyarrow as pa

SERVED = "served"
KEPT = "kept-"
"""Begins the tag that keeps a published version from being cleaned: `kept-17`."""
KEY, CHECK, TEXT, VECTOR = "chunk_id", "row_sha", "embed_text", "vector"
INDEXED = ("doc_id", "shard", TEXT)
PRIMARY_KEY_MARK = b"lance-schema:unenforced-primary-key:position"
LONGEST_WORD = 100
"""Words above this many bytes are not searchable; hashes and identifiers are, encoded blobs not."""
MOST_FRAGMENTS = 32
MOST_DELETED = 0.1
"""How scattered a table may become before it is written anew: compacting at every update would
write the whole table for one changed document."""
MOST_INDEX_PARTS = 16
"""In how many parts an index may be: a search asks each of them."""
REWRITTEN_SHARE = 0.25
"""How much newer parts must hold of what the first does before that is written anew with them."""
ROWS_PER_FRAGMENT = 1 << 18
"""Fragments that large are left as they are, so that a large table is never written whole."""
COPIED_FROM = 1_000
"""Rows a fragment, from which on they are joined as they are, in half the time and with memory that
does not grow; smaller ones are encoded anew, or every page would stay as small as they were."""
MOST_VERSIONS = 64
"""Unpublished versions, one or more a commit, that may lie about before they are cleaned."""
IDS_PER_DELETE = 10_000
NOT_OF_ROWS = frozenset(("BaseOperation", "CreateIndex", "Rewrite", "UpdateConfig"))
"""Operations of LanceDB that change no row."""
NEWEST_MANIFEST = 2**64 - 1
"""Manifest files count down from here, so that the newest version is listed first."""


def table_name(index_version: str) -> str:
    """
    >>> table_name("recursive-400@1+e5-small")
    'recursive-400_v1__e5-small'
    """
    return index_version.replace("@", "_v").replace("+", "__")


def index_version_of(table: str) -> str:
    """
    >>> index_version_of("recursive-400_v1__e5-small")
    'recursive-400@1+e5-small'
    """
    return table.replace("__", "+").replace("_v", "@")


def stored_indexes(workspace: Workspace) -> list[str]:
    """The index versions that have a table, sorted."""
    found = (PurePath(name) for name in workspace.lance.folders())
    return sorted(index_version_of(f.stem) for f in found if f.match("*__*.lance"))


def parts_to_merge(sizes: Sequence[int]) -> int:
    """How many of an index's parts, from the newest, become one with the new rows; `sizes` are the
    bytes of each, the oldest first. The first part is left alone until the others are worth it.

    >>> parts_to_merge([9000, 20, 20]), parts_to_merge([9000, *[20] * 16])
    (0, 16)
    >>> parts_to_merge([9000, *[200] * 16])
    17
    """
    if len(sizes) <= MOST_INDEX_PARTS:
        return 0
    first, *others = sizes
    return len(others) if sum(others) < REWRITTEN_SHARE * first else len(sizes)


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
        self._store = workspace.lance.below(f"{self.name}.lance")
        self._dimensions = dimensions
        self._holder: int | None = None  # the thread that has the lock
        self._base: int | None = None  # the version an update began at
        self._before: Any | None = None  # the table as it was then
        self._commits = 0  # that it made since
        self._written: set[str] = set()  # the documents it wrote

    @property
    def _named(self) -> str:
        return f"index {self._index_version} in {self._store.uri}"

    def is_stored(self) -> bool:
        """Whether the table is there, readable or not; told without opening it.

        A folder without a commit and a tag is what a creation left that never got through.
        """
        return any(any(self._store.files(part)) for part in ("_versions", "_refs/tags"))

    def exists(self) -> bool:
        return self._open() is not None

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Alone with the table, for several writes that are one update.

        What an update that died left unpublished is undone first, so that nobody publishes the
        half of another.

        Raises:
            Conflict: at `publish`, another machine wrote to the table meanwhile.
            CorpusError: the table cannot be opened.
        """
        with self._locked():
            # What was read before the turn came may be another machine's of meanwhile.
            self._store.forget(_tag_file(SERVED))
            self._workspace.table(PUBLICATIONS).forget(self.name)
            self._undo_unpublished()
            self._begin()
            try:
                yield
            finally:
                self._base, self._before, self._written = None, None, set()

    def replace_documents(
        self, rows: "pa.Table", shard: str, doc_ids: Sequence[str] | None = None
    ) -> bool:
        """Make `rows` all that the table holds of these documents (None: of the shard); what of
        them is there already stays.

        No commit if nothing differs; says whether there was one. Rows of other documents stay.
        Nothing is served before `publish`.

        Raises:
            CorpusError: a vector is not finite or zero, a chunk_id stands for two different
                rows, a row is outside the scope, or the table holds vectors of another size.
        """
        import pyarrow as pa
        import pyarrow.compute as pc

        source = self._checked(rows, shard, doc_ids)
        wanted = _row_shas(source)
        named = {*(source["doc_id"].to_pylist() if doc_ids is None else doc_ids)}
        of_documents = f"doc_id IN ({', '.join(map(sql_literal, sorted(named))) or 'NULL'})"
        scope = of_documents
        if doc_ids is None:
            scope = f"shard = {sql_literal(shard)} OR {of_documents}"
        with self._locked():
            table = self._open_or_create()
            kept, wrong = set[str](), set[str]()
            if doc_ids is None or not self._are_new(named, of_documents):
                with self._reading():
                    found = _scan(table, [KEY, CHECK, "shard"], scope)
                for key, sha, of_shard in zip(*(c.to_pylist() for c in found.columns), strict=True):
                    if wanted.get(key) == sha and key not in kept:
                        kept.add(key)
                    elif key in wanted or of_shard == shard:
                        wrong.add(key)
            kept -= wrong
            if self._base is not None:
                self._written |= named
            new = source.filter(pc.invert(pc.is_in(source[KEY], pa.array(kept, pa.string()))))
            self._delete(table, sorted(wrong), among=scope)
            if new.num_rows:
                self._commits += 1
                table.add(new, on_bad_vectors="null")  # checked above; null is not bad
            return bool(wrong or new.num_rows)

    def delete_chunks(self, chunk_ids: Sequence[str]) -> None:
        """Remove every row of these chunks. Nothing is seen of it before `publish`."""
        with self._locked():
            self._delete(self._open_or_create(), chunk_ids)

    def delete_documents(self, shard: str, doc_ids: Collection[str]) -> None:
        """Remove every row of these documents. Nothing is seen of it before `publish`."""
        with self._locked():
            table, listed = self._open(), sorted(doc_ids)
            if table is None:
                return
            for first in range(0, len(listed), IDS_PER_DELETE):
                some = ", ".join(map(sql_literal, listed[first : first + IDS_PER_DELETE]))
                scope = f"shard = {sql_literal(shard)} AND doc_id IN ({some})"
                if table.count_rows(scope):
                    self._commits += 1
                    table.delete(scope)

    def delete_shard(self, shard: str) -> None:
        """Remove every row of a shard. Nothing is seen of it before `publish`."""
        scope = f"shard = {sql_literal(shard)}"
        with self._locked():
            table = self._open()
            if table is not None and table.count_rows(scope):
                self._commits += 1
                table.delete(scope)

    def publish(self) -> int:
        """Index what is new, then show it to readers; the version now served.

        The version served until now stays, for readers that hold it and for looking back, until
        `maintain` finds its time over.

        Raises:
            Conflict: another machine wrote to the table, or to what the update rests on. Nothing
                of the update is served.
            CorpusError: the indexes do not cover every row. Nothing of the update is served.
        """
        with self._locked():
            table = self._open_or_create()
            if self._served() == table.version and not _unindexed(table):
                return int(table.version)
            if self._compact_if_scattered():
                table.checkout_latest()
            _create_missing_indexes(table)
            self._index_new_rows()
            table.checkout_latest()
            if left := _unindexed(table):
                raise CorpusError(
                    f"index {self._index_version}: {left} rows are not indexed. Nothing of the "
                    "update is served; run it again."
                )
            self._check_alone(table)
            return self._serve(table)

    def maintain(
        self,
        grace: timedelta = READER_GRACE,
        keep: timedelta = KEEP_SUPERSEDED,
        pinned: Sequence[datetime] = (),
        now: datetime | None = None,
    ) -> int:
        """Compact if scattered, and remove the published versions whose time is over and every
        commit between them; the bytes freed.

        A version stays for `grace` after it was superseded, whatever happens; the last of each day
        for `keep`; those served at one of the moments `pinned` as long as they are named.
        """
        with self.writing():
            table = self._open()
            if table is None:
                return 0
            if self._compact_if_scattered():
                self.publish()
            held = publications(self._workspace, self.name)
            over = expired(held, grace, keep, pinned, now or datetime.now(UTC))
            kept = {_kept_tag(p.version) for p in held} - {_kept_tag(p.version) for p in over}
            for tag in table.tags.list():
                if tag.startswith(KEPT) and tag not in kept:
                    table.tags.delete(tag)
            return self._clean()

    def open_at(self, moment: datetime) -> tuple[Any, Publication]:
        """The table as it was served at a moment, read only, and since when.

        Raises:
            CorpusError: nothing was served then, or that version was cleaned since; the message
                names the moments that can still be opened.
        """
        held = publications(self._workspace, self.name)
        then = [publication for publication in held if publication.at <= moment]
        table = self._open()
        if table is None:
            raise self._missing()
        with self._reading():
            tags = table.tags.list()
        if not then or _kept_tag(then[-1].version) not in tags:
            why = "is cleaned" if then else "did not exist yet"
            since = [p.at for p in held if _kept_tag(p.version) in tags]
            listed = ", ".join(f"{at:%Y-%m-%d %H:%M:%S}" for at in since) or "none"
            raise CorpusError(
                f"index {self._index_version} as it was on {moment:%Y-%m-%d %H:%M:%S} UTC {why}. "
                f"States still kept begin at: {listed} (UTC)."
            )
        with self._reading():
            table.checkout(_kept_tag(then[-1].version))
        return table, then[-1]

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
        with self._reading():
            return _scan(table, names, None if shard is None else f"shard = {sql_literal(shard)}")

    def count(self, shard: str) -> int:
        """How many rows of a shard readers are served; an index never published has none."""
        if self.served_version() is None:
            return 0
        with self._reading():
            return int(self.open_served().count_rows(f"shard = {sql_literal(shard)}"))

    def served_version(self) -> int | None:
        """The table version that readers follow; None if nothing was published."""
        return None if self._open() is None else self._served()

    def open_served(self) -> Any:
        """The LanceDB table at the served version; it refuses writes.

        A vector search should select `_distance` with its columns, or LanceDB warns every time.

        Raises:
            CorpusError: nothing was published.
        """
        table = self._open()
        if table is None or self._served() is None:
            raise self._missing()
        with self._reading():
            table.checkout(SERVED)
        return table

    def batches(self, shard: str, columns: Sequence[str], *, served: bool) -> "Iterator[pa.Table]":
        """Columns of a shard's rows, the newest or those that readers are served, some at a time.

        Raises:
            CorpusError: nothing was published, where what is served is asked for.
        """
        import pyarrow as pa

        table = self.open_served() if served else self._open()
        if table is not None:
            query = table.search().select([*columns]).where(f"shard = {sql_literal(shard)}")
            with self._reading():
                for batch in query.limit(None).to_batches():
                    yield pa.Table.from_batches([batch])

    def unindexed_rows(self) -> int:
        """Rows of the newest version that some index does not cover yet."""
        table = self._open()
        with self._reading():
            return 0 if table is None else _unindexed(table)

    def disk_bytes(self) -> int:
        """What the table and all its versions take."""
        return sum(file.size for file in self._store.files())

    def drop(self) -> None:
        """Remove the table with all its versions, readable or not."""
        with self._locked():
            # The tags first: a table half removed is then one that was never published; its
            # folder last: as long as it is there, somebody will find it and go on.
            self._store.delete_below("_refs")
            self._workspace.table(PUBLICATIONS).remove(self.name)
            self._store.delete_below("")

    def heal_unreadable(self) -> str | None:
        """Make a table that cannot be opened one that can; what was done, None if nothing was.

        If only commits after the served version are damaged, they are forgotten. Otherwise the
        table is dropped, to be built again from the vector cache.

        Raises:
            StorageUnavailable: nobody can tell now whether it is damaged.
        """
        with self._locked():
            if self._is_readable():
                return None
            try:
                served = self._served()
            except StorageUnavailable:
                raise
            except CorpusError:
                served = None
            manifests = {
                file.key: NEWEST_MANIFEST - int(PurePath(file.key).stem)
                for file in self._store.files("_versions")
                if file.key.endswith(".manifest")
            }
            if served is not None:
                self._store.delete(key for key, version in manifests.items() if version > served)
            if served is not None and self._is_readable():
                return f"commits after the served version {served} were damaged and are forgotten"
            self.drop()
            return "the served version was damaged: the table is dropped, to be built again"

    def _is_readable(self) -> bool:
        try:
            table = self._open()
            if table is not None and self._served() is not None:
                with self._reading():
                    table.checkout(SERVED)
                    for _ in table.search().limit(None).to_batches():
                        pass  # a file in the middle may be gone
            return True
        except StorageUnavailable:
            raise
        except CorpusError:
            return False

    def _served(self) -> int | None:
        """The served version, from the file of its tag alone: to list the tags reads them all."""
        content = self._store.read(_tag_file(SERVED))
        if content is None:
            return None
        with self._reading():
            return int(json.loads(content)["version"])

    def _tags(self) -> set[str]:
        return {PurePath(file.key).stem for file in self._store.files("_refs/tags")}

    @contextmanager
    def _locked(self) -> Iterator[None]:
        if self._holder == get_ident():
            yield
            return
        turn = self._workspace.lance.turn(f"{self.name}.turn")
        with self._workspace.lock(f"lance {self.name}"), turn:
            self._holder = get_ident()
            try:
                with asking_bucket(self._named, "written"):
                    yield
            except (ValueError, OSError, RuntimeError) as error:
                if not self._store.is_shared:
                    raise
                raise CorpusError(
                    f"{self._named} cannot be written "
                    f"({without_credentials(str(error))}). Run it again."
                ) from None
            finally:
                self._holder = None

    def _begin(self) -> None:
        self._before, self._commits, self._written = self._open(), 0, set()
        self._base = 0
        if self._before is not None:  # an empty table is false
            self._base = int(self._before.version)
            self._before.checkout(self._base)

    def _are_new(self, doc_ids: Collection[str], of_them: str) -> bool:
        """Whether the table held nothing of these documents when the update began, nor did the
        update write them since. What it did write, no index covers: it is not looked through."""
        if self._base is None or not self._written.isdisjoint(doc_ids):
            return False
        with self._reading():
            return self._before is None or self._before.count_rows(of_them) == 0

    def _delete(self, table: Any, chunk_ids: Sequence[str], among: str | None = None) -> None:
        """`among` is a condition that all of their rows meet."""
        for first in range(0, len(chunk_ids), IDS_PER_DELETE):
            listed = ", ".join(map(sql_literal, chunk_ids[first : first + IDS_PER_DELETE]))
            where = f"{KEY} IN ({listed})"
            self._commits += 1
            table.delete(where if among is None else f"({among}) AND {where}")

    def _check_alone(self, table: Any) -> None:
        """No lock keeps other machines out: what they committed since `writing` began would be
        served half."""
        if not self._store.is_shared or self._base is None:
            return
        dataset = self._dataset()
        since = range(self._base + 1, dataset.version + 1)
        of_rows = sum(_changes_rows(dataset, version) for version in since)
        if dataset.version != table.version or of_rows > self._commits:
            raise Conflict(
                f"index {self._index_version}: another machine writes to the table. Nothing of "
                "this update is served; run it again, and let one run at a time write to a table."
            )
        self._workspace.store.check_unchanged()

    def _undo_unpublished(self) -> None:
        table = self._open()
        if table is None:
            return
        served = self._served()
        if served is None:
            if table.count_rows():
                table.delete("true")
        elif served != table.version:
            table.checkout(SERVED)
            table.restore()
            self._serve(table)
        elif [p.version for p in publications(self._workspace, self.name)][-1:] != [table.version]:
            record_publication(self._workspace, self.name, int(table.version))

    def _serve(self, table: Any) -> int:
        """Move the tag to the newest version, and keep that from being cleaned."""
        version, tags = int(table.version), self._tags()
        if (kept := _kept_tag(version)) not in tags:
            table.tags.create(kept, version)
        tag = self._store.read(_tag_file(kept))
        self._store.forget(_tag_file(kept))  # what names a version for ever rests on nothing
        if tag is None:
            raise self._missing()
        # As `tags.update` writes it, but not over what another machine wrote there.
        self._store.replace(_tag_file(SERVED), tag)
        record_publication(self._workspace, self.name, version)
        if sum(1 for _ in self._store.files("_versions")) > len(tags) + MOST_VERSIONS:
            self._clean()
        return version

    def _clean(self) -> int:
        """Remove every version without a tag, except the newest; the bytes freed."""
        dataset = self._dataset()
        tagged = {tag["version"] for tag in dataset.tags.list().values()}
        versions = {int(v["version"]) for v in dataset.versions()} - tagged - {dataset.version}
        if not versions:
            return 0
        found = dataset.cleanup_old_versions(
            versions=sorted(versions), error_if_tagged_old_versions=False
        )
        return int(found.bytes_removed)

    def _compact_if_scattered(self) -> bool:
        dataset = self._dataset()
        stats = dataset.stats.dataset_stats()
        rows = dataset.count_rows() + stats["num_deleted_rows"]
        if (
            stats["num_fragments"] <= MOST_FRAGMENTS
            and stats["num_deleted_rows"] <= MOST_DELETED * rows
        ):
            return False
        is_coarse = rows >= COPIED_FROM * stats["num_fragments"]
        dataset.optimize.compact_files(
            target_rows_per_fragment=ROWS_PER_FRAGMENT,
            compaction_mode="try_binary_copy" if is_coarse else "reencode",
        )
        return True

    def _index_new_rows(self) -> None:
        """In a part of its own: added to what there is, one changed document would have every index
        written anew. A search asks all parts, and scores as if they were one."""
        dataset = self._dataset()
        together: dict[int, list[str]] = {}
        for index in dataset.describe_indices():
            oldest_first = sorted(index.segments, key=lambda part: part.created_at)
            parts = [part.size_bytes or 0 for part in oldest_first]
            together.setdefault(parts_to_merge(parts), []).append(index.name)
        for most, names in together.items():
            dataset.optimize.optimize_indices(num_indices_to_merge=most, index_names=names)

    def _dataset(self) -> Any:
        import lance

        return lance.dataset(self._store.uri, storage_options=self._store.options or None)

    def _missing(self) -> CorpusError:
        return CorpusError(
            f"index {self._index_version} was never published. Build chunk_embeddings first."
        )

    @contextmanager
    def _reading(self) -> Iterator[None]:
        try:
            with asking_bucket(self._named):
                yield
        except (ValueError, KeyError, OSError, RuntimeError) as error:
            # An engine may quote a signed request.
            raise CorpusError(
                f"index {self._index_version} cannot be read ({without_credentials(str(error))}). "
                "Run `make repair`: vectors are in the cache, nothing is embedded again."
            ) from (None if self._store.is_shared else error)

    def _connect(self) -> Any:
        import lancedb

        store = self._workspace.lance
        return lancedb.connect(store.uri, storage_options=store.options or None)

    def _open(self) -> Any | None:
        if not self.is_stored():
            return None
        with self._reading():
            return self._connect().open_table(self.name)

    def _open_or_create(self) -> Any:
        table = self._open()
        is_new = table is None
        if table is None:
            table = self._connect().create_table(self.name, schema=self._schema())
        # Readers of concurrent inserts rely on the key; a crash may have come before it was set.
        if PRIMARY_KEY_MARK not in (table.schema.field(KEY).metadata or {}):
            table.set_unenforced_primary_key(KEY)
        if is_new and self._base is not None:
            self._base, self._commits = int(table.version), 0
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
        number = {"float32": pa.float32(), "float16": pa.float16(), "int8": pa.int8()}
        kept = number[precision_of(self._index_version)]
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
                pa.field(VECTOR, pa.list_(kept, self._dimensions)),
                pa.field(CHECK, pa.string()),
            ]
        )

    def _checked(self, rows: "pa.Table", shard: str, doc_ids: Sequence[str] | None) -> "pa.Table":
        """The rows as the table stores them: cast, proven, each chunk_id once, with a digest."""
        import pyarrow as pa

        schema = self._schema()
        facts_and_vector = pa.schema([field for field in schema if field.name != CHECK])
        if pa.types.is_int8(schema.field(VECTOR).type.value_type):
            at = rows.schema.get_field_index(VECTOR)
            rows = rows.set_column(at, VECTOR, column_as_int8(rows[VECTOR]))
        stored = rows.select(facts_and_vector.names).cast(facts_and_vector)
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
    if not holds_int8(table):
        create_ann_index(table)


def _missing_indexes(table: Any) -> list[str]:
    indexed = {column for index in table.list_indices() for column in index.columns}
    return [column for column in INDEXED if column not in indexed]


def _unindexed(table: Any) -> int:
    if _missing_indexes(table):
        return int(table.count_rows())
    stats = (table.index_stats(index.name) for index in table.list_indices())
    return max(int(s.num_unindexed_rows) for s in stats)


def _kept_tag(version: int) -> str:
    return f"{KEPT}{version}"


def _tag_file(tag: str) -> str:
    return f"_refs/tags/{tag}.json"


def manifest_file(version: int) -> str:
    """The file of a table, below its folder, that makes a version of it."""
    return f"_versions/{NEWEST_MANIFEST - version}.manifest"


def _changes_rows(dataset: Any, version: int) -> bool:
    try:
        transaction = dataset.read_transaction(version)
    except TypeError:  # a compaction, which pylance 14 does not make a Python object of
        return False
    return type(transaction.operation).__name__ not in NOT_OF_ROWS
