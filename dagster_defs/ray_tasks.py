"""The cells of a run as Ray tasks: each claims what corpus.yaml says, and is tried again by Ray.

A task is a step's own function on a few cells, so a worker that dies, however it dies, is what a
killed run is: the next try goes on from what is stored. Workers need this code, the same
corpus.yaml and the same workspace. Credentials stay in their own environment: what is handed to a
task can be read in Ray's dashboard.
"""

import os
import socket
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from logging import WARNING
from types import ModuleType
from typing import Any

import dagster as dg

from chunking_assets.config import CONFIG_VARIABLE, HOME_VARIABLE, Config
from chunking_assets.errors import CorpusError
from chunking_assets.execution import Claim
from chunking_assets.storage import StorageUnavailable
from dagster_defs.cells import Built, Outcome, Run, attempt_together, noted
from dagster_defs.executors import RAY, VARIABLE, chosen
from dagster_defs.progress import logged
from dagster_defs.ray_cluster import LOCAL_ADDRESS, is_local, local_environment
from dagster_defs.resources import Corpus

ADDRESS = "RAY_ADDRESS"

RETRIES = 3
"""Times a task is begun again whose worker died. What a build raises is not tried again."""

GIB = 1 << 30

SECONDS_TO_CONNECT = 10

Build = Callable[[Run, Corpus, Sequence[str]], Mapping[str, Built]]
"""Builds partitions in one go: a function of a module, for workers find it by its name."""


def attempt_cells(
    context: dg.AssetExecutionContext,
    corpus: Corpus,
    build: Build,
    *,
    here: Sequence[Sequence[str]],
    tasks: Sequence[Sequence[str]],
    claim: Callable[[Config, Sequence[str]], Claim],
) -> dict[str, Outcome]:
    """Build partitions in this process, in the groups `here`; on Ray, one task for each of `tasks`.

    Raises:
        CorpusError: the cluster cannot be reached.
    """
    if chosen() != RAY:
        return attempt_together(here, partial(build, context, corpus))
    ray = connected(corpus.config)
    attempt = ray.remote(max_retries=RETRIES)(_attempt)
    keys_of = {}
    for keys in tasks:
        claimed = claim(corpus.config, keys)
        cores = max(1, int(claimed.num_cpus or 0))
        task = attempt.options(name=" ".join(keys), **options(claimed))
        keys_of[task.remote(build, corpus.config_file, cores, context.run_id, [*keys])] = keys
    outcomes: dict[str, Outcome] = {}
    tell = logged(context.log, f"{context.asset_key.to_user_string()} on Ray:", "tasks")
    waiting = [*keys_of]
    while waiting:
        (done,), waiting = ray.wait(waiting)
        try:
            outcomes |= ray.get(done)
        except ray.exceptions.RayError as error:
            outcomes |= dict.fromkeys(keys_of[done], noted(error))
        tell(len(keys_of) - len(waiting), len(keys_of))
    return {key: outcomes[key] for keys in tasks for key in keys}


def options(claim: Claim) -> dict[str, Any]:
    """A claim in the words of Ray.

    >>> options(Claim(num_cpus=2, memory_gb=0.5, resources={"embedder": 1}))
    {'num_cpus': 2.0, 'memory': 536870912, 'resources': {'embedder': 1.0}}
    """
    claimed = {"num_cpus": claim.num_cpus, "num_gpus": claim.num_gpus}
    words: dict[str, Any] = {word: n for word, n in claimed.items() if n is not None}
    if claim.memory_gb is not None:
        words["memory"] = int(claim.memory_gb * GIB)
    return words | ({"resources": dict(claim.resources)} if claim.resources else {})


def connected(config: Config) -> ModuleType:
    """Ray, connected to the cluster of $RAY_ADDRESS, or to the one of this machine.

    A cluster is never started from here: what Ray starts by itself listens on every network.

    Raises:
        CorpusError: nothing answers there.
    """
    address = os.environ.get(ADDRESS) or LOCAL_ADDRESS
    if not _answers(address):
        raise _unreachable(address, "nothing answers there")
    if is_local(address):
        os.environ.update(local_environment(config.local))  # Ray reads it once, when it is imported
    import ray

    if not ray.is_initialized():
        shared = {CONFIG_VARIABLE: str(config.file)}
        if HOME_VARIABLE in os.environ:
            shared[HOME_VARIABLE] = os.environ[HOME_VARIABLE]
        try:
            ray.init(address=address, runtime_env={"env_vars": shared}, logging_level=WARNING)
        except (ConnectionError, ray.exceptions.RayError) as error:
            raise _unreachable(address, str(error)) from error
    return ray


def _answers(address: str) -> bool:
    """Whether a host and port can be connected to: Ray tries for minutes, and ends the process."""
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    try:
        socket.create_connection((host, int(port)), timeout=SECONDS_TO_CONNECT).close()
    except OSError:
        return False
    except ValueError:
        return not colon  # `auto` is for Ray to find
    return True


def _unreachable(address: str, problem: str) -> CorpusError:
    return CorpusError(
        f"{VARIABLE}={RAY}: the cluster at {address} cannot be used: {problem.rstrip('.')}. Start "
        f"one with `python -m dagster_defs.ray_cluster`, or set {ADDRESS} and the token."
    )


@dataclass(frozen=True)
class _Printed:
    """What is printed in a task is shown in the output of the run, and in Ray's logs."""

    def info(self, msg: object) -> None:
        print(msg, flush=True)


@dataclass(frozen=True)
class _PartOfRun:
    """What a task knows of the run it belongs to."""

    run_id: str
    log: _Printed = _Printed()


def _attempt(
    build: Build, config_file: str, cores: int, run_id: str, keys: Sequence[str]
) -> dict[str, Outcome]:
    """Build in the process of a worker. An error becomes its words: its class may not travel,
    unless it is one that is tried again."""
    corpus = Corpus(config_file=config_file, cores=cores)
    outcomes = attempt_together([keys], partial(build, _PartOfRun(run_id), corpus))
    return {k: o if isinstance(o, Built) else _in_words(o) for k, o in outcomes.items()}


def _in_words(error: Exception) -> CorpusError:
    kind = StorageUnavailable if isinstance(error, StorageUnavailable) else CorpusError
    told = kind(str(error) or type(error).__name__)
    for note in getattr(error, "__notes__", []):
        told.add_note(note)
    return told
