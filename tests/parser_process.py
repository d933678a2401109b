"""The process that reads untrusted files, as a test may hold and kill it."""

import os
import signal
from threading import Thread

from chunking_assets.parsed_elements import guard


def waiting() -> int:
    """The process that waits for the next file."""
    return guard._idle[os.getpid()][-1].process.pid


def kill_once_given_a_file(pid: int, number: int = signal.SIGKILL) -> Thread:
    """Stop a waiting process, and kill it as soon as it was given a file."""
    os.kill(pid, signal.SIGSTOP)

    def kill() -> None:
        while guard._idle.get(os.getpid()):
            os.sched_yield()
        os.kill(pid, number)
        os.kill(pid, signal.SIGCONT)

    thread = Thread(target=kill)
    thread.start()
    return thread
