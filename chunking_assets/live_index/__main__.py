"""`python -m chunking_assets.live_index`: look into the index, look back, and keep it in order."""

import argparse
import sys
from collections.abc import Iterator
from datetime import UTC, datetime

from chunking_assets import config as configuration
from chunking_assets.chunk_embeddings.reconcile import reconcile
from chunking_assets.config import Config
from chunking_assets.embedding_models.loaded import Models
from chunking_assets.errors import CorpusError
from chunking_assets.live_index import explain
from chunking_assets.live_index.maintenance import maintain, report
from chunking_assets.live_index.promotion import retained
from chunking_assets.live_index.repair import in_words, remove_damaged, repair
from chunking_assets.live_index.retire import retire_version
from chunking_assets.live_index.serve import moment_of, open_past
from chunking_assets.workspace import Workspace

SHOWN_CHARS = 300


def main() -> int:
    arguments = _parser().parse_args()
    try:
        config = configuration.load()
        for line in arguments.run(config, Workspace(config.home), arguments):
            print(line)
    except CorpusError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m chunking_assets.live_index", description=__doc__
    )
    commands = parser.add_subparsers(required=True)
    explaining = commands.add_parser("explain", help="where a chunk is from, what became of it")
    explaining.add_argument("chunk_id", help="or the beginning of it")
    explaining.set_defaults(run=_explain)
    asking = commands.add_parser("ask-at", help="ask the index as it was at a moment")
    asking.add_argument("moment", help="a date, with a time if need be, or a promotion's event_id")
    asking.add_argument("question")
    asking.set_defaults(run=_ask_at)
    comparing = commands.add_parser("reconcile", help="compare chunk sets, ledgers and tables")
    comparing.set_defaults(run=_reconcile)
    repairing = commands.add_parser("repair", help="make good what differs")
    repairing.set_defaults(run=_repair)
    retiring = commands.add_parser("retire", help="drop what is stored of a version")
    retiring.add_argument("version", help="a chunker version, or one index version of it")
    retiring.set_defaults(run=_retire)
    maintaining = commands.add_parser("maintain", help="clean up, and say what takes the space")
    maintaining.set_defaults(run=_maintain)
    return parser


def _explain(_: Config, workspace: Workspace, arguments: argparse.Namespace) -> Iterator[str]:
    yield explain.in_words(explain.explain(workspace, arguments.chunk_id))


def _ask_at(_: Config, workspace: Workspace, arguments: argparse.Namespace) -> Iterator[str]:
    # The end of today is still to come.
    moment = min(moment_of(workspace, arguments.moment), datetime.now(UTC))
    then, reader = open_past(workspace, moment)
    yield f"Answered by {then.strategy} as it was on {moment:%Y-%m-%d %H:%M:%S} UTC:\n"
    for number, passage in enumerate(reader.search(arguments.question), 1):
        yield f"{number}. {passage.doc_id}  (score {passage.score:.3f})"
        yield "   " + passage.text[:SHOWN_CHARS].replace("\n", "\n   ") + "\n"


def _reconcile(config: Config, workspace: Workspace, _: argparse.Namespace) -> Iterator[str]:
    differ = False
    for index in config.index_versions.values():
        for shard in config.shards():
            found = reconcile(workspace, index, shard)
            differ = differ or not found.agrees
            yield f"{index.name}, shard {shard}: {in_words(found)} differs"
    if differ:
        raise CorpusError("some stores do not agree. Run `make repair`.")


def _repair(config: Config, workspace: Workspace, _: argparse.Namespace) -> Iterator[str]:
    lost = None
    try:
        for damage in remove_damaged(workspace):
            yield f"{damage}: removed, to be built again by `make build`"
    except CorpusError as error:
        lost = error
    models = Models(config.embedding_models, workspace)
    indexes, shards = list(config.index_versions.values()), list(config.shards())
    batch = config.embedding.batch_chunks
    yield from map(str, repair(workspace, indexes, shards, models.embedder, batch))
    if lost is not None:
        raise lost
    yield "What is stored agrees."


def _retire(config: Config, workspace: Workspace, arguments: argparse.Namespace) -> Iterator[str]:
    declared = [*config.chunker_versions, *config.index_versions]
    kept = retained(workspace, config.promotion)
    dropped = retire_version(workspace, arguments.version, declared, kept)
    yield from (f"dropped {what}" for what in dropped)
    yield f"{arguments.version} is retired; its scores stay. `make build` publishes the tables."


def _maintain(config: Config, workspace: Workspace, _: argparse.Namespace) -> Iterator[str]:
    yield report(maintain(workspace, config.maintenance))


if __name__ == "__main__":
    sys.exit(main())
