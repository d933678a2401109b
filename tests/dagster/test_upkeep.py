"""The jobs that keep the stores in order, as people and the schedule start them."""

import pytest
from small_corpus import empty_file

from chunking_assets.chunk_embeddings.lance_index import LanceIndex
from chunking_assets.chunk_sets.build import CHUNKS

pytestmark = pytest.mark.usefixtures("place")

INDEX, CELL = "recursive-20@1+hash", "recursive-20@1|docs"
FIXED = {
    "chunkers": {"fixed-20@1": {"kind": "fixed", "max_tokens": 20}},
    "strategies": {"fixed": {"chunker": "fixed-20@1", "model": "hash", "profile": "vector"}},
}


@pytest.fixture
def built(built_until):
    return built_until("chunk_embeddings")


def run(corpus, job, **config):
    return corpus.defs.resolve_job_def(job).execute_in_process(
        instance=corpus.instance, run_config=config or None, raise_on_error=False
    )


def metadata(result, op):
    (event,) = (e for e in result.events_for_node(op) if e.is_successful_output)
    return event.step_output_data.metadata


def lose_a_row(corpus):
    index = LanceIndex(corpus.workspace, INDEX)
    lost = index.rows("docs", ["chunk_id"]).to_pylist()[0]["chunk_id"]
    index._open().delete(f"chunk_id = '{lost}'")
    index.publish()
    return lost


def test_repair_heals_what_the_check_names_and_the_cell_is_sound_again(built):
    lost = lose_a_row(built)
    (result,) = built.run("chunk_embeddings", CELL)
    assert not result.success
    shown = metadata(run(built, "repair"), "repair_stores")
    assert (shown["cells_repaired"].value, shown["vectors_embedded"].value) == (1, 0)
    assert lost in shown["what"].value
    assert "chunk_embeddings" in built.tick(), "what failed its check is looked at again"
    assert built.run("chunk_embeddings", CELL)[0].success
    assert metadata(run(built, "repair"), "repair_stores")["cells_repaired"].value == 0


def test_repair_removes_a_damaged_table_and_the_next_build_makes_it_anew(built):
    before = built.workspace.table(CHUNKS).read(CELL)
    empty_file(built.workspace.table(CHUNKS), CELL)
    shown = metadata(run(built, "repair"), "repair_stores")
    assert shown["partitions_removed"].value == 1
    assert built.materialize("chunk_embeddings")["chunk_sets"] == 1
    assert built.workspace.table(CHUNKS).read(CELL).equals(before)


def test_lost_history_is_refused_with_the_cure(built):
    builds = built.workspace.table("builds")
    empty_file(builds, builds.partitions()[0])
    result = run(built, "repair")
    (failure,) = result.get_step_failure_events()
    assert "restore it from a copy" in failure.step_failure_data.error.cause.message


def test_a_version_is_retired_by_its_job_once_it_is_not_declared(built):
    config = {"ops": {"retire_one_version": {"config": {"version": "recursive-20@1"}}}}
    refused = run(built, "retire_version", **config)
    (failure,) = refused.get_step_failure_events()
    assert "still declared" in failure.step_failure_data.error.cause.message
    built.declare(**FIXED)
    built.load()
    for _ in range(2):
        assert run(built, "retire_version", **config).success
    assert not LanceIndex(built.workspace, INDEX).is_stored()


def test_shards_that_are_dropped_leave_dagster_too(built):
    assert {*built.instance.get_dynamic_partitions("corpus_shard")} == {"docs", "notes"}
    built.declare(collections={"docs": {"path": "docs", "settle_seconds": 0}})
    built.load()
    assert run(built, "retire_shards").success
    assert built.instance.get_dynamic_partitions("corpus_shard") == ["docs"]


def test_maintenance_shows_the_disk_and_runs_weekly(built):
    shown = metadata(run(built, "maintain"), "maintain_stores")
    assert shown[f"bytes_of {INDEX}"].value > 0
    assert f"| {INDEX} |" in shown["disk"].value
    schedule = built.defs.resolve_schedule_def("weekly_maintenance")
    assert (schedule.cron_schedule, schedule.job_name) == ("0 4 * * 0", "maintain")
