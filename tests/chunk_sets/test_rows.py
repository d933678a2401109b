"""Ids that survive edits elsewhere, keys that name what chunks are made from, the stored rows."""

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chunking_assets.chunk_sets.chunker import Chunk
from chunking_assets.chunk_sets.recursive import RecursiveChunker
from chunking_assets.chunk_sets.rows import CHUNKS_SCHEMA, chunk_ids, chunk_rows, chunkset_key
from chunking_assets.keys import text_sha


def chunks_of(*texts):
    starts = [sum(len(t) + 2 for t in texts[:i]) for i in range(len(texts))]
    return [Chunk(a, a + len(t), t, "", 1) for a, t in zip(starts, texts, strict=True)]


def test_an_insertion_before_a_chunk_leaves_its_id():
    before = chunk_ids("v@1", "d", chunks_of("a", "b", "c"))
    after = chunk_ids("v@1", "d", chunks_of("new", "a", "b", "c"))
    assert after[1:] == before


def test_equal_chunks_are_told_apart_by_occurrence():
    ids = chunk_ids("v@1", "d", chunks_of("same", "other", "same", "same"))
    assert len(set(ids)) == 4
    assert ids[:3] == chunk_ids("v@1", "d", chunks_of("same", "other", "same"))


@pytest.mark.parametrize(
    "other",
    [
        chunk_ids("v@2", "d", chunks_of("a")),
        chunk_ids("v@1", "e", chunks_of("a")),
        chunk_ids("v@1", "d", chunks_of("b")),
        chunk_ids("v@1", "d", [Chunk(0, 1, "a", "Guide\n", 2)]),
    ],
    ids=["version", "document", "text", "prefix"],
)
def test_version_document_text_and_prefix_each_make_another_id(other):
    assert chunk_ids("v@1", "d", chunks_of("a")) != other


@given(st.lists(st.text(max_size=3), max_size=20))
def test_ids_are_unique_within_a_document(texts):
    ids = chunk_ids("v@1", "d", chunks_of(*texts))
    assert len(set(ids)) == len(texts)


def test_the_key_of_a_chunk_set_depends_on_each_of_its_parts():
    parts = ["text", "elements", "text/plain", "en", "chunker", "boilerplate"]
    others = [[*parts[:at], "other", *parts[at + 1 :]] for at in range(len(parts))]
    assert len({chunkset_key(*p) for p in [parts, *others, parts[:-1]]}) == len(parts) + 2


def test_rows_hold_what_the_chunks_say(words, markdown):
    document = markdown("# Café\n\n" + "été " * 6 + "\n\n## Menü\n\nThé.", words)
    chunks = list(RecursiveChunker(max_tokens=5, prefix="breadcrumb").chunks(document))
    rows = chunk_rows("recursive-5@1", [("menus/café.md", "key", chunks)])
    assert rows.schema == CHUNKS_SCHEMA
    assert rows["ordinal"].to_list() == list(range(len(chunks)))
    assert rows["chunk_id"].to_list() == chunk_ids("recursive-5@1", "menus/café.md", chunks)
    for row, chunk in zip(rows.iter_rows(named=True), chunks, strict=True):
        assert document.text[row["start"] : row["end"]] == row["text"]
        assert row["n_chars"] == row["end"] - row["start"]
        assert row["text_sha"] == text_sha(row["prefix"] + row["text"])
        assert (row["prefix"], row["n_tokens"]) == (chunk.prefix, chunk.n_tokens)
        assert tuple(row["heading_path"]) == chunk.heading_path
    assert rows["chunkset_key"].unique().to_list() == ["key"]
    assert "Café\n" in rows["prefix"].to_list()


def test_no_chunks_are_no_rows_of_the_same_schema():
    rows = chunk_rows("v@1", [("d", "key", [])])
    assert (rows.height, rows.schema) == (0, CHUNKS_SCHEMA)
    assert pl.concat([rows, CHUNKS_SCHEMA.to_frame()]).height == 0
