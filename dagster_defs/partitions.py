"""The two sides of every partition: corpus shards (found) and chunker versions (declared).

A cell is one chunk set: chunker_version × corpus_shard. Versions are static, so the graph follows
the repository; shards are dynamic, so a new collection appears without a deployment.
"""

from collections.abc import Iterable

import dagster as dg

from chunking_assets import config as configuration

CONFIG = configuration.load()

CORPUS_SHARD, CHUNKER_VERSION = "corpus_shard", "chunker_version"

corpus_shards = dg.DynamicPartitionsDefinition(name=CORPUS_SHARD)
chunker_versions = dg.StaticPartitionsDefinition(list(CONFIG.chunker_versions))
cells = dg.MultiPartitionsDefinition(
    {CORPUS_SHARD: corpus_shards, CHUNKER_VERSION: chunker_versions}
)
by_shard = dg.MultiToSingleDimensionPartitionMapping(CORPUS_SHARD)
by_version = dg.MultiToSingleDimensionPartitionMapping(CHUNKER_VERSION)
every_partition = dg.AllPartitionMapping()


def cells_by(side: str, keys: Iterable[object]) -> list[list[str]]:
    """Cells in groups of one shard, or of one chunker version, in their order.

    >>> cells_by(CORPUS_SHARD, ["a@1|x", "a@1|y", "b@1|x"])
    [['a@1|x', 'b@1|x'], ['a@1|y']]
    """
    part = (CHUNKER_VERSION, CORPUS_SHARD).index(side)
    groups: dict[str, list[str]] = {}
    for key in map(str, keys):
        groups.setdefault(cell_parts(key)[part], []).append(key)
    return list(groups.values())


def cell_parts(cell: str) -> tuple[str, str]:
    """The chunker version and the shard of a cell's key.

    >>> cell_parts("recursive-400@1|help-center")
    ('recursive-400@1', 'help-center')
    """
    version, shard = cell.split("|")
    return version, shard
