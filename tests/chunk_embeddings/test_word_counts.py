"""The word counts of an index after updates: what all of its rows would give, from what changed."""

import shutil

import polars as pl
import pytest
from places import FOLDER
from small_corpus import SmallCorpus, write_corpus, write_document

from chunking_assets.chunk_embeddings.lance_index import LanceIndex
from chunking_assets.chunk_embeddings.word_frequencies import count_words
from chunking_assets.workspace import Workspace

pytestmark = pytest.mark.usefixtures("place")

NAME = "recursive-20@1+hash"


@pytest.fixture
def corpus(tmp_path):
    documents = {f"{n}.md": f"Red and blue, {n} of them. " * 8 for n in range(6)}
    corpus = SmallCorpus(write_corpus(tmp_path, documents))
    corpus.update()
    return corpus


def counted(corpus):
    index = LanceIndex(corpus.workspace, NAME)
    return count_words(corpus.workspace, index.name, index.open_served())


def test_they_are_those_of_every_row_whatever_was_changed(corpus):
    root = corpus.config.root
    for change in (
        lambda: write_document(root, "1.md", "Green. Été, and it's red."),
        lambda: write_document(root, "new.md", "A word nobody used before."),
        lambda: (root / "docs" / "2.md").unlink(),
        lambda: write_document(root, "new.md", ""),
        lambda: (root / "docs" / "3.md").rename(root / "docs" / "moved.md"),
    ):
        change()
        corpus.update()
        kept = pl.read_parquet(counted(corpus))
        counted(corpus).unlink()
        assert kept.equals(pl.read_parquet(counted(corpus)))


def test_of_documents_that_stay_nothing_is_counted_again(corpus):
    file = counted(corpus)
    rows = pl.read_parquet(file)
    mark = pl.DataFrame({"word": ["zzz"], "n": [7], "words": [0]})
    pl.concat([rows.head(-1), mark, rows.tail(1)]).write_parquet(file)
    write_document(corpus.config.root, "1.md", "Green.")
    corpus.update()
    assert ("zzz", 7, 0) in pl.read_parquet(counted(corpus)).rows()


@pytest.mark.parametrize("place", [FOLDER], indirect=True)
def test_a_copy_of_the_workspace_has_its_counts(corpus, tmp_path):
    (kept,) = {file.name for file in counted(corpus).parent.iterdir()}
    shutil.copytree(corpus.workspace.root, tmp_path / "copy", copy_function=shutil.copyfile)
    copy, index = Workspace(tmp_path / "copy"), LanceIndex(corpus.workspace, NAME)
    served = LanceIndex(copy, NAME).open_served()
    assert count_words(copy, index.name, served).name == kept


def test_many_versions_of_a_table_are_not_read_for_its_counts(corpus, monkeypatch):
    table = LanceIndex(corpus.workspace, NAME).open_served()
    monkeypatch.setattr(type(table), "list_versions", None)
    assert count_words(corpus.workspace, LanceIndex(corpus.workspace, NAME).name, table).exists()


def test_after_a_repair_everything_is_counted(corpus):
    index = LanceIndex(corpus.workspace, NAME, 32)
    with index.writing():
        index.delete_documents("docs", ["docs/4.md"])
        index.publish()
    write_document(corpus.config.root, "1.md", "Green.")
    corpus.update()
    kept = pl.read_parquet(counted(corpus))
    counted(corpus).unlink()
    assert kept.equals(pl.read_parquet(counted(corpus)))
