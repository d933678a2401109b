"""`python -m dagster_defs.materialize` with a process for every step, as a deployment may have it."""

import dagster as dg
import small_corpus  # noqa: F401  # registers `kind: hash` in the processes of the steps too
from dagster._core.definitions.reconstruct import ReconstructableRepository

from dagster_defs import materialize
from dagster_defs.definitions import defs

EXECUTOR = dg.multiprocess_executor.configured(
    {
        "max_concurrent": 2,
        "start_method": {"forkserver": {"preload_modules": ["multiprocess_run"]}},
    }
)


every_asset = dg.Definitions(
    assets=defs.assets,
    asset_checks=defs.asset_checks,
    resources=defs.resources,
    executor=EXECUTOR,
)
JOB = ReconstructableRepository.for_module(
    "multiprocess_run", "every_asset", None
).get_reconstructable_job("__ASSET_JOB")


class Materializer(materialize.Materializer):
    def build(self, stage, run_config=None):
        from dagster_defs.inputs import out_of_date

        due = out_of_date(self.config, self.workspace, stage.asset, stage.keys)
        key = dg.AssetKey(stage.asset)
        for request in self._requests(stage, due):
            partition = request.partition_key
            tags = {}
            if partition is not None:
                definition = self.graph.get(key).partitions_def
                tags = definition.get_tags_for_partition_key(partition)
            result = dg.execute_job(
                JOB,
                instance=self.instance,
                asset_selection=[key],
                tags={**request.tags, **tags, materialize.PROCESS: materialize._this_process()},
                run_config={**materialize.QUIET, **(run_config or {})},
            )
            if not result.success:
                self.failures.append(stage.asset)
        return len(due)


def main():
    materialize.Materializer = Materializer
    return materialize.main()
