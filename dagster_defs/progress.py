"""Progress of long work: a line now and then in a run's log, and to whoever listens.

A line says how much is done, how fast, and the time left. A log has a few lines for a piece of
work however long it is: the log of a run is read by the UI, and must not grow with the documents.
"""

import time
from collections.abc import Callable
from typing import Protocol

EVERY_SECONDS = 5.0
MOST_LINES = 20

listeners: list[Callable[[str], None]] = []
"""Told every step, not only every few seconds: a command line shows them as they come."""


class Log(Protocol):
    """A run's log."""

    def info(self, msg: object) -> None: ...


class Logged(Protocol):
    """Serves as `Progress` and as `TokenProgress`."""

    def __call__(self, done: int, total: int, tokens: int = 0, /) -> None: ...


def logged(log: Log, what: str, unit: str) -> Logged:
    """A progress callback that writes `what done/total unit, rates, time left` to `log`."""
    started = last = called = time.monotonic()
    before = said = 0

    def progress(done: int, total: int, tokens: int = 0, /) -> None:
        nonlocal started, last, called, before, said
        now = time.monotonic()
        if done < before:  # the next shard: its own count, its own clock
            started, said = called, 0
        called, before = now, done
        rate = done / max(1e-9, now - started)
        left = (total - done) / rate
        read = f", {tokens / max(1e-9, now - started):,.0f} tokens/s" if tokens else ""
        line = f"{what} {done:,}/{total:,} {unit}, {rate:.1f}/s{read}, about {left:.0f} s left"
        for listener in listeners:
            listener(line)
        if now - last >= EVERY_SECONDS and done - said >= total / MOST_LINES:
            last, said = now, done
            log.info(line)

    return progress
