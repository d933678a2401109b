import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chunking_assets.chunk_embeddings import lance_index
from chunking_assets.chunk_embeddings.lance_index import LanceIndex, sql_literal
from chunking_assets.chunk_embeddings.publications import publications
from chunking_assets.errors import CorpusError
from chunking_assets.workspace import Workspace, disk_bytes

VERSION = "recursive-400@1+tiny"


def rows(doc_id: str, words: list[str], shard: str = "docs", **changed: object) -> pa.Table:
    """One chunk a word, as the build writes them (large strings, large lists)."""
    generator = np.random.default_rng(0)
    records = [
        {
            "chunk_id": f"{doc_id}#{word}",
            "shard": shard,
            "doc_id": doc_id,
            "ordinal": ordinal,
            "start": 10 * ordinal,
            "end": 10 * ordinal + len(word),
            "prefix": "",
            "text": word,
            "embed_text": word,
            "heading_path": ["Guide", word],
            "level": 0,
            "parent_id": None,
            "searched": True,
            "n_tokens": 3,
            "vec_key": f"key of {word}",
            **changed,
        }
        for ordinal, word in enumerate(words)
    ]
    kinds = {
        **dict.fromkeys(("ordinal", "start", "end", "n_tokens", "level"), pa.int64()),
        "heading_path": pa.large_list(pa.large_string()),
        "searched": pa.bool_(),
    }
    names = [
        "chunk_id", "shard", "doc_id", "ordinal", "start", "end", "prefix", "text", "embed_text",
        "heading_path", "level", "parent_id", "searched", "n_tokens", "vec_key",
    ]  # fmt: skip
    schema = pa.schema([(name, kinds.get(name, pa.large_string())) for name in names])
    values = generator.normal(size=4 * len(words)).astype(np.float32)
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(values, pa.float32()), 4)
    return pa.Table.from_pylist(records, schema=schema).append_column("vector", vectors)


def with_vectors(table: pa.Table, values: list[float]) -> pa.Table:
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(values, pa.float32()), 4)
    return table.set_column(table.schema.get_field_index("vector"), "vector", vectors)


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Workspace(tmp_path)


@pytest.fixture
def index(workspace: Workspace) -> LanceIndex:
    return LanceIndex(workspace, VERSION, 4)


def words(index: LanceIndex, shard: str | None = None) -> list[str]:
    return sorted(index.rows(shard, ["text"])["text"].to_pylist())


def served_words(index: LanceIndex) -> list[str]:
    return sorted(index.open_served().to_arrow()["text"].to_pylist())


def found(index: LanceIndex, word: str) -> list[str]:
    query = index.open_served().search(word, query_type="fts").select(["text", "_score"])
    return sorted(query.limit(100).to_arrow()["text"].to_pylist())


def newest_version(index: LanceIndex) -> int:
    table = index._open()
    assert table is not None
    return int(table.version)


def test_a_shorter_document_leaves_exactly_its_chunks(index):
    index.replace_documents(rows("docs/a", list("abcdefghij")), "docs")
    index.replace_documents(rows("docs/a", ["a", "b", "z"]), "docs", ["docs/a"])
    assert words(index) == ["a", "b", "z"]


def test_identical_documents_keep_their_own_rows(index):
    both = pa.concat_tables([rows("docs/a", ["same"]), rows("docs/b", ["same"])])
    index.replace_documents(both, "docs")
    assert words(index) == ["same", "same"]
    index.replace_documents(rows("docs/a", []), "docs", ["docs/a"])
    assert index.rows(columns=["doc_id"])["doc_id"].to_pylist() == ["docs/b"]


def test_other_documents_and_shards_are_left_alone(index):
    index.replace_documents(rows("docs/a", ["a"]), "docs")
    index.replace_documents(rows("docs/b", ["b"]), "docs", ["docs/b"])
    index.replace_documents(rows("wiki/c", ["c"], "wiki"), "wiki")
    index.replace_documents(rows("docs/a", ["x"]), "docs", ["docs/a"])
    assert (words(index, "docs"), words(index, "wiki")) == (["b", "x"], ["c"])
    index.replace_documents(rows("docs/a", []), "docs")
    assert (words(index, "docs"), words(index, "wiki")) == ([], ["c"])


def test_a_quote_in_a_document_id_is_a_quote(index):
    awkward = ["docs/it's", "docs/' OR '1'='1", 'docs/"x"', "docs/back\\slash", "docs/50%_é😀"]
    table = pa.concat_tables([rows(doc_id, ["w"]) for doc_id in awkward])
    index.replace_documents(table, "docs")
    for number, doc_id in enumerate(awkward, start=1):
        index.replace_documents(rows(doc_id, []), "docs", [doc_id])
        left = sorted(index.rows(columns=["doc_id"])["doc_id"].to_pylist())
        assert left == sorted(awkward[number:])


@given(st.text())
def test_a_literal_closes_where_it_opened(text):
    literal = sql_literal(text)
    assert literal[1:-1].replace("''", "").count("'") == 0
    assert literal[1:-1].replace("''", "'") == text


def test_thousands_of_documents_are_replaced_at_once(index):
    index.replace_documents(rows("docs/7", ["a"]), "docs")
    named = [f"docs/{number}" for number in range(5000)]
    index.replace_documents(rows("docs/7", ["b"]), "docs", named)
    assert words(index) == ["b"]


def test_no_documents_named_means_nothing_replaced(index):
    index.replace_documents(rows("docs/a", ["a"]), "docs")
    assert not index.replace_documents(rows("docs/a", []), "docs", [])
    assert words(index) == ["a"]


def test_equal_content_makes_no_version(index):
    table = rows("docs/a", ["a", "b"])
    index.replace_documents(rows("docs/a", ["a", "x"]), "docs")
    index.publish()
    assert index.replace_documents(table, "docs")
    before = index.publish()
    assert not index.replace_documents(table, "docs")
    assert not index.replace_documents(table.take([1, 0]), "docs", ["docs/a"])
    assert not index.replace_documents(rows("docs/x", []), "docs", ["docs/x"])
    assert index.publish() == before == newest_version(index)


@pytest.mark.parametrize(
    "change",
    [
        {"start": 1}, {"end": 99}, {"ordinal": 5}, {"vec_key": "k"}, {"prefix": "p"},
        {"n_tokens": 4}, {"heading_path": ["Other"]}, {"text": "b"}, {"embed_text": "p a"},
    ],
)  # fmt: skip
def test_a_changed_column_is_written(index, change):
    index.replace_documents(rows("docs/a", ["a"]), "docs")
    assert index.replace_documents(rows("docs/a", ["a"], **change), "docs")
    ((column, value),) = change.items()
    assert index.rows(columns=[column])[column].to_pylist() == [value]


def test_readers_see_the_old_rows_until_the_new_are_published(index):
    index.replace_documents(rows("docs/a", ["old"]), "docs")
    assert index.served_version() is None
    index.publish()
    index.replace_documents(rows("docs/a", ["new"]), "docs")
    assert served_words(index) == ["old"]
    assert found(index, "new") == []
    version = index.publish()
    assert index.served_version() == version
    assert served_words(index) == ["new"]


def test_full_text_finds_whole_words_of_any_language_after_publication(index):
    text = ["Café fechado", "the running man", "f" * 64, "runs"]
    index.replace_documents(rows("docs/a", text), "docs")
    index.publish()
    assert index.unindexed_rows() == 0
    assert found(index, "cafe") == ["Café fechado"]
    assert found(index, "THE") == ["the running man"]  # no stop words
    assert found(index, "run") == []  # no stemming
    assert found(index, "f" * 64) == ["f" * 64]
    index.replace_documents(rows("docs/b", ["fechado outra vez"]), "docs", ["docs/b"])
    assert index.unindexed_rows() == 1
    index.publish()
    assert index.unindexed_rows() == 0
    assert found(index, "fechado") == ["Café fechado", "fechado outra vez"]


def test_a_served_table_refuses_writes(index):
    index.replace_documents(rows("docs/a", ["a"]), "docs")
    index.publish()
    with pytest.raises(ValueError, match="cannot be modified"):
        index.open_served().delete("true")


def test_an_index_without_rows_can_be_published(index):
    assert not index.replace_documents(rows("docs/a", []), "docs")
    index.publish()
    assert served_words(index) == []
    assert found(index, "a") == []
    index.replace_documents(rows("docs/a", ["a"]), "docs")
    index.publish()
    assert found(index, "a") == ["a"]


def test_an_index_never_published_is_named_with_the_cure(workspace):
    index = LanceIndex(workspace, VERSION)
    assert not index.exists()
    assert index.served_version() is None
    with pytest.raises(CorpusError, match=r"recursive-400@1\+tiny was never published"):
        index.open_served()


def test_a_dropped_index_is_gone(index):
    index.replace_documents(rows("docs/a", ["a"]), "docs")
    index.drop()
    index.drop()
    assert not index.exists()


@pytest.mark.parametrize(
    "values", [[0.0] * 4, [1.0, float("nan"), 0.0, 0.0], [float("inf"), 0.0, 0.0, 0.0]]
)
def test_a_vector_that_search_could_never_find_is_refused(index, values):
    bad = with_vectors(rows("docs/a", ["good", "bad"]), [1.0, 0, 0, 0, *values])
    with pytest.raises(CorpusError, match="vector of chunk docs/a#bad of document docs/a"):
        index.replace_documents(bad, "docs")
    assert not index.exists()


def test_a_chunk_that_is_only_read_is_stored_without_a_vector(index):
    child, parent = rows("docs/a", ["child"]), rows("docs/a", ["parent"], searched=False)
    missing = pa.array([None], child["vector"].type)
    parent = parent.set_column(parent.schema.get_field_index("vector"), "vector", missing)
    index.replace_documents(pa.concat_tables([child, parent]), "docs")
    index.publish()
    table = index.open_served()
    query = table.search(np.ones(4, np.float32), vector_column_name="vector").limit(9)
    assert [row["text"] for row in query.select(["text", "_distance"]).to_list()] == ["child"]
    assert words(index) == ["child", "parent"]


@pytest.mark.parametrize("searched", [True, False])
def test_a_vector_stands_where_a_chunk_is_searched_and_nowhere_else(index, searched):
    row = rows("docs/a", ["a"], searched=searched)
    if searched:
        missing = pa.array([None], row["vector"].type)
        row = row.set_column(row.schema.get_field_index("vector"), "vector", missing)
    with pytest.raises(CorpusError, match="Nothing was written"):
        index.replace_documents(row, "docs")


def test_a_repeated_row_is_stored_once_and_a_contradiction_refused(index):
    row = rows("docs/a", ["a"])
    index.replace_documents(pa.concat_tables([row, row]), "docs")
    assert words(index) == ["a"]
    other = rows("docs/a", ["a"], end=99)
    with pytest.raises(CorpusError, match="two different rows"):
        index.replace_documents(pa.concat_tables([row, other]), "docs")


@pytest.mark.parametrize(("shard", "doc_ids"), [("wiki", None), ("docs", ["docs/b"])])
def test_rows_outside_what_is_replaced_are_refused(index, shard, doc_ids):
    with pytest.raises(CorpusError, match="Nothing was written"):
        index.replace_documents(rows("docs/a", ["a"]), shard, doc_ids)


def test_vectors_of_another_size_are_refused(workspace, index):
    index.replace_documents(rows("docs/a", ["a"]), "docs")
    with pytest.raises(CorpusError, match="4 dimensions, the model gives 8"):
        LanceIndex(workspace, VERSION, 8).publish()


def test_a_table_whose_creation_was_interrupted_is_completed(index):
    index._connect().create_table(index.name, schema=index._schema())
    index.replace_documents(rows("docs/a", ["a"]), "docs")
    mark = index._open().schema.field("chunk_id").metadata
    assert mark == {lance_index.PRIMARY_KEY_MARK: b"1"}


def versions(index: LanceIndex) -> int:
    return len(index._open().list_versions())


def update(index: LanceIndex, word: str) -> int:
    index.replace_documents(rows("docs/a", [word, *"bcdefghij"]), "docs", ["docs/a"])
    return index.publish()


def test_an_update_that_died_is_undone_and_not_published_by_the_next(index):
    index.replace_documents(rows("docs/a", ["a"]), "docs")
    index.publish()
    index.replace_documents(rows("docs/b", ["half"]), "docs", ["docs/b"])
    with index.writing():
        index.replace_documents(rows("wiki/c", ["c"], "wiki"), "wiki")
        index.publish()
    assert served_words(index) == ["a", "c"]


def test_what_was_written_before_anything_was_published_is_undone_too(index):
    index.replace_documents(rows("docs/b", ["half"]), "docs", ["docs/b"])
    with index.writing():
        index.replace_documents(rows("docs/a", ["a"]), "docs", ["docs/a"])
        index.publish()
    assert served_words(index) == ["a"]


def test_a_row_that_is_there_twice_is_there_once_after_an_update(index):
    index.replace_documents(rows("docs/a", ["a", "b"]), "docs")
    index.publish()
    table = index._open()
    table.add(table.search().where("text = 'a'").to_arrow())
    assert words(index) == ["a", "a", "b"]
    assert index.replace_documents(rows("docs/a", ["a", "b"]), "docs")
    assert words(index) == ["a", "b"]


@pytest.fixture
def looked_through(monkeypatch):
    """How often the table was read for rows that are there already."""
    reads = []
    scan = lance_index._scan
    monkeypatch.setattr(lance_index, "_scan", lambda *args: reads.append(args) or scan(*args))
    return reads


def test_documents_that_are_new_are_written_without_reading_what_is_there(index, looked_through):
    for first in (0, 5):
        with index.writing():
            for number in range(first, first + 5):
                doc_id = f"docs/{number}"
                index.replace_documents(rows(doc_id, ["a", "b"]), "docs", [doc_id])
            index.publish()
    assert looked_through == []
    assert words(index) == ["a"] * 10 + ["b"] * 10


def test_a_document_of_an_earlier_update_or_of_this_one_is_replaced(index):
    with index.writing():
        index.replace_documents(rows("docs/a", ["old", "kept"]), "docs", ["docs/a"])
        index.publish()
    with index.writing():
        index.replace_documents(rows("docs/a", ["kept", "half"]), "docs", ["docs/a"])
        index.replace_documents(rows("docs/b", ["half"]), "docs", ["docs/b"])
        index.replace_documents(rows("docs/b", ["whole"]), "docs", ["docs/b"])
        index.replace_documents(rows("docs/a", ["kept", "new"]), "docs", ["docs/a"])
        index.publish()
    assert served_words(index) == ["kept", "new", "whole"]


def test_a_chunk_that_went_to_another_shard_is_there_once(index):
    with index.writing():
        index.replace_documents(rows("docs/a", ["a", "b"]), "docs", ["docs/a"])
        index.publish()
    with index.writing():
        index.replace_documents(rows("docs/a", ["a"], "wiki"), "wiki", ["docs/a"])
        index.publish()
    assert (words(index, "docs"), words(index, "wiki")) == (["b"], ["a"])


def test_one_changed_row_does_not_write_the_table_anew(index):
    index.replace_documents(rows("docs/a", [f"word {n} " * 50 for n in range(2000)]), "docs")
    index.publish()
    data = index._store.here / "data"
    before = disk_bytes(data)
    for number in range(4):
        one = rows("docs/b", [f"other {number}"])
        index.replace_documents(one, "docs", ["docs/b"])
        index.publish()
    assert disk_bytes(data) - before < 0.05 * before
    assert index.unindexed_rows() == 0
    assert found(index, "other") == ["other 3"]


def test_200_updates_leave_little_on_disk_and_every_kept_state_readable(index):
    """Version growth, and tags that keep old files from being reclaimed, are what tables of this
    kind are known for."""
    first = update(index, "first")
    alone = index.disk_bytes()
    pinned = datetime.now(UTC)
    reader = index.open_served()
    for number in range(200):
        index.replace_documents(rows("docs/a", [f"word{number}", *"bcdefghij"]), "docs", ["docs/a"])
        if number % 4 == 3:
            index.publish()
    grown = index.disk_bytes()
    later = datetime.now(UTC) + timedelta(days=2)
    freed = index.maintain(pinned=[pinned], now=later)
    assert freed > 0.5 * grown
    assert index.disk_bytes() < 6 * alone
    assert versions(index) < 10
    assert "word199" in served_words(index)
    then, publication = index.open_at(pinned)
    assert publication.version == first
    assert "first" in then.search().to_arrow()["text"].to_pylist()
    assert "first" in reader.search().to_arrow()["text"].to_pylist()


def test_a_reader_keeps_its_version_for_the_grace_and_not_longer(index):
    update(index, "first")
    reader = index.open_served()
    update(index, "second")
    now = datetime.now(UTC)
    index.maintain(timedelta(days=1), timedelta(0), now=now)
    assert "first" in reader.search().to_arrow()["text"].to_pylist()
    index.maintain(timedelta(days=1), timedelta(0), now=now + timedelta(days=2))
    with pytest.raises(CorpusError, match=r"is cleaned. States still kept begin at: "):
        index.open_at(publications(index._workspace, index.name)[0].at)


def test_new_rows_leave_the_indexes_there_are_as_they_are(index):
    index.replace_documents(rows("docs/0", ["a", "b"]), "docs", ["docs/0"])
    index.publish()
    before = {part["uuid"] for part in index._dataset().list_indices()}
    index.replace_documents(rows("docs/1", ["c"]), "docs", ["docs/1"])
    index.publish()
    assert before < {part["uuid"] for part in index._dataset().list_indices()}
    assert index.unindexed_rows() == 0


def test_many_small_updates_are_compacted_without_being_asked(index, monkeypatch):
    monkeypatch.setattr(lance_index, "MOST_FRAGMENTS", 3)
    monkeypatch.setattr(lance_index, "MOST_INDEX_PARTS", 2)
    for number in range(6):
        index.replace_documents(rows(f"docs/{number}", ["a"]), "docs", [f"docs/{number}"])
        index.publish()
        parts = [len(one.segments) for one in index._dataset().describe_indices()]
        assert max(parts) <= 3
    assert index._dataset().stats.dataset_stats()["num_fragments"] <= 4
    assert words(index) == ["a"] * 6


@pytest.mark.parametrize("content", [b"", b"garbage" * 20])
def test_a_damaged_newest_commit_is_forgotten_and_the_served_version_stays(index, content):
    version = update(index, "served")
    index.replace_documents(rows("docs/a", ["unpublished"]), "docs", ["docs/a"])
    newest = lance_index.NEWEST_MANIFEST - newest_version(index)
    (index._store.here / "_versions" / f"{newest}.manifest").write_bytes(content)
    with pytest.raises(CorpusError, match="make repair"):
        index.open_served()
    assert "served version" in index.heal_unreadable()
    assert "served" in served_words(index)
    assert index.served_version() == version


def test_a_damaged_served_version_is_dropped_to_be_built_again(index):
    version = update(index, "served")
    newest = lance_index.NEWEST_MANIFEST - version
    (index._store.here / "_versions" / f"{newest}.manifest").write_bytes(b"")
    assert "dropped" in index.heal_unreadable()
    assert not index.is_stored()
    assert index.heal_unreadable() is None


WRITER = """
import sys
from pathlib import Path
import pyarrow.parquet as parquet
from chunking_assets.chunk_embeddings.lance_index import LanceIndex
from chunking_assets.workspace import Workspace

root, version, shard, *files = sys.argv[1:]
index = LanceIndex(Workspace(Path(root)), version, 4)
for file in files:
    index.replace_documents(parquet.read_table(file), shard)
    index.publish()
"""


def test_two_processes_writing_two_shards_lose_nothing(workspace, index, tmp_path):
    from pyarrow import parquet

    writers = []
    for shard in ("docs", "wiki"):
        files = [str(tmp_path / f"{shard}-{round}.parquet") for round in range(3)]
        for round, file in enumerate(files):
            parquet.write_table(rows(f"{shard}/a", [f"{round}{n}" for n in range(50)], shard), file)
        command = [sys.executable, "-c", WRITER, str(workspace.root), VERSION, shard, *files]
        writers.append(subprocess.Popen(command))
    assert [writer.wait(timeout=120) for writer in writers] == [0, 0]
    last = [f"2{n}" for n in range(50)]
    assert words(index, "docs") == words(index, "wiki") == sorted(last)
    assert served_words(index) == sorted(last + last)
    assert index.unindexed_rows() == 0
