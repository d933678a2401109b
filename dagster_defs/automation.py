"""When a partition is redone: when the inputs recorded at its last build are not those of now.

Level-triggered on purpose. Dagster's built-in conditions react to events and lose an update when
upstream and downstream both finish between two looks (dagster issue 24650); comparing stamps
cannot. Equal content gives an equal stamp, so early cut-off follows by itself.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import dagster as dg

from chunking_assets.workspace import WHOLE, Workspace
from dagster_defs.inputs import WANTED, is_out_of_date, is_unsound, wanted
from dagster_defs.partitions import CONFIG, MOST_RANGES, in_few_ranges

AC = dg.AutomationCondition
Context = dg.AutomationContext[dg.AssetKey]
Result = dg.AutomationResult[dg.AssetKey]


class OutOfDate(dg.AutomationCondition[dg.AssetKey]):
    """True for the partitions that could be built now from other inputs than they were."""

    @property
    def name(self) -> str:
        return "out_of_date"

    @property
    def description(self) -> str:
        return "The inputs recorded at the last build differ from the inputs now"

    def evaluate(self, context: Context) -> Result:
        asset, workspace = context.key.to_user_string(), Workspace(CONFIG.home)
        keys = _keys(context) if asset in WANTED else set()
        return _where(context, {k for k in keys if is_out_of_date(CONFIG, workspace, asset, k)})


class UpToDate(dg.AutomationCondition[dg.AssetKey]):
    """True for the partitions whose build would find nothing to do."""

    @property
    def name(self) -> str:
        return "up_to_date"

    @property
    def description(self) -> str:
        return "The inputs recorded at the last build are those of now"

    def evaluate(self, context: Context) -> Result:
        asset, workspace = context.key.to_user_string(), Workspace(CONFIG.home)
        now = {key: wanted(CONFIG, workspace, asset, key) for key in _keys(context)}
        stamped = {key: workspace.stamps.read(asset, key) for key in now}
        built = {key for key in now if now[key] is not None and now[key] == stamped[key]}
        return _where(context, built)


class Unsound(dg.AutomationCondition[dg.AssetKey]):
    """True for the partitions that failed a blocking check when they were last built."""

    @property
    def name(self) -> str:
        return "unsound"

    @property
    def description(self) -> str:
        return "A blocking check failed on the last build"

    def evaluate(self, context: Context) -> Result:
        asset, workspace = context.key.to_user_string(), Workspace(CONFIG.home)
        return _where(context, {k for k in _keys(context) if is_unsound(workspace, asset, k)})


class Untried(dg.AutomationCondition[dg.AssetKey]):
    """True for the partitions whose inputs are not those of the last tick they were ready in.

    What is ready is requested in the same tick, so these are the inputs it was tried with; they
    are kept in the cursor. Unlike an event, a change during the attempt is not lost.
    """

    @property
    def name(self) -> str:
        return "untried"

    @property
    def description(self) -> str:
        return "The inputs changed since the partition was last tried"

    def evaluate(self, context: Context) -> Result:
        asset, workspace = context.key.to_user_string(), Workspace(CONFIG.home)
        tried: dict[str, str | None] = json.loads(context.cursor or "{}")
        now = {key: wanted(CONFIG, workspace, asset, key) for key in _keys(context)}
        untried = {key for key, inputs in now.items() if tried.get(key) != inputs}
        return _where(context, untried, json.dumps(tried | now))


@dataclass(frozen=True)
class InFewRuns(dg.AutomationCondition[dg.AssetKey]):
    """`due`, and what is `joinable` between them where they would start too many runs.

    What is joined is up to date: its build finds nothing to do.
    """

    due: dg.AutomationCondition[dg.AssetKey]
    joinable: dg.AutomationCondition[dg.AssetKey]

    @property
    def name(self) -> str:
        return "in_few_runs"

    @property
    def description(self) -> str:
        return "Due, or between partitions that are due and lie too far apart for one run"

    @property
    def children(self) -> Sequence[dg.AutomationCondition[dg.AssetKey]]:
        return [self.due, self.joinable]

    async def evaluate(self, context: Context) -> Result:  # type: ignore[override]  # as built-ins
        due = await self._child(context, 0)
        if due.true_subset.size <= MOST_RANGES or context.partitions_def is None:
            return dg.AutomationResult(context, due.true_subset, child_results=[due])
        joinable = await self._child(context, 1)
        keys = in_few_ranges(
            set(due.true_subset.expensively_compute_partition_keys()),
            set(joinable.true_subset.expensively_compute_partition_keys()),
            list(context.partitions_def.get_partition_keys()),
        )
        requested = context.candidate_subset.compute_intersection_with_partition_keys(keys)
        return dg.AutomationResult(context, requested, child_results=[due, joinable])

    async def _child(self, context: Context, index: int) -> Result:
        child = self.children[index]
        return await context.for_child_condition(
            child, child_indices=[index], candidate_subset=context.candidate_subset
        ).evaluate_async()


def _keys(context: Context) -> set[str]:
    """The partitions in question; an asset without any has one, `WHOLE`."""
    if context.partitions_def is None:
        return set() if context.candidate_subset.is_empty else {WHOLE}
    return set(context.candidate_subset.expensively_compute_partition_keys())


def _where(context: Context, keys: set[str], cursor: str | None = None) -> Result:
    if context.partitions_def is None:
        subset = context.candidate_subset if keys else context.get_empty_subset()
    else:
        subset = context.candidate_subset.compute_intersection_with_partition_keys(keys)
    return dg.AutomationResult(context, true_subset=subset, cursor=cursor)


@lru_cache(maxsize=1)
def when_out_of_date() -> dg.AutomationCondition[dg.AssetKey]:
    """Redo what is out of date and ready; what failed is tried again once an input moves.

    Whether the inputs are there is for `wanted` to say, which is None if not: an asset may do
    without some of its dependencies, such as a live index before the first promotion.
    """
    failed = AC.execution_failed() | Unsound()
    pending = (OutOfDate() & ~failed).with_label("pending")
    being_checked = AC.any_checks_match(AC.run_in_progress(), blocking_only=True)
    # Not `any_deps_in_progress`: a backfill counts as in progress half a minute after its last run.
    moving = AC.any_deps_match(pending | AC.run_in_progress() | being_checked)
    inputs_settled = (~moving).with_label("inputs are settled")
    not_running = (~AC.in_progress()).with_label("not running")
    worth_trying = (~failed | Untried()).with_label("did not fail with these inputs")
    due = (OutOfDate() & inputs_settled & not_running & worth_trying).with_label("due")
    at_rest = (UpToDate() & ~AC.in_progress() & ~failed).with_label("at rest")
    return InFewRuns(due, at_rest)
