"""Calls spread over processes, because Python uses one core a process; and over threads.

The processes are loky's: they import what they are asked to run and nothing of the parent's main
module, so that no program needs a guard for it, and one that is killed is noticed.
"""

import os
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Thread
from typing import Any, TypeVar

from chunking_assets.errors import CorpusError

T = TypeVar("T")
R = TypeVar("R")

_ENVIRONMENT = {"POLARS_MAX_THREADS": "1"}
"""The cores are shared by the processes already."""

LOOKS_SECONDS = 1.0
"""How often a process looks whether its parent is alive."""

_function: Callable[[Any], Any] | None = None
"""In a process of the pool: what it is there to call."""


class ProcessDied(CorpusError):
    """A process was ended from outside, most likely for want of memory."""


def in_order(pool: ThreadPoolExecutor, jobs: Iterable[Callable[[], R]], ahead: int) -> Iterator[R]:
    """The results of the jobs in their order; up to `ahead` more are begun, or wait to be taken."""
    waiting: deque[Future[R]] = deque()
    for job in jobs:
        waiting.append(pool.submit(job))
        if len(waiting) > ahead:
            yield waiting.popleft().result()
    while waiting:
        yield waiting.popleft().result()


def in_processes(
    function: Callable[[T], R], arguments: Iterable[T], count: int
) -> Generator[R, None, None]:
    """The results in the order of the arguments, from `count` processes that end with the last.

    At most one result more than there are processes is under way or waits to be taken. What is
    called, its arguments and its results are pickled.

    Raises:
        ProcessDied: a process was killed; the message has an argument it was at, as text.
        CorpusError: something cannot be pickled.
        Exception: what `function` raised.
    """
    from loky import ProcessPoolExecutor

    pool = ProcessPoolExecutor(
        count, initializer=_install, initargs=(function, os.getpid()), env=_ENVIRONMENT
    )
    waiting: deque[tuple[T, Future[R]]] = deque()
    try:
        for argument in arguments:
            waiting.append((argument, _begun(pool, argument)))
            if len(waiting) > count:
                yield _result(*waiting.popleft())
        while waiting:
            yield _result(*waiting.popleft())
    finally:
        pool.shutdown(kill_workers=True)  # they keep nothing that could be lost


def _begun(pool: Any, argument: object) -> "Future[Any]":
    from loky.process_executor import BrokenProcessPool

    begun: Future[Any]
    try:
        begun = pool.submit(_call, argument)
    except BrokenProcessPool as error:  # a call under way broke it: its result comes first
        begun = Future()
        begun.set_exception(error)
    except Exception as error:  # whatever a class of a user raises when it is pickled
        raise _unportable(error) from error
    return begun


def _result(argument: object, future: "Future[R]") -> R:
    from loky.process_executor import BrokenProcessPool, TerminatedWorkerError

    try:
        return future.result()
    except TerminatedWorkerError as error:
        raise ProcessDied(
            f"A process that chunked {argument} was ended from outside. If memory ran out, lower "
            "chunking.batch_mb or chunking.workers in corpus.yaml. Nothing was stored: run again."
        ) from error
    except BrokenProcessPool as error:
        raise _unportable(error) from error


def _unportable(error: Exception) -> CorpusError:
    return CorpusError(
        f"What chunks documents cannot be handed to another process ({error}). Define strategies "
        "and models in a module that can be imported, or set chunking.workers to 1 in corpus.yaml."
    )


def _install(function: Callable[[Any], Any], parent: int) -> None:
    global _function
    _function = function
    Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: int) -> None:
    """The processes wait for work for ever where the one that gives it was killed."""
    while os.getppid() == parent:
        time.sleep(LOOKS_SECONDS)
    os._exit(1)


def _call(argument: object) -> Any:
    assert _function is not None
    return _function(argument)
