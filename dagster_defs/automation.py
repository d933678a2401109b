"""When a partition is redone: when the inputs recorded at its last build are not those of now.

Level-triggered on purpose. Dagster's built-in conditions react to events and lose an update when
upstream and downstream both finish between two looks (dagster issue 24650); comparing stamps
cannot. Equal content gives an equal stamp, so early cut-off follows by itself.
"""

from functools import lru_cache

import dagster as dg

from chunking_assets.workspace import Workspace
from dagster_defs.inputs import is_out_of_date
from dagster_defs.partitions import CONFIG

AC = dg.AutomationCondition


class OutOfDate(dg.AutomationCondition[dg.AssetKey]):
    """True for the partitions whose inputs changed since they were built, or never were."""

    @property
    def name(self) -> str:
        return "out_of_date"

    @property
    def description(self) -> str:
        return "The inputs recorded at the last build differ from the inputs now"

    def evaluate(
        self, context: dg.AutomationContext[dg.AssetKey]
    ) -> dg.AutomationResult[dg.AssetKey]:
        asset, candidates = context.key.to_user_string(), context.candidate_subset
        workspace = Workspace(CONFIG.home)
        if context.partitions_def is None:
            due = is_out_of_date(CONFIG, workspace, asset)
            return dg.AutomationResult(
                context, true_subset=candidates if due else context.get_empty_subset()
            )
        keys = candidates.expensively_compute_partition_keys()
        due_keys = {key for key in keys if is_out_of_date(CONFIG, workspace, asset, key)}
        return dg.AutomationResult(
            context, true_subset=candidates.compute_intersection_with_partition_keys(due_keys)
        )


@lru_cache(maxsize=1)
def when_out_of_date() -> dg.AutomationCondition[dg.AssetKey]:
    """Redo what is out of date and ready; what failed is tried again once an input moves."""
    an_input_moved = (
        AC.any_deps_match(AC.newly_updated()).since_last_handled().with_label("an input moved")
    )
    inputs_settled = (~AC.any_deps_missing() & ~AC.any_deps_in_progress()).with_label(
        "inputs are there and settled"
    )
    not_running = (~AC.in_progress()).with_label("not running")
    worth_trying = (~AC.execution_failed() | an_input_moved).with_label("worth trying")
    return (OutOfDate() & inputs_settled & not_running & worth_trying).with_label(
        "redo when out of date"
    )
