"""Vectors as 8-bit integers: a quarter of the space, and no graph to build.

LanceDB stores such a column and searches none, so all of them are read once for a published
version, and a question is compared with every one: that is exact, and where a graph of floats pays
it costs a question no more (`python -m benchmarks.search`).
"""

from typing import TYPE_CHECKING, Any

import numpy as np

from chunking_assets.chunk_embeddings.ann import VECTOR

if TYPE_CHECKING:
    import pyarrow as pa

LARGEST = 127
ROWS_AT_ONCE = 1024
"""As float32 they stay in the processor's cache: many more take seven times as long."""


def as_int8(vectors: np.ndarray) -> np.ndarray:
    """int8 (n, dimensions) of float32 (n, dimensions): each number in 127ths of the largest of its
    vector. Directions are kept to the rounding, lengths are not.

    What could not be found again, a vector that is not finite or zero, becomes zeros.

    >>> as_int8(np.array([[0.5, -0.25, 0.0], [np.nan, 1.0, 0.0]], np.float32)).tolist()
    [[127, -64, 0], [0, 0, 0]]
    """
    largest = np.abs(vectors).max(axis=1, keepdims=True, initial=0)
    usable = np.isfinite(largest) & (largest > 0)
    shares = np.divide(vectors, largest, out=np.zeros_like(vectors), where=usable)
    codes: np.ndarray = np.rint(LARGEST * shares).astype(np.int8)
    return codes


def column_as_int8(column: "pa.ChunkedArray") -> "pa.Array":
    """The same of a column of vectors, some of which may be missing."""
    import pyarrow as pa

    dimensions = column.type.list_size
    floats = column.combine_chunks().cast(pa.list_(pa.float32(), dimensions))
    is_there = floats.is_valid().to_numpy(zero_copy_only=False)
    every = np.zeros((len(floats), dimensions), np.int8)
    every[is_there] = as_int8(floats.flatten().to_numpy().reshape(-1, dimensions))
    missing = pa.array(~is_there)
    return pa.FixedSizeListArray.from_arrays(pa.array(every.reshape(-1)), dimensions, mask=missing)


def holds_int8(table: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_int8(table.schema.field(VECTOR).type.value_type))


class Int8Vectors:
    """The searched vectors of one version of a table, in memory: dimensions + 12 bytes a chunk."""

    def __init__(self, table: Any) -> None:
        searched = table.count_rows("searched")
        self._codes = np.empty((searched, table.schema.field(VECTOR).type.list_size), np.int8)
        self._rows = np.empty(searched, np.uint64)
        self._lengths = np.empty(searched, np.float32)
        scan = table.search().where("searched").select([VECTOR]).with_row_id(True).limit(None)
        last = 0
        for batch in scan.to_batches():
            first, last = last, last + batch.num_rows
            codes = batch[VECTOR].flatten().to_numpy().reshape(batch.num_rows, -1)
            self._codes[first:last] = codes
            self._rows[first:last] = batch["_rowid"].to_numpy()
        for some in _slices(searched):
            lengths = np.linalg.norm(self._codes[some].astype(np.float32), axis=1)
            self._lengths[some] = lengths.clip(min=1)  # of zeros, which only damage leaves

    def nearest(self, query: np.ndarray, limit: int, among: np.ndarray | None) -> np.ndarray:
        """The row ids of the `limit` chunks with the highest cosine to a float32 (dimensions,), in
        no order; of the rows `among` (uint64), or of all if None."""
        codes, rows, lengths = self._codes, self._rows, self._lengths
        if among is not None:
            chosen = np.flatnonzero(np.isin(rows, among))
            codes, rows, lengths = codes[chosen], rows[chosen], lengths[chosen]
        if limit >= len(rows):
            return rows
        cosines = np.empty(len(rows), np.float32)
        for some in _slices(len(rows)):
            np.matmul(codes[some].astype(np.float32), query, out=cosines[some])
        cosines /= lengths
        found: np.ndarray = rows[np.argpartition(-cosines, limit)[:limit]]
        return found


def _slices(count: int) -> list[slice]:
    return [slice(first, first + ROWS_AT_ONCE) for first in range(0, count, ROWS_AT_ONCE)]
