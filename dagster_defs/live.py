"""`python -m dagster_defs.live promote NAME | rollback`: the live index from the command line.

The same functions as the jobs of the UI, and the same event on the asset's page.
"""

import argparse
import sys
from typing import Any

import dagster as dg

from chunking_assets import config as configuration
from chunking_assets.errors import CorpusError
from chunking_assets.live_index.promotion import rollback
from chunking_assets.workspace import Workspace
from dagster_defs.home import prepare_home
from dagster_defs.jobs import live_event
from dagster_defs.promotion import promote_declared


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m dagster_defs.live", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    promoting = commands.add_parser("promote", help="make a strategy live, if the gate agrees")
    promoting.add_argument("strategy")
    promoting.add_argument(
        "--force", action="store_true", help="override what was measured; recorded"
    )
    promoting.add_argument("--reason", default="", help="kept with the event")
    rolling = commands.add_parser("rollback", help="make live what was live before")
    rolling.add_argument("--reason", default="", help="kept with the event")
    try:
        event = _run(parser.parse_args())
    except CorpusError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(f"live: {event['strategy']} (was {event['previous'] or 'nothing'})")
    for reason in event["overridden"]:
        print(f"forced, recorded with it: {reason}")
    print("Readers follow at once; `make build` compares the others with it.")
    return 0


def _run(arguments: argparse.Namespace) -> dict[str, Any]:
    config = configuration.load()
    workspace = Workspace(config.home)
    prepare_home(config.local)
    if arguments.command == "rollback":
        event = rollback(workspace, config.strategies, reason=arguments.reason)
    else:
        event = promote_declared(
            config,
            workspace,
            arguments.strategy,
            reason=arguments.reason,
            force=arguments.force,
        )
    with dg.DagsterInstance.get() as instance:
        instance.report_runless_asset_event(live_event(event))
    return event


if __name__ == "__main__":
    sys.exit(main())
