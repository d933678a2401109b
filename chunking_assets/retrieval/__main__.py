"""`python -m chunking_assets.retrieval "question"`: ask the live index, or a named strategy."""

import argparse
import signal
import sys

from chunking_assets import config as configuration
from chunking_assets.errors import CorpusError
from chunking_assets.live_index.serve import open_live
from chunking_assets.retrieval.hit import Passage
from chunking_assets.retrieval.open import open_strategy
from chunking_assets.workspace import Workspace


def _search(
    config: configuration.Config, strategy: str | None, question: str
) -> tuple[str, list[Passage]]:
    """Who answered, and the passages."""
    workspace = Workspace(config.home)
    if strategy is None:
        live = open_live(workspace, config.embedding_models)
        return f"{live.strategy} (live)", live.search(question)
    if strategy not in config.strategies:
        raise CorpusError(f"Unknown strategy {strategy!r}. Known: {', '.join(config.strategies)}.")
    return strategy, open_strategy(workspace, config.strategies[strategy]).search(question)


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m chunking_assets.retrieval", description=__doc__
    )
    parser.add_argument("question")
    parser.add_argument("--strategy", help="a strategy of corpus.yaml instead of the live one")
    parser.add_argument("--chars", type=int, default=400, help="text shown of each passage")
    arguments = parser.parse_args()
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # `| head` ends the command, not with a traceback
    try:
        config = configuration.load()
        answered_by, passages = _search(config, arguments.strategy, arguments.question)
    except CorpusError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(f"Answered by {answered_by}:\n")
    for number, passage in enumerate(passages, 1):
        where = ", ".join(f"{start}-{end}" for start, end in passage.spans)
        heading = " > ".join(passage.heading_path)
        text = passage.text[: arguments.chars]
        more = "…" if len(passage.text) > arguments.chars else ""
        print(f"{number}. {passage.doc_id} [{where}] {heading}  (score {passage.score:.3f})")
        print("   " + f"{text}{more}".replace("\n", "\n   ") + "\n")
    if not passages:
        print("Nothing was found.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
