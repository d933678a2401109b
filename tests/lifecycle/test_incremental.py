"""What is done again after a change, and what is not: plain stages over a small corpus."""

import os
import time

import polars as pl
import pytest
from small_corpus import SmallCorpus, write_corpus, write_document

from chunking_assets.chunk_embeddings.build import EMBEDDED_CHUNKS, is_indexed, update_index
from chunking_assets.chunk_embeddings.lance_index import LanceIndex
from chunking_assets.chunk_sets.build import CHUNKS, cell
from chunking_assets.errors import CorpusError, DeletionRefused
from chunking_assets.parsed_elements.build import DOCUMENTS, ELEMENTS, TOMBSTONES

pytestmark = pytest.mark.usefixtures("place")

VERSION, INDEX = "recursive-20@1", "recursive-20@1+hash"


def paragraphs(name, count):
    """A document of `count` chunks at a budget of 20 words."""
    return "\n\n".join(
        f"Paragraph {n} of {name} says one thing and then another about number {n} only here."
        for n in range(count)
    )


@pytest.fixture
def corpus(tmp_path):
    documents = {f"{n}.md": paragraphs(f"document {n}", 4) for n in range(5)}
    return SmallCorpus(write_corpus(tmp_path, documents))


def chunk_rows(corpus, version=VERSION):
    return corpus.workspace.table(CHUNKS).read(cell(version, "docs"))


def served_rows(corpus, index=INDEX):
    return (
        LanceIndex(corpus.workspace, index).rows("docs", ["chunk_id", "doc_id", "text"]).to_pylist()
    )


def files_and_versions(corpus):
    """Every stored file by name, and the version of every vector table."""
    tables = sorted(
        f.key for f in corpus.workspace.store.files("tables") if f.key.endswith(".parquet")
    )
    versions = {
        name: LanceIndex(corpus.workspace, name).served_version()
        for name in corpus.config.index_versions
    }
    return tables, versions


def test_a_first_run_stores_every_chunk_in_every_store(corpus):
    corpus.update()
    chunks = chunk_rows(corpus)
    assert chunks["doc_id"].n_unique() == 5
    assert sorted(r["chunk_id"] for r in served_rows(corpus)) == sorted(chunks["chunk_id"])
    ledger = corpus.workspace.table(EMBEDDED_CHUNKS).read(f"{INDEX}|docs")
    assert sorted(ledger["chunk_id"]) == sorted(chunks["chunk_id"])


def assert_nothing_is_done(corpus):
    before = files_and_versions(corpus)
    corpus.embedder.embedded.clear()
    parsed, chunked, embedded = corpus.update()
    assert not any(u.changes for u in (*parsed, *chunked, *embedded))
    assert sum(u.chunks_redone for u in chunked) == 0
    assert corpus.embedder.embedded == []
    assert files_and_versions(corpus) == before


def test_a_second_run_does_nothing(corpus):
    corpus.update()
    assert_nothing_is_done(corpus)


def test_touching_every_file_does_nothing(corpus):
    corpus.update()
    for file in (corpus.config.root / "docs").iterdir():
        os.utime(file, (time.time() - 5000,) * 2)
    assert_nothing_is_done(corpus)


def test_one_changed_document_redoes_its_chunks_and_embeds_its_new_texts_only(corpus):
    corpus.update()
    text = paragraphs("document 2", 4).replace("Paragraph 3", "Changed paragraph 3")
    write_document(corpus.config.root, "2.md", text)
    corpus.embedder.embedded.clear()
    (parsed,), chunked, embedded = corpus.update()
    assert parsed.changes.changed == ("docs/2.md",)
    assert len(parsed.changes.unchanged) == 4
    recursive = next(u for u in chunked if u.chunker_version == VERSION)
    assert recursive.changes.redo == ("docs/2.md",)
    assert recursive.chunks_redone == 4
    assert sum(u.vectors_embedded for u in embedded) == len(corpus.embedder.embedded)
    assert next(u for u in embedded if u.index_version == INDEX).vectors_embedded == 1
    assert all(embedded_text in text for embedded_text in corpus.embedder.embedded)


def test_one_changed_document_of_100_costs_one_document(tmp_path):
    documents = {f"{n}.md": paragraphs(f"document {n}", 2) for n in range(100)}
    corpus = SmallCorpus(write_corpus(tmp_path, documents))
    corpus.update()
    write_document(tmp_path, "42.md", paragraphs("another", 2))
    corpus.embedder.embedded.clear()
    (parsed,), chunked, _ = corpus.update()
    assert parsed.changes.redo == ("docs/42.md",)
    assert {u.changes.redo for u in chunked} == {("docs/42.md",)}
    assert all("another" in text for text in corpus.embedder.embedded)


def test_an_edit_that_shrinks_a_document_leaves_no_tail(tmp_path):
    corpus = SmallCorpus(write_corpus(tmp_path, {"a.md": paragraphs("a", 10)}))
    corpus.update()
    assert len(served_rows(corpus)) == 10
    write_document(tmp_path, "a.md", paragraphs("a", 3))
    corpus.update()
    assert chunk_rows(corpus).height == 3
    assert len(served_rows(corpus)) == 3


def test_a_deleted_document_leaves_every_store(corpus):
    corpus.update()
    (corpus.config.root / "docs" / "1.md").unlink()
    (parsed,), _, _ = corpus.update()
    assert parsed.changes.removed == ("docs/1.md",)
    for name in (DOCUMENTS, ELEMENTS, CHUNKS, EMBEDDED_CHUNKS):
        assert "docs/1.md" not in set(corpus.workspace.table(name).read_all()["doc_id"])
    assert "docs/1.md" not in {row["doc_id"] for row in served_rows(corpus)}
    assert corpus.workspace.table(TOMBSTONES).read("docs")["doc_id"].to_list() == ["docs/1.md"]


def test_identical_files_are_two_documents_and_deleting_one_leaves_the_other(tmp_path):
    text = paragraphs("a twin", 3)
    corpus = SmallCorpus(write_corpus(tmp_path, {"a.md": text, "b.md": text, "c.md": "Other."}))
    corpus.update()
    assert len({r["chunk_id"] for r in served_rows(corpus)}) == 7
    assert len(corpus.embedder.embedded) == len(set(corpus.embedder.embedded))
    (tmp_path / "docs" / "a.md").unlink()
    corpus.update()
    assert sorted({r["doc_id"] for r in served_rows(corpus)}) == ["docs/b.md", "docs/c.md"]
    assert len(served_rows(corpus)) == 4


def test_an_empty_listing_is_refused_and_deletes_nothing(corpus):
    corpus.update()
    before = files_and_versions(corpus)
    for file in (corpus.config.root / "docs").iterdir():
        file.unlink()
    with pytest.raises(DeletionRefused, match="5 of 5 documents are gone"):
        corpus.update()
    assert files_and_versions(corpus) == before
    corpus.update(confirm_deletions=True)
    assert served_rows(corpus) == []


def test_a_new_version_embeds_only_texts_no_version_had(tmp_path):
    texts = {"a.md": paragraphs("a", 6)}
    corpus = SmallCorpus(write_corpus(tmp_path, texts))
    corpus.update()
    chunkers = {
        **{name: {"kind": "recursive", "max_tokens": 20} for name in (VERSION, "recursive-20@2")},
        "fixed-20@1": {"kind": "fixed", "max_tokens": 20},
    }
    strategies = {
        "one": {"chunker": VERSION, "model": "hash", "profile": "vector"},
        "two": {"chunker": "recursive-20@2", "model": "hash", "profile": "vector"},
    }
    again = SmallCorpus(write_corpus(tmp_path, texts, chunkers=chunkers, strategies=strategies))
    _, _, embedded = again.update()
    assert again.embedder.embedded == []
    new = next(u for u in embedded if u.index_version == "recursive-20@2+hash")
    assert (new.vectors_reused, new.vectors_embedded) == (6, 0)


def test_back_to_the_old_text_gives_the_old_rows_and_embeds_nothing(corpus):
    corpus.update()
    before = chunk_rows(corpus)
    old = (corpus.config.root / "docs" / "1.md").read_text()
    write_document(corpus.config.root, "1.md", paragraphs("something else", 4))
    corpus.update()
    write_document(corpus.config.root, "1.md", old)
    corpus.embedder.embedded.clear()
    corpus.update()
    assert chunk_rows(corpus).equals(before)
    assert corpus.embedder.embedded == []


def test_chunk_ids_survive_an_edit_above_them(corpus):
    corpus.update()
    before = set(chunk_rows(corpus).filter(pl.col("doc_id") == "docs/1.md")["chunk_id"])
    text = (corpus.config.root / "docs" / "1.md").read_text()
    write_document(corpus.config.root, "1.md", f"{paragraphs('a new first', 1)}\n\n{text}")
    corpus.update()
    after = set(chunk_rows(corpus).filter(pl.col("doc_id") == "docs/1.md")["chunk_id"])
    assert before < after
    assert len(after - before) == 1


def test_a_document_that_cannot_be_parsed_is_a_row_and_its_neighbours_go_on(corpus):
    (corpus.config.root / "docs" / "photo.png").write_bytes(b"\x89PNG\r\n\x1a\n nothing")
    (parsed,), _, _ = corpus.update()
    assert parsed.failed == ("docs/photo.png",)
    row = (
        corpus.workspace.table(DOCUMENTS)
        .read("docs")
        .row(by_predicate=pl.col("doc_id") == "docs/photo.png", named=True)
    )
    assert row["status"] == "unsupported"
    assert "photo.png" in row["error"]
    assert row["cure"]
    assert chunk_rows(corpus)["doc_id"].n_unique() == 5


def test_a_file_too_large_is_a_row_that_names_the_setting(tmp_path):
    collections = {"docs": {"path": "docs", "settle_seconds": 0, "max_bytes": 100}}
    file = write_corpus(tmp_path, {"a.md": "x" * 101, "b.md": "y"}, collections=collections)
    corpus = SmallCorpus(file)
    corpus.update()
    status = corpus.workspace.table(DOCUMENTS).read("docs", ["doc_id", "status", "cure"])
    assert status.row(0)[:2] == ("docs/a.md", "too_large")
    assert "collections.docs.max_bytes" in status.row(0)[2]
    assert status.row(1)[1] == "ok"


def test_elements_that_do_not_belong_to_their_text_are_not_chunked_and_made_again(corpus):
    corpus.update()
    elements = corpus.workspace.table(ELEMENTS)
    elements.replace(
        elements.read("docs").with_columns(level=pl.lit(9, pl.Int64)),
        "docs",
        keys={"docs/1.md": "?"},
    )
    corpus.workspace.table(CHUNKS).remove(cell(VERSION, "docs"))
    with pytest.raises(CorpusError, match="Build parsed_elements of shard docs again"):
        corpus.chunk()
    corpus.update()
    assert elements.read("docs")["level"].max() == 0


@pytest.mark.parametrize("lost", [DOCUMENTS, ELEMENTS, CHUNKS])
def test_a_table_removed_behind_our_back_is_rebuilt(corpus, lost):
    corpus.update()
    before = corpus.workspace.table(lost).read_all().sort("doc_id")
    corpus.workspace.store.delete_below(f"tables/{lost}")
    corpus.embedder.embedded.clear()
    corpus.update()
    assert corpus.workspace.table(lost).read_all().sort("doc_id").equals(before)
    assert corpus.embedder.embedded == []


def test_raising_the_limit_reads_what_was_too_large(tmp_path):
    def limited(max_bytes):
        docs = {"path": "docs", "settle_seconds": 0, "max_bytes": max_bytes}
        return SmallCorpus(write_corpus(tmp_path, {"a.md": "x " * 50}, collections={"docs": docs}))

    limited(20).update()
    corpus = limited(200)
    corpus.update()
    assert corpus.workspace.table(DOCUMENTS).read("docs")["status"].to_list() == ["ok"]


def test_a_vector_table_lost_behind_our_back_is_rebuilt_whole_from_the_cache(tmp_path):
    collections = {"docs": {"path": "docs", "settle_seconds": 0, "shards": 3}}
    documents = {f"{n}.md": paragraphs(f"document {n}", 2) for n in range(12)}
    corpus = SmallCorpus(write_corpus(tmp_path, documents, collections=collections))
    corpus.update()
    index = LanceIndex(corpus.workspace, INDEX)
    before = index.rows().num_rows
    corpus.workspace.store.delete_below("lance")
    corpus.embedder.embedded.clear()
    one, *_ = corpus.config.shards()
    version = corpus.config.index_versions[INDEX]
    update_index(corpus.workspace, version, [one], lambda _: corpus.embedder)
    assert [is_indexed(corpus.workspace, INDEX, s) for s in corpus.config.shards()] == [
        True,
        False,
        False,
    ]
    corpus.embed()
    assert index.rows(served=True).num_rows == before
    assert corpus.embedder.embedded == []


def test_shards_keep_to_themselves(tmp_path):
    collections = {"docs": {"path": "docs", "settle_seconds": 0, "shards": 3}}
    documents = {f"{n}.md": paragraphs(f"document {n}", 2) for n in range(12)}
    corpus = SmallCorpus(write_corpus(tmp_path, documents, collections=collections))
    corpus.update()
    write_document(tmp_path, "3.md", paragraphs("changed", 2))
    parsed, chunked, embedded = corpus.update()
    changed = {u.shard for u in parsed if u.changes}
    assert len(changed) == 1
    assert {u.shard for u in (*chunked, *embedded) if u.changes} == changed
