"""The page of a chunk set: its numbers, and the checks that look at them, one a cell."""

from pathlib import Path

import pytest
from dagster import MetadataValue

CHUNKERS = {
    "fixed-20@1": {"kind": "fixed", "max_tokens": 20},
    "fixed-20@2": {"kind": "fixed", "max_tokens": 5},
    "sizes@1": {"kind": "hierarchical", "sizes": [40, 10]},
}
STRATEGIES = {"fixed": {"chunker": "fixed-20@1", "model": "hash", "profile": "vector"}}
CELLS = [f"{version}|docs" for version in CHUNKERS]


def copies(paragraphs):
    """Two of five documents of one chunk are equal to each other; so the share of duplicates."""
    return {f"docs/{n}.md": paragraphs(f"docs {n % 4}", 1) for n in range(5)}


@pytest.fixture
def chunked(corpus_of, paragraphs):
    documents = {"docs/long.md": paragraphs("long"), **copies(paragraphs)}
    only = {"docs": {"path": "docs", "settle_seconds": 0}}
    corpus = corpus_of(
        documents, collections=only, chunkers=CHUNKERS, strategies=STRATEGIES, questions=[]
    )
    corpus.look()
    corpus.run("parsed_elements", "docs")
    return corpus


def evaluations(runs):
    """(check, cell) -> evaluation, of those that name a cell."""
    return {
        (e.check_name, e.partition): e
        for run in runs
        for e in run.get_asset_check_evaluations()
        if e.partition
    }


def test_a_page_has_the_numbers_that_are_plotted(chunked):
    chunked.run("chunk_sets", *CELLS)
    plain = chunked.latest("chunk_sets", "fixed-20@1|docs").metadata
    names = (
        "mean_tokens", "variation_of_tokens", "share_at_the_cap", "chunks_per_document",
        "share_of_duplicates", "share_of_text_excluded",
    )  # fmt: skip
    assert all(isinstance(plain[name], type(MetadataValue.float(0.0))) for name in names)
    assert plain["chunks_per_document"].value == pytest.approx(9 / 6)
    assert plain["most_chunks_of_a_document"].value == 4
    assert plain["share_of_duplicates"].value == round(2 / 9, 4)
    assert plain["remarks"].value == "none"
    assert "data:image/svg+xml" in plain["sizes"].value
    levels = chunked.latest("chunk_sets", "sizes@1|docs").metadata
    assert levels["chunks_of_level_0"].value > levels["chunks_of_level_1"].value > 0
    assert "chunks_of_level_0" not in plain


def test_a_page_leads_to_documents_with_their_chunks_under_every_version(chunked):
    chunked.run("chunk_sets", *CELLS)
    found = chunked.latest("chunk_sets", "fixed-20@1|docs").metadata
    page = Path(found["page of docs/long.md"].value).read_text(encoding="utf-8")
    assert all(f'"name": "{version}"' in page for version in CHUNKERS)
    assert len([name for name in found if name.startswith("page of ")]) == 3


def test_every_cell_is_looked_at_by_every_check(chunked):
    found = evaluations(chunked.run("chunk_sets", *CELLS))
    checks = ("spans_exact", "within_budget", "few_duplicates", "count_in_line")
    assert found.keys() >= {(check, key) for check in checks for key in CELLS}
    failed = {key for key, evaluation in found.items() if not evaluation.passed}
    assert failed == {
        ("few_duplicates", "fixed-20@1|docs"),
        ("few_duplicates", "fixed-20@2|docs"),
        ("few_duplicates", "sizes@1|docs"),
        ("count_in_line", "fixed-20@2|docs"),
    }
    compared = found["count_in_line", "fixed-20@2|docs"].metadata
    assert compared["previous"].value == "fixed-20@1"
    assert compared["ratio"].value > 2
    assert found["count_in_line", "fixed-20@1|docs"].metadata["previous"].value == "none"
    assert found["few_duplicates", "fixed-20@1|docs"].metadata["share_of_duplicates"].value > 0.2


def test_a_warning_stops_nothing(chunked):
    (run,) = chunked.run("chunk_sets", "fixed-20@1|docs")
    assert run.success
    assert not evaluations([run])["few_duplicates", "fixed-20@1|docs"].passed
