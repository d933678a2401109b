"""Whether chunk set, ledger and LanceDB table of a cell hold the same chunks, all of them whole.

Three stores are written one after the other, and anybody may have written to one of them behind
our back. What they say is compared row by row; `update_index(repair=True)` makes good what differs.
"""

from dataclasses import dataclass

import polars as pl

from chunking_assets.chunk_embeddings.build import (
    EMBEDDED_CHUNKS,
    embedding_keys,
    ledger,
    misstated,
)
from chunking_assets.chunk_embeddings.difference import (
    NOTHING,
    Difference,
    difference,
    wanted_rows,
)
from chunking_assets.chunk_embeddings.lance_index import LanceIndex
from chunking_assets.chunk_embeddings.version import IndexVersion
from chunking_assets.chunk_sets.build import CHUNKS, EXCLUDED_SPANS, cell
from chunking_assets.errors import CorpusError
from chunking_assets.storage import StorageUnavailable
from chunking_assets.workspace import Workspace


@dataclass(frozen=True)
class Reconciliation:
    """What is wrong with one shard of one index version.

    `damage` are sentences about what cannot be read; `misstated` documents of which the ledger
    names other chunks than it was made from; `rows` how the rows that readers are served differ.
    """

    damage: tuple[str, ...] = ()
    misstated: tuple[str, ...] = ()
    rows: Difference = NOTHING
    unindexed_rows: int = 0

    @property
    def agrees(self) -> bool:
        return not (self.damage or self.misstated or self.rows)


def reconcile(workspace: Workspace, index: IndexVersion, shard: str) -> Reconciliation:
    """Compare everything stored of a shard of an index version. Nothing is written.

    A shard that is being updated is waited for if it seems to differ.
    """
    found = _compare(workspace, index, shard)
    if found.agrees:
        return found
    with workspace.lock(f"{EMBEDDED_CHUNKS} {ledger(index.name, shard)}"):
        return _compare(workspace, index, shard)


def _compare(workspace: Workspace, index: IndexVersion, shard: str) -> Reconciliation:
    here, lance = cell(index.chunker_version.name, shard), LanceIndex(workspace, index.name)
    partitions = {CHUNKS: here, EXCLUDED_SPANS: here, EMBEDDED_CHUNKS: ledger(index.name, shard)}
    tables = {name: workspace.table(name) for name in partitions}
    damage = [d for name, p in partitions.items() if (d := tables[name].damage(p)) is not None]
    is_stated = partitions[EMBEDDED_CHUNKS] in tables[EMBEDDED_CHUNKS].partitions()
    try:
        served_rows = lance.count(shard)
        is_served = lance.served_version() is not None
    except StorageUnavailable:
        raise
    except CorpusError as error:
        return Reconciliation((*damage, *([str(error)] if is_stated else [])))
    if not damage and not is_stated and served_rows:
        damage = [f"{index.name} holds {served_rows} rows of {shard}, and has no ledger of them"]
    if not damage and is_stated and not is_served:
        damage = [f"{index.name} has a ledger of {shard}, and nothing is served"]
    before = None if damage else tables[EMBEDDED_CHUNKS].manifest(partitions[EMBEDDED_CHUNKS])
    if before is None:
        return Reconciliation(tuple(damage))
    stated = tables[EMBEDDED_CHUNKS].snapshot(before).read()
    chunk_set = tables[CHUNKS].manifest(here)
    if chunk_set is None:
        return Reconciliation((f"{index.name} of {shard} has a ledger and no chunk set",))
    keys, chunks = embedding_keys(index, chunk_set), tables[CHUNKS].snapshot(chunk_set)
    current = [doc_id for doc_id, key in keys.items() if before.keys.get(doc_id) == key]
    wrong = misstated(stated, chunks.read(["chunk_id", "doc_id"]), before.keys, keys)
    is_current = pl.col("doc_id").is_in(pl.Series(current, dtype=pl.String).implode())
    wanted = wanted_rows(stated, (piece.filter(is_current) for piece in chunks.pieces()))
    try:
        rows = difference(lance, shard, wanted, served=True, thorough=True)
    except StorageUnavailable:
        raise
    except CorpusError as error:
        return Reconciliation((str(error),), tuple(sorted(wrong)))
    return Reconciliation(
        misstated=tuple(sorted(wrong)),
        rows=rows,
        unindexed_rows=lance.unindexed_rows(),
    )
