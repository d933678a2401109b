"""Processes of a deployment: which belong to it, what they listen on, and that they end."""

import contextlib
import os
import re
import signal
import socket
import struct
import time
from ipaddress import IPv6Address, ip_address
from pathlib import Path

LISTEN = "0A"


def wait_for(seconds, look):
    """What `look` returns once it is something; asked often, and not for ever."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if found := look():
            return found
        time.sleep(0.05)
    raise AssertionError(f"nothing after {seconds} s")


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def marked(mark):
    """The processes with this in their environment, as all have that were started with it."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal() and int(folder.name) != os.getpid():
            with contextlib.suppress(OSError):
                if mark.encode() in (folder / "environ").read_bytes():
                    found.append(int(folder.name))
    return found


def end(process, mark):
    """Stop a process in order; those of the same mark that had to be stopped by force."""
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
    with contextlib.suppress(AssertionError):
        wait_for(60, lambda: process.poll() is not None and not marked(mark))
    left = marked(mark)
    for pid in left:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    process.wait()
    return left


def listening(pids):
    """(address, port) of every TCP socket on which one of these processes waits for connections."""
    inodes = set()
    for pid in pids:
        with contextlib.suppress(OSError):
            for file in Path(f"/proc/{pid}/fd").iterdir():
                with contextlib.suppress(OSError):
                    inodes.update(re.findall(r"socket:\[(\d+)\]", os.readlink(file)))
    found = set()
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            _, local, _, state, *_, inode = line.split()[:10]
            if state == LISTEN and inode in inodes:
                address, port = local.split(":")
                found.add((address_of(address), int(port, 16)))
    return found


def address_of(words):
    """An address as the kernel writes it: words of four bytes in the machine's order."""
    numbers = [int(words[at : at + 8], 16) for at in range(0, len(words), 8)]
    address = ip_address(struct.pack(f"={len(numbers)}I", *numbers))
    is_mapped = isinstance(address, IPv6Address) and address.ipv4_mapped
    return address.ipv4_mapped if is_mapped else address
