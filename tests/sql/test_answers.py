"""The answers beside the worked queries are what the queries say of a part of the sample corpus.

`make answers` writes them anew.
"""

import os
from pathlib import Path

import duckdb
import pytest
from measured_sample import MeasuredSample

from chunking_assets.workspace import Workspace

QUERIES = sorted((Path(__file__).parents[2] / "sql" / "queries").glob("*.sql"))
WRITE = os.environ.get("WRITE_ANSWERS") == "1"


@pytest.fixture(scope="session")
def sample(tmp_path_factory, e5):
    """The published database, built by the first process that needs it."""
    base = tmp_path_factory.getbasetemp()
    root = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "measured_sample"
    root.mkdir(exist_ok=True)
    with Workspace(root).lock("building"):
        database = Workspace(root / ".corpus").eval_database
        if not database.exists():
            MeasuredSample(root, e5).build()
    with duckdb.connect(database, read_only=True) as connection:
        yield connection


@pytest.mark.parametrize("query", QUERIES, ids=lambda file: file.stem)
def test_the_answer_beside_a_worked_query_is_what_it_says(sample, query):
    answer = query.with_suffix(".answer.md")
    found = as_table(sample.execute(query.read_text(encoding="utf-8")))
    if WRITE:
        answer.write_text(found, encoding="utf-8")
    assert answer.read_text(encoding="utf-8") == found


def test_every_answer_has_its_query():
    answers = (QUERIES[0].parent).glob("*.answer.md")
    assert sorted(a.name.removesuffix(".answer.md") for a in answers) == [q.stem for q in QUERIES]


def as_table(result):
    """A Markdown table; what is missing stays empty."""
    header = [column[0] for column in result.description]
    rows = [[as_text(value) for value in row] for row in result.fetchall()]
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    lines = [header, ["-" * width for width in widths], *rows]
    return "".join(
        f"| {' | '.join(cell.ljust(width) for cell, width in zip(line, widths, strict=True))} |\n"
        for line in lines
    ) + ("" if rows else "\nNo rows.\n")


def as_text(value):
    if value is None:
        return ""
    if isinstance(value, list):
        return ", ".join(map(as_text, value))
    if isinstance(value, bool):
        return str(value).lower()
    return str(value).replace("|", "\\|").replace("\n", " ")
