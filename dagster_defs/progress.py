"""Progress of long work in a run's log: a line at most every few seconds, with time left."""

import time
from typing import Protocol

from chunking_assets.embedding_models.model import Progress

EVERY_SECONDS = 5.0


class Log(Protocol):
    def info(self, msg: object) -> None: ...


def logged(log: Log, what: str, unit: str) -> Progress:
    """A progress callback that writes `what: done/total unit, rate, time left` to `log`."""
    started = last = time.monotonic()

    def progress(done: int, total: int) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last < EVERY_SECONDS:
            return
        last = now
        rate = done / (now - started)
        log.info(
            f"{what} {done:,}/{total:,} {unit}, {rate:.1f}/s, about {(total - done) / rate:.0f} s left"
        )

    return progress
