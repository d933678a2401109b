"""How the rows of a LanceDB table differ from those they must be, chunk by chunk.

What must be there is said by the ledger, and by the chunk set where the ledger was made from it.
Rows are compared by fingerprints, some at a time, so that memory holds a few numbers a row.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from chunking_assets.chunk_embeddings.lance_index import VECTOR, LanceIndex
from chunking_assets.chunk_sets.rows import EMBED_TEXT

if TYPE_CHECKING:
    import pyarrow as pa

STATED = ("doc_id", "vec_key", "n_tokens")
"""Columns of a row that the ledger states."""
CONTENT = (
    "ordinal", "start", "end", "prefix", "text", "embed_text", "heading_path", "level", "parent_id",
    "searched",
)  # fmt: skip
"""Columns of a row that the chunk set states."""

WANTED_SCHEMA = pl.Schema(
    {"chunk_id": pl.String, "doc_id": pl.String, "stated": pl.UInt64, "content": pl.UInt64}
)


@dataclass(frozen=True)
class Difference:
    """chunk_ids by what is wrong with their rows, each sorted; `documents` are those concerned.

    `altered` rows hold something else than stated; `unusable` vectors are not finite, zero, or not
    there, or are there although the chunk is only read.
    """

    rows: int = 0
    missing: tuple[str, ...] = ()
    extra: tuple[str, ...] = ()
    duplicates: tuple[str, ...] = ()
    altered: tuple[str, ...] = ()
    unusable: tuple[str, ...] = ()
    documents: frozenset[str] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.missing or self.wrong)

    @property
    def wrong(self) -> list[str]:
        """Chunks with a row that must go, whether or not another takes its place."""
        return sorted({*self.extra, *self.duplicates, *self.altered, *self.unusable})


NOTHING = Difference()


def wanted_rows(ledger: pl.DataFrame, chunks: Iterable[pl.DataFrame] = ()) -> pl.DataFrame:
    """What the rows must be: `ledger` has the columns that are `STATED`, and `chunks` are the rows
    of the chunk set, as far as their content is to be compared."""
    wanted = ledger.select("chunk_id", "doc_id", stated=_fingerprint(ledger, STATED))
    content = [WANTED_SCHEMA.to_frame().select("chunk_id", "content")]
    for piece in chunks:
        rows = piece.with_columns(embed_text=EMBED_TEXT)
        content.append(rows.select("chunk_id", content=_fingerprint(rows, CONTENT)))
    known = pl.concat(content).unique("chunk_id")
    return wanted.join(known, "chunk_id", how="left").select(WANTED_SCHEMA.names())


def difference(
    index: LanceIndex, shard: str, wanted: pl.DataFrame, *, served: bool, thorough: bool
) -> Difference:
    """Compare the rows of a shard, the newest or those readers are served, with the wanted ones.

    `thorough` reads everything of every row; otherwise only what the ledger states.
    """
    found = pl.concat([_FOUND.to_frame(), *_found(index, shard, served, thorough)])
    one_each = found.unique("chunk_id", keep="any")
    both = wanted.join(one_each, "chunk_id", suffix="_found")
    is_altered = (pl.col("stated") != pl.col("stated_found")) | (
        (pl.col("content") != pl.col("content_found")).fill_null(value=False)
    )
    unusable = found.filter(~pl.col("usable"))
    parts = {
        "missing": wanted.join(found, "chunk_id", how="anti"),
        "extra": one_each.join(wanted, "chunk_id", how="anti"),
        "duplicates": found.filter(pl.col("chunk_id").is_duplicated()),
        "altered": both.filter(is_altered),
        "unusable": unusable,
    }
    documents = {
        *(doc_id for part in parts.values() for doc_id in part["doc_id"]),
        *both.filter(is_altered)["doc_id_found"],
    }
    return Difference(
        rows=found.height,
        documents=frozenset(documents),
        **{name: tuple(sorted({*part["chunk_id"]})) for name, part in parts.items()},
    )


_FOUND = pl.Schema([*WANTED_SCHEMA.items(), ("usable", pl.Boolean)])


def _found(index: LanceIndex, shard: str, served: bool, thorough: bool) -> Iterator[pl.DataFrame]:
    columns = ["chunk_id", *STATED, *((*CONTENT, VECTOR) if thorough else ())]
    for batch in index.batches(shard, columns, served=served):
        rows = pl.DataFrame(batch.drop_columns([VECTOR]) if thorough else batch)
        yield rows.select(
            "chunk_id",
            "doc_id",
            stated=_fingerprint(rows, STATED),
            content=_fingerprint(rows, CONTENT) if thorough else pl.lit(None, pl.UInt64),
            usable=_usable(batch) if thorough else pl.lit(value=True),
        )


def _fingerprint(rows: pl.DataFrame, columns: Iterable[str]) -> pl.Series:
    """A number for each row, equal in this process where all of these columns are."""
    one_value = [pl.col(c).list.join("\x1f") if c == "heading_path" else pl.col(c) for c in columns]
    return rows.select(one_value).hash_rows()


def _usable(rows: "pa.Table") -> pl.Series:
    """Whether a vector is there if and only if the chunk is searched, finite and not zero."""
    column = rows[VECTOR].combine_chunks()
    is_there = column.is_valid().to_numpy(zero_copy_only=False)
    values = column.flatten().to_numpy(zero_copy_only=False)  # without those that are not there
    vectors = values.reshape(-1, column.type.list_size)
    is_sound = is_there.copy()
    is_sound[is_there] = np.isfinite(vectors).all(axis=1) & (vectors != 0).any(axis=1)
    is_searched = rows["searched"].to_numpy()
    return pl.Series(np.where(is_searched, is_sound, ~is_there))
