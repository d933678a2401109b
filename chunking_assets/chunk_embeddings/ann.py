"""The approximate vector index: built only where a table is large enough for it to pay.

HNSW over 8-bit codes, whose candidates are ranked by their exact cosines again. Below the size
here, reading every vector takes about as long as the graph, and is exact and free to keep;
`python -m benchmarks.search` measures both, and the recall.
"""

from typing import Any

VECTOR = "vector"
ANN_FROM = 20_000
"""Searched chunks. Measured: benchmarks/search.py."""
NEIGHBOURS, EF_CONSTRUCTION = 20, 150
"""Edges of a vector in the graph, and how thoroughly they are looked for: more is slower to build
and finds more."""


def has_ann_index(table: Any) -> bool:
    return any(VECTOR in index.columns for index in table.list_indices())


def create_ann_index(table: Any, from_chunks: int | None = None) -> None:
    """Index the vectors of a LanceDB table with `from_chunks` searched chunks or more (None:
    `ANN_FROM`). Once the index is there, new rows are added with those of the other indexes."""
    from lancedb.index import HnswSq

    least = ANN_FROM if from_chunks is None else from_chunks
    if not has_ann_index(table) and table.count_rows("searched") >= least:
        one_graph = HnswSq(
            distance_type="cosine",
            num_partitions=1,
            m=NEIGHBOURS,
            ef_construction=EF_CONSTRUCTION,
        )
        table.create_index(VECTOR, config=one_graph)
