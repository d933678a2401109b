"""What people start: promotion and its gate, the way back, and the nightly scores."""

import dagster as dg
import pytest

from chunking_assets.live_index.promotion import live

pytestmark = pytest.mark.usefixtures("place")


@pytest.fixture
def scored(built_until):
    return built_until("strategy_comparison")


def run_job(corpus, name, op, **config):
    return corpus.defs.resolve_job_def(name).execute_in_process(
        instance=corpus.instance,
        run_config={"ops": {op: {"config": config}}},
        raise_on_error=False,
    )


def promote(corpus, strategy, **config):
    return run_job(corpus, "promote", "promote_strategy", strategy=strategy, **config)


def why(result):
    (failure,) = result.get_step_failure_events()
    return failure.step_failure_data.error.cause.message


def test_a_promotion_and_a_rollback_are_events_of_the_live_index(scored):
    assert promote(scored, "recursive", reason="the first").success
    assert promote(scored, "fixed", force=True).success
    assert live(scored.workspace).strategy == "fixed"
    shown = scored.latest("live_index").metadata
    assert (shown["action"].value, shown["previous"].value) == ("promote", "recursive")
    assert shown["forced"].value is True
    assert run_job(scored, "roll_back", "roll_back_promotion", reason="worse").success
    assert live(scored.workspace).strategy == "recursive"
    shown = scored.latest("live_index").metadata
    assert (shown["action"].value, shown["strategy"].value) == ("rollback", "recursive")
    assert shown["reason"].value == "worse"
    records = scored.instance.fetch_materializations(dg.AssetKey("live_index"), limit=10).records
    assert len(records) == 3


def test_the_gate_refuses_with_the_verdict_and_changes_nothing(scored):
    promote(scored, "recursive")
    scored.materialize("strategy_comparison")
    refused = promote(scored, "fixed")
    assert not refused.success
    assert "fixed against the live recursive: " in why(refused)
    assert "make promote STRATEGY=fixed FORCE=1" in why(refused)
    assert live(scored.workspace).strategy == "recursive"
    assert scored.latest("live_index").metadata["strategy"].value == "recursive"


def test_an_unknown_strategy_is_refused_with_the_declared_ones(scored):
    assert "unknown strategy 'fixd'. Declared: fixed, recursive." in why(promote(scored, "fixd"))


def test_nothing_to_roll_back_to_is_said(scored):
    refused = run_job(scored, "roll_back", "roll_back_promotion")
    assert "there is nothing to roll back to" in why(refused)


def test_the_nightly_schedule_scores_every_version_in_one_run(scored):
    schedule = scored.defs.resolve_schedule_def("nightly_evaluation")
    assert schedule.cron_schedule == "0 3 * * *"
    assert schedule.default_status == dg.DefaultScheduleStatus.RUNNING
    with dg.build_schedule_context(
        instance=scored.instance, repository_def=scored.defs.get_repository_def()
    ) as context:
        (request,) = schedule.evaluate_tick(context).run_requests
    job = scored.defs.get_repository_def().get_job(schedule.job_name)
    before = set(scored.workspace.table("retrieval_scores").files())
    result = job.execute_in_process(
        instance=scored.instance, tags=request.tags, run_config=request.run_config
    )
    assert result.success
    assert not before & set(scored.workspace.table("retrieval_scores").files())
    for asset in ("retrieval_scores", "ragas_scores"):
        done = {event.partition for event in result.asset_materializations_for_node(asset)}
        assert done == {"fixed-20@1", "recursive-20@1"}


def test_everything_can_be_evaluated_on_demand(scored):
    job = scored.defs.resolve_job_def("evaluate_everything")
    before = scored.workspace.table("retrieval_scores").files(["fixed"])
    result = job.execute_in_process(instance=scored.instance, partition_key="fixed-20@1")
    assert result.success
    assert scored.workspace.table("retrieval_scores").files(["fixed"]) != before
