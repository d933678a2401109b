"""`python -m dagster_defs.dev`: the Dagster UI and daemon, with their state in the workspace."""

import os
import signal
import sys

from dagster import DagsterInstance

from chunking_assets import config as configuration
from chunking_assets.errors import CorpusError
from dagster_defs.home import prepare_home
from dagster_defs.pools import set_limits


def main() -> int:
    try:
        home = prepare_home(configuration.load().local)
        with DagsterInstance.get() as instance:
            set_limits(instance)
    except CorpusError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(f"Dagster state: {home}")
    # A shell that starts us in the background ignores SIGINT, and Dagster stops by it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    print("Dagster UI: http://127.0.0.1:3000 (unless -p says otherwise), in about half a minute")
    quiet = ["--log-level", "warning", "--code-server-log-level", "warning"]
    command = [sys.executable, "-m", "dagster", "dev", "-w", "workspace.yaml", "-h", "127.0.0.1"]
    return os.execv(command[0], [*command, *quiet, *sys.argv[1:]])  # noqa: S606


if __name__ == "__main__":
    sys.exit(main())
