"""A stored chunk set that lies is found out, whatever it lies about."""

import polars as pl
import pytest
from small_corpus import SmallCorpus, write_corpus, write_document

from chunking_assets.chunk_sets import verify
from chunking_assets.chunk_sets.build import CHUNKS, EXCLUDED_SPANS, cell
from chunking_assets.chunk_sets.verify import ChunkSetHealth, verify_chunk_set

NAME = "clean-20@1"
DOCUMENTS = {
    f"{n}.md": f"# {n}\n\n" + f"A sentence of document {n} that goes on. " * 9 + "\n\nThe end.\n"
    for n in range(5)
}


@pytest.fixture
def corpus(tmp_path, monkeypatch):
    monkeypatch.setattr(verify, "BATCH_CHARS", 500)  # two documents a batch, or one
    clean = {"kind": "recursive", "max_tokens": 20, "clean": {"boilerplate": 0.9}}
    strategy = {"chunker": NAME, "model": "hash", "profile": "vector"}
    file = write_corpus(tmp_path, DOCUMENTS, chunkers={NAME: clean}, strategies={"s": strategy})
    corpus = SmallCorpus(file)
    corpus.parse()
    corpus.chunk()
    return corpus


def health(corpus):
    return verify_chunk_set(corpus.workspace, NAME, "docs")


def change(corpus, table, how):
    stored = corpus.workspace.table(table)
    rows = how(stored.read(cell(NAME, "docs")))
    stored.replace(rows, cell(NAME, "docs"))
    return rows


def test_what_was_just_built_is_sound(corpus):
    rows = corpus.workspace.table(CHUNKS).read(cell(NAME, "docs"))
    assert health(corpus) == ChunkSetHealth(rows.height, (), (), (), ())


def test_a_text_that_is_no_slice_is_found(corpus):
    changed = pl.when(pl.col("ordinal") == 1).then(pl.lit("another")).otherwise("text")
    rows = change(corpus, CHUNKS, lambda rows: rows.with_columns(text=changed))
    assert health(corpus).inexact == tuple(rows.filter(text="another")["chunk_id"])


def test_a_chunk_of_no_document_is_found(corpus):
    (corpus.config.root / "docs/4.md").unlink()
    corpus.parse()
    rows = corpus.workspace.table(CHUNKS).read(cell(NAME, "docs"))
    assert health(corpus).inexact == tuple(rows.filter(doc_id="docs/4.md")["chunk_id"])


@pytest.mark.parametrize("table", [CHUNKS, EXCLUDED_SPANS])
def test_text_that_is_in_no_chunk_and_no_excluded_span_is_found(corpus, table):
    change(corpus, table, lambda rows: rows.filter(pl.col("doc_id") != "docs/2.md"))
    assert health(corpus).uncovered == ("docs/2.md",)


def test_an_id_that_is_there_twice_is_found(corpus):
    rows = change(corpus, CHUNKS, lambda rows: pl.concat([rows, rows[3:4]]))
    assert health(corpus).duplicates == (rows["chunk_id"][3],)


def test_a_document_edited_since_is_found(corpus):
    write_document(corpus.config.root, "1.md", "Something else.")
    corpus.parse()
    rows = corpus.workspace.table(CHUNKS).read(cell(NAME, "docs"))
    assert health(corpus).inexact == tuple(rows.filter(doc_id="docs/1.md")["chunk_id"])
