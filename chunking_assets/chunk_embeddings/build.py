"""Bring one index version up to date with the chunk sets of its shards.

Chunks are embedded in batches, so that memory is bounded by a batch and not by the shard, and set
aside on disk; then the rows of the documents that changed are replaced, compared with what they
must be, and published at once. Readers keep the old content until then. The ledger of what the
table must hold is written last, so a crash anywhere is made good by running again.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import SpooledTemporaryFile
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from chunking_assets.chunk_embeddings.difference import NOTHING, Difference, difference, wanted_rows
from chunking_assets.chunk_embeddings.lance_index import LanceIndex
from chunking_assets.chunk_embeddings.late import check_late, embed_late
from chunking_assets.chunk_embeddings.superseded import record_superseded
from chunking_assets.chunk_embeddings.version import IndexVersion
from chunking_assets.chunk_embeddings.word_frequencies import Update, count_words
from chunking_assets.chunk_sets.build import CHUNKS, cell
from chunking_assets.chunk_sets.late import LateChunker
from chunking_assets.chunk_sets.rows import EMBED_TEXT
from chunking_assets.cost_ledger import Entry
from chunking_assets.embedding_models.batch_jobs import BatchPending
from chunking_assets.embedding_models.metered import metered
from chunking_assets.embedding_models.model import Embedder, ModelIdentity, ReadsLess, TokenProgress
from chunking_assets.embedding_models.remote_embedder import TextsRefused
from chunking_assets.embedding_models.vector_cache import (
    VECTORS,
    Embedded,
    VectorCache,
    embed_through_cache,
    vec_key,
)
from chunking_assets.errors import CorpusError
from chunking_assets.keys import digest
from chunking_assets.raw_documents.changes import ChangeSet, compare
from chunking_assets.workspace import Manifest, Snapshot, Workspace

if TYPE_CHECKING:
    import pyarrow as pa

BATCH_CHUNKS = 4096
"""Chunks embedded and written at a time, or one document where it has more."""

SET_ASIDE_BYTES = 64 << 20
"""Rows waiting to be written that stay in memory; more go to a file without a name."""

_NAMED = 5

Spending = Callable[[str, Entry], object]
"""Told the shard and what was sent for it."""

EMBEDDED_CHUNKS = "embedded_chunks"
FINGERPRINTS = "embedding_model_fingerprints"
SERVER_READS = "server_reads"
"""The folder of what servers were seen to read, by the fingerprint of the model."""

EMBEDDED_CHUNKS_SCHEMA = pl.Schema(
    {
        "index_version": pl.String,
        "chunk_id": pl.String,
        "doc_id": pl.String,
        "shard": pl.String,
        "vec_key": pl.String,
        "n_tokens": pl.Int64,
        "n_windows": pl.Int64,
    }
)
"""One row a chunk. `vec_key` is null and `n_windows` 0 where a chunk is only read, not searched."""


@dataclass(frozen=True)
class IndexUpdate:
    """What one update of one shard of an index version did.

    `healed` is what of the rows already there was not as the ledger says, and was made good.
    """

    index_version: str
    shard: str
    changes: ChangeSet
    chunks: int
    vectors_embedded: int
    vectors_reused: int
    tokens_embedded: int
    windowed: tuple[str, ...]
    content_version: str
    healed: Difference = NOTHING


class DocumentsRefused(CorpusError):
    """The embedding model gave no vector for a text of some documents; the others are served.

    `reasons` are by doc_id.
    """

    def __init__(self, index_version: str, reasons: Mapping[str, str]) -> None:
        some = "; ".join(f"{doc_id}: {why}" for doc_id, why in sorted(reasons.items())[:_NAMED])
        super().__init__(
            f"index {index_version}: {len(reasons)} documents have a text the model refuses ({some}"
            f"{' ...' if len(reasons) > _NAMED else ''}). They are served as they were, or not at "
            "all if they are new; every other document is up to date. Correct or exclude them."
        )
        self.reasons = dict(reasons)


def ledger(index_version: str, shard: str) -> str:
    """The partition of `embedded_chunks`: `recursive-400@1+e5-small|help-center`."""
    return f"{index_version}|{shard}"


def update_index(
    workspace: Workspace,
    index: IndexVersion,
    shards: Sequence[str],
    embedder: Callable[[str], Embedder],
    progress: TokenProgress | None = None,
    spending: Spending | None = None,
    *,
    batch_chunks: int = BATCH_CHUNKS,
    repair: bool = False,
) -> list[IndexUpdate]:
    """Embed what is new in these shards, replace their rows, publish once.

    `embedder` loads an embedding model by name; it is called only when a document changed.
    `progress` counts chunks, and the tokens of those embedded; `spending` is told what was sent
    for each such shard, also if it then fails. Up to `batch_chunks` chunks with their vectors are
    in memory at a time, or those of one document where it has more. Rows that are not as the ledger
    says are made good on the way; `repair` looks at everything of every row, also where no document
    changed.

    Raises:
        DocumentsRefused: some documents have no vectors; all else is done and served.
        BatchPending: jobs of a batch API are to be waited for.
        CorpusError: a shard was never chunked under this version, a vector is unusable, or the
            table does not hold what was written. Readers keep what they are served then.
    """
    with workspace.locks(f"{EMBEDDED_CHUNKS} {ledger(index.name, shard)}" for shard in shards):
        check_late(index)
        if repair:
            LanceIndex(workspace, index.name).heal_unreadable()
        _forget_a_lost_table(workspace, index)
        plans = [_plan(workspace, index, shard, repair) for shard in shards]
        if any(plan.active for plan in plans):
            workspace.record_declaration(
                "embedding_models", index.model_name, index.model.declaration()
            )
            loaded = embedder(index.model_name)
            fingerprint = _fingerprint(loaded.identity)
            workspace.record_declaration(FINGERPRINTS, index.model_name, fingerprint)
            lance = LanceIndex(workspace, index.name, loaded.identity.dimensions)
            if _forget_unless(lambda: lance.served_version() is not None, workspace, index):
                plans = [_plan(workspace, index, shard, repair) for shard in shards]
            active = [plan for plan in plans if plan.active]
            build = _Build(workspace, index, loaded, lance, batch_chunks, progress, spending)
            build.run(active)
        updates = [_record(workspace, plan, index.name) for plan in plans]
    if refused := {d: why for plan in plans for d, why in plan.refused.items()}:
        raise DocumentsRefused(index.name, refused)
    return updates


def reads_at_most(workspace: Workspace, embedder: Embedder) -> int:
    """The most tokens of a text that a model was ever seen to read, by any machine of the
    workspace: vectors that another machine embedded are of no more."""
    identity = embedder.identity
    store, key = workspace.store, f"{SERVER_READS}/{identity.fingerprint}"
    known = int(store.read(key) or identity.max_tokens)
    seen = embedder.reads_at_most if isinstance(embedder, ReadsLess) else identity.max_tokens
    if seen < known:
        store.write(key, str(seen).encode())
    return min(seen, known)


def check_fingerprint(workspace: Workspace, model_name: str, identity: ModelIdentity) -> None:
    """
    Raises:
        CorpusError: the indexes of this model were built with other weights, as they run here.
    """
    workspace.check_declaration(FINGERPRINTS, model_name, _fingerprint(identity))


def _fingerprint(identity: ModelIdentity) -> dict[str, object]:
    return {"revision": identity.revision, "fingerprint": identity.fingerprint}


def is_indexed(workspace: Workspace, index_version: str, shard: str) -> bool:
    """Whether the table of an index version is there and its ledger vouches for a shard."""
    stated = workspace.table(EMBEDDED_CHUNKS).manifest(ledger(index_version, shard))
    return stated is not None and LanceIndex(workspace, index_version).is_stored()


def stale_documents(workspace: Workspace, index: IndexVersion, shard: str) -> ChangeSet:
    """What an update of a shard would put in anew, remove and leave alone.

    Raises:
        CorpusError: the shard was never chunked under this version.
    """
    _forget_a_lost_table(workspace, index)
    return _plan(workspace, index, shard).changes


def _forget_a_lost_table(workspace: Workspace, index: IndexVersion) -> None:
    """A table whose folder is gone holds nothing, whatever the ledger of any shard says."""
    _forget_unless(LanceIndex(workspace, index.name).is_stored, workspace, index)


def _forget_unless(is_there: Callable[[], bool], workspace: Workspace, index: IndexVersion) -> bool:
    """Whether there is no table, and so no ledger of it any more.

    Ledgers are listed first: what a neighbour writes after its first commit, meanwhile, stays.
    """
    table, prefix = workspace.table(EMBEDDED_CHUNKS), ledger(index.name, "")
    stated = [partition for partition in table.partitions() if partition.startswith(prefix)]
    if is_there():
        return False
    for partition in stated:
        table.remove(partition)
    return True


class _Plan:
    """One shard on its way through the update."""

    def __init__(
        self,
        shard: str,
        chunk_set: Manifest,
        partition: str,
        before: Manifest | None,
        keys: dict[str, str],
        changes: ChangeSet,
        repair: bool,
    ) -> None:
        self.shard, self.chunk_set, self.partition = shard, chunk_set, partition
        self.before, self.keys, self.changes, self.repair = before, keys, changes, repair
        self.counts = _Counts()
        self.rows = EMBEDDED_CHUNKS_SCHEMA.to_frame()
        self.gone = self.rows
        self.healed = NOTHING
        self.refused: dict[str, str] = {}

    def refuse(self, reasons: Mapping[str, str]) -> None:
        """Leave these documents as they were: for the next run they are still to be done."""
        self.refused |= reasons
        known = self.before.keys if self.before else {}
        for doc_id in reasons:
            if doc_id in known:
                self.keys[doc_id] = known[doc_id]
            else:
                self.keys.pop(doc_id, None)

    @property
    def stale(self) -> bool:
        return self.before is None or bool(self.changes)

    @property
    def active(self) -> bool:
        return self.stale or self.repair


@dataclass
class _Counts:
    """The counts of `Embedded`, added up."""

    computed: int = 0
    reused: int = 0
    tokens_computed: int = 0
    tokens_reused: int = 0

    def add(self, embedded: Embedded) -> None:
        self.computed += embedded.computed
        self.reused += embedded.reused
        self.tokens_computed += embedded.tokens_computed
        self.tokens_reused += embedded.tokens_reused

    @property
    def embedded(self) -> Embedded:
        """As one, without the vectors."""
        return Embedded(np.empty((0, 0), np.float32), [], **vars(self))


def _plan(workspace: Workspace, index: IndexVersion, shard: str, repair: bool = False) -> _Plan:
    chunk_set = workspace.table(CHUNKS).manifest(cell(index.chunker_version.name, shard))
    if chunk_set is None:
        raise CorpusError(
            f"{index.chunker_version.name} over shard {shard} has no chunk set yet. "
            "Build chunk_sets first."
        )
    keys = embedding_keys(index, chunk_set)
    table, partition = workspace.table(EMBEDDED_CHUNKS), ledger(index.name, shard)
    if repair and table.damage(partition):
        table.remove(partition)
    before = table.manifest(partition)
    known = dict(before.keys) if before else {}
    if repair and before:
        chunks = workspace.table(CHUNKS).snapshot(chunk_set).read(["chunk_id", "doc_id"])
        for doc_id in misstated(table.snapshot(before).read(), chunks, known, keys):
            known[doc_id] = "misstated"
    return _Plan(shard, chunk_set, partition, before, keys, compare(known, keys), repair)


def embedding_keys(index: IndexVersion, chunk_set: Manifest) -> dict[str, str]:
    """What the rows of each document are made from: its chunks and the model."""
    model = digest(index.model.declaration())
    return {doc_id: digest(key, model) for doc_id, key in chunk_set.keys.items()}


def misstated(
    stated: pl.DataFrame, chunks: pl.DataFrame, known: Mapping[str, str], keys: Mapping[str, str]
) -> set[str]:
    """Documents of which the ledger's rows do not name exactly the chunks they were made from.

    `known` are the keys the ledger was written with, `keys` those of the chunk set.
    """
    current = pl.Series([d for d, key in keys.items() if known.get(d) == key], dtype=pl.String)
    is_current = pl.col("doc_id").is_in(current.implode())
    both = ["chunk_id", "doc_id"]
    named, there = (rows.filter(is_current).select(both) for rows in (stated, chunks))
    owned = pl.Series([*known], dtype=pl.String)
    wrong = (
        named.join(there, both, how="anti"),
        there.join(named, both, how="anti"),
        named.filter(pl.col("chunk_id").is_duplicated()),
        stated.filter(~pl.col("doc_id").is_in(owned.implode())),
    )
    return {doc_id for rows in wrong for doc_id in rows["doc_id"]}


class _Build:
    """The steps of `update_index` once something must be done."""

    def __init__(
        self,
        workspace: Workspace,
        index: IndexVersion,
        embedder: Embedder,
        lance: LanceIndex,
        batch_chunks: int,
        progress: TokenProgress | None,
        spending: Spending | None,
    ) -> None:
        self.workspace, self.index, self.embedder, self.lance = workspace, index, embedder, lance
        self.batch_chunks, self.progress, self.spending = batch_chunks, progress, spending
        identity = embedder.identity
        folder = workspace.caches / VECTORS
        self.cache = VectorCache(folder, identity.fingerprint, identity.dimensions)
        self.reads_at_most = identity.max_tokens
        self.pending: list[BatchPending] = []

    def run(self, plans: Sequence[_Plan]) -> None:
        with ExitStack() as opened:
            aside = [opened.enter_context(_SetAside(self.workspace.root)) for _ in plans]
            for plan, rows in zip(plans, aside, strict=True):
                self.embed(plan, rows)
            self.reads_at_most = reads_at_most(self.workspace, self.embedder)
            self.cache.give()
            if self.pending:
                raise BatchPending("; ".join(dict.fromkeys(map(str, self.pending))))
            with self.lance.writing():
                before = None if self.lance.served_version() is None else self.lance.open_served()
                for plan, rows in zip(plans, aside, strict=True):
                    old = self.workspace.table(EMBEDDED_CHUNKS).read(plan.partition)
                    self.replace(plan, rows, plan.rows if old is None else old)
                    self.settle(plan)
                    if old is not None:
                        plan.gone = old.join(plan.rows, "chunk_id", how="anti")
                version = self.lance.publish()
        self.count_words(plans, before, version)

    def count_words(self, plans: Sequence[_Plan], before: Any | None, version: int) -> None:
        """Of what is served now; where that is this update, and all it did is known, from what was
        served before."""
        table = self.lance.open_served()
        changed = {d for p in plans for d in (*p.changes.redo, *p.changes.removed)}
        is_known = before is not None and table.version == version
        update = Update(before, changed) if is_known and not any(p.healed for p in plans) else None
        count_words(self.workspace, self.lance.name, table, update)

    def embed(self, plan: _Plan, aside: "_SetAside") -> None:
        model = self.index.model_name
        tell = partial(self.spending, plan.shard) if self.spending else None
        with metered(self.embedder, model, tell) as outcome:
            for rows in self.embedded(plan, plan.changes.redo):
                outcome.embedded = plan.counts.embedded
                aside.add(rows)

    def replace(self, plan: _Plan, aside: "_SetAside", old: pl.DataFrame) -> None:
        """Make what was set aside all that the table holds of the documents that changed."""
        stated = [old.filter(pl.col("doc_id").is_in([*plan.changes.unchanged, *plan.refused]))]
        without_chunks = {*plan.changes.redo, *plan.changes.removed} - plan.refused.keys()
        for rows in aside:
            stated.append(self.write(plan, rows))
            without_chunks -= {*stated[-1]["doc_id"]}
        self.lance.delete_documents(plan.shard, without_chunks)
        plan.rows = pl.concat(stated)

    def settle(self, plan: _Plan) -> None:
        """Make good what of the shard's rows is not as it must be, also of other documents."""
        plan.healed = found = self.difference(plan)
        if not found:
            return
        self.lance.delete_chunks(found.wrong)
        documents = found.documents & plan.keys.keys()
        stated = [plan.rows.filter(~pl.col("doc_id").is_in(documents))]
        stated += [self.write(plan, rows) for rows in self.embedded(plan, documents)]
        plan.rows = pl.concat(stated)
        if left := self.difference(plan):
            raise CorpusError(
                f"index {self.index.name}, shard {plan.shard}: {left.missing[:3]} are missing and "
                f"{left.wrong[:3]} wrong after they were written. Readers keep what they are "
                "served. Build chunk_sets of the shard again, then run `make repair`."
            )

    def difference(self, plan: _Plan) -> Difference:
        chunks = self.workspace.table(CHUNKS).snapshot(plan.chunk_set)
        wanted = wanted_rows(plan.rows, chunks.pieces() if plan.repair else ())
        return difference(self.lance, plan.shard, wanted, served=False, thorough=plan.repair)

    def write(self, plan: _Plan, rows: "pa.Table") -> pl.DataFrame:
        """Put one batch into the table; what the ledger is to say of it."""
        self.lance.replace_documents(rows, plan.shard, rows["doc_id"].unique().to_pylist())
        most, n_tokens = self.reads_at_most, pl.col("n_tokens")
        # Copied: the little that the ledger keeps would hold on to the whole batch.
        names = ["chunk_id", "doc_id", "shard", "vec_key", "n_tokens", "searched"]
        facts = rows.select(names).take(np.arange(rows.num_rows))
        stated = pl.DataFrame(facts).with_columns(
            index_version=pl.lit(self.index.name),
            n_windows=pl.when("searched").then((n_tokens + most - 1) // most).otherwise(0),
        )
        return stated.select(pl.col(name).cast(t) for name, t in EMBEDDED_CHUNKS_SCHEMA.items())

    def embedded(self, plan: _Plan, doc_ids: Collection[str]) -> Iterator["pa.Table"]:
        """The rows of these documents as LanceDB stores them, batch by batch."""
        total, done = self.count(plan, doc_ids) if self.progress else 0, 0
        chunk_set = self.workspace.table(CHUNKS).snapshot(plan.chunk_set)
        for chunks in in_batches(chunk_set, doc_ids, self.batch_chunks):
            rows = chunks.with_columns(embed_text=EMBED_TEXT, shard=pl.lit(plan.shard))
            searched, read_only = rows.filter("searched"), rows.filter(~pl.col("searched"))
            try:
                table = self.embed_batch(
                    plan, searched, read_only, self.progress_of(plan, done, total)
                )
            except BatchPending as error:  # the texts of further batches are sent all the same
                self.pending.append(error)
                continue
            yield table
            done += searched.height
            if self.progress:
                self.progress(done, total, plan.counts.tokens_computed)

    def count(self, plan: _Plan, doc_ids: Collection[str]) -> int:
        chunks = self.workspace.table(CHUNKS).snapshot(plan.chunk_set)
        is_wanted = pl.col("doc_id").is_in(pl.Series([*doc_ids], dtype=pl.String).implode())
        return chunks.read(["doc_id"], pl.col("searched") & is_wanted).height

    def progress_of(self, plan: _Plan, done: int, total: int) -> TokenProgress | None:
        """Of a batch, told as a part of all."""
        tell, before = self.progress, plan.counts.tokens_computed
        if tell is None:
            return None
        return lambda computed, _, tokens: tell(done + computed, total, before + tokens)

    def embed_batch(
        self,
        plan: _Plan,
        searched: pl.DataFrame,
        read_only: pl.DataFrame,
        progress: TokenProgress | None,
    ) -> "pa.Table":
        embedder, cache = self.embedder, self.cache
        if isinstance(self.index.chunker_version.chunker, LateChunker):
            keys, embedded = embed_late(
                self.workspace, self.index, plan.shard, searched, embedder, cache, progress
            )
        else:
            texts = searched["embed_text"].to_list()
            keys = [vec_key(embedder.identity, "passage", text) for text in texts]
            try:
                embedded = embed_through_cache(embedder, cache, texts, "passage", progress)
            except TextsRefused as error:
                if plan.repair:  # nothing else would say what of the table is wrong
                    raise
                named = searched.filter(pl.col("embed_text").is_in(list(error.reasons)))
                plan.refuse(
                    {
                        doc_id: error.reasons[text]
                        for doc_id, text in named.select("doc_id", "embed_text").iter_rows()
                    }
                )
                others = ~pl.col("doc_id").is_in(list(plan.refused))
                return self.embed_batch(
                    plan, searched.filter(others), read_only.filter(others), progress
                )
        plan.counts.add(embedded)
        # In one order: the vectors are those of the first rows.
        tokens = embedder.count_tokens(read_only["embed_text"].to_list())
        rows = pl.concat([searched, read_only]).with_columns(
            vec_key=pl.Series([*keys, *[None] * read_only.height], dtype=pl.String),
            n_tokens=pl.Series([*embedded.n_tokens, *tokens], dtype=pl.Int64),
        )
        return _lance_rows(rows, embedded)


def in_batches(chunk_set: Snapshot, doc_ids: Collection[str], most: int) -> Iterator[pl.DataFrame]:
    """The chunks of these documents, whole documents at a time: up to `most` chunks, or those of
    one document where it has more."""
    waiting = None
    for piece in chunk_set.pieces("doc_id", doc_ids):
        waiting = piece if waiting is None else pl.concat([waiting, piece])
        while end := _end_of_batch(waiting["doc_id"], most):
            yield waiting[:end]
            waiting = waiting[end:]
    if waiting is not None and waiting.height:
        yield waiting


def _end_of_batch(doc_ids: pl.Series, most: int) -> int:
    """Where the last document ends that fits into the batch, or the first one, if that is longer; 0
    if there may be more to come."""
    if doc_ids.len() <= most:
        return 0
    ends = np.flatnonzero((doc_ids != doc_ids.shift(-1)).to_numpy()[:-1]) + 1
    fitting = ends[ends <= most]
    return int(fitting[-1] if fitting.size else ends[0] if ends.size else 0)


class _SetAside:
    """Rows waiting to be written: in memory while they are few, on disk otherwise, where they go
    with the process."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = str(folder)
        self._writer: Any = None

    def add(self, rows: "pa.Table") -> None:
        """One batch, that comes back as one."""
        import pyarrow as pa

        if self._writer is None:
            self._writer = pa.ipc.new_stream(self._file, rows.schema)
        self._writer.write_table(rows.combine_chunks())

    def __iter__(self) -> Iterator["pa.Table"]:
        import pyarrow as pa

        if self._writer is not None:
            self._writer.close()
            self._file.seek(0)
            for batch in pa.ipc.open_stream(self._file):
                yield pa.Table.from_batches([batch])

    def __enter__(self) -> "_SetAside":
        self._file = SpooledTemporaryFile(SET_ASIDE_BYTES, dir=self._folder)
        return self

    def __exit__(self, *error: object) -> None:
        self._file.close()


def _lance_rows(chunks: pl.DataFrame, embedded: Embedded) -> "pa.Table":
    """The rows as LanceDB stores them; those after the last vector have none."""
    import pyarrow as pa

    rows = chunks.select(
        "chunk_id", "shard", "doc_id", "ordinal", "start", "end", "prefix", "text", "embed_text",
        "heading_path", "level", "parent_id", "searched", "n_tokens", "vec_key",
    ).to_arrow()  # fmt: skip
    found, dimensions = embedded.vectors.shape
    missing = chunks.height - found
    values = np.concatenate([embedded.vectors, np.zeros((missing, dimensions), np.float32)])
    mask = pa.array([False] * found + [True] * missing, pa.bool_())
    vectors = pa.FixedSizeListArray.from_arrays(
        pa.array(values.reshape(-1), pa.float32()), dimensions, mask=mask
    )
    return rows.append_column("vector", vectors)


def _record(workspace: Workspace, plan: _Plan, index_version: str) -> IndexUpdate:
    table, manifest = workspace.table(EMBEDDED_CHUNKS), plan.before
    if plan.stale or plan.healed or manifest is None:
        rows, gone = plan.rows.sort("doc_id", "chunk_id"), plan.gone.select("chunk_id", "doc_id")
        record_superseded(workspace, index_version, plan.shard, plan.partition, gone)
        manifest = table.replace(rows, plan.partition, keys=plan.keys)
    else:
        rows = table.snapshot(manifest).read(["chunk_id", "n_windows"])
    return IndexUpdate(
        index_version=index_version,
        shard=plan.shard,
        changes=plan.changes,
        chunks=manifest.rows,
        vectors_embedded=plan.counts.computed,
        vectors_reused=plan.counts.reused,
        tokens_embedded=plan.counts.tokens_computed,
        windowed=tuple(rows.filter(pl.col("n_windows") > 1)["chunk_id"]),
        content_version=manifest.version,
        healed=plan.healed,
    )
