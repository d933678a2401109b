"""Chunk set, ledger and table: what differs is found, named, and made good, and nothing else."""

import numpy as np
import pytest
from places import both_places
from small_corpus import SmallCorpus, empty_file, write_corpus, write_document

from chunking_assets.chunk_embeddings import build
from chunking_assets.chunk_embeddings.build import EMBEDDED_CHUNKS, ledger, update_index
from chunking_assets.chunk_embeddings.lance_index import LanceIndex
from chunking_assets.chunk_embeddings.reconcile import reconcile
from chunking_assets.chunk_sets.build import CHUNKS, cell
from chunking_assets.errors import CorpusError
from chunking_assets.workspace import Table

pytestmark = pytest.mark.usefixtures("place")

VERSION, INDEX, SHARD = "recursive-20@1", "recursive-20@1+hash", "docs"
STRATEGIES = {"one": {"chunker": VERSION, "model": "hash", "profile": "vector"}}


def document(number):
    return "\n\n".join(
        f"Paragraph {n} of document {number} says one thing and then another about {n} only here."
        for n in range(3)
    )


@pytest.fixture
def corpus(tmp_path):
    texts = {f"{n}.md": document(n) for n in range(6)}
    corpus = SmallCorpus(write_corpus(tmp_path, texts, strategies=STRATEGIES))
    corpus.update()
    corpus.embedder.embedded.clear()
    return corpus


def index_of(corpus):
    return corpus.config.index_versions[INDEX]


def found(corpus):
    return reconcile(corpus.workspace, index_of(corpus), SHARD)


def repair(corpus):
    (update,) = update_index(
        corpus.workspace, index_of(corpus), [SHARD], lambda _: corpus.embedder, repair=True
    )
    return update


def rows(corpus):
    found = LanceIndex(corpus.workspace, INDEX).rows(SHARD, served=True).to_pylist()
    return sorted(found, key=lambda row: row["chunk_id"])


def tamper(corpus, do):
    """Write to the table as anybody could, and let readers see it."""
    lance = LanceIndex(corpus.workspace, INDEX)
    do(lance._open())
    lance.publish()


def add(table, **changed):
    row = table.search().limit(1).to_list()[0] | changed
    row.pop("_rowid", None)
    row["vector"] = changed.get("vector", row["vector"])
    table.add([{name: row[name] for name in table.schema.names}])


def first_id(corpus):
    return rows(corpus)[0]["chunk_id"]


TABLE = "lance/recursive-20_v1__hash.lance"


def stored(corpus, below, ends=""):
    """The files below a place of the workspace."""
    return [f.key for f in corpus.workspace.store.files(below) if f.key.endswith(ends)]


TAMPERED = {
    "missing": lambda table, one: table.delete(f"chunk_id = '{one}'"),
    "extra": lambda table, one: add(table, chunk_id="f" * 32),
    "duplicates": lambda table, one: table.add(
        table.search().where(f"chunk_id = '{one}'").to_arrow()
    ),
    "altered": lambda table, one: table.update(
        where=f"chunk_id = '{one}'", values={"text": "something else"}
    ),
    "unusable": lambda table, one: table.update(
        where=f"chunk_id = '{one}'", values={"vector": np.zeros(32, np.float32).tolist()}
    ),
}


@pytest.mark.parametrize("kind", TAMPERED)
def test_what_the_manifest_says_is_there_and_the_store_has_lost_is_found_and_healed(corpus, kind):
    """Drift between a record of what is indexed and the store: skipped for ever elsewhere."""
    before, one = rows(corpus), first_id(corpus)
    tamper(corpus, lambda table: TAMPERED[kind](table, one))
    differing = found(corpus)
    assert not differing.agrees
    named = getattr(differing.rows, kind)
    assert named == (("f" * 32) if kind == "extra" else one,)
    assert repair(corpus).healed.documents
    assert found(corpus).agrees
    assert rows(corpus) == before
    assert corpus.embedder.embedded == []


def test_repair_works_on_the_documents_that_differ_and_no_other(corpus, monkeypatch):
    one = rows(corpus)[0]
    tamper(corpus, lambda table: table.delete(f"chunk_id = '{one['chunk_id']}'"))
    written = []
    replace = LanceIndex.replace_documents
    monkeypatch.setattr(
        LanceIndex,
        "replace_documents",
        lambda self, rows, *scope: written.append(rows) or replace(self, rows, *scope),
    )
    update = repair(corpus)
    assert {d for table in written for d in table["doc_id"].to_pylist()} == {one["doc_id"]}
    assert (update.vectors_reused, update.vectors_embedded) == (3, 0)
    written.clear()
    version = LanceIndex(corpus.workspace, INDEX).served_version()
    assert not repair(corpus).healed
    assert written == []
    assert LanceIndex(corpus.workspace, INDEX).served_version() == version


def test_an_edit_elsewhere_heals_rows_lost_before_anything_is_served(corpus):
    one = rows(corpus)[0]
    tamper(corpus, lambda table: table.delete(f"chunk_id = '{one['chunk_id']}'"))
    changed = next(r["doc_id"] for r in rows(corpus) if r["doc_id"] != one["doc_id"])
    write_document(corpus.config.root, changed.removeprefix("docs/"), document("another"))
    _, _, (update,) = corpus.update()
    assert update.healed.missing == (one["chunk_id"],)
    assert found(corpus).agrees
    assert all("another" in text for text in corpus.embedder.embedded)


@both_places
def test_nothing_is_served_that_is_not_what_was_written(corpus, monkeypatch):
    served = LanceIndex(corpus.workspace, INDEX).served_version()
    write_document(corpus.config.root, "0.md", document("another"))
    replace = LanceIndex.replace_documents

    def lose_a_row(self, rows, *scope):
        return replace(self, rows.slice(1), *scope)

    with monkeypatch.context() as patch:
        patch.setattr(LanceIndex, "replace_documents", lose_a_row)
        with pytest.raises(CorpusError, match=r"are missing and .* Readers keep what they are"):
            corpus.update()
    assert LanceIndex(corpus.workspace, INDEX).served_version() == served
    corpus.update()
    assert found(corpus).agrees


@both_places
def test_rows_deleted_and_not_yet_served_are_put_back_by_the_next_update(corpus):
    before = rows(corpus)
    LanceIndex(corpus.workspace, INDEX)._open().delete("true")
    write_document(corpus.config.root, "new.md", document("new"))
    corpus.update()
    kept = [row for row in rows(corpus) if row["doc_id"] != "docs/new.md"]
    assert kept == before


@pytest.mark.parametrize("damage", ["manifest", "file", "truncated"])
def test_a_ledger_that_is_lost_or_damaged_is_named_and_made_anew(corpus, damage):
    before = rows(corpus)
    table, partition = corpus.workspace.table(EMBEDDED_CHUNKS), ledger(INDEX, SHARD)
    stated = table.read(partition)
    store, below = corpus.workspace.store, f"tables/{EMBEDDED_CHUNKS}"
    (manifest,), (file,) = (stored(corpus, below, ends) for ends in (".json", ".parquet"))
    if damage == "truncated":
        store.write(file, store.read(file)[:-20])
    else:
        store.delete([manifest if damage == "manifest" else file])
    (said,) = found(corpus).damage
    assert "embedded_chunks" in said
    assert repair(corpus).chunks == len(before)
    assert found(corpus).agrees
    assert rows(corpus) == before
    assert table.read(partition).equals(stated)
    assert corpus.embedder.embedded == []


def test_a_ledger_that_names_other_chunks_is_found_by_its_documents(corpus):
    table, partition = corpus.workspace.table(EMBEDDED_CHUNKS), ledger(INDEX, SHARD)
    stated, keys = table.read(partition), table.manifest(partition).keys
    table.replace(stated[1:], partition, keys=keys)
    differing = found(corpus)
    assert differing.misstated == (stated["doc_id"][0],)
    assert differing.rows.extra == (stated["chunk_id"][0],)
    repair(corpus)
    assert table.read(partition).equals(stated)
    assert found(corpus).agrees


@both_places
def test_a_damaged_chunk_set_is_named(corpus):
    empty_file(corpus.workspace.table(CHUNKS), cell(VERSION, SHARD))
    (said,) = found(corpus).damage
    assert said.startswith(f"table chunks, partition {VERSION}|docs: a file cannot be read")


def test_a_table_that_cannot_be_opened_is_built_again_from_the_cache(corpus):
    before = rows(corpus)
    for file in stored(corpus, f"{TABLE}/_versions"):
        corpus.workspace.store.write(file, b"")
    assert "cannot be read" in found(corpus).damage[0]
    repair(corpus)
    assert rows(corpus) == before
    assert corpus.embedder.embedded == []


def test_a_file_of_vectors_that_is_gone_is_named_and_the_table_built_again(corpus):
    before = rows(corpus)
    corpus.workspace.store.delete_below(f"{TABLE}/data")
    assert "cannot be read" in found(corpus).damage[0]
    write_document(corpus.config.root, "0.md", document("another"))
    corpus.parse()
    corpus.chunk()
    with pytest.raises(CorpusError, match="Run `make repair`"):
        corpus.embed()
    repair(corpus)
    assert found(corpus).agrees
    assert len(rows(corpus)) == len(before)


@both_places
def test_a_lost_tag_is_found_and_set_again(corpus):
    before = rows(corpus)
    corpus.workspace.store.delete_below(f"{TABLE}/_refs")
    assert "nothing is served" in found(corpus).damage[0]
    repair(corpus)
    assert rows(corpus) == before


def test_what_was_never_built_differs_in_nothing(tmp_path):
    corpus = SmallCorpus(write_corpus(tmp_path, {"a.md": "Text."}, strategies=STRATEGIES))
    assert found(corpus).agrees


def test_memory_holds_a_batch_and_the_table_is_the_same(tmp_path, monkeypatch):
    monkeypatch.setattr("chunking_assets.workspace.ROW_GROUP_BYTES", 1000)
    monkeypatch.setattr(build, "SET_ASIDE_BYTES", 100)
    texts = {f"{n}.md": document(n) for n in range(9)} | {"long.md": document(0) * 4}
    whole = SmallCorpus(write_corpus(tmp_path / "a", texts, strategies=STRATEGIES))
    whole.update()
    pieces = SmallCorpus(write_corpus(tmp_path / "b", texts, strategies=STRATEGIES))
    pieces.parse()
    pieces.chunk()
    sizes = []
    embed = build._Build.embed_batch
    monkeypatch.setattr(
        build._Build,
        "embed_batch",
        lambda self, plan, searched, *rest: (
            sizes.append(searched.height) or embed(self, plan, searched, *rest)
        ),
    )
    told = []
    (update,) = update_index(
        pieces.workspace,
        index_of(pieces),
        [SHARD],
        lambda _: pieces.embedder,
        lambda done, of, tokens: told.append((done, of)),
        batch_chunks=7,
    )
    assert rows(pieces) == rows(whole)
    assert sorted(sizes)[-2:] == [6, 12], "documents are embedded whole, a long one alone"
    assert told[-1] == (sum(sizes), sum(sizes))
    assert update.chunks == sum(sizes)


def test_one_changed_document_is_read_from_few_row_groups(corpus, monkeypatch):
    monkeypatch.setattr("chunking_assets.workspace.ROW_GROUP_BYTES", 500)
    table = corpus.workspace.table(CHUNKS)
    rows, keys = table.read(cell(VERSION, SHARD)), table.manifest(cell(VERSION, SHARD)).keys
    snapshot = table.snapshot(table.replace(rows, cell(VERSION, SHARD), keys=keys))
    assert isinstance(table, Table)
    assert len(list(snapshot.pieces())) > 5
    some = list(snapshot.pieces("doc_id", ["docs/3.md", "docs/none.md"]))
    assert {d for piece in some for d in piece["doc_id"]} == {"docs/3.md"}
    assert len(some) <= 3


def test_what_a_neighbour_stated_after_the_table_was_looked_for_stays(tmp_path, monkeypatch):
    collections = {n: {"path": f"docs/{n}", "settle_seconds": 0} for n in ("docs", "other")}
    texts = {f"{shard}/1.md": document(1) for shard in collections}
    file = write_corpus(tmp_path, texts, strategies=STRATEGIES, collections=collections)
    corpus = SmallCorpus(file)
    corpus.parse()
    corpus.chunk()
    look, waiting = LanceIndex.is_stored, ["other"]

    def looked_for(index):
        is_stored = look(index)
        for shard in waiting[:]:  # the neighbour's first build falls between look and conclusion
            waiting.remove(shard)
            update_index(corpus.workspace, index_of(corpus), [shard], lambda _: corpus.embedder)
        return is_stored

    monkeypatch.setattr(LanceIndex, "is_stored", looked_for)
    update_index(corpus.workspace, index_of(corpus), ["docs"], lambda _: corpus.embedder)
    ledgers = corpus.workspace.table(EMBEDDED_CHUNKS).partitions()
    assert {*ledgers} == {ledger(INDEX, shard) for shard in collections}
