"""One run over many partitions: each has its own version, its own fate, and its own checks."""

import dagster as dg
import polars as pl
import pytest
from dagster._core.definitions.data_version import CachingStaleStatusResolver, StaleStatus
from dagster._core.definitions.partitions.context import partition_loading_context
from dagster._core.loader import LoadingContextForTest
from dagster._core.storage.asset_check_execution_record import AssetCheckExecutionResolvedStatus

from chunking_assets.chunk_embeddings.build import EMBEDDED_CHUNKS
from chunking_assets.chunk_embeddings.lance_index import LanceIndex
from chunking_assets.chunk_sets.build import CHUNKS
from chunking_assets.keys import digest

VERSIONS, SHARDS = ("fixed-20@1", "recursive-20@1"), ("docs", "notes")
CELLS = [f"{version}|{shard}" for version in VERSIONS for shard in SHARDS]
CELL = "recursive-20@1|docs"
RANGE = {
    "dagster/asset_partition_range_start": CELLS[0],
    "dagster/asset_partition_range_end": CELLS[-1],
}


@pytest.fixture
def parsed(corpus):
    corpus.look()
    corpus.run("parsed_elements", *SHARDS)
    return corpus


@pytest.fixture
def indexed(built_until):
    return built_until("chunk_embeddings")


def run_all_cells(corpus, *assets):
    """One run over every cell, as a range of partitions picked in the UI."""
    return corpus.job.execute_in_process(
        instance=corpus.instance,
        asset_selection=[dg.AssetKey(asset) for asset in assets],
        tags=RANGE,
        run_config=corpus.module("materialize").QUIET,
        raise_on_error=False,
    )


def version_of(corpus, asset, key):
    return corpus.latest(asset, key).tags["dagster/data_version"]


def staleness(corpus, asset, key):
    resolver = CachingStaleStatusResolver(
        corpus.instance, corpus.graph, LoadingContextForTest(corpus.instance)
    )
    return resolver.get_status(dg.AssetKey(asset), key)


def status(corpus, asset, check):
    """Cells by what their last check said, as the UI shows them."""
    key = dg.AssetCheckKey(dg.AssetKey(asset), check)
    definition = corpus.graph.get(key).partitions_def
    with partition_loading_context(dynamic_partitions_store=corpus.instance):
        state = corpus.instance.event_log_storage.get_asset_check_state([(key, definition)])[key]
        return {
            name: sorted(subset.subset_value.get_partition_keys())
            for name, subset in state.subsets.items()
            if subset.size
        }


def corrupt_a_chunk(corpus):
    """Change the text of one stored chunk behind everyone's back."""
    table = corpus.workspace.table(CHUNKS)
    rows = table.read(CELL)
    first = rows["chunk_id"][0]
    text = pl.when(pl.col("chunk_id") == first).then(pl.lit("something else"))
    corrupted = rows.with_columns(text=text.otherwise("text"))
    table.replace(corrupted, CELL, keys=table.manifest(CELL).keys)


def test_every_cell_of_one_run_has_the_version_of_its_own_content(parsed):
    result = run_all_cells(parsed, "chunk_sets", "chunk_embeddings")
    assert result.success
    for cell in CELLS:
        assert version_of(parsed, "chunk_sets", cell) == (
            parsed.workspace.table(CHUNKS).manifest(cell).version
        )
        index = f"{cell.split('|')[0]}+hash"
        ledger = parsed.workspace.table(EMBEDDED_CHUNKS).manifest(f"{index}|{cell.split('|')[1]}")
        assert version_of(parsed, "chunk_embeddings", cell) == digest([(index, ledger.version)])
    assert len({version_of(parsed, "chunk_sets", cell) for cell in CELLS}) == 4


def test_nothing_is_shown_as_unsynced_after_runs_over_many_cells(indexed):
    run_all_cells(indexed, "chunk_sets", "chunk_embeddings")
    for asset in ("chunk_sets", "chunk_embeddings"):
        assert [staleness(indexed, asset, cell) for cell in CELLS] == [StaleStatus.FRESH] * 4
    run_all_cells(indexed, "chunk_sets")  # again, with nothing to do
    assert [staleness(indexed, "chunk_embeddings", c) for c in CELLS] == [StaleStatus.FRESH] * 4


def test_one_failing_cell_leaves_the_others_materialized_and_fresh(parsed):
    run_all_cells(parsed, "chunk_sets")
    parsed.workspace.table(CHUNKS).remove(CELL)
    result = run_all_cells(parsed, "chunk_embeddings")
    assert not result.success
    (failure,) = result.get_step_failure_events()
    shown = failure.step_failure_data.user_failure_data
    assert shown.description.startswith(f"1 of 4 partitions failed: {CELL}: ")
    assert "Build chunk_sets first." in shown.metadata[CELL].value
    good = [cell for cell in CELLS if cell != CELL]
    assert parsed.instance.get_materialized_partitions(dg.AssetKey("chunk_embeddings")) == set(good)
    versions = {version_of(parsed, "chunk_embeddings", cell) for cell in good}
    assert len(versions) == 3
    assert [staleness(parsed, "chunk_embeddings", c) for c in good] == [StaleStatus.FRESH] * 3


def test_a_run_over_many_cells_checks_each_of_them(indexed):
    run_all_cells(indexed, "chunk_sets", "chunk_embeddings")
    for asset, check in (
        ("chunk_sets", "spans_exact"),
        ("chunk_embeddings", "index_reconciled"),
        ("chunk_embeddings", "within_model_limit"),
    ):
        assert status(indexed, asset, check) == {AssetCheckExecutionResolvedStatus.SUCCEEDED: CELLS}


def test_a_cell_whose_text_was_altered_fails_its_check_and_blocks_what_is_built_upon_it(parsed):
    run_all_cells(parsed, "chunk_sets")
    corrupt_a_chunk(parsed)
    result = run_all_cells(parsed, "chunk_sets", "chunk_embeddings")
    assert not result.success
    assert parsed.instance.get_materialized_partitions(dg.AssetKey("chunk_embeddings")) == set()
    assert status(parsed, "chunk_sets", "spans_exact") == {
        AssetCheckExecutionResolvedStatus.SUCCEEDED: [c for c in CELLS if c != CELL],
        AssetCheckExecutionResolvedStatus.FAILED: [CELL],
    }
    due = parsed.tick()
    assert due["chunk_embeddings"] == [cell for cell in CELLS if cell != CELL]


def test_a_cell_that_failed_its_check_is_made_whole_by_building_it_again(parsed):
    run_all_cells(parsed, "chunk_sets")
    before = parsed.workspace.table(CHUNKS).read(CELL)
    corrupt_a_chunk(parsed)
    assert not parsed.run("chunk_sets", CELL)[0].success
    assert parsed.run("chunk_sets", CELL)[0].success
    assert parsed.workspace.table(CHUNKS).read(CELL).equals(before)
    assert CELL in parsed.tick()["chunk_embeddings"]


def test_a_row_lost_from_the_index_fails_the_run_and_holds_back_the_scores(indexed):
    run_all_cells(indexed, "chunk_sets", "chunk_embeddings")
    indexed.run("gold_questions")
    index = LanceIndex(indexed.workspace, "recursive-20@1+hash")
    lost = index.rows("docs", ["chunk_id"]).to_pylist()[0]["chunk_id"]
    delete_row(indexed, index, lost)
    (result,) = indexed.run("chunk_embeddings", CELL)
    assert not result.success
    evaluations = result.get_asset_check_evaluations()
    (failed,) = (e for e in evaluations if e.partition == CELL and not e.passed)
    assert failed.check_name == "index_reconciled"
    assert failed.metadata["missing"].value == lost
    assert indexed.tick()["retrieval_scores"] == ["fixed-20@1"]
    assert indexed.run("chunk_embeddings", CELL)[0].success
    assert "recursive-20@1" in indexed.tick()["retrieval_scores"]


def delete_row(corpus, index, chunk_id):
    import lancedb

    table = lancedb.connect(str(corpus.workspace.root / "lance")).open_table(index.name)
    table.delete(f"chunk_id = '{chunk_id}'")
    index.publish()
