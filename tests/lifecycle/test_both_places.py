"""The life of a corpus in a folder and in a bucket: after every change both hold the same rows."""

import os

import polars as pl
import pytest
from following_reader import follows_promotion_and_rollback
from places import both_places
from small_corpus import SmallCorpus, write_corpus, write_document

from chunking_assets.chunk_embeddings.lance_index import LanceIndex
from chunking_assets.chunk_embeddings.reconcile import reconcile
from chunking_assets.chunk_sets.build import CHUNKS
from chunking_assets.errors import CorpusError
from chunking_assets.live_index.explain import explain
from chunking_assets.live_index.maintenance import MaintenanceSettings, maintain
from chunking_assets.live_index.repair import remove_damaged, repair
from chunking_assets.live_index.retire import retire_version
from chunking_assets.storage import Bucket

MOMENT = 1_700_000_000
ONE = {
    "chunkers": {"recursive-20@1": {"kind": "recursive", "max_tokens": 20}},
    "strategies": {"one": {"chunker": "recursive-20@1", "model": "hash", "profile": "hybrid"}},
}
OF_THE_MOMENT = {"at", "removed_at"}
"""Columns that say when and not what."""


def document(name, revision=0):
    return "\n\n".join(
        f"Sentence {part} of document {name} in revision {revision} says so." for part in range(3)
    )


class Author:
    """Does the same at the same time in both corpora."""

    def __init__(self, *corpora):
        self.corpora, self.times = corpora, 0

    def write(self, name, text):
        self.times += 1
        for corpus in self.corpora:
            file = write_document(corpus.config.root, name, text)
            os.utime(file, (MOMENT + self.times,) * 2)

    def each(self, do):
        for corpus in self.corpora:
            do(corpus.config.root / "docs")

    def updates(self):
        return [corpus.update(confirm_deletions=True) for corpus in self.corpora]


def held(corpus):
    """By table and partition its rows in an order of their own, and those of each index."""
    found = {}
    for table in corpus.workspace.tables():
        for partition in table.partitions():
            if table.name != "publications":
                assert table.damage(partition) is None
                rows = table.read(partition)
                kept = rows.drop(*(OF_THE_MOMENT & {*rows.columns}))
                found[table.name, partition] = sorted(map(repr, kept.iter_rows()))
    for name in corpus.config.index_versions:
        rows = pl.DataFrame(LanceIndex(corpus.workspace, name).rows(served=True))
        found[name] = sorted(map(repr, rows.iter_rows()))
    return found


def counts(updates):
    parsed, chunked, embedded = updates
    return (
        [(u.changes, u.parsed) for u in parsed],
        [(u.changes, u.chunks_redone) for u in chunked],
        [(u.changes, u.vectors_embedded, u.vectors_reused, u.content_version) for u in embedded],
    )


@pytest.fixture
def both(tmp_path, bucket):
    """The same corpus over a folder and over a bucket."""
    places = ({}, {"workspace": f"{bucket}/of it"})
    return [
        SmallCorpus(write_corpus(tmp_path / name, {}, **place))
        for name, place in zip(("folder", "bucket"), places, strict=True)
    ]


def test_a_bucket_holds_what_a_folder_holds_after_every_change(both):
    author = Author(*both)
    for number in range(4):
        author.write(f"{number}.md", document(number))

    def happens(what):
        of_folder, of_bucket = author.updates()
        assert counts(of_folder) == counts(of_bucket), what
        assert held(both[0]) == held(both[1]), what
        return counts(of_bucket)

    happens("a first run")
    parsed, chunked, _ = happens("nothing")
    assert not any(changes or redone for changes, redone in (*parsed, *chunked))
    version_one = held(both[1])
    author.write("1.md", document(1, revision=1))
    happens("an edit")
    author.write("1.md", document(1))
    *_, embedded = happens("the first content again")
    assert sum(computed for _, computed, *_ in embedded) == 0
    again = held(both[1])
    assert all(again[name] == version_one[name] for name in both[1].config.index_versions)
    author.each(lambda docs: (docs / "2.md").rename(docs / "moved.md"))
    parsed, _, embedded = happens("a move")
    assert parsed[0][1] == 0
    assert sum(computed for _, computed, *_ in embedded) == 0
    author.each(lambda docs: (docs / "3.md").unlink())
    happens("a deletion")
    assert isinstance(both[1].workspace.place, Bucket)
    assert not (both[1].workspace.root / "tables").exists()


@pytest.fixture
def corpus(tmp_path, place):
    texts = {f"{n}.md": document(n) for n in range(3)}
    corpus = SmallCorpus(write_corpus(tmp_path, texts, **ONE))
    corpus.update()
    return corpus


def index_of(corpus):
    (index,) = corpus.config.index_versions.values()
    return index


@both_places
def test_lost_rows_are_found_and_put_in_again_from_the_cache(corpus):
    before, index = held(corpus), index_of(corpus)
    lance = LanceIndex(corpus.workspace, index.name, 32)
    with lance.writing():
        lance.delete_documents("docs", ["docs/1.md"])
        lance.publish()
    assert reconcile(corpus.workspace, index, "docs").rows.missing
    corpus.embedder.embedded.clear()
    list(repair(corpus.workspace, [index], ["docs"], lambda _: corpus.embedder))
    assert corpus.embedder.embedded == []
    assert reconcile(corpus.workspace, index, "docs").agrees
    assert held(corpus) == before


@both_places
@pytest.mark.parametrize("damage", ["manifest", "file", "lost", "table"])
def test_what_is_damaged_is_named_and_made_anew(corpus, damage):
    before, store, index = held(corpus), corpus.workspace.store, index_of(corpus)
    corpus.workspace.table(CHUNKS).read_all()  # what this machine has fetched hides nothing
    below = f"lance/{LanceIndex(corpus.workspace, index.name).name}.lance/_versions"
    if damage == "table":
        for file in list(store.files(below)):
            store.write(file.key, b"")
        assert "cannot be read" in reconcile(corpus.workspace, index, "docs").damage[0]
    else:
        suffix = ".json" if damage == "manifest" else ".parquet"
        (key,) = (f.key for f in store.files(f"tables/{CHUNKS}") if f.key.endswith(suffix))
        if damage == "lost":
            store.delete([key])
        else:
            store.write(key, b"{")
        (said,) = remove_damaged(corpus.workspace)
        assert CHUNKS in said
        corpus.chunk()
    list(repair(corpus.workspace, [index], ["docs"], lambda _: corpus.embedder))
    assert reconcile(corpus.workspace, index, "docs").agrees
    assert held(corpus) == before


def test_a_reader_elsewhere_follows_promotion_and_rollback(tmp_path, bucket):
    """With a cache of its own, as on another machine."""
    corpus = SmallCorpus(write_corpus(tmp_path, {"a.md": document("a")}, workspace=bucket))
    corpus.update()
    elsewhere = str(tmp_path / "another machine")
    follows_promotion_and_rollback(corpus, bucket, "sentence document", CORPUS_LOCAL=elsewhere)


@both_places
def test_upkeep_explanation_and_retirement(corpus):
    workspace, index = corpus.workspace, index_of(corpus)
    for revision in range(1, 4):
        write_document(corpus.config.root, "0.md", document(0, revision))
        corpus.update()
    chunk_id = workspace.table(CHUNKS).read_all()["chunk_id"][0]
    assert explain(workspace, chunk_id).document["status"] == "ok"
    settings = MaintenanceSettings(reader_grace_hours=0, keep_days=0)
    before = LanceIndex(workspace, index.name).disk_bytes()
    upkeep = maintain(workspace, settings)
    assert upkeep.problems == ()
    assert upkeep.tables > 0
    (size,) = upkeep.sizes
    assert size.table < before
    assert min(size.chunks, size.ledger, upkeep.total) > 0
    assert reconcile(workspace, index, "docs").agrees
    retire_version(workspace, "recursive-20@1", declared=[])
    assert workspace.table(CHUNKS).partitions() == []
    assert not any(workspace.store.files("lance"))
    assert not any(workspace.store.files("caches/words"))
    with pytest.raises(CorpusError, match="never published"):
        LanceIndex(workspace, index.name).open_served()
