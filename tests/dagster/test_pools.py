"""What runs must share is bounded: by pools in the queue, whose limits anybody may change."""

import dagster as dg
import pytest
from dagster._core.execution.api import create_execution_plan
from dagster._core.op_concurrency_limits_counter import (
    GlobalOpConcurrencyLimitsCounter,
    compute_run_op_concurrency_info_for_snapshot,
)
from dagster._core.snap.execution_plan_snapshot import snapshot_from_execution_plan
from dagster._core.utils import make_new_run_id


@pytest.fixture
def home(corpus, monkeypatch):
    """The instance that `make dev` makes."""
    monkeypatch.setenv("DAGSTER_HOME", str(corpus.workspace.root / "dagster"))
    corpus.module("home").prepare_home(corpus.workspace.root)
    with dg.DagsterInstance.get() as instance:
        corpus.module("pools").set_limits(instance)
        yield instance


def pools_of(corpus, *assets):
    """What a run of these assets takes a place in."""
    job = corpus.job.get_subset(asset_selection={dg.AssetKey(a) for a in assets})
    plan = create_execution_plan(job)
    return compute_run_op_concurrency_info_for_snapshot(
        snapshot_from_execution_plan(plan, job.get_job_snapshot_id())
    )


def waits(corpus, instance, asset, *running):
    """Whether a queued run of an asset has to wait for those that run."""

    def run(name, status):
        return instance.run_storage.add_run(
            dg.DagsterRun(
                job_name=name,
                run_id=make_new_run_id(),
                status=status,
                run_op_concurrency=pools_of(corpus, name),
            )
        )

    started = {run(name, dg.DagsterRunStatus.STARTED).run_id for name in running}
    queued = run(asset, dg.DagsterRunStatus.NOT_STARTED)
    records = [r for r in instance.get_run_records() if r.dagster_run.run_id in started]
    storage = instance.event_log_storage
    counter = GlobalOpConcurrencyLimitsCounter(
        instance,
        [queued],
        records,
        storage.get_concurrency_keys(),
        storage.get_pool_limits(),
        pool_granularity=instance.get_concurrency_config().pool_config.pool_granularity,
    )
    return counter.is_blocked(queued)


def test_neighbours_embed_side_by_side_up_to_the_limit(corpus, home):
    assert not waits(corpus, home, "chunk_embeddings", *["chunk_embeddings"] * 3)
    assert waits(corpus, home, "chunk_embeddings", *["chunk_embeddings"] * 4)


def test_one_run_publishes_and_one_asks_an_endpoint_and_neither_waits_for_the_other(corpus, home):
    assert waits(corpus, home, "eval_tables", "eval_tables")
    assert waits(corpus, home, "ragas_scores", "ragas_scores")
    assert not waits(corpus, home, "ragas_scores", "eval_tables", "chunk_embeddings")


def test_chunking_takes_a_place_at_the_endpoint_only_if_a_version_asks_it(corpus_of):
    corpus = corpus_of()
    assert corpus.graph.get(dg.AssetKey("chunk_sets")).pools == set()
    asking = {
        "kind": "recursive",
        "max_tokens": 20,
        "context": {"model": "some-model", "max_tokens": 8},
    }
    chunkers = {"recursive-20@1": asking, "fixed-20@1": {"kind": "fixed", "max_tokens": 20}}
    corpus = corpus_of(chunkers=chunkers)
    assert corpus.graph.get(dg.AssetKey("chunk_sets")).pools == {"model_endpoint"}


def test_a_limit_that_was_changed_stays(corpus, home):
    home.event_log_storage.set_concurrency_slots("vector_tables", 9)
    corpus.module("pools").set_limits(home)
    limits = {p.name: p.limit for p in home.event_log_storage.get_pool_limits()}
    assert limits == {"vector_tables": 9, "eval_database": 1, "model_endpoint": 1}


def test_an_instance_that_counts_steps_gets_no_limits(corpus):
    corpus.module("pools").set_limits(corpus.instance)
    assert corpus.instance.event_log_storage.get_pool_limits() == []
