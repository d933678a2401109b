"""Runs over many partitions each, as the daemon would start them for partitions that are due."""

from collections.abc import Iterable
from typing import Any

import dagster as dg
from dagster._core.definitions.assets.graph.base_asset_graph import BaseAssetGraph
from dagster._core.definitions.automation_tick_evaluation_context import (
    build_run_requests_with_backfill_policies,
)
from dagster._core.definitions.events import AssetKeyPartitionKey
from dagster._core.definitions.partitions.context import partition_loading_context
from dagster._core.storage.tags import ASSET_PARTITION_RANGE_START_TAG


def run_requests(
    asset: str, keys: Iterable[str], graph: BaseAssetGraph[Any], instance: dg.DagsterInstance
) -> list[dg.RunRequest]:
    """One request for each range of neighbours among the partitions `keys` of an asset, in the
    order of `keys`, so that two builds of the same do the same."""
    wanted = [AssetKeyPartitionKey(dg.AssetKey(asset), key) for key in keys]
    position = {str(partition.partition_key): n for n, partition in enumerate(wanted)}
    with partition_loading_context(dynamic_partitions_store=instance):
        requests = build_run_requests_with_backfill_policies(wanted, graph, instance)

    def first(request: dg.RunRequest) -> int:
        return position[request.partition_key or request.tags[ASSET_PARTITION_RANGE_START_TAG]]

    return sorted(requests, key=first)
