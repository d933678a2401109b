"""Progress of long work: a line now and then in a run's log, and to whoever listens.

A line says how much is done, how fast, and the time left.
"""

import time
from collections.abc import Callable
from typing import Protocol

from chunking_assets.embedding_models.model import Progress

EVERY_SECONDS = 5.0

listeners: list[Callable[[str], None]] = []
"""Told every step, not only every few seconds: a command line shows them as they come."""


class Log(Protocol):
    """A run's log."""

    def info(self, msg: object) -> None: ...


def logged(log: Log, what: str, unit: str) -> Progress:
    """A progress callback that writes `what done/total unit, rate, time left` to `log`."""
    started = last = called = time.monotonic()
    before = 0

    def progress(done: int, total: int) -> None:
        nonlocal started, last, called, before
        now = time.monotonic()
        if done < before:  # the next shard: its own count, its own clock
            started = called
        called, before = now, done
        rate = done / max(1e-9, now - started)
        left = (total - done) / rate
        line = f"{what} {done:,}/{total:,} {unit}, {rate:.1f}/s, about {left:.0f} s left"
        for listener in listeners:
            listener(line)
        if now - last >= EVERY_SECONDS:
            last = now
            log.info(line)

    return progress
