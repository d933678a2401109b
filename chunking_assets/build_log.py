"""What every build did and cost: one row per partition build that changed something."""

from datetime import UTC, datetime

import polars as pl

from chunking_assets.workspace import Workspace

BUILDS = "builds"

BUILDS_SCHEMA = pl.Schema(
    {
        "at": pl.Datetime("us", "UTC"),
        "run_id": pl.String(),
        "asset": pl.String(),
        "partition": pl.String(),
        "documents_added": pl.Int64(),
        "documents_changed": pl.Int64(),
        "documents_removed": pl.Int64(),
        "documents_unchanged": pl.Int64(),
        "documents_failed": pl.Int64(),
        "rows": pl.Int64(),
        "chunks_redone": pl.Int64(),
        "vectors_embedded": pl.Int64(),
        "vectors_reused": pl.Int64(),
        "tokens_embedded": pl.Int64(),
        "seconds": pl.Float64(),
    }
)


def record_build(
    workspace: Workspace,
    asset: str,
    partition: str,
    run_id: str,
    seconds: float,
    counts: dict[str, int],
) -> None:
    """Add one row to the log; counts that do not apply to the asset stay empty."""
    row = {
        "at": datetime.now(UTC),
        "run_id": run_id,
        "asset": asset,
        "partition": partition,
        "seconds": seconds,
        **counts,
    }
    unknown = row.keys() - BUILDS_SCHEMA.keys()
    if unknown:
        raise ValueError(f"not columns of the build log: {sorted(unknown)}")
    rows = pl.DataFrame([{name: row.get(name) for name in BUILDS_SCHEMA}], schema=BUILDS_SCHEMA)
    key = f"{asset}|{partition}"
    with workspace.lock(f"{BUILDS} {key}"):
        workspace.table(BUILDS).append(rows, key)
