"""The two sides of every partition: corpus shards (found) and chunker versions (declared).

A cell is one chunk set: chunker_version × corpus_shard. Versions are static, so the graph follows
the repository; shards are dynamic, so a new collection appears without a deployment.
"""

from collections.abc import Iterable, Sequence
from itertools import pairwise

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

MOST_RANGES = 24
"""Partitions due that fall into more ranges than this are joined: a run is started for each range,
and starting one costs as much as looking at hundreds of partitions that have nothing to do."""


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


def in_few_ranges(due: set[str], joinable: set[str], order: Sequence[str]) -> set[str]:
    """`due`, with what is `joinable` between them where they lie in more than `MOST_RANGES` ranges.

    A range is what Dagster starts one run for: neighbours in `order`, of cells those along the side
    of which more keys are due.

    >>> order = [f"{version}|{n:02}" for version in ("a@1", "b@1") for n in range(60)]
    >>> len(in_few_ranges({*order[::2]}, {*order}, order))
    118
    >>> len(in_few_ranges({*order[:20:2]}, {*order}, order))
    10
    """
    lines = _lines(due, order)
    filled: set[str] = set()
    ranges = 0
    for line in lines:
        at = [place for place, key in enumerate(line) if key in due]
        if at:
            ranges += 1 + sum(after - before > 1 for before, after in pairwise(at))
            filled.update(key for key in line[at[0] : at[-1]] if key in joinable)
    return due if ranges <= MOST_RANGES else due | filled


def _lines(due: set[str], order: Sequence[str]) -> list[list[str]]:
    if not any("|" in key for key in due):
        return [[*order]]
    versions, shards = zip(*map(cell_parts, due), strict=True)
    fewer = CHUNKER_VERSION if len({*versions}) <= len({*shards}) else CORPUS_SHARD
    return cells_by(fewer, order)
