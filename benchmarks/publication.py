"""`python -m benchmarks.publication`: what publishing for analysts costs, beside a bare copy.

Both sides read the same invented Parquet files in one process and are timed in CPU seconds, all
threads together. The bare copy loads them into a DuckDB file; ours also checks constraints, adds
comments and views, verifies the file and flips the link to it.
"""

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeVar

import numpy as np
import polars as pl

from chunking_assets.workspace import Workspace
from evals.database import publish, table_columns

T = TypeVar("T")

CPU_BUDGET = 3.0
"""Seconds that publishing a million rows may take."""
SHARES = {
    "documents": 0.01,
    "elements": 0.09,
    "chunks": 0.1,
    "embedded_chunks": 0.1,
    "gold_questions": 0.01,
    "retrieved_chunks": 0.19,
    "retrieval_scores": 0.5,
}
"""Of all rows. Texts, 800 characters each, are only in the chunks."""
TYPES = {
    "bigint": pl.Int64(),
    "double": pl.Float64(),
    "boolean": pl.Boolean(),
    "varchar[]": pl.List(pl.String()),
    "timestamptz": pl.Datetime("us", "UTC"),
}
STRATEGIES, WORDS = 5, 100


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.publication", description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    rows = parser.parse_args().rows
    import duckdb  # noqa: F401  # loading it is not timed

    with TemporaryDirectory() as name:
        folder = Path(name)
        workspace = Workspace(folder / "corpus")
        for table, frame in invented(rows).items():
            workspace.table(table).replace(frame, version="1")
        bare, _ = _timed(lambda: _bare_copy(workspace, folder / "bare.duckdb"))
        ours, published = _timed(lambda: publish(workspace))
        size = published.build.stat().st_size
    print(f"{sum(published.rows.values()):,} rows, {size / 1e6:,.0f} MB as published")
    print(f"  ours       {ours:6.2f} s of CPU")
    print(f"  bare copy  {bare:6.2f} s of CPU")
    print(f"  ours / bare copy {ours / bare:.2f}; {ours / CPU_BUDGET:.0%} of {CPU_BUDGET:.0f} s")
    return 0


def invented(rows: int) -> dict[str, pl.DataFrame]:
    """About `rows` rows of tables as the stages write them, that join by their keys."""
    n = {table: max(1, round(rows * share)) for table, share in SHARES.items()}
    n_documents, n_chunks, n_questions = n["documents"], n["chunks"], n["gold_questions"]
    number = pl.col("number")
    doc_id = pl.format("docs/{}.md", number % n_documents)
    chunk_id = pl.format("chunk-{}", number % n_chunks)
    question_id = pl.format("q{}", number % n_questions)
    strategy = pl.format("strategy-{}", number // n_questions % STRATEGIES)
    values: dict[str, dict[str, pl.Expr]] = {
        "documents": {
            "doc_id": doc_id,
            "collection": pl.lit("docs"),
            "path": doc_id,
            "doc_rev": doc_id,
            "status": pl.lit("ok"),
        },
        "elements": {
            "doc_id": doc_id,
            "ordinal": number // n_documents,
            "kind": pl.lit("paragraph"),
            "start": number // n_documents * 800,
            "end": (number // n_documents + 1) * 800,
        },
        "chunks": {
            "chunker_version": pl.lit("recursive-400@1"),
            "chunk_id": chunk_id,
            "doc_id": doc_id,
            "ordinal": number // n_documents,
            "start": number // n_documents * 800,
            "end": (number // n_documents + 1) * 800,
            "text": pl.lit(pl.Series(_texts(n_chunks))),
            "n_tokens": number % 400,
            "level": pl.lit(0),
            "searched": pl.lit(True),
            "over_budget": pl.lit(False),
        },
        "embedded_chunks": {
            "index_version": pl.lit("recursive-400@1+e5-small"),
            "chunk_id": chunk_id,
            "doc_id": doc_id,
            "shard": pl.lit("docs"),
            "vec_key": chunk_id,
            "n_tokens": number % 400,
            "n_windows": pl.lit(1),
        },
        "gold_questions": {
            "question_id": question_id,
            "question": question_id,
            "answerable": pl.lit(True),
            "status": pl.lit("active"),
        },
        "retrieved_chunks": {
            "strategy": strategy,
            "question_id": question_id,
            "rank": number // (n_questions * STRATEGIES) + 1,
            "chunk_id": chunk_id,
            "doc_id": doc_id,
            "start": pl.lit(0),
            "end": pl.lit(800),
            "score": 1 / (number + 1),
        },
        "retrieval_scores": {
            "strategy": strategy,
            "strategy_digest": strategy,
            "question_id": question_id,
            "metric": pl.lit("recall"),
            "cutoff": (number // (n_questions * STRATEGIES) + 1).cast(pl.String),
            "value": number % 101 / 100,
        },
    }
    return {
        table: pl.DataFrame({"number": np.arange(n[table])}).select(
            **_nothing(table) | values[table]
        )
        for table in SHARES
    }


def _nothing(table: str) -> dict[str, pl.Expr]:
    """Every column a stage writes, without values."""
    parquet_names = {"start_char": "start", "end_char": "end"}
    return {
        parquet_names.get(column.name, column.name): pl.lit(
            None, dtype=TYPES.get(column.type, pl.String())
        )
        for column in table_columns(table)
    }


def _texts(count: int) -> list[str]:
    """Different ones of a few hundred words, as compressible as prose."""
    random = np.random.default_rng(0)
    vocabulary = np.array(["".join(map(chr, w)) for w in random.integers(97, 123, (5000, 7))])
    return [" ".join(vocabulary[row]) for row in random.integers(0, 5000, (count, WORDS))]


def _bare_copy(workspace: Workspace, file: Path) -> None:
    import duckdb

    with duckdb.connect(file) as connection:
        for table in SHARES:
            manifest = workspace.table(table).manifest()
            assert manifest is not None
            files = [str(f) for f in workspace.table(table).snapshot(manifest).files]
            connection.execute(f"create table {table} as from read_parquet(?)", [files])


def _timed(work: Callable[[], T]) -> tuple[float, T]:
    start = time.process_time()
    result = work()
    return time.process_time() - start, result


if __name__ == "__main__":
    sys.exit(main())
