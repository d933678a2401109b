"""Whether a LanceDB table holds exactly what the ledger says it must."""

from collections import Counter
from dataclasses import dataclass

from chunking_assets.chunk_embeddings.build import EMBEDDED_CHUNKS, ledger
from chunking_assets.chunk_embeddings.lance_index import LanceIndex
from chunking_assets.workspace import Workspace


@dataclass(frozen=True)
class Reconciliation:
    """The difference for one shard of one index version; the lists name chunk_ids."""

    rows: int
    missing: tuple[str, ...]
    extra: tuple[str, ...]
    duplicates: tuple[str, ...]
    other_vector: tuple[str, ...]
    unindexed_rows: int

    @property
    def agrees(self) -> bool:
        return not (self.missing or self.extra or self.duplicates or self.other_vector)


def reconcile(workspace: Workspace, index_version: str, shard: str) -> Reconciliation:
    """Compare the ledger of a shard with the rows that readers are served."""
    stated = workspace.table(EMBEDDED_CHUNKS).read(
        ledger(index_version, shard), ["chunk_id", "vec_key"]
    )
    wanted = {} if stated is None else dict(stated.iter_rows())
    index = LanceIndex(workspace, index_version)
    rows = []
    if index.served_version() is not None:
        rows = index.rows(shard, ["chunk_id", "vec_key"], served=True).to_pylist()
    found = Counter(row["chunk_id"] for row in rows)
    keys = {row["chunk_id"]: row["vec_key"] for row in rows}
    return Reconciliation(
        rows=len(rows),
        missing=tuple(sorted(wanted.keys() - found.keys())),
        extra=tuple(sorted(found.keys() - wanted.keys())),
        duplicates=tuple(sorted(c for c, n in found.items() if n > 1)),
        other_vector=tuple(sorted(c for c in wanted.keys() & keys.keys() if wanted[c] != keys[c])),
        unindexed_rows=index.unindexed_rows(),
    )
