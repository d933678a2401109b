"""`python -m dagster_defs.materialize`: bring everything up to date once, and say what it did.

The same decisions as the sensors take (observe, compare stamps, build what is out of date), in one
process and in order, so a first run and a machine without a daemon need nothing else.
"""

import argparse
import os
import socket
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dagster as dg
from dagster._core.errors import DagsterExecutionInterruptedError
from dagster._core.execution.plan.objects import StepFailureData
from rich.console import Console

from chunking_assets import config as configuration
from chunking_assets.chunk_sets.build import cell
from chunking_assets.config import Config
from chunking_assets.errors import CorpusError
from chunking_assets.live_index.promotion import live
from chunking_assets.live_index.retire import retire_shards
from chunking_assets.parsed_elements.build import has_documents_to_retry
from chunking_assets.raw_documents.collection import Collection
from chunking_assets.raw_documents.look import Look, look_settled
from chunking_assets.workspace import WHOLE, Workspace
from dagster_defs.home import prepare_home
from dagster_defs.pools import set_limits
from dagster_defs.progress import EVERY_SECONDS, listeners
from dagster_defs.promotion import promote_declared
from dagster_defs.run_requests import run_requests
from dagster_defs.summary import Totals, print_summary, totals_since

PROCESS = "corpus/process"
"""Tag of a run that this command executes itself: the machine and the process."""

QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}
"""Dagster's own log goes to the instance, where the UI shows it, and not to the terminal."""


@dataclass(frozen=True)
class Stage:
    """An asset, and the partitions it could have."""

    asset: str
    keys: Sequence[str]


def stages(config: Config) -> Iterator[Stage]:
    """Every asset that is built, in the order data flows."""
    shards, versions = list(config.shards()), list(config.chunker_versions)
    cells = [cell(version, shard) for version in versions for shard in shards]
    yield Stage("parsed_elements", shards)
    yield Stage("chunk_sets", cells)
    yield Stage("chunk_embeddings", cells)
    yield Stage("gold_questions", [WHOLE])
    yield Stage("retrieval_scores", versions)
    yield Stage("ragas_scores", versions)
    yield Stage("strategy_comparison", [WHOLE])
    yield Stage("eval_tables", [WHOLE])
    yield Stage("report", [WHOLE])


class Materializer:
    """Builds what is out of date in one Dagster instance."""

    def __init__(self, config: Config, instance: dg.DagsterInstance) -> None:
        from dagster_defs.definitions import defs

        self.config, self.instance = config, instance
        self.workspace = Workspace(config.home)
        self.job = defs.resolve_implicit_global_asset_job_def()
        self.graph = defs.resolve_asset_graph()
        self.failures: list[str] = []

    def observe(self) -> None:
        """Report the documents and declarations that changed since they were last seen."""
        from dagster_defs.sensors import observe

        known = set(self.instance.get_dynamic_partitions("corpus_shard"))
        new = [shard for shard in self.config.shards() if shard not in known]
        if new:
            self.instance.add_dynamic_partitions("corpus_shard", new)

        def look_at(name: str, collection: Collection) -> Look:
            return look_settled(name, collection, self.config.root, self.workspace.caches)

        for event in observe(self.config, self.workspace, self._seen(), self.failures, look_at):
            self.instance.report_runless_asset_event(event)

    def retire(self) -> list[str]:
        """Drop the shards that are no longer declared; which they were."""
        from dagster_defs.inputs import shards_to_retire
        from dagster_defs.upkeep import forget_partitions

        shards = shards_to_retire(self.config, self.workspace)
        retire_shards(self.workspace, shards)
        forget_partitions(self.instance, self.config, self.workspace)
        return shards

    def end_dead_runs(self) -> None:
        """Runs of this command that were killed would count as in progress for ever."""
        unfinished = dg.RunsFilter(statuses=[dg.DagsterRunStatus.STARTED])
        for run in self.instance.get_runs(unfinished):
            process = run.tags.get(PROCESS)
            if process is not None and not _is_alive(process):
                self.instance.report_run_failed(run, f"process {process} is gone")

    def _seen(self) -> dict[str, dict[str, str]]:
        """The versions last reported, as the instance knows them."""
        seen: dict[str, dict[str, str]] = {}
        for asset, keys in (
            ("raw_documents", list(self.config.shards())),
            ("chunker_versions", list(self.config.chunker_versions)),
        ):
            for key in keys:
                record = self.instance.get_latest_data_version_record(
                    dg.AssetKey(asset), partition_key=key
                )
                tags = (
                    record.asset_materialization.tags
                    if record and record.asset_materialization
                    else {}
                )
                seen.setdefault(asset, {})[key] = (tags or {}).get("dagster/data_version", "")
        return seen

    def build(self, stage: Stage, run_config: dict[str, Any] | None = None) -> int:
        """Build the partitions of a stage that are out of date, and read documents again that
        might come out better; how many partitions there were.

        Raises:
            KeyboardInterrupt: the run was interrupted; what it had built is kept.
        """
        from dagster_defs.inputs import out_of_date

        due = out_of_date(self.config, self.workspace, stage.asset, stage.keys)
        if stage.asset == "parsed_elements":
            again = [s for s in stage.keys if has_documents_to_retry(self.workspace, s)]
            due += [shard for shard in again if shard not in due]
        for request in self._requests(stage, due):
            result = self.job.execute_in_process(
                instance=self.instance,
                asset_selection=[dg.AssetKey(stage.asset)],
                partition_key=request.partition_key,
                tags={**request.tags, PROCESS: _this_process()},
                run_config={**QUIET, **(run_config or {})},
                raise_on_error=False,
            )
            for event in result.get_step_failure_events():
                self.failures.append(f"{event.step_key}: {_in_one_line(event.step_failure_data)}")
        return len(due)

    def failed(self, stage: Stage) -> int:
        """How many partitions of a stage are still out of date."""
        from dagster_defs.inputs import out_of_date

        return len(out_of_date(self.config, self.workspace, stage.asset, stage.keys))

    def _requests(self, stage: Stage, due: list[str]) -> list[dg.RunRequest]:
        """Runs that cover many partitions each, as the daemon would launch them."""
        if stage.keys == [WHOLE]:
            return [dg.RunRequest()] if due else []
        return run_requests(stage.asset, due, self.graph, self.instance)


def _in_one_line(failure: StepFailureData) -> str:
    """The sentence for the person; the traceback is on the run's page."""
    if failure.user_failure_data and failure.user_failure_data.description:
        return failure.user_failure_data.description
    error = failure.error
    while error and error.cause:
        error = error.cause
    if error is None:
        return "failed"
    if error.cls_name == DagsterExecutionInterruptedError.__name__:
        raise KeyboardInterrupt
    return error.message.strip().partition(": ")[2] or error.message.strip()


def _this_process() -> str:
    return f"{socket.gethostname()}:{os.getpid()}"


def _is_alive(process: str) -> bool:
    """Whether a process named by `_this_process` runs; on another machine, nobody can tell."""
    host, _, pid = process.rpartition(":")
    return host != socket.gethostname() or Path(f"/proc/{pid}").exists()


class _Display:
    """Progress on the terminal: one line that changes; where there is none, a line now and then."""

    def __init__(self) -> None:
        self._console = Console(highlight=False)
        self._status = self._console.status("looking for changes")
        self._printed = time.monotonic()

    def __enter__(self) -> "_Display":
        listeners.append(self.show)
        self._status.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._status.stop()
        listeners.remove(self.show)

    def show(self, line: str) -> None:
        self._status.update(line)
        if not self._console.is_terminal and time.monotonic() - self._printed > EVERY_SECONDS:
            self._printed = time.monotonic()
            self._console.print(f"    {line}")

    def done(self, line: str) -> None:
        self._console.print(f"  {line}")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m dagster_defs.materialize", description=__doc__)
    parser.add_argument(
        "--confirm-deletions",
        metavar="SHARD",
        action="append",
        default=[],
        help="take the documents missing from this shard as deleted, however many",
    )
    parser.add_argument(
        "--promote-first",
        action="store_true",
        help="if nothing is live yet, promote the baseline strategy",
    )
    arguments = parser.parse_args()
    try:
        config = configuration.load()
        with Workspace(config.home).lock(PROCESS, lambda: print("another build runs; waiting ...")):
            return _run(config, arguments.confirm_deletions, arguments.promote_first)
    except CorpusError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("Interrupted. What was done is kept; run again to go on.", file=sys.stderr)
        return 130


def _run(config: Config, confirmed: list[str], promote_first: bool) -> int:
    if unknown := {*confirmed} - config.shards().keys():
        raise CorpusError(
            f"no shard is called {', '.join(sorted(unknown))}. "
            f"Shards: {', '.join(config.shards())}."
        )
    prepare_home(config.local)
    started = time.time()
    with dg.DagsterInstance.get() as instance, _Display() as display:
        set_limits(instance)
        materializer = Materializer(config, instance)
        materializer.end_dead_runs()
        materializer.observe()
        built = 0
        for stage in stages(config):
            begun = time.monotonic()
            before = len(materializer.failures)
            due = materializer.build(stage, _run_config(stage, confirmed))
            failed = materializer.failed(stage) if len(materializer.failures) > before else 0
            built += due - failed
            if due:
                shown = f"{due - failed:3} built" + (f", {failed} failed" if failed else "")
                display.done(f"{stage.asset:20} {shown}  {time.monotonic() - begun:6.1f} s")
            for failure in materializer.failures[before:]:
                display.done(f"failed: {failure}")
            if stage.asset == "chunk_embeddings":
                if retired := materializer.retire():
                    display.done(f"no longer declared, dropped: {', '.join(retired)}")
                if promote_first and not materializer.failures:
                    _promote_baseline(config, instance, display)
    totals: Totals = totals_since(Workspace(config.home), started)
    print_summary(config, totals, built, len(materializer.failures))
    for failure in materializer.failures:
        print(f"failed: {failure}", file=sys.stderr)
    return 1 if materializer.failures else 0


def _run_config(stage: Stage, confirmed: list[str]) -> dict[str, Any]:
    if stage.asset != "parsed_elements" or not confirmed:
        return {}
    return {"ops": {"parsed_elements": {"config": {"confirm_deletions": confirmed}}}}


def _promote_baseline(config: Config, instance: dg.DagsterInstance, display: _Display) -> None:
    from dagster_defs.jobs import live_event

    workspace = Workspace(config.home)
    if live(workspace) is None:
        name = config.comparison.baseline or next(iter(config.strategies))
        event = promote_declared(config, workspace, name, reason="the first one")
        instance.report_runless_asset_event(live_event(event))
        display.done(f"live: {name} (the baseline, as nothing was live)")


if __name__ == "__main__":
    sys.exit(main())
