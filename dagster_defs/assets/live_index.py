"""External asset: the promoted strategy. The jobs `promote` and `roll_back` report to it."""

import dagster as dg

from dagster_defs.assets.sources import OWNERS
from dagster_defs.tables import table_metadata

live_index = dg.AssetSpec(
    "live_index",
    deps=["strategy_comparison"],
    group_name="verdict",
    kinds={"lancedb"},
    owners=OWNERS,
    metadata=table_metadata("promotions"),
    description=(
        "What readers are served from. Changed only by the jobs `promote` (through the gate) and "
        "`roll_back`; every change is a recorded event, and readers follow within a second."
    ),
)
