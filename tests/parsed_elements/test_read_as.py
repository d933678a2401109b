"""A collection says what its files are, where their content and names do not."""

from pathlib import Path

import pytest
from pydantic import ValidationError

from chunking_assets.parsed_elements.build import DOCUMENTS, ELEMENTS, update_documents
from chunking_assets.raw_documents.collection import Collection
from chunking_assets.workspace import Workspace


def test_files_are_read_as_the_collection_says_and_again_when_it_says_otherwise(tmp_path: Path):
    workspace = Workspace(tmp_path / "home")
    (tmp_path / "docs/faq").mkdir(parents=True)
    for file in ("faq/cards.txt", "notes.txt"):
        (tmp_path / "docs" / file).write_text(f"# Fees\n\nOf {file}.")

    def update(**read_as: str) -> tuple[int, dict[str, str]]:
        collection = Collection(path="docs", settle_seconds=0, read_as=read_as)
        done = update_documents(workspace, "docs", "docs", collection, tmp_path)
        documents = workspace.table(DOCUMENTS).read("docs", ["path", "media_type"])
        assert documents is not None
        return done.parsed, dict(documents.iter_rows())

    plain, told = "text/plain", "text/markdown"
    assert update() == (2, {"faq/cards.txt": plain, "notes.txt": plain})
    assert update(**{"faq/*.txt": "md"}) == (1, {"faq/cards.txt": told, "notes.txt": plain})
    elements = workspace.table(ELEMENTS).read("docs", ["doc_id", "kind"])
    assert elements is not None
    assert ("docs/faq/cards.txt", "heading") in elements.rows()
    assert update(**{"faq/*.txt": "md"})[0] == 0
    # Taken back: their content decides again.
    assert update() == (1, {"faq/cards.txt": plain, "notes.txt": plain})


def test_the_first_pattern_that_fits_decides():
    collection = Collection(path="docs", read_as={"a/*": "csv", "*": "html"})
    assert [collection.type_of(path) for path in ("a/b", "b")] == ["text/csv", "text/html"]
    assert Collection(path="docs").type_of("a/b") is None


def test_a_suffix_of_no_format_is_refused_by_name():
    with pytest.raises(ValidationError, match="no format has the suffix markdwon"):
        Collection(path="docs", read_as={"*": "markdwon"})
