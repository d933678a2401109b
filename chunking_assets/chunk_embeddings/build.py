"""Bring one index version up to date with the chunk sets of its shards.

Per shard one LanceDB commit replaces the rows of the documents that changed; readers keep the old
content until all shards are in and the table is published. The ledger of what the table must hold
is written last, so a crash anywhere is made good by running again.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from chunking_assets.chunk_embeddings.lance_index import LanceIndex
from chunking_assets.chunk_embeddings.late import check_late, embed_late
from chunking_assets.chunk_embeddings.version import IndexVersion
from chunking_assets.chunk_sets.build import CHUNKS, cell
from chunking_assets.chunk_sets.late import LateChunker
from chunking_assets.chunk_sets.rows import EMBED_TEXT
from chunking_assets.embedding_models.model import Embedder, ModelIdentity, Progress
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
from chunking_assets.workspace import Workspace

if TYPE_CHECKING:
    import pyarrow as pa

EMBEDDED_CHUNKS = "embedded_chunks"
FINGERPRINTS = "embedding_model_fingerprints"

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
    """What one update of one shard of an index version did."""

    index_version: str
    shard: str
    changes: ChangeSet
    chunks: int
    vectors_embedded: int
    vectors_reused: int
    tokens_embedded: int
    windowed: tuple[str, ...]
    content_version: str


def ledger(index_version: str, shard: str) -> str:
    """The partition of `embedded_chunks`: `recursive-400@1+e5-small|help-center`."""
    return f"{index_version}|{shard}"


def update_index(
    workspace: Workspace,
    index: IndexVersion,
    shards: Sequence[str],
    embedder: Callable[[str], Embedder],
    progress: Progress | None = None,
) -> list[IndexUpdate]:
    """Embed what is new in these shards, replace their rows, publish once.

    `embedder` loads an embedding model by name; it is called only when a document changed.

    Raises:
        CorpusError: a shard was never chunked under this version, or a vector is unusable.
    """
    with workspace.locks(f"{EMBEDDED_CHUNKS} {ledger(index.name, shard)}" for shard in shards):
        return _update(workspace, index, shards, embedder, progress)


def _update(
    workspace: Workspace,
    index: IndexVersion,
    shards: Sequence[str],
    embedder: Callable[[str], Embedder],
    progress: Progress | None,
) -> list[IndexUpdate]:
    check_late(index)
    _forget_a_lost_table(workspace, index)
    plans = [_plan(workspace, index, shard) for shard in shards]
    if any(plan.stale for plan in plans):
        workspace.record_declaration(
            "embedding_models", index.model_name, index.model.declaration()
        )
        loaded = embedder(index.model_name)
        workspace.record_declaration(FINGERPRINTS, index.model_name, _fingerprint(loaded.identity))
        lance = LanceIndex(workspace, index.name, loaded.identity.dimensions)
        for plan in plans:
            if plan.stale:
                _embed_and_replace(workspace, plan, loaded, lance, progress)
        lance.publish()
    return [_record(workspace, plan) for plan in plans]


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


def _forget_a_lost_table(workspace: Workspace, index: IndexVersion) -> None:
    """A table whose folder is gone holds nothing, whatever the ledger of any shard says."""
    if not LanceIndex(workspace, index.name).is_stored():
        table = workspace.table(EMBEDDED_CHUNKS)
        for partition in table.partitions():
            if partition.startswith(ledger(index.name, "")):
                table.remove(partition)


class _Plan:
    """One shard on its way through the update."""

    def __init__(
        self, index: IndexVersion, shard: str, changes: ChangeSet, keys: dict[str, str], new: bool
    ) -> None:
        self.index, self.shard, self.changes, self.keys, self.new = index, shard, changes, keys, new
        self.embedded: Embedded | None = None
        self.rows = EMBEDDED_CHUNKS_SCHEMA.to_frame()

    @property
    def stale(self) -> bool:
        return self.new or bool(self.changes)


def _plan(workspace: Workspace, index: IndexVersion, shard: str) -> _Plan:
    chunk_set = workspace.table(CHUNKS).manifest(cell(index.chunker_version.name, shard))
    if chunk_set is None:
        raise CorpusError(
            f"{index.chunker_version.name} over shard {shard} has no chunk set yet. "
            "Build chunk_sets first."
        )
    model = digest(index.model.declaration())
    keys = {doc_id: digest(key, model) for doc_id, key in chunk_set.keys.items()}
    before = workspace.table(EMBEDDED_CHUNKS).manifest(ledger(index.name, shard))
    return _Plan(
        index, shard, compare(before.keys if before else {}, keys), keys, new=before is None
    )


def _embed_and_replace(
    workspace: Workspace,
    plan: _Plan,
    embedder: Embedder,
    lance: LanceIndex,
    progress: Progress | None,
) -> None:
    chunks = workspace.table(CHUNKS).read(cell(plan.index.chunker_version.name, plan.shard))
    assert chunks is not None
    chunks = chunks.filter(pl.col("doc_id").is_in(plan.changes.redo)).with_columns(
        embed_text=EMBED_TEXT, shard=pl.lit(plan.shard), index_version=pl.lit(plan.index.name)
    )
    searched, read_only = chunks.filter("searched"), chunks.filter(~pl.col("searched"))
    identity = embedder.identity
    cache = VectorCache(workspace.caches / VECTORS, identity.fingerprint, identity.dimensions)
    keys: list[str]
    if isinstance(plan.index.chunker_version.chunker, LateChunker):
        keys, plan.embedded = embed_late(
            workspace, plan.index, plan.shard, searched, embedder, cache, progress
        )
    else:
        texts = searched["embed_text"].to_list()
        keys = [vec_key(identity, "passage", text) for text in texts]
        plan.embedded = embed_through_cache(embedder, cache, texts, "passage", progress)
    n_tokens = plan.embedded.n_tokens
    # In one order: the vectors are those of the first rows.
    chunks = pl.concat(
        [
            _embedded(searched, keys, n_tokens, [-(-n // identity.max_tokens) for n in n_tokens]),
            _embedded(
                read_only,
                [None] * read_only.height,
                embedder.count_tokens(read_only["embed_text"].to_list()),
                [0] * read_only.height,
            ),
        ]
    )
    # A table without a ledger may hold anything: then the whole shard is replaced.
    owned = None if plan.new else sorted({*plan.changes.redo, *plan.changes.removed})
    lance.replace_documents(_lance_rows(chunks, plan.embedded), plan.shard, owned)
    plan.rows = chunks.select(EMBEDDED_CHUNKS_SCHEMA.names())


def _embedded(
    chunks: pl.DataFrame,
    keys: Sequence[str | None],
    n_tokens: Sequence[int],
    n_windows: Sequence[int],
) -> pl.DataFrame:
    return chunks.with_columns(
        vec_key=pl.Series(keys, dtype=pl.String),
        n_tokens=pl.Series(n_tokens, dtype=pl.Int64),
        n_windows=pl.Series(n_windows, dtype=pl.Int64),
    )


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


def _record(workspace: Workspace, plan: _Plan) -> IndexUpdate:
    table, partition = workspace.table(EMBEDDED_CHUNKS), ledger(plan.index.name, plan.shard)
    manifest = table.manifest(partition)
    if plan.stale or manifest is None:
        rows = plan.rows
        old = table.read(partition)
        if old is not None:
            rows = pl.concat([old.filter(pl.col("doc_id").is_in(plan.changes.unchanged)), rows])
        manifest = table.replace(rows.sort("doc_id", "chunk_id"), partition, keys=plan.keys)
    windowed = table.read(partition, ["chunk_id", "n_windows"])
    assert windowed is not None
    return IndexUpdate(
        index_version=plan.index.name,
        shard=plan.shard,
        changes=plan.changes,
        chunks=manifest.rows,
        vectors_embedded=plan.embedded.computed if plan.embedded else 0,
        vectors_reused=plan.embedded.reused if plan.embedded else 0,
        tokens_embedded=plan.embedded.tokens_computed if plan.embedded else 0,
        windowed=tuple(windowed.filter(pl.col("n_windows") > 1)["chunk_id"]),
        content_version=manifest.version,
    )
