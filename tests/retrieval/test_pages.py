"""The page a passage begins on, where its format has pages."""

import json

import polars as pl
import pytest
from small_corpus import SmallCorpus, write_corpus

from chunking_assets.parsed_elements.reuse import ELEMENTS
from chunking_assets.retrieval.open import open_strategy

FIRST = "The first page is about herons that stand in the river the whole day long and wait."
SECOND = "The second page is about bicycles in a cellar that need new chains and new tyres."


@pytest.fixture
def corpus(tmp_path):
    corpus = SmallCorpus(
        write_corpus(tmp_path, {"paged.md": f"{FIRST}\n\n{SECOND}", "plain.md": "Herons again."})
    )
    corpus.update()
    table = corpus.workspace.table(ELEMENTS)
    elements = table.read("docs")
    pages = [
        json.dumps({"page": page} if doc_id == "docs/paged.md" else {})
        for doc_id, page in zip(elements["doc_id"], [7, 8, 9], strict=True)
    ]
    table.replace(elements.with_columns(attributes=pl.Series(pages)), "docs")
    return corpus


@pytest.mark.parametrize(("question", "page"), [(FIRST, 7), (SECOND, 8)])
def test_a_passage_is_on_the_page_of_the_element_it_begins_in(corpus, question, page):
    reader = open_strategy(corpus.workspace, corpus.config.strategies["recursive"])
    best = reader.answer(question).candidates[0]
    (found,) = reader.passages([best])
    assert (best.text, best.page) == (question, page)
    assert found.page == found.metadata()["page"] == page


def test_a_format_without_pages_has_none(corpus):
    reader = open_strategy(corpus.workspace, corpus.config.strategies["recursive"])
    pages = {passage.doc_id: passage.page for passage in reader.search("herons again")}
    assert pages["docs/plain.md"] is None
