"""`python -m dagster_defs.ray_cluster`: a Ray cluster of this machine, that only it can reach.

Ray listens on every network, and puts the machine's address in the place of 127.0.0.1 where it is
told that one. Where it is told that it cannot have other nodes, it stays on loopback; and whoever
else is on this machine is asked for the token, which is a file that only its owner reads.
"""

import os
import secrets
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from chunking_assets import config as configuration
from chunking_assets.errors import CorpusError

LOCAL_ADDRESS = "127.0.0.1:6379"

ONE_MACHINE = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}
"""Ray's own word, whose name says where it is the default. All ports are then on 127.0.0.1."""

OBJECT_STORE_BYTES = 200_000_000
"""Tasks hand on no data: it lies in the workspace."""


def is_local(address: str) -> bool:
    """Whether an address is one of this machine only.

    >>> [is_local(address) for address in ("127.0.0.1:6379", "ray://10.0.0.5:10001")]
    [True, False]
    """
    return address.removeprefix("ray://").startswith(("127.", "localhost:"))


def local_environment(folder: Path) -> Mapping[str, str]:
    """What Ray must find in the environment of the cluster and of whoever uses it."""
    file = token_file(folder)
    asked = any(name in os.environ for name in ("RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"))
    token = {} if asked or not file.exists() else {"RAY_AUTH_TOKEN_PATH": str(file)}
    return {**ONE_MACHINE, "RAY_AUTH_MODE": "token", **token}


def token_file(folder: Path) -> Path:
    """Below the workspace's folder on this machine."""
    return folder / "ray" / "token"


def make_token(folder: Path) -> None:
    """Make the token of this workspace's cluster, unless there is one."""
    file = token_file(folder)
    file.parent.mkdir(parents=True, exist_ok=True)
    with suppress(FileExistsError):
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w") as opened:
            opened.write(secrets.token_hex(32))


def command(*arguments: str) -> list[str]:
    """What runs the cluster, in the foreground. The last of two equal options counts."""
    host, port = LOCAL_ADDRESS.split(":")
    return [
        sys.executable, "-m", "ray.scripts.scripts", "start", "--head", "--block",
        "--node-ip-address", host, "--port", port, "--include-dashboard", "false",
        "--object-store-memory", str(OBJECT_STORE_BYTES), "--disable-usage-stats", *arguments,
    ]  # fmt: skip


def main() -> int:
    """Arguments are those of `ray start`, such as `--num-cpus 4`."""
    try:
        folder = configuration.load().local
    except CorpusError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    make_token(folder)
    os.environ.update(local_environment(folder))
    started = command(*sys.argv[1:])
    print(f"The token is in {token_file(folder)}. Stop with Ctrl-C.", flush=True)
    return os.execv(started[0], started)  # noqa: S606


if __name__ == "__main__":
    sys.exit(main())
