"""The approximate vector index: built only where a table is large enough for it to pay.

HNSW over 8-bit codes, whose candidates are ranked by their exact cosines again. Below the size
here, reading every vector takes about as long as the graph, and is exact and free to keep;
`python -m benchmarks.search` measures both, and the recall. Above another, there are several
graphs, or building would take ever more time and memory a vector; a search asks all of them.
"""

import re
from typing import Any

VECTOR = "vector"
ANN_FROM = 20_000
"""Searched chunks. Measured: benchmarks/search.py."""
CHUNKS_PER_GRAPH = 100_000
"""Measured at 100,000: with half of two graphs asked, a fifth to a quarter of what is closest is
not found; each graph more costs a question one to two CPU milliseconds."""
EVERY_GRAPH = 100_000
"""More than there are, for a search that asks all."""
NEIGHBOURS, EF_CONSTRUCTION = 20, 150
"""Edges of a vector in the graph, and how thoroughly they are looked for: more is slower to build
and finds more."""


def has_ann_index(table: Any) -> bool:
    return any(VECTOR in index.columns for index in table.list_indices())


def graphs_of(chunks: int) -> int:
    """Over how many graphs so many searched chunks are spread.

    >>> graphs_of(20_000), graphs_of(100_001), graphs_of(1_000_000)
    (1, 2, 10)
    """
    return max(1, -(-chunks // CHUNKS_PER_GRAPH))


def create_ann_index(table: Any, from_chunks: int | None = None) -> None:
    """Index the vectors of a LanceDB table with `from_chunks` searched chunks or more (None:
    `ANN_FROM`). Once the index is there, new rows are added with those of the other indexes; it is
    made anew where they are worth twice its graphs."""
    from lancedb.index import HnswSq

    chunks = int(table.count_rows("searched"))
    if chunks < (ANN_FROM if from_chunks is None else from_chunks):
        return
    graphs = graphs_of(chunks)
    old = [index.name for index in table.list_indices() if VECTOR in index.columns]
    if old and graphs < 2 * max(map(_graphs_in, old)):
        return
    config = HnswSq(
        distance_type="cosine",
        num_partitions=graphs,
        m=NEIGHBOURS,
        ef_construction=EF_CONSTRUCTION,
    )
    table.create_index(VECTOR, config=config, name=_index_name(graphs))
    for name in old:
        table.drop_index(name)


def _index_name(graphs: int) -> str:
    """The name says how many there are, which LanceDB tells only with all there is to tell."""
    return f"{VECTOR}_idx" if graphs == 1 else f"{VECTOR}_in_{graphs}_graphs"


def _graphs_in(index_name: str) -> int:
    found = re.search(r"_in_(\d+)_graphs$", index_name)
    return int(found[1]) if found else 1
