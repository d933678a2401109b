"""Everything brought up to date in one process: what is done, what is not, and what is shown."""

import os
import shutil
import socket
from pathlib import Path

import dagster as dg
import pytest
from small_corpus import HashEmbedder

from chunking_assets.chunk_embeddings.lance_index import LanceIndex
from chunking_assets.chunk_sets.build import CHUNKS

NOTHING = dict.fromkeys(
    (
        "parsed_elements", "chunk_sets", "chunk_embeddings", "gold_questions",
        "retrieval_scores", "ragas_scores", "strategy_comparison", "eval_tables",
        "report",
    ),
    0,
)  # fmt: skip


def values(event):
    return {name: entry.value for name, entry in event.metadata.items()}


def stored(corpus):
    """Every Parquet file by name, and the version of every vector table."""
    files = sorted(str(f) for f in (corpus.workspace.root / "tables").rglob("*.parquet"))
    indexes = corpus.config.index_versions
    return files, {n: LanceIndex(corpus.workspace, n).served_version() for n in indexes}


def test_a_first_pass_builds_every_partition_and_a_second_builds_nothing(corpus):
    assert corpus.materialize() == {
        "parsed_elements": 2, "chunk_sets": 4, "chunk_embeddings": 4, "gold_questions": 1,
        "retrieval_scores": 2, "ragas_scores": 2, "strategy_comparison": 1, "eval_tables": 1,
        "report": 1,
    }  # fmt: skip
    before, events = stored(corpus), corpus.events()
    assert before[0]
    assert corpus.materialize() == NOTHING
    assert stored(corpus) == before
    assert corpus.events() == events


def test_a_changed_document_redoes_the_cells_of_its_shard_and_no_other(built_until, paragraphs):
    corpus = built_until("chunk_embeddings")
    chunks = corpus.workspace.table(CHUNKS)
    before = {cell: chunks.manifest(cell) for cell in chunks.partitions()}
    corpus.write("docs/1.md", paragraphs("docs 1").replace("Paragraph 3", "Changed 3"))
    due = corpus.materialize("chunk_embeddings")
    assert (due["parsed_elements"], due["chunk_sets"], due["chunk_embeddings"]) == (1, 2, 2)
    changed = [cell for cell in before if chunks.manifest(cell) != before[cell]]
    assert sorted(changed) == ["fixed-20@1|docs", "recursive-20@1|docs"]


def test_pages_show_which_documents_were_added_changed_and_removed(built_until, paragraphs):
    corpus = built_until("chunk_embeddings")
    (corpus.root / "docs/0.md").unlink()
    corpus.write("docs/1.md", paragraphs("docs 1").replace("Paragraph 3", "Changed 3"))
    corpus.write("docs/9.md", paragraphs("docs 9"))
    corpus.materialize("chunk_embeddings")
    for asset, key in (
        ("raw_documents", "docs"),
        ("parsed_elements", "docs"),
        ("chunk_sets", "recursive-20@1|docs"),
    ):
        shown = values(corpus.latest(asset, key))
        assert shown["changed"].splitlines() == [
            "- added `docs/9.md`", "- changed `docs/1.md`", "- removed `docs/0.md`",
        ], asset  # fmt: skip
        assert [
            shown[f"documents_{what}"] for what in ("added", "changed", "removed", "unchanged")
        ] == [1, 1, 1, 1]
    chunked = values(corpus.latest("chunk_sets", "recursive-20@1|docs"))
    assert chunked["dagster/row_count"] == 12
    assert chunked["chunks_redone"] == 8  # of the changed and the new document


def test_pages_show_what_was_embedded_and_what_was_reused(built_until, paragraphs):
    corpus = built_until("chunk_sets")
    corpus.materialize("chunk_embeddings")
    first = values(corpus.latest("chunk_embeddings", "recursive-20@1|docs"))
    text = paragraphs("docs 1").replace("Paragraph 3", "Changed 3")
    corpus.write("docs/1.md", text)
    corpus.materialize("chunk_embeddings")
    shown = values(corpus.latest("chunk_embeddings", "recursive-20@1|docs"))
    assert first["vectors_embedded"] + first["vectors_reused"] == 12
    assert (shown["vectors_embedded"], shown["vectors_reused"]) == (1, 3)
    assert shown["tokens_embedded"] == HashEmbedder(512).count_tokens([text.split("\n\n")[3]])[0]
    assert shown["cache_hit_rate"] == pytest.approx(0.75)
    assert shown["dagster/row_count"] == 12


def test_a_removed_table_folder_is_built_again(built_until):
    corpus = built_until("eval_tables")
    cell = "recursive-20@1|docs"
    rows = corpus.workspace.table(CHUNKS).read(cell)
    corpus.workspace.table(CHUNKS).remove(cell)
    shutil.rmtree(corpus.workspace.eval_database.parent)
    due = corpus.materialize("eval_tables")
    assert (due["chunk_sets"], due["chunk_embeddings"], due["eval_tables"]) == (1, 0, 1)
    assert corpus.workspace.table(CHUNKS).read(cell).equals(rows)


def test_the_report_is_linked_from_its_page_and_written_again_when_it_is_gone(built_until):
    corpus = built_until("eval_tables")
    corpus.materialize()
    page = Path(values(corpus.latest("report"))["path"])
    content = page.read_bytes()
    page.unlink()
    assert corpus.materialize() == {**NOTHING, "report": 1}
    assert page.read_bytes() == content


def test_a_corpus_without_questions_is_indexed_and_published(corpus_of):
    corpus = corpus_of(questions=[])
    due = corpus.materialize()
    assert due == {**due, "chunk_embeddings": 4, "strategy_comparison": 1, "report": 1}
    assert due["eval_tables"] == 1
    assert corpus.materialize() == NOTHING


def test_a_lost_folder_is_a_failure_that_stops_no_other_and_deletes_nothing(corpus):
    corpus.materialize("chunk_sets")
    shutil.move(corpus.root / "notes", corpus.root / "elsewhere")
    corpus.write("docs/new.md", "A new document.")
    materializer = corpus.materializer()
    materializer.observe()
    (failure,) = materializer.failures
    assert "notes: cannot be listed" in failure
    assert "Nothing is taken as deleted" in failure
    stages = list(corpus.module("materialize").stages(corpus.config))
    assert [materializer.build(stage) for stage in stages[:2]] == [1, 2]
    assert corpus.workspace.table(CHUNKS).read("recursive-20@1|notes").height == 12


def test_a_run_whose_process_was_killed_is_ended(corpus):
    def started(process):
        tags = {corpus.module("materialize").PROCESS: process}
        status = dg.DagsterRunStatus.STARTED
        return corpus.instance.create_run_for_job(corpus.job, tags=tags, status=status).run_id

    dead = started(f"{socket.gethostname()}:{2**22 + 1}")
    alive = started(f"{socket.gethostname()}:{os.getpid()}")
    elsewhere = started("another-machine:1")
    corpus.materializer().end_dead_runs()
    statuses = {r: corpus.instance.get_run_by_id(r).status for r in (dead, alive, elsewhere)}
    assert statuses == {
        dead: dg.DagsterRunStatus.FAILURE,
        alive: dg.DagsterRunStatus.STARTED,
        elsewhere: dg.DagsterRunStatus.STARTED,
    }


def test_most_of_a_shard_gone_fails_its_partition_until_confirmed(built_until):
    corpus = built_until("chunk_embeddings")
    for n in range(2):
        (corpus.root / f"docs/{n}.md").unlink()
    materializer = corpus.materializer()
    stages = {stage.asset: stage for stage in corpus.module("materialize").stages(corpus.config)}
    materializer.observe()
    materializer.build(stages["parsed_elements"])
    assert "make confirm-deletions SHARD=docs" in materializer.failures[0]
    config = corpus.module("materialize")._run_config(stages["parsed_elements"], ["docs"])
    materializer.failures.clear()
    materializer.build(stages["parsed_elements"], config)
    assert materializer.failures == []
    assert values(corpus.latest("parsed_elements", "docs"))["documents_removed"] == 2
