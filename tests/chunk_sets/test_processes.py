"""Calls in processes that die at any moment."""

import os
import signal
import time

import pytest

from chunking_assets.chunk_sets.processes import ProcessDied, in_processes


def _dies_at_one(number: int) -> int:
    if number == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return number


def _after_the_death(pool_is_broken):
    yield 0
    yield 1
    pool_is_broken()
    yield 2


def test_a_death_seen_before_the_next_call_is_begun_is_told_of_the_call_that_died(monkeypatch):
    """The pool may notice while the arguments are still being read, or while results are."""
    from loky import ProcessPoolExecutor

    pools = []
    begin = ProcessPoolExecutor.__init__

    def remember(pool, *args, **kwargs):
        begin(pool, *args, **kwargs)
        pools.append(pool)

    monkeypatch.setattr(ProcessPoolExecutor, "__init__", remember)

    def until_broken():
        while pools[0]._flags.broken is None:
            time.sleep(0.01)

    with pytest.raises(ProcessDied, match=r"A process that chunked [01] was ended from outside"):
        list(in_processes(_dies_at_one, _after_the_death(until_broken), count=2))
