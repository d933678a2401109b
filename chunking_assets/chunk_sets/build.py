"""Bring the chunk sets of one shard up to date with its documents.

A document is chunked again only when its text, its elements, its language or the chunker's
declaration changed. Documents are read, chunked and written in batches, in as many processes as
there are cores, so that memory is bounded by the batch and not by the shard.
"""

import os
from collections.abc import Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass

import polars as pl

from chunking_assets.chat_models.chat import Chat
from chunking_assets.chunk_sets.batches import Batch, Chunking, NewRows, batches
from chunking_assets.chunk_sets.cleaning import LEAST_DOCUMENTS, boilerplate_blocks
from chunking_assets.chunk_sets.processes import in_processes
from chunking_assets.chunk_sets.rows import CHUNKS_SCHEMA, EXCLUDED_SPANS_SCHEMA, chunkset_key
from chunking_assets.chunk_sets.version import ChunkerVersion
from chunking_assets.embedding_models.loaded import Models
from chunking_assets.embedding_models.model import Progress
from chunking_assets.errors import CorpusError
from chunking_assets.keys import digest
from chunking_assets.parsed_elements.build import DOCUMENTS, ELEMENTS
from chunking_assets.parsed_elements.parse import READABLE
from chunking_assets.raw_documents.changes import ChangeSet, compare
from chunking_assets.workspace import Manifest, Table, Workspace

CHUNKS, EXCLUDED_SPANS = "chunks", "excluded_spans"

WORTH_PROCESSES = 2_000_000
"""Characters below which starting processes takes longer than they save."""

BATCHES_PER_PROCESS = 4
"""At least, so that none is left without work while another has much."""


@dataclass(frozen=True)
class ChunkSetUpdate:
    """What one update of a cell did; `version` names the content, for the stages below."""

    chunker_version: str
    shard: str
    changes: ChangeSet
    chunks: int
    chunks_redone: int
    content_version: str


def cell(chunker_version: str, shard: str) -> str:
    """The partition of a chunk set: `recursive-400@1|help-center`."""
    return f"{chunker_version}|{shard}"


def update_chunk_sets(
    workspace: Workspace,
    shard: str,
    versions: Sequence[ChunkerVersion],
    models: Models,
    chat: Chat | None = None,
    progress: Progress | None = None,
    *,
    workers: int | None = None,
    batch_mb: int = 2,
) -> list[ChunkSetUpdate]:
    """Chunk what is new or changed in one shard, for each of these versions.

    `models` and `chat` load and ask nothing unless some document must be chunked. Up to `workers`
    processes (None: one a core) chunk `batch_mb` million characters at a time, or one document
    where it is longer; neither changes what comes out. Strategies that ask a model keep to this
    process: an embedder uses every core, and replies are waited for in threads.

    Raises:
        CorpusError: the shard was never parsed, its elements do not belong to its documents, or
            a process was killed. Nothing was stored then.
    """
    with workspace.locks(f"{CHUNKS} {cell(v.name, shard)}" for v in versions):
        asks_chat = any(version.chunker.asks_chat() for version in versions)
        asks_model = asks_chat or any(version.chunker.models_asked() for version in versions)
        return _Update(
            workspace,
            shard,
            versions,
            models,
            chat if asks_chat else None,
            progress,
            1 if asks_model else workers or _cores(),
            batch_mb * 1_000_000,
        ).run()


class _Update:
    """The steps of `update_chunk_sets`."""

    def __init__(
        self,
        workspace: Workspace,
        shard: str,
        versions: Sequence[ChunkerVersion],
        models: Models,
        chat: Chat | None,
        progress: Progress | None,
        processes: int,
        batch_chars: int,
    ) -> None:
        self.workspace, self.shard, self.versions = workspace, shard, versions
        self.progress, self.processes, self.batch_chars = progress, processes, batch_chars
        documents, elements = (self.parsed(name) for name in (DOCUMENTS, ELEMENTS))
        self.parsed_with = documents.keys, elements.keys
        self.source = Chunking(
            workspace.table(DOCUMENTS).snapshot(documents),
            workspace.table(ELEMENTS).snapshot(elements),
            versions,
            models,
            chat,
        )
        columns = ["doc_id", "text_sha", "elements_sha", "media_type", "language", "n_chars"]
        self.ready = self.source.documents.read(columns, pl.col("status").is_in(READABLE))
        self.sizes: dict[str, int] = dict(self.ready.select("doc_id", "n_chars").iter_rows())
        self.blocks: dict[str, set[str]] = {}
        self.boilerplate: dict[str, frozenset[str]] = {}

    def parsed(self, table: str) -> Manifest:
        manifest = self.workspace.table(table).manifest(self.shard)
        if manifest is None:
            raise CorpusError(
                f"shard {self.shard} has no parsed {table} yet. Build parsed_elements first."
            )
        return manifest

    def run(self) -> list[ChunkSetUpdate]:
        self.find_boilerplate()
        cells = [
            _Cell(self.workspace, self.shard, version, self.wanted(version))
            for version in self.versions
        ]
        with ExitStack() as opened:
            for stale in cells:
                stale.open(opened)
            for made in opened.enter_context(closing(self.chunked(cells))):
                for stale in cells:
                    stale.add(made[stale.name])
            return [c.commit() for c in cells]

    def wanted(self, version: ChunkerVersion) -> dict[str, str]:
        """The key each document's chunks must have under a version."""
        facts, declared = self.ready.drop("n_chars"), version.digest
        return {
            doc_id: chunkset_key(*known, declared, *self.left_out(version, doc_id))
            for doc_id, *known in facts.iter_rows()
        }

    def left_out(self, version: ChunkerVersion, doc_id: str) -> list[str]:
        if version.name not in self.boilerplate:
            return []
        blocks = self.blocks.get(doc_id, set())
        return [digest(sorted(blocks & self.boilerplate[version.name]))]

    def find_boilerplate(self) -> None:
        """For versions that leave boilerplate out: which blocks that is, over the whole shard."""
        shares = {
            v.name: v.chunker.clean.boilerplate
            for v in self.versions
            if v.chunker.clean and v.chunker.clean.boilerplate
        }
        if not shares or not self.sizes:
            return
        processes, some = self.spread(self.sizes)
        blocks = self.source.blocks
        found = pl.concat(
            in_processes(blocks, some, processes) if processes > 1 else map(blocks, some)
        )
        # What two documents have can be no boilerplate; of the others all but a few are dropped.
        common = found.filter(pl.len().over("block") >= LEAST_DOCUMENTS)
        self.blocks = {d: {*b} for d, b in common.group_by("doc_id").agg("block").iter_rows()}
        documents = [self.blocks.get(doc_id, set()) for doc_id in self.sizes]
        self.boilerplate = {
            name: boilerplate_blocks(documents, share) for name, share in shares.items()
        }

    def chunked(self, cells: Sequence["_Cell"]) -> Generator[dict[str, NewRows], None, None]:
        """What the versions make of the documents they need anew, in order."""
        redo = {doc_id for c in cells for doc_id in c.redo}
        self.check_elements(redo)
        processes, some = self.spread(redo)
        work = [
            Batch(
                {d: {c.name: c.wanted[d] for c in cells if d in c.redo} for d in doc_ids},
                self.boilerplate,
            )
            for doc_ids in some
        ]
        done = 0

        def step(documents: int = 1) -> None:
            nonlocal done
            done += documents
            if self.progress:
                self.progress(done, len(redo))

        if processes == 1:
            yield from self.source.stream(work, step)
            return
        with closing(in_processes(self.source.chunk, work, processes)) as made:
            for batch, rows in zip(work, made, strict=True):
                step(len(batch.keys))
                yield rows

    def spread(self, doc_ids: Iterable[str]) -> tuple[int, list[list[str]]]:
        """The documents in batches, and how many processes they are worth."""
        sizes = {doc_id: self.sizes[doc_id] for doc_id in doc_ids}
        total, count = sum(sizes.values()), self.processes
        if count == 1 or total < WORTH_PROCESSES:
            return 1, list(batches(sizes, self.batch_chars))
        most = min(self.batch_chars, total // (BATCHES_PER_PROCESS * count) + 1)
        return count, list(batches(sizes, most))

    def check_elements(self, doc_ids: Iterable[str]) -> None:
        """Both tables are written with the same keys, but not in one step."""
        documents, elements = self.parsed_with
        for doc_id in doc_ids:
            if documents.get(doc_id) != elements.get(doc_id):
                raise CorpusError(
                    f"{doc_id}: its elements do not belong to its text (an update was "
                    f"interrupted). Build parsed_elements of shard {self.shard} again."
                )


class _Cell:
    """One chunk set on its way through the update."""

    def __init__(
        self, workspace: Workspace, shard: str, version: ChunkerVersion, wanted: Mapping[str, str]
    ) -> None:
        self.shard, self.version, self.name, self.wanted = shard, version, version.name, wanted
        self.partition = cell(version.name, shard)
        self.chunks, self.excluded = workspace.table(CHUNKS), workspace.table(EXCLUDED_SPANS)
        self.manifest = self.chunks.manifest(self.partition)
        known = self.manifest.keys if self.manifest else {}
        stored = dict(known)
        if version.chunker.clean is not None:
            # One table may be new and the other not, after a crash, or gone.
            beside = self.excluded.manifest(self.partition)
            spans = beside.keys if beside else {}
            stored = {doc_id: key for doc_id, key in known.items() if spans.get(doc_id) == key}
        self.changes = compare(stored, wanted)
        self.redo = frozenset(self.changes.redo)
        self.is_stale = bool(self.changes) or self.manifest is None or len(stored) < len(known)
        self.new_chunks: _Merge | None = None
        self.new_excluded: _Merge | None = None
        self.redone = 0
        self.provisional: set[str] = set()

    def open(self, opened: ExitStack) -> None:
        """Begin the next content, unless the present one stays."""
        if self.is_stale:
            kept = frozenset(self.changes.unchanged)
            self.new_chunks = _Merge(opened, self.chunks, self.partition, CHUNKS_SCHEMA, kept)
            if self.version.chunker.clean is not None:
                self.new_excluded = _Merge(
                    opened, self.excluded, self.partition, EXCLUDED_SPANS_SCHEMA, kept
                )

    def add(self, rows: NewRows) -> None:
        if self.new_chunks:
            self.new_chunks.add(rows.chunks)
        if self.new_excluded:
            self.new_excluded.add(rows.excluded)
        self.redone += rows.chunks.height
        self.provisional.update(rows.provisional)

    def commit(self) -> ChunkSetUpdate:
        # A key nothing else has: what is provisional is made again whatever the document says.
        keys = {
            doc_id: digest(key, "provisional") if doc_id in self.provisional else key
            for doc_id, key in self.wanted.items()
        }
        if self.new_excluded:
            self.new_excluded.commit(keys)
        manifest = self.new_chunks.commit(keys) if self.new_chunks else self.manifest
        assert manifest is not None
        return ChunkSetUpdate(
            chunker_version=self.name,
            shard=self.shard,
            changes=self.changes,
            chunks=manifest.rows,
            chunks_redone=self.redone,
            content_version=manifest.version,
        )


class _Merge:
    """The next content of a partition: new rows as they come, among those kept of the present."""

    def __init__(
        self,
        opened: ExitStack,
        table: Table,
        partition: str,
        schema: pl.Schema,
        kept: Collection[str],
    ) -> None:
        self.content = opened.enter_context(table.replacement(schema, partition))
        self.schema = schema
        present = table.manifest(partition) if kept else None
        self.old = self.kept(table, present, kept) if present else iter(())
        self.head = next(self.old, None)

    def kept(
        self, table: Table, present: Manifest, kept: Collection[str]
    ) -> Iterator[pl.DataFrame]:
        documents = pl.Series(sorted(kept))
        for piece in table.snapshot(present).pieces():
            rows = piece.filter(pl.col("doc_id").is_in(documents.implode()))
            if rows.height:
                yield rows.select(self.schema.names())

    def add(self, new: pl.DataFrame) -> None:
        """Rows after those added before, by document; `doc_id` says where the kept ones go."""
        while new.height and self.head is not None:
            last = min(new["doc_id"][-1], self.head["doc_id"][-1])
            is_due = pl.col("doc_id") <= last
            due = pl.concat([self.head.filter(is_due), new.filter(is_due)])
            self.content.add(due.sort("doc_id", maintain_order=True))
            new, self.head = new.filter(~is_due), self.head.filter(~is_due)
            if self.head.is_empty():
                self.head = next(self.old, None)
        self.content.add(new)

    def commit(self, keys: Mapping[str, str]) -> Manifest:
        while self.head is not None:
            self.content.add(self.head)
            self.head = next(self.old, None)
        return self.content.commit(keys=keys)


def _cores() -> int:
    """Cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
