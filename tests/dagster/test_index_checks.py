"""Checks of what is served and of what is said of it, each seen failing."""

import duckdb
import polars as pl
import pytest

from evals.database import publish
from evals.ragas_scores.frames import SCORES

CELL = "recursive-20@1|docs"
VERSION = "recursive-20@1"


@pytest.fixture
def indexed(built_until):
    return built_until("chunk_embeddings")


def look(corpus, name, key=CELL):
    """What a check finds in a partition."""
    return getattr(corpus.module("checks"), name)(Resource(corpus), key)


class Resource:
    def __init__(self, corpus):
        self.config, self.workspace = corpus.config, corpus.workspace


def forget(corpus, index, doc_id):
    """Take a document out of the ledger of an index behind everyone's back."""
    stored, partition = corpus.workspace.table("embedded_chunks"), f"{index}|docs"
    manifest, rows = stored.manifest(partition), stored.read(partition)
    stored.replace(
        rows.filter(pl.col("doc_id") != doc_id),
        partition,
        keys={key: made_from for key, made_from in manifest.keys.items() if key != doc_id},
        version=manifest.version,
        details=manifest.details,
    )


def test_an_index_of_every_document_with_a_text_is_complete(indexed):
    found = look(indexed, "_documents_indexed")
    assert found.passed
    assert found.metadata["documents"] == 3


def test_a_document_that_is_not_in_the_index_is_named(indexed):
    forget(indexed, "recursive-20@1+hash", "docs/0.md")
    found = look(indexed, "_documents_indexed")
    assert not found.passed
    assert found.metadata["missing"] == "docs/0.md"
    assert look(indexed, "_documents_indexed", "fixed-20@1|docs").passed


def test_a_document_that_is_gone_and_still_in_the_index_is_named(indexed):
    stored = indexed.workspace.table("documents")
    manifest, rows = stored.manifest("docs"), stored.read("docs")
    stored.replace(rows[1:], "docs", keys=manifest.keys, version="2", details=manifest.details)
    found = look(indexed, "_documents_indexed")
    assert not found.passed
    assert found.metadata["no_longer_there"] == rows["doc_id"][0]


def test_an_index_whose_chunk_set_moved_on_while_it_was_built_is_not_held_against_it(indexed):
    indexed.write("docs/9.md", "A new document.")
    indexed.materialize("chunk_sets")
    found = look(indexed, "_documents_indexed")
    assert found.metadata == {"waits": "a document or chunk set is newer than the index"}
    assert found.passed


def test_rows_no_index_covers_are_counted(indexed):
    assert look(indexed, "_rows_indexed").passed
    from chunking_assets.chunk_embeddings.lance_index import LanceIndex

    index = LanceIndex(indexed.workspace, "recursive-20@1+hash", 32)
    rows = index.rows("docs")
    renamed = rows.set_column(0, "chunk_id", [[f"copy-{n}" for n in range(rows.num_rows)]])
    index.replace_documents(renamed, "docs")
    found = look(indexed, "_rows_indexed")
    assert not found.passed
    assert found.metadata["unindexed_rows"] == 12


def test_a_passage_that_vanished_is_a_warning_with_its_diff(built_until):
    corpus = built_until("gold_questions")
    checks = corpus.module("checks")
    found = checks._gold_found(Resource(corpus))
    assert (found.passed, found.metadata["stale"]) == (True, 0)
    file = corpus.root / "docs" / "0.md"
    file.write_text(file.read_text().replace("Paragraph 0 of docs", "Section 0 of docs"))
    corpus.materialize("gold_questions")
    found = checks._gold_found(Resource(corpus))
    assert not found.passed
    assert (found.metadata["stale"], found.metadata["which"]) == (1, "docs-0")
    assert "[-Paragraph-]{+Section+} 0 of docs 0" in found.metadata["passages"].value


def judged(corpus, *statuses, error_kind=None):
    rows = [
        {
            "strategy": "recursive",
            "question_id": f"q{number}",
            "metric": "faithfulness",
            "status": status,
            "error_kind": error_kind if status == "skipped" else None,
            "value": 1.0 if status == "ok" else None,
        }
        for number, status in enumerate(statuses)
    ]
    frame = pl.DataFrame(rows, schema=SCORES)
    corpus.workspace.table("ragas_scores").replace(frame, "recursive", version="1")
    return look(corpus, "_coverage", VERSION)


def test_what_was_not_judged_lowers_coverage_and_what_does_not_apply_does_not(corpus):
    assert judged(corpus, *["ok"] * 19, "error", "not_applicable", "stale").passed
    found = judged(corpus, *["ok"] * 18, "error", "skipped", error_kind="ragas_unavailable")
    assert not found.passed
    assert found.metadata["coverage of faithfulness, recursive"] == pytest.approx(0.9)
    assert (found.metadata["judged"], found.metadata["asked"]) == (18, 20)


def test_coverage_is_held_against_nobody_where_there_is_no_judge_or_a_sample_was_drawn(corpus):
    found = judged(corpus, "skipped", "skipped", error_kind="no_judge")
    assert found.passed
    assert found.metadata["coverage of faithfulness, recursive"] == 0
    assert judged(corpus, "ok", "skipped", error_kind="max_questions").passed


def test_coverage_is_counted_as_analysts_see_it(corpus):
    found = judged(corpus, "ok", "error", "skipped", "stale", error_kind="quota")
    published = publish(corpus.workspace)
    with duckdb.connect(published.path, read_only=True) as connection:
        seen = connection.execute("select n_scored, n_total from score_coverage").fetchall()
    assert seen == [(found.metadata["judged"], found.metadata["asked"])] == [(1, 3)]


def test_a_strategy_that_is_better_than_the_live_one_is_named(built_until):
    corpus = built_until("strategy_comparison")
    corpus.defs.resolve_job_def("promote").execute_in_process(
        instance=corpus.instance,
        run_config={"ops": {"promote_strategy": {"config": {"strategy": "recursive"}}}},
    )
    corpus.materialize("strategy_comparison")
    checks, resource = corpus.module("checks"), Resource(corpus)
    assert checks._live_holds(resource).passed
    table = corpus.workspace.table("strategy_comparisons")
    verdict = pl.when(pl.col("strategy") == "fixed").then(pl.lit("better")).otherwise("verdict")
    table.replace(table.read().with_columns(verdict=verdict), version="2")
    found = checks._live_holds(resource)
    assert not found.passed
    assert found.metadata["better_than_live"] == "fixed"
