"""How many runs may work at once on what must be shared: a pool for each, and its limit.

Dagster has a pool for an asset, not for a partition. So the vector tables share one that is wide:
neighbouring shards and versions embed side by side, and commits to one table are taken in turn by
the table's own lock, which is held for the commit only. Limits bound load; locks keep order.
"""

from dagster import DagsterInstance
from dagster._core.instance.config import PoolGranularity

VECTOR_TABLES = "vector_tables"
"""Runs that embed and write LanceDB tables."""

EVAL_DATABASE = "eval_database"
"""Runs that publish the DuckDB file."""

MODEL_ENDPOINT = "model_endpoint"
"""Runs that ask chat models, of an endpoint that limits its rate."""

LIMITS = {VECTOR_TABLES: 4, EVAL_DATABASE: 1, MODEL_ENDPOINT: 1}
"""Runs at once, unless the instance was told otherwise."""


def set_limits(instance: DagsterInstance) -> None:
    """Give every pool its limit; one that is set in the instance stays as it is.

    Not where an instance counts steps in place of runs: a step that is killed keeps its place, and
    the next one would wait for it for ever.
    """
    if instance.get_concurrency_config().pool_config.pool_granularity != PoolGranularity.RUN:
        return
    storage = instance.event_log_storage
    known = {pool.name for pool in storage.get_pool_limits() if not pool.from_default}
    for pool, limit in LIMITS.items():
        if pool not in known:
            storage.set_concurrency_slots(pool, limit)
