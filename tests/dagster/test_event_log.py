"""The event log is what the UI reads: it grows with partitions, and not with documents."""

import shutil
from math import inf

import pytest

ASSETS = ("parsed_elements", "chunk_sets", "chunk_embeddings")
ROWS_PER_PARTITION = 16
"""Planned, materialized and stated again, and of every check planned and evaluated."""


@pytest.fixture
def rows(corpus_of, paragraphs, tmp_path, monkeypatch):
    """Counts the rows in the log of each run of a first build, but for lines of progress: there is
    one every few seconds, and never more than `MOST_LINES`."""

    def count(documents, shards):
        for folder in ("docs", ".corpus"):
            shutil.rmtree(tmp_path / folder, ignore_errors=True)
        corpus = corpus_of(
            {f"docs/{n:03}.md": paragraphs(f"docs {n}", 1) for n in range(documents)},
            collections={"docs": {"path": "docs", "settle_seconds": 0, "shards": shards}},
            questions=[],
        )
        corpus.look()
        monkeypatch.setattr(corpus.module("progress"), "EVERY_SECONDS", inf)
        keys = [*corpus.config.shards()]
        counted = {}
        for asset in ASSETS:
            (run,) = corpus.run(asset, *keys)
            assert run.success
            counted[asset] = len(corpus.instance.get_records_for_run(run.run_id).records)
            keys = [f"fixed-20@1|{shard}" for shard in corpus.config.shards()]
        return counted

    return count


def test_rows_of_a_run_do_not_grow_with_its_documents(rows):
    assert rows(documents=20, shards=1) == rows(documents=150, shards=1)


def test_rows_of_a_run_grow_with_its_partitions_by_a_few_each(rows):
    few, many = rows(documents=20, shards=2), rows(documents=20, shards=8)
    for asset in ASSETS:
        assert 0 < many[asset] - few[asset] <= 6 * ROWS_PER_PARTITION, asset
