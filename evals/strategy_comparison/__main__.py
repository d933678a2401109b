"""`python -m evals.strategy_comparison compare A B | gate STRATEGY`: verdicts from stored scores.

Nothing is scored and nothing is written. `gate` ends with status 0 if the strategy passes, 1 if it
fails, 2 if that cannot be decided.
"""

import argparse
import signal
import sys
from collections.abc import Mapping, Sequence
from math import isfinite

from chunking_assets import config as configuration
from chunking_assets.config import Config
from chunking_assets.errors import CorpusError
from chunking_assets.live_index.promotion import live
from chunking_assets.retrieval.strategy import Strategy
from chunking_assets.workspace import Workspace
from evals.gold_questions.build import content_now
from evals.ragas_scores.build import judge_identity
from evals.strategy_comparison.build import read_scores
from evals.strategy_comparison.gate import EXIT_STATUS, gate
from evals.strategy_comparison.terminal import describe

LIVE = "live"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m evals.strategy_comparison", description=__doc__
    )
    commands = parser.add_subparsers(dest="command", required=True)
    comparing = commands.add_parser("compare", help="one strategy against another, in words")
    comparing.add_argument("strategy", metavar="A", help="the strategy in question")
    comparing.add_argument("against", metavar="B", help="what it is compared with; or `live`")
    comparing.add_argument("--metric", help="as in recall@5; the one that decides if not given")
    gating = commands.add_parser("gate", help="exit status 0: pass, 1: fail, 2: cannot decide")
    gating.add_argument("strategy", metavar="STRATEGY")
    gating.add_argument("--against", default=LIVE, help="a strategy; `live` if not given")
    gating.add_argument(
        "--min-difference",
        type=_finite,
        default=0.0,
        metavar="D",
        help="how much better it must be (0.02: two points); negative: how much worse it may be",
    )
    chosen = parser.parse_args(arguments)
    try:
        return _compare(chosen) if chosen.command == "compare" else _gate(chosen)
    except CorpusError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1 if chosen.command == "compare" else EXIT_STATUS["cannot decide"]


def _finite(text: str) -> float:
    number = float(text)
    if not isfinite(number):
        raise ValueError(text)
    return number


def _compare(chosen: argparse.Namespace) -> int:
    config = configuration.load()
    workspace = Workspace(config.home)
    against = _against(config, workspace, chosen)
    stored = read_scores(workspace, list(config.strategies))
    if chosen.strategy not in stored.scored:
        raise CorpusError(f"{chosen.strategy} has no scores yet. Score it first: make build")
    comparison = stored.against(against, config.comparison, metric=chosen.metric)
    if comparison.table.is_empty():
        raise CorpusError("no gold question could be scored. Add some, or mend the stale ones.")
    questions = dict(stored.gold.questions.select("question_id", "question").iter_rows())
    deciding, judge = config.comparison.metric, stored.judge_of(against)
    print(*describe(comparison, chosen.strategy, questions, deciding, judge), sep="\n")
    return 0


def _gate(chosen: argparse.Namespace) -> int:
    config = configuration.load()
    workspace, shards = Workspace(config.home), list(config.shards())
    found = gate(
        workspace,
        config.strategies,
        shards,
        config.comparison,
        chosen.strategy,
        _against(config, workspace, chosen),
        asked_as=content_now(workspace, config.question_files(), config.root, shards),
        min_difference=chosen.min_difference,
        judged_as=judge_identity(config.ragas, config.root),
    )
    print(f"{found.outcome}: {found.reason}")
    return EXIT_STATUS[found.outcome]


def _against(config: Config, workspace: Workspace, chosen: argparse.Namespace) -> str:
    """The strategy to compare with; both it and the one in question are declared, and two."""
    against = str(chosen.against)
    if against == LIVE and LIVE not in config.strategies:
        current = live(workspace)
        if current is None:
            raise CorpusError("nothing is live yet. Name the strategy to compare with.")
        against = current.strategy
    for name in (chosen.strategy, against):
        _check_declared(name, config.strategies)
    if against == chosen.strategy:
        raise CorpusError(f"{against} would be compared with itself. Name two strategies.")
    return against


def _check_declared(name: str, strategies: Mapping[str, Strategy]) -> None:
    if name not in strategies:
        raise CorpusError(f"unknown strategy {name!r}. Declared: {', '.join(strategies)}.")


if __name__ == "__main__":
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # `| head` ends the command, not with a traceback
    sys.exit(main())
