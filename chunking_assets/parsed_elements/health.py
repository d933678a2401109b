"""How parsing fares with a collection: how many documents have which status, and the worst of them.

`partial` is no failure: what is missing is named, and the rest is searched. Nor is `empty`, nor
`refused`, which is no document. A document that is served as it was before it broke counts as one
without text, because its present bytes have none.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from chunking_assets.parsed_elements.build import DOCUMENTS, REPLACES
from chunking_assets.parsed_elements.parse import STATUSES
from chunking_assets.workspace import Workspace

STALE = "stale"
_WORST_FIRST = (
    "crashed", "timeout", "suspicious", "too_large", "failed", "unreadable", STALE, "encrypted",
    "needs_ocr", "unsupported", "refused", "partial", "empty",
)  # fmt: skip
assert {*_WORST_FIRST, "ok"} == {*STATUSES, STALE}
_COLUMNS = ["doc_id", "media_type", "size", "status", "error", "cure", "stale_since"]


@dataclass(frozen=True)
class ParseHealth:
    """`worst` has doc_id, media_type, size (bytes), status, error and cure, worst first."""

    documents: int
    statuses: dict[str, int]
    without_text: int
    worst: pl.DataFrame


def parse_health(workspace: Workspace, shards: Sequence[str], most: int) -> ParseHealth:
    """Of the documents in these shards; `most` is how many of the worst are named."""
    tables = [workspace.table(DOCUMENTS).read(shard, _COLUMNS) for shard in shards]
    found = pl.concat([table for table in tables if table is not None])
    stale = pl.col("stale_since").is_not_null()
    found = found.with_columns(
        pl.when(stale).then(pl.lit(STALE)).otherwise("status").alias("status")
    )
    counts = found.group_by("status").len().sort("len", "status", descending=[True, False])
    not_ok = found.filter((pl.col("status") != "ok") | pl.col("error").is_not_null())
    rank = pl.col("status").replace_strict(
        list(_WORST_FIRST), range(len(_WORST_FIRST)), default=len(_WORST_FIRST)
    )
    return ParseHealth(
        found.height,
        dict(counts.iter_rows()),
        found.filter(~pl.col("status").is_in([*REPLACES, "refused"])).height,
        not_ok.sort(rank, "doc_id").drop("stale_since").head(most),
    )
