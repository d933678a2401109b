"""The answers beside the worked queries are what the queries say after `make demo`.

`make answers` writes them anew. Vectors of a quantised model are the same on one kind of processor
only: a last bit that is rounded otherwise moves a whole step of the activations, and chunks of
nearly equal score change places. So answers are compared word for word where the model computes as
it did when they were written, and elsewhere in what must hold all the same.
"""

import json
import os
from pathlib import Path

import duckdb
import numpy as np
import pytest

from chunking_assets.embedding_models.e5_small import E5Small
from chunking_assets.keys import digest

QUERIES = sorted((Path(__file__).parents[2] / "sql" / "queries").glob("*.sql"))
WRITE = os.environ.get("WRITE_ANSWERS") == "1"
WRITTEN_WITH = Path(__file__).with_name("answers_written_with.json")
PROBES = [" ".join(f"Refund {n} takes {n % 7} days." for n in range(most)) for most in (2, 20, 40)]
NEAR = 0.05
"""How far a mean over the questions may be from the one written, on any processor."""


@pytest.fixture(scope="session")
def sample(demo):
    with duckdb.connect(demo.database, read_only=True) as connection:
        yield connection


@pytest.fixture(scope="session")
def computes_alike(e5):
    """Whether vectors come out here, bit for bit, as where the answers were written."""
    vectors = np.concatenate([e5.embed_passages(PROBES), e5.embed_queries(PROBES)])
    here = {"model": digest(E5Small().declaration()), "vectors": digest(vectors.tobytes().hex())}
    if WRITE:
        WRITTEN_WITH.write_text(f"{json.dumps(here, indent=1)}\n", encoding="utf-8")
    there = json.loads(WRITTEN_WITH.read_text(encoding="utf-8"))
    assert here["model"] == there["model"], "another model: write them with `make answers`"
    return here == there


@pytest.mark.parametrize("query", QUERIES, ids=lambda file: file.stem)
def test_the_answer_beside_a_worked_query_is_what_it_says(sample, computes_alike, query):
    answer = query.with_suffix(".answer.md")
    found = as_table(sample.execute(query.read_text(encoding="utf-8")))
    if WRITE:
        answer.write_text(found, encoding="utf-8")
    written = answer.read_text(encoding="utf-8")
    if computes_alike:
        assert written == found
    else:
        assert cells(written)[0] == cells(found)[0]


def test_the_means_written_hold_on_any_processor(sample):
    (query,) = (query for query in QUERIES if query.stem == "which_strategy_is_best")
    found = as_table(sample.execute(query.read_text(encoding="utf-8")))
    written = query.with_suffix(".answer.md").read_text(encoding="utf-8")
    means, expected = ({row[0]: float(row[2]) for row in cells(t)[2:]} for t in (found, written))
    assert means == pytest.approx(expected, abs=NEAR)
    words_alone = "recursive-400-bm25"
    assert means[words_alone] == expected[words_alone]


def test_no_answer_depends_on_when_where_or_by_which_run_it_was_written():
    """No time of day, no path, no run's id."""
    for query in QUERIES:
        columns, _, *rows = cells(query.with_suffix(".answer.md").read_text(encoding="utf-8"))
        assert not [c for c in columns if c.endswith(("_at", "_by_run", "run_id", "seconds"))]
        assert not [cell for row in rows for cell in row if cell.startswith("/")]


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


def cells(table):
    """A Markdown table's lines as lists of cells: the header, the rule, the rows."""
    lines = [line for line in table.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line[2:-2].split(" | ")] for line in lines]


def as_text(value):
    if value is None:
        return ""
    if isinstance(value, list):
        return ", ".join(map(as_text, value))
    if isinstance(value, bool):
        return str(value).lower()
    return str(value).replace("|", "\\|").replace("\n", " ")
