"""What goes wrong elsewhere when documents change, move, vanish or cannot be read: each public
complaint is a test here, through all stages."""

import os
import shutil
import time
from pathlib import Path

import duckdb
import polars as pl
import pytest
import yaml
from places import BUCKET, FOLDER
from small_corpus import SmallCorpus, write_corpus, write_document

from chunking_assets.chunk_embeddings.build import EMBEDDED_CHUNKS
from chunking_assets.chunk_embeddings.lance_index import LanceIndex
from chunking_assets.chunk_sets.build import CHUNKS, EXCLUDED_SPANS, cell
from chunking_assets.errors import CorpusError, DeletionRefused
from chunking_assets.parsed_elements.build import (
    DOCUMENTS,
    ELEMENTS,
    TOMBSTONES,
    update_documents,
)
from chunking_assets.raw_documents.local_folder import LocalFolder
from evals.gold_questions.build import GOLD_EVIDENCE, GOLD_QUESTIONS, update_gold_questions

pytestmark = pytest.mark.usefixtures("place")

VERSION, INDEX = "recursive-20@1", "recursive-20@1+hash"
BROKEN = b"%PDF-1.7 and nothing that a reader of PDF could use"


def paragraphs(name, count=3):
    return "\n\n".join(
        f"Paragraph {n} of {name} says one thing and then another about number {n} only here."
        for n in range(count)
    )


def of_docs(**settings):
    return {"docs": {"path": "docs", "settle_seconds": 0, **settings}}


@pytest.fixture
def corpus(tmp_path):
    return indexed(tmp_path)


def indexed(root, count=5, **changes):
    """A corpus of so many documents, through all stages."""
    documents = {f"{n}.md": paragraphs(f"document {n}") for n in range(count)}
    corpus = SmallCorpus(write_corpus(root, documents, **changes))
    corpus.update()
    corpus.embedder.embedded.clear()
    return corpus


def again(corpus, **changes):
    """The same corpus under another declaration."""
    return SmallCorpus(write_corpus(corpus.config.root, {}, **changes))


def served(corpus, shard="docs"):
    """Texts by document, as the index serves them."""
    rows = LanceIndex(corpus.workspace, INDEX).rows(shard, ["doc_id", "text"]).to_pylist()
    found = {}
    for row in rows:
        found.setdefault(row["doc_id"].partition("/")[2], []).append(row["text"])
    return {doc_id: sorted(texts) for doc_id, texts in found.items()}


def everywhere(corpus):
    """Texts by document over all shards."""
    found = {}
    for shard in corpus.config.shards():
        found |= served(corpus, shard)
    return found


def rows(corpus, shard="docs"):
    table = corpus.workspace.table(DOCUMENTS).read(shard)
    return {row["path"]: row for row in table.iter_rows(named=True)}


def graves(corpus):
    buried = corpus.workspace.table(TOMBSTONES).read_all()
    return {
        d: (why, to) for d, why, to in buried.select("doc_id", "reason", "moved_to").iter_rows()
    }


def docs(corpus):
    return corpus.config.root / "docs"


# --- moved ---------------------------------------------------------------------------------------


def rename_all(corpus):
    for file in sorted(docs(corpus).glob("*.md")):
        file.rename(file.with_name(f"renamed-{file.name}"))


def test_a_renamed_document_is_not_parsed_and_not_embedded_again(corpus):
    """knowledge-rag: moving a file dropped its chunks."""
    before = served(corpus)
    rename_all(corpus)
    (parsed,), _, embedded = corpus.update()
    assert (parsed.parsed, parsed.reused) == (0, 5)
    assert parsed.changes.moved[0] == ("docs/0.md", "docs/renamed-0.md")
    assert corpus.embedder.embedded == []
    assert sum(update.vectors_reused for update in embedded) > 0
    assert served(corpus) == {f"renamed-{name}": texts for name, texts in before.items()}
    assert graves(corpus)["docs/3.md"] == ("moved", "docs/renamed-3.md")


def test_a_document_that_moves_to_another_shard_is_not_parsed_again_in_either_order(tmp_path):
    """knowledge-rag: moving a file dropped its chunks; a path decides the shard here."""
    corpus = indexed(tmp_path, 12, collections=of_docs(shards=4))
    before = everywhere(corpus)
    rename_all(corpus)
    parsed, _, _ = corpus.update()
    assert [
        sum(counts) for counts in zip(*((u.parsed, u.reused) for u in parsed), strict=True)
    ] == [0, 12]
    assert corpus.embedder.embedded == []
    assert everywhere(corpus) == {f"renamed-{name}": texts for name, texts in before.items()}
    assert {why for why, _ in graves(corpus).values()} == {"moved"}


def test_a_document_whose_new_shard_was_read_before_its_old_one_has_moved_all_the_same(tmp_path):
    """As after a crash between the two; an edit beside it in the new shard changes nothing."""
    corpus = indexed(tmp_path, 12, collections=of_docs(shards=2))
    collection = corpus.config.collections["docs"]

    def read(shard):
        update_documents(
            corpus.workspace, shard, "docs", collection, corpus.config.root, confirm_deletions=True
        )

    renamed = {f"docs/{n}.md": f"docs/renamed-{n}.md" for n in range(12)}
    crossed = {
        old: new
        for old, new in renamed.items()
        if (collection.shard_of("docs", old), collection.shard_of("docs", new))
        == ("docs-00", "docs-01")
    }
    assert crossed
    rename_all(corpus)
    read("docs-01")
    write_document(corpus.config.root, next(iter(crossed.values()))[5:], "Edited meanwhile.")
    read("docs-01")
    read("docs-00")
    found = graves(corpus)
    edited, *moved = crossed
    assert {found[old] for old in moved} == {("moved", crossed[old]) for old in moved}
    assert found[edited] == ("gone", None)


def test_a_rename_of_everything_is_no_loss_where_each_shard_has_a_run_of_its_own(tmp_path):
    """A guard that takes a renamed folder for an unmounted disk is confirmed unread."""
    corpus = indexed(tmp_path, 12, collections=of_docs(shards=4))
    rename_all(corpus)
    collection = corpus.config.collections["docs"]
    for shard in corpus.config.shards():
        update_documents(corpus.workspace, shard, "docs", collection, tmp_path)
    corpus.chunk()
    corpus.embed()
    assert len(everywhere(corpus)) == 12
    assert corpus.embedder.embedded == []


def test_a_document_that_moves_to_another_collection_is_not_parsed_again(tmp_path):
    """LlamaIndex and LangChain know a document by one source: elsewhere it is new and embedded."""
    two = of_docs() | {"notes": {"path": "notes", "settle_seconds": 0}}
    (tmp_path / "notes").mkdir()
    corpus = indexed(tmp_path, collections=two)
    (docs(corpus) / "1.md").rename(tmp_path / "notes" / "1.md")
    parsed, _, _ = corpus.update()
    assert [(u.parsed, u.reused) for u in parsed] == [(0, 0), (0, 1)]
    assert corpus.embedder.embedded == []
    assert list(served(corpus, "notes")) == ["1.md"]
    assert rows(corpus, "notes")["1.md"]["collection"] == "notes"


def test_a_copy_is_a_document_of_its_own_that_costs_nothing(corpus):
    """LlamaIndex: a removed document was kept because another had its hash."""
    shutil.copy(docs(corpus) / "1.md", docs(corpus) / "twin.md")
    (parsed,), _, _ = corpus.update()
    assert (parsed.parsed, parsed.reused, parsed.changes.moved) == (0, 1, ())
    assert served(corpus)["twin.md"] == served(corpus)["1.md"]
    (docs(corpus) / "1.md").unlink()
    corpus.update()
    assert "1.md" not in served(corpus)
    assert len(served(corpus)["twin.md"]) == 3
    assert corpus.embedder.embedded == []


def test_a_document_that_moves_and_is_edited_is_another_one(corpus):
    """A move is told by equal bytes only; anything less would serve what nobody wrote."""
    (docs(corpus) / "1.md").unlink()
    write_document(corpus.config.root, "moved.md", paragraphs("document 1 edited"))
    (parsed,), _, _ = corpus.update()
    assert (parsed.parsed, parsed.changes.moved) == (1, ())
    assert graves(corpus) == {"docs/1.md": ("gone", None)}


# --- deleted -------------------------------------------------------------------------------------


def test_a_deleted_document_leaves_chunks_parents_vectors_questions_and_file_marks(
    tmp_path, monkeypatch
):
    """RAGFlow: chunks of deleted documents were still retrieved."""
    monkeypatch.setattr("chunking_assets.raw_documents.listing.RACY_NS", -(10**12))
    chunkers = {
        VERSION: {"kind": "recursive", "max_tokens": 20, "clean": {}},
        "nested@1": {"kind": "hierarchical", "max_tokens": 20},
    }
    strategies = {
        "one": {"chunker": VERSION, "model": "hash", "profile": "vector"},
        "two": {"chunker": "nested@1", "model": "hash", "profile": "vector"},
    }
    question = {"id": "q", "question": "What does paragraph 1 of document 1 say?", "language": "en"}
    quote = {"doc_id": "docs/1.md", "quote": "Paragraph 1 of document 1"}
    gold = tmp_path / "gold.yaml"
    gold.write_text(yaml.safe_dump({"questions": [{**question, "evidence": [quote]}]}))
    corpus = indexed(tmp_path, chunkers=chunkers, strategies=strategies, questions=["gold.yaml"])

    def gold_status():
        shards = list(corpus.config.shards())
        update_gold_questions(corpus.workspace, corpus.config.question_files(), tmp_path, shards)
        return corpus.workspace.table(GOLD_QUESTIONS).read()["status"].to_list()

    assert gold_status() == ["active"]
    versions = {
        n: LanceIndex(corpus.workspace, n).served_version() for n in corpus.config.index_versions
    }
    (docs(corpus) / "1.md").unlink()
    corpus.update()
    for table in (DOCUMENTS, ELEMENTS, CHUNKS, EXCLUDED_SPANS, EMBEDDED_CHUNKS):
        assert "docs/1.md" not in set(corpus.workspace.table(table).read_all()["doc_id"])
    for name, version in versions.items():
        index = LanceIndex(corpus.workspace, name)
        found = index.rows("docs", ["chunk_id", "doc_id"]).to_pylist()
        assert "docs/1.md" not in {row["doc_id"] for row in found}
        assert found
        assert index.served_version() > version
    assert gold_status() == ["stale"]
    assert "docs/1.md" not in (corpus.workspace.caches / "files/docs.json").read_text()
    assert corpus.workspace.table(GOLD_EVIDENCE).read()["status"].to_list() == ["missing_document"]


@pytest.mark.parametrize(
    ("left", "place"),
    [(0, FOLDER), (3, FOLDER), (3, BUCKET)],
    ids=["an empty listing", "a partial listing", "of a bucket"],
    indirect=["place"],
)
def test_a_listing_that_lost_documents_is_refused_with_the_command_that_confirms(corpus, left):
    """LangChain: an empty or partial loader result deleted the records."""
    before = served(corpus), rows(corpus)
    for number in range(left, 5):
        (docs(corpus) / f"{number}.md").unlink()
    with pytest.raises(DeletionRefused, match=r"make confirm-deletions SHARD=docs$"):
        corpus.update()
    assert (served(corpus), rows(corpus)) == before
    corpus.update(confirm_deletions=True)
    assert sorted(served(corpus)) == [f"{n}.md" for n in range(left)]


def test_a_source_that_is_gone_deletes_nothing_even_confirmed(corpus):
    """LangChain: an empty or partial loader result deleted the records."""
    before = served(corpus)
    docs(corpus).rename(corpus.config.root / "unmounted")
    with pytest.raises(CorpusError, match="Nothing is taken as deleted"):
        corpus.update(confirm_deletions=True)
    assert served(corpus) == before


def test_what_corpus_yaml_excludes_goes_without_a_question_and_is_said_to_be_meant(corpus):
    """A guard that cries at every edit of the configuration is confirmed unread."""
    fewer = again(corpus, collections=of_docs(exclude=["1.md", "2.md", "3.md"]))
    (parsed,), _, _ = fewer.update()
    assert parsed.changes.excluded == ("docs/1.md", "docs/2.md", "docs/3.md")
    assert sorted(served(fewer)) == ["0.md", "4.md"]
    assert set(graves(fewer).values()) == {("excluded", None)}


def test_patterns_that_leave_nothing_are_refused_as_excluded_by_you(corpus):
    """A typing error in a pattern empties an index as surely as an unmounted disk."""
    none = again(corpus, collections=of_docs(include=["**/*.mdd"]))
    with pytest.raises(DeletionRefused, match=r"5 of 5 are excluded by you, in corpus\.yaml"):
        none.update()
    assert len(served(none)) == 5


def test_an_exclusion_does_not_hide_a_loss(corpus):
    """LangChain: an empty or partial loader result deleted the records."""
    fewer = again(corpus, collections=of_docs(exclude=["0.md"]))
    for number in (1, 2, 3):
        (docs(corpus) / f"{number}.md").unlink()
    with pytest.raises(DeletionRefused, match=r"3 of 5 documents are gone .* 1 of 5 are excluded"):
        fewer.update()


def test_removing_a_document_leaves_the_text_it_shared_with_another(tmp_path):
    """knowledge-rag: texts stored once for all, so removing one document removed another's."""
    shared = "This paragraph stands in both documents, word for word, as boilerplate does."
    texts = {f"{name}.md": f"{shared}\n\n{paragraphs(name, 1)}" for name in "ab"}
    corpus = SmallCorpus(write_corpus(tmp_path, texts | {"c.md": paragraphs("c")}))
    corpus.update()
    (tmp_path / "docs/a.md").unlink()
    corpus.update()
    assert shared in served(corpus)["b.md"]
    assert "a.md" not in served(corpus)


# --- changed -------------------------------------------------------------------------------------


def test_another_checkout_of_the_same_files_costs_a_look(corpus):
    """LlamaIndex: files with new timestamps were embedded again."""
    copy = corpus.config.root / "copy"
    shutil.copytree(docs(corpus), copy)
    shutil.rmtree(docs(corpus))
    copy.rename(docs(corpus))
    for file in docs(corpus).iterdir():
        os.utime(file, (time.time() - 5000,) * 2)
    (parsed,), chunked, _ = corpus.update()
    assert (parsed.parsed, parsed.reused, bool(parsed.changes)) == (0, 0, False)
    assert sum(update.chunks_redone for update in chunked) == 0
    assert corpus.embedder.embedded == []


def test_a_document_that_shrinks_leaves_no_tail(corpus):
    """OpenTranscribe: the last chunks of a longer revision stayed in the index."""
    write_document(corpus.config.root, "1.md", paragraphs("document 1", 1))
    corpus.update()
    assert len(served(corpus)["1.md"]) == 1


@pytest.mark.parametrize("moment", ["between listing and reading", "between reading and recording"])
def test_an_edit_while_indexing_is_seen_by_the_next_run(corpus, monkeypatch, moment):
    """fazer-ai agents: an edit that landed while its file was being indexed was lost."""
    read, edits = LocalFolder.read, [paragraphs("document 1 at last")]

    def interrupted(self, file):
        is_due = file.path == "1.md" and bool(edits)
        if moment == "between listing and reading" and is_due:
            write_document(corpus.config.root, "1.md", edits.pop())
        content = read(self, file)
        if moment == "between reading and recording" and is_due:
            write_document(corpus.config.root, "1.md", edits.pop())
        return content

    write_document(corpus.config.root, "1.md", paragraphs("document 1 in between"))
    monkeypatch.setattr(LocalFolder, "read", interrupted)
    (first,), _, _ = corpus.update()
    assert not edits
    (second,), _, _ = corpus.update()
    assert all("at last" in text for text in served(corpus)["1.md"])
    (third,), _, _ = corpus.update()
    assert third.input_version == second.input_version
    if moment == "between reading and recording":
        assert first.input_version != second.input_version


def test_a_file_written_to_while_it_is_read_is_not_taken_half_old_half_new(corpus, monkeypatch):
    """fazer-ai agents: an edit that landed while its file was being indexed was lost."""
    fstat, edits = os.fstat, [paragraphs("document 1 at last", 9)]

    def moving(descriptor):
        stat = fstat(descriptor)
        if edits and stat.st_ino == (docs(corpus) / "1.md").stat().st_ino:
            write_document(corpus.config.root, "1.md", edits.pop())
        return stat

    write_document(corpus.config.root, "1.md", paragraphs("document 1 in between"))
    monkeypatch.setattr("chunking_assets.raw_documents.local_folder.os.fstat", moving)
    before = served(corpus)
    (parsed,), _, _ = corpus.update()
    assert parsed.stale == ("docs/1.md",)
    assert served(corpus) == before
    corpus.update()
    assert len(served(corpus)["1.md"]) == 9


# --- unreadable ----------------------------------------------------------------------------------


def fail(corpus, monkeypatch, how):
    """Make a known document one that cannot be read; returns what mends it."""
    file, read = docs(corpus) / "1.md", LocalFolder.read
    if how == "parser":
        file.write_bytes(BROKEN)
    if how == "too large":
        file.write_text("x" * 3000)
    if how == "unreadable":

        def refusing(self, listed):
            if listed.path == "1.md":
                raise PermissionError(13, "Permission denied")
            return read(self, listed)

        os.utime(file, (time.time() - 5000,) * 2)
        monkeypatch.setattr(LocalFolder, "read", refusing)

    def mend(text):
        monkeypatch.setattr(LocalFolder, "read", read)
        file.write_text(text)

    return mend


FAILURES = ["parser", "too large", "unreadable"]


@pytest.mark.parametrize("how", FAILURES)
def test_a_document_that_cannot_be_read_any_more_keeps_its_last_text_and_is_marked(
    tmp_path, monkeypatch, how
):
    """LlamaIndex: the old version was deleted before the new one was built."""
    corpus = indexed(tmp_path, collections=of_docs(max_bytes=2000))
    before = served(corpus)
    mend = fail(corpus, monkeypatch, how)
    write_document(tmp_path, "2.md", paragraphs("document 2 edited"))
    (parsed,), chunked, _ = corpus.update()
    assert (parsed.stale, parsed.failed) == (("docs/1.md",), ("docs/1.md",))
    assert {update.changes.redo for update in chunked} == {("docs/2.md",)}
    assert served(corpus)["1.md"] == before["1.md"]
    row = rows(corpus)["1.md"]
    assert (row["status"], bool(row["text"])) == ("ok", True)
    assert row["stale_since"] is not None
    assert "last revision that could be read" in row["error"]
    assert row["cure"]
    assert (row["newest_rev"] is None) == (how == "unreadable")
    mend(paragraphs("document 1 mended"))
    (parsed,), _, _ = corpus.update()
    row = rows(corpus)["1.md"]
    assert (row["stale_since"], row["newest_rev"], row["error"], parsed.failed) == (None,) * 3 + (
        (),
    )
    assert all("mended" in text for text in served(corpus)["1.md"])


@pytest.mark.parametrize("how", FAILURES)
def test_a_stale_document_is_tried_by_every_run_and_since_when_it_is_stale_stays(
    tmp_path, monkeypatch, how
):
    """LlamaIndex: a hash was recorded before its document was indexed, so it was skipped for ever."""
    corpus = indexed(tmp_path, collections=of_docs(max_bytes=2000))
    mend = fail(corpus, monkeypatch, how)
    corpus.update()
    stored = corpus.workspace.table(DOCUMENTS).manifest("docs")
    since = rows(corpus)["1.md"]["stale_since"]
    (parsed,), _, _ = corpus.update()
    assert parsed.stale == ("docs/1.md",)
    assert parsed.parsed == (1 if how == "parser" else 0)
    assert corpus.workspace.table(DOCUMENTS).manifest("docs") == stored
    assert rows(corpus)["1.md"]["stale_since"] == since
    mend(paragraphs("document 1"))
    (parsed,), _, _ = corpus.update()
    assert (parsed.stale, rows(corpus)["1.md"]["stale_since"]) == ((), None)
    assert corpus.embedder.embedded == []


def test_a_document_that_fails_first_and_is_readable_then_is_indexed_by_the_next_run(
    tmp_path, monkeypatch
):
    """LlamaIndex: a hash was recorded before its document was indexed, so it was skipped for ever."""
    corpus = SmallCorpus(write_corpus(tmp_path, {"0.md": paragraphs("0"), "1.md": paragraphs("1")}))
    mend = fail(corpus, monkeypatch, "unreadable")
    (parsed,), _, _ = corpus.update()
    assert parsed.failed == ("docs/1.md",)
    assert (rows(corpus)["1.md"]["status"], "1.md" in served(corpus)) == ("unreadable", False)
    mend(paragraphs("1"))
    corpus.update()
    assert len(served(corpus)["1.md"]) == 3


def test_a_stale_document_makes_another_version_of_its_table_so_that_it_is_published(
    corpus, monkeypatch
):
    """What is served although it is old must be seen by those who look at the tables."""
    before = corpus.workspace.table(DOCUMENTS).manifest("docs")
    fail(corpus, monkeypatch, "parser")
    corpus.update()
    documents, elements = (
        corpus.workspace.table(name).manifest("docs") for name in (DOCUMENTS, ELEMENTS)
    )
    assert documents.version == elements.version != before.version
    assert documents.details == {**before.details, "to_retry": 1}
    assert documents.keys == before.keys


def test_analysts_see_what_is_served_although_it_is_old(corpus, monkeypatch):
    """What is served although it is old must be seen by those who look at the tables."""
    fail(corpus, monkeypatch, "parser")
    corpus.update()
    documents = corpus.workspace.table(DOCUMENTS).read("docs").drop("text")
    sql = Path(__file__).parents[2] / "sql"
    with duckdb.connect() as connection:
        for name in ("tables/documents", "tables/gold_evidence", "views/document_status"):
            connection.execute((sql / f"{name}.sql").read_text(encoding="utf-8"))
        connection.register("made", documents.to_arrow())
        connection.execute("insert into documents by name select * from made")
        seen = connection.execute("select doc_id, status, stale_since, cure from document_status")
        ((doc_id, status, since, cure),) = seen.fetchall()
    assert (doc_id, status) == ("docs/1.md", "stale")
    assert since == rows(corpus)["1.md"]["stale_since"]
    assert cure


def test_a_document_emptied_by_its_author_is_empty_and_not_stale(corpus):
    """Serving what its author took back is no kindness."""
    write_document(corpus.config.root, "1.md", "")
    (parsed,), _, _ = corpus.update()
    assert parsed.stale == ()
    assert rows(corpus)["1.md"]["status"] == "empty"
    assert "1.md" not in served(corpus)


def test_a_stale_document_that_is_deleted_goes(corpus, monkeypatch):
    """RAGFlow: chunks of deleted documents were still retrieved."""
    fail(corpus, monkeypatch, "parser")
    corpus.update()
    (docs(corpus) / "1.md").unlink()
    corpus.update()
    assert "1.md" not in served(corpus)
    assert "1.md" not in rows(corpus)


# --- names ---------------------------------------------------------------------------------------


def test_odd_names_are_documents_and_never_partitions(tmp_path):
    """Dagster: a comma in a partition key broke backfills, and a partition a file froze the UI."""
    names = ["a,b.md", "c|d.md", "[e].md", "f g\n.md", "'h\".md", "%2F.md", "日本.md", "-i.md"]
    documents = {name: paragraphs(ascii(name)) for name in names}
    corpus = SmallCorpus(write_corpus(tmp_path, documents, collections=of_docs(shards=2)))
    corpus.update()
    assert set(everywhere(corpus)) == set(names)
    assert corpus.workspace.table(DOCUMENTS).partitions() == ["docs-00", "docs-01"]
    cells = [cell(VERSION, shard) for shard in ("docs-00", "docs-01")]
    assert set(cells) < set(corpus.workspace.table(CHUNKS).partitions())


def test_a_name_that_is_passed_over_is_a_row_with_its_reason(corpus):
    """What a listing leaves out silently is missed by nobody until an answer is wrong."""
    secret = corpus.config.root / "secret.md"
    secret.write_text(paragraphs("a secret"))
    (docs(corpus) / "link.md").symlink_to(secret)
    (parsed,), _, _ = corpus.update()
    row = rows(corpus)["link.md"]
    assert (row["status"], row["error"]) == ("refused", "symbolic links are not followed")
    assert row["cure"]
    assert (parsed.failed, "link.md" in served(corpus)) == ((), False)
    (docs(corpus) / "link.md").unlink()
    corpus.update()
    assert "link.md" not in rows(corpus)
    assert corpus.workspace.table(TOMBSTONES).read("docs") is None


def test_documents_that_become_links_are_a_loss_like_any_other(corpus):
    """LangChain: an empty or partial loader result deleted the records."""
    for file in list(docs(corpus).iterdir()):
        file.rename(corpus.config.root / file.name)
        file.symlink_to(corpus.config.root / file.name)
    with pytest.raises(DeletionRefused, match="5 of 5 documents are gone"):
        corpus.update()
    assert len(served(corpus)) == 5
    corpus.update(confirm_deletions=True)
    assert served(corpus) == {}
    assert {row["status"] for row in rows(corpus).values()} == {"refused"}


def test_the_rows_of_a_first_release_without_marks_are_read_on(corpus):
    """A release must not parse, and pay for, everything again because a column is new."""
    for name in (DOCUMENTS, ELEMENTS):
        table = corpus.workspace.table(name)
        manifest = table.manifest("docs")
        old = table.read("docs").drop("stale_since", "newest_rev", strict=False)
        table.replace(old, "docs", keys=manifest.keys, details=manifest.details)
    (parsed,), _, _ = corpus.update()
    assert (parsed.parsed, bool(parsed.changes)) == (0, False)
    write_document(corpus.config.root, "1.md", paragraphs("document 1 edited"))
    corpus.update()
    assert corpus.workspace.table(DOCUMENTS).read("docs")["stale_since"].dtype == pl.Datetime(
        "us", "UTC"
    )
