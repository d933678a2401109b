"""Make good what somebody or something did to the stores behind our back, and nothing else.

What can be computed again is: a damaged partition is removed, so that the next build makes it anew
from its neighbours, and rows that differ are put in again from the vector cache. What cannot, the
history, is refused with the cure.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from chunking_assets.chunk_embeddings.build import (
    BATCH_CHUNKS,
    IndexUpdate,
    update_index,
)
from chunking_assets.chunk_embeddings.reconcile import Reconciliation, reconcile
from chunking_assets.chunk_embeddings.version import IndexVersion
from chunking_assets.chunk_sets.build import CHUNKS, cell
from chunking_assets.embedding_models.model import Embedder
from chunking_assets.errors import CorpusError
from chunking_assets.live_index.gate import UNSOUND
from chunking_assets.workspace import HISTORY, Workspace

EMBEDDED = "chunk_embeddings"
"""The asset whose stamps say which cells are embedded."""


@dataclass(frozen=True)
class Repaired:
    """What was wrong with a shard of an index version, and the update that made it good."""

    found: Reconciliation
    update: IndexUpdate

    def __str__(self) -> str:
        update = self.update
        return (
            f"{update.index_version}, shard {update.shard}: {in_words(self.found)}; put in again "
            f"({update.vectors_reused} vectors from the cache, {update.vectors_embedded} embedded)"
        )


def remove_damaged(workspace: Workspace) -> list[str]:
    """Remove the partitions of tables that cannot be read, for the next build to make anew; a
    sentence each.

    Raises:
        CorpusError: a table of history is damaged. The others were removed.
    """
    removed, lost = [], []
    for table in workspace.tables():
        for partition in table.partitions():
            damage = table.damage(partition)
            if damage is None:
                continue
            if table.name in HISTORY:
                lost.append(damage)
            else:
                table.remove(partition)
                removed.append(damage)
    if lost:
        raise CorpusError(
            f"{'; '.join(lost)}. It is history and cannot be computed again: restore it from a "
            f"copy, or remove its folder below {workspace.store.uri}/tables to go on without."
        )
    return removed


def repair(
    workspace: Workspace,
    indexes: Sequence[IndexVersion],
    shards: Sequence[str],
    embedder: Callable[[str], Embedder],
    batch_chunks: int = BATCH_CHUNKS,
) -> Iterator[Repaired]:
    """Compare every shard of every index version, and put in again what differs.

    A shard without a chunk set is left for the next build. What failed a blocking check and is
    good now is marked as to be looked at again.
    """
    for index in indexes:
        version = index.chunker_version.name
        chunked = [s for s in shards if workspace.table(CHUNKS).manifest(cell(version, s))]
        found = {shard: reconcile(workspace, index, shard) for shard in chunked}
        wrong = [shard for shard, what in found.items() if not what.agrees]
        if not wrong:
            continue
        for update in update_index(
            workspace, index, wrong, embedder, batch_chunks=batch_chunks, repair=True
        ):
            partition = cell(version, update.shard)
            if workspace.stamps.read(EMBEDDED, partition) == UNSOUND:
                workspace.stamps.remove(EMBEDDED, partition)
            yield Repaired(found[update.shard], update)


def in_words(found: Reconciliation) -> str:
    """What is wrong, in one line."""
    rows = found.rows
    parts = {
        "missing": rows.missing,
        "extra": rows.extra,
        "twice": rows.duplicates,
        "altered": rows.altered,
        "without a usable vector": rows.unusable,
    }
    counts = [f"{len(ids)} {what} ({', '.join(ids[:3])})" for what, ids in parts.items() if ids]
    if found.misstated:
        counts.append(f"{len(found.misstated)} documents misstated in the ledger")
    return "; ".join([*found.damage, *counts]) or "nothing"
