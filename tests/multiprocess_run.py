"""`python -m dagster_defs.materialize`, after `--steps` with a process for every step, as a deployment
may have it.

The process that runs are forked from starts another one, that has imported everything too: steps
are forked from it, and a step costs its work. A step whose process is killed is begun again.
"""

import multiprocessing
import os
import sys
import tempfile
from multiprocessing import forkserver, resource_tracker

import dagster as dg
import small_corpus  # noqa: F401  # registers `kind: hash` in the processes of the steps too
from dagster._check import CheckError
from dagster._core.definitions.reconstruct import ReconstructableRepository
from dagster._core.executor.child_process_executor import ChildProcessCrashException
from fork_server import warm_up

from dagster_defs import materialize
from dagster_defs.definitions import defs
from dagster_defs.partitions import CONFIG

PRELOADING = "CORPUS_TEST_STEPS_ARE_PRELOADED"
MOST_KILLS = 100
OF_A_KILL = ChildProcessCrashException.__name__
KILLED_AFTER_SUCCESS = "not known to be in flight"
"""Dagster would begin a step again that has succeeded, and gives the run up instead."""
EXECUTOR = dg.multiprocess_executor.configured(
    {
        "max_concurrent": 2,
        "start_method": {"forkserver": {"preload_modules": ["multiprocess_run"]}},
    }
)
ASSETS = [stage.asset for stage in materialize.stages(CONFIG)]


def job_of(asset):
    return dg.define_asset_job(
        f"build_{asset}",
        # Checks write no table, and would each cost a process.
        selection=dg.AssetSelection.assets(asset).without_checks(),
        op_retry_policy=dg.RetryPolicy(max_retries=MOST_KILLS),
    )


every_asset = dg.Definitions(
    assets=defs.assets,
    asset_checks=defs.asset_checks,
    resources=defs.resources,
    executor=EXECUTOR,
    jobs=[job_of(asset) for asset in ASSETS],
)
REPOSITORY = ReconstructableRepository.for_module("multiprocess_run", "every_asset", None)
JOBS = {asset: REPOSITORY.get_reconstructable_job(f"build_{asset}") for asset in ASSETS}


def load_everything():
    """Once, in the processes that others are forked from."""
    warm_up()
    with tempfile.TemporaryDirectory() as folder, dg.DagsterInstance.local_temp(folder):
        pass
    for job in JOBS.values():
        job.get_definition()


def start_steps():
    """Start the process that those of steps are forked from; its id."""
    load_everything()
    os.environ[PRELOADING] = "yes"
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["multiprocess_run"])
    forkserver.ensure_running()
    resource_tracker.ensure_running()
    # For runs it is there: they could not wait for what is not their child.
    forkserver._forkserver.ensure_running = lambda: None
    return forkserver._forkserver._forkserver_pid


def error_of(event):
    """Why an attempt of a step failed; None of any other event."""
    if event.is_step_up_for_retry:
        return event.step_retry_data.error
    return event.step_failure_data.error if event.is_step_failure else None


class Materializer(materialize.Materializer):
    def build(self, stage, run_config=None):
        from dagster_defs.inputs import out_of_date

        due = out_of_date(self.config, self.workspace, stage.asset, stage.keys)
        for request in self._requests(stage, due):
            partition, tags = request.partition_key, {}
            if partition is not None:
                definition = self.graph.get(dg.AssetKey(stage.asset)).partitions_def
                tags = definition.get_tags_for_partition_key(partition)
            try:
                result = dg.execute_job(
                    JOBS[stage.asset],
                    instance=self.instance,
                    tags={**request.tags, **tags, materialize.PROCESS: materialize._this_process()},
                    run_config={**materialize.QUIET, **(run_config or {})},
                )
            except CheckError as error:
                if KILLED_AFTER_SUCCESS not in str(error):
                    raise
                continue
            self.failures += [
                f"{stage.asset}: {error.to_string()}"
                for event in result.all_events
                if (error := error_of(event)) and error.cls_name != OF_A_KILL
            ]
        return len(due)


def main():
    if sys.argv[1:2] == ["--steps"]:
        del sys.argv[1]
        materialize.Materializer = Materializer
    return materialize.main()


if PRELOADING in os.environ:
    load_everything()
