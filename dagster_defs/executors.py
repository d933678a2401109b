"""Where steps run and cells are built: CORPUS_EXECUTOR says which, and nothing else changes.

`in_process`: in the process of the run; runs of other partitions go side by side. `multiprocess`: a
process for every step, which costs seconds each. `ray`: a run has one or two steps over many cells,
so it is the cells that go to the cluster, each as a Ray task (dagster_defs/ray_tasks.py); a Ray job
for every step would start late and spread nothing.
"""

import os
from importlib.util import find_spec

import dagster as dg

from chunking_assets.errors import CorpusError

VARIABLE = "CORPUS_EXECUTOR"
IN_PROCESS, MULTIPROCESS, RAY = EXECUTORS = ("in_process", "multiprocess", "ray")


def chosen() -> str:
    """What CORPUS_EXECUTOR says; `in_process` if nothing.

    Raises:
        CorpusError: it is none of `EXECUTORS`, or needs an extra that is not installed.
    """
    name = os.environ.get(VARIABLE) or IN_PROCESS
    if name not in EXECUTORS:
        raise CorpusError(
            f"{VARIABLE} is {name!r}. Set it to one of {', '.join(EXECUTORS)}, or unset it."
        )
    if name == RAY and find_spec("ray") is None:
        raise CorpusError(
            f"{VARIABLE}={RAY} needs the extra `ray`, which is not installed: "
            "pip install 'chunking-assets[ray]'."
        )
    return name


def executor() -> dg.ExecutorDefinition:
    """The executor of every job.

    Raises:
        CorpusError: as `chosen`.
    """
    if chosen() == MULTIPROCESS:
        # Forked from a process that has loaded the definitions, a step does not load them again.
        return dg.multiprocess_executor.configured({"start_method": {"forkserver": {}}})
    return dg.in_process_executor
