"""Untrusted files are parsed in a process of their own, which may hang, crash or eat memory.

One warm process per thread that asks reads file after file, so that its start is paid once. It is
given the bytes and limits and returns JSON, never a pickle: what a hostile file made of it cannot
run anything here. Who breaks a limit is killed; the next file gets a new process.
"""

import atexit
import json
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from math import ceil
from multiprocessing.connection import Connection, Pipe
from pathlib import Path
from typing import Any

from chunking_assets.errors import CorpusError
from chunking_assets.parsed_elements.document import Element, ParsedText, Refused
from chunking_assets.parsed_elements.limits import Limits
from chunking_assets.parsed_elements.registry import MODELS, prepare, read

LOOKS_SECONDS = 0.05
"""How often the memory of a process at work is looked at."""
START_SECONDS = 120
MODELS_MB = 3000
"""What models take for their own work on any page, beside what the limits give a file."""
DYING_SECONDS = 2
"""How long the end of a process may take after it closed its pipe."""
GRACE_SECONDS = 5
"""After its time is over a process ends itself, where the one that would kill it is gone."""
LEFT_SHARE = 0.25
"""A process that kept this share of its memory is not used again."""
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_PEAK_BYTES = 1 if sys.platform == "darwin" else 1024
"""The unit of the system's `ru_maxrss`."""

_MEMORY = "reading it takes more than {mb:,} MB of memory"
_MEMORY_CURE = "Raise parsing.memory_mb in corpus.yaml if the file can be trusted, or exclude it."


def parse(data: bytes, media_type: str, limits: Limits) -> ParsedText:
    """What the registered parser of this media type makes of `data`, in another process.

    Raises:
        Refused: with the parser's own reason, or timeout, crashed, or too_large (for memory).
        CorpusError: what else the parser raised, as text.
    """
    idle = _idle.setdefault(os.getpid(), [])
    models = media_type if media_type in MODELS else ""
    reader = _living(idle, models) or _Reader(models)
    try:
        reply = reader.ask(data, media_type, limits)
    except BaseException:
        reader.kill()
        raise
    if reply.get("spent") or reader.resident() > reader.base + LEFT_SHARE * reader.most(limits):
        reader.kill()
    else:
        idle.append(reader)
    return _parsed(reply)


def close() -> None:
    """End the idle processes of this one."""
    for reader in _idle.pop(os.getpid(), []):
        reader.kill()


_idle: dict[int, list["_Reader"]] = {}
"""By process, because one that is forked has no part in the pipes of its parent."""
atexit.register(close)


def _living(idle: list["_Reader"], models: str) -> "_Reader | None":
    """An idle reader that has loaded these models; those that were killed while they waited are no
    document's fault."""
    for reader in [reader for reader in idle[::-1] if reader.models == models]:
        try:
            idle.remove(reader)
        except ValueError:
            continue  # another thread took it
        if reader.process.poll() is None:
            return reader
        reader.kill()
    return None


class _Reader:
    """A process that parses, seen from the one that asks; `models` are the media type whose models
    it loads before it is given a file, or ""."""

    def __init__(self, models: str) -> None:
        self.models = models
        ours, theirs = Pipe()
        with theirs:
            self.connection: Connection = ours  # type: ignore[type-arg, unused-ignore]
            path = os.pathsep.join(filter(None, sys.path))
            self.process = subprocess.Popen(  # noqa: S603
                [sys.executable, "-P", "-m", __name__, str(theirs.fileno()), models],
                pass_fds=[theirs.fileno()],
                env={**os.environ, "PYTHONPATH": path},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
        try:
            if not ours.poll(START_SECONDS):
                raise EOFError
            # Linux counts what the process that starts it holds at that moment, too.
            self.inherited_peak = int(ours.recv_bytes())
        except (EOFError, OSError) as error:
            self.kill()
            raise Refused(
                "crashed",
                f"the process that reads files did not start ({self._end()})",
                "It is tried again by the next run; see that there is memory for a process.",
            ) from error
        self.base = self.resident()

    def ask(self, data: bytes, media_type: str, limits: Limits) -> dict[str, Any]:
        deadline = time.monotonic() + limits.seconds
        head = {"media_type": media_type, "limits": limits.model_dump()}
        seen = 0
        try:
            self.connection.send_bytes(json.dumps(head).encode())
            self.connection.send_bytes(data)
            while not self.connection.poll(LOOKS_SECONDS):
                if time.monotonic() > deadline:
                    raise Refused(
                        "timeout",
                        f"reading it takes more than {limits.seconds:g} seconds",
                        "It is tried again by the next run. If that ends the same way, raise "
                        "parsing.seconds in corpus.yaml, or exclude it.",
                    )
                seen = max(seen, self.resident())
                if seen > self.base + self.most(limits):
                    raise _too_large(limits)
            reply = json.loads(self.connection.recv_bytes(2 * limits.memory_mb * 1_000_000))
            if isinstance(reply, dict):
                return reply
            raise ValueError("no mapping")
        except (EOFError, OSError, ValueError) as error:
            peak = self.kill(after_seconds=DYING_SECONDS)
            if peak <= self.inherited_peak:
                peak = seen
            if peak > self.base + self.most(limits) / 2 and self.process.returncode < 0:
                raise _too_large(limits) from error
            raise Refused(
                "crashed",
                f"its parser crashed ({self._end()})",
                "It is tried again by the next run. If that ends the same way, convert it, "
                "exclude it, or raise parsing.memory_mb in corpus.yaml.",
            ) from error

    def most(self, limits: Limits) -> int:
        """Bytes that reading a file may take."""
        return _bytes(limits, self.models)

    def resident(self) -> int:
        """Bytes of memory it holds; 0 where the system does not say."""
        try:
            pages = Path(f"/proc/{self.process.pid}/statm").read_text(encoding="ascii").split()
        except (OSError, ValueError):
            return 0
        return int(pages[1]) * _PAGE_BYTES

    def kill(self, after_seconds: float = 0) -> int:
        """End it, and say how many bytes it held at most; one that is dying may say of what."""
        self.connection.close()
        if self.process.returncode is not None:
            return 0
        pid, deadline = 0, time.monotonic() + after_seconds
        try:
            while not pid and time.monotonic() < deadline:
                pid, status, usage = os.wait4(self.process.pid, os.WNOHANG)
                if not pid:
                    time.sleep(0.005)
            if not pid:
                os.kill(self.process.pid, signal.SIGKILL)
                _, status, usage = os.wait4(self.process.pid, 0)
        except (ChildProcessError, ProcessLookupError):
            self.process.returncode = 1
            return 0
        self.process.returncode = os.waitstatus_to_exitcode(status)
        return usage.ru_maxrss * _PEAK_BYTES

    def _end(self) -> str:
        code = self.process.returncode
        return signal.Signals(-code).name if code and code < 0 else f"exit code {code}"


def _bytes(limits: Limits, models: str) -> int:
    return (limits.memory_mb + (MODELS_MB if models else 0)) * 1_000_000


def _too_large(limits: Limits) -> Refused:
    return Refused("too_large", _MEMORY.format(mb=limits.memory_mb), _MEMORY_CURE)


def _parsed(reply: Mapping[str, Any]) -> ParsedText:
    if refused := reply.get("refused"):
        raise Refused(*map(str, refused))
    if "failed" in reply:
        raise CorpusError(str(reply["failed"]))
    elements = tuple(
        Element(kind, start, end, level, tuple(path), language, tuple(map(tuple, attributes)))
        for kind, start, end, level, path, language, attributes in reply["elements"]
    )
    return ParsedText(reply["text"], elements, reply["warning"], reply["missing"])


# In the process that parses


def _serve(descriptor: int, models: str) -> None:
    connection = Connection(descriptor)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # of the terminal: the parent decides
    with suppress(Exception):  # what is missing is said of each file, by `read`
        prepare(models)
    base = _address_space()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _PEAK_BYTES
    connection.send_bytes(str(peak).encode())
    while True:
        try:
            head = json.loads(connection.recv_bytes())
            data = connection.recv_bytes()
        except EOFError:
            return
        limits = Limits(**head["limits"])
        signal.alarm(ceil(limits.seconds) + GRACE_SECONDS)
        _bound_memory(base + len(data) + _bytes(limits, models) if base else None)
        reply = _reply(partial(read, data, head["media_type"], limits), limits)
        with suppress(BrokenPipeError):
            connection.send_bytes(reply)
        signal.alarm(0)
        _bound_memory(None)
        del head, data, reply


def _bound_memory(most: int | None) -> None:
    """Let no more be asked for than `most` bytes of address space, or as much as there is."""
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    with suppress(ValueError, OSError):  # not on every system; the parent looks on, too
        resource.setrlimit(resource.RLIMIT_AS, (hard if most is None else most, hard))


def _reply(read: "partial[ParsedText]", limits: Limits) -> bytes:
    """What `_parsed` reads; `spent` says that this process may be in no state to go on."""
    try:
        parsed = read()
        elements = [
            (e.kind, e.start, e.end, e.level, e.heading_path, e.language, e.attributes)
            for e in parsed.elements
        ]
        reply: dict[str, Any] = {
            "text": parsed.text,
            "elements": elements,
            "warning": parsed.warning,
            "missing": parsed.missing,
        }
        return json.dumps(reply).encode()
    except Refused as error:
        reply = {"refused": [error.status, error.error, error.cure]}
    except CorpusError as error:
        reply = {"failed": str(error)}
    except BaseException as error:  # a parser may raise anything; a panic of Rust is no Exception
        reply = {"failed": f"{type(error).__name__}: {error}"[:500], "spent": True}
        if MemoryError in (type(error), type(error.__cause__)):  # or a library made another of it
            refused = _too_large(limits)
            reply = {"refused": [refused.status, refused.error, refused.cure], "spent": True}
    return json.dumps(reply).encode()


def _address_space() -> int:
    """Bytes of address space this process has now; 0 where the system does not say."""
    try:
        pages = Path("/proc/self/statm").read_text(encoding="ascii").split()
    except OSError:
        return 0
    return int(pages[0]) * _PAGE_BYTES


if __name__ == "__main__":
    _serve(int(sys.argv[1]), sys.argv[2])
