"""A reader in a process of its own, that says which strategy answers whenever that changes."""

import os
import subprocess
import sys
from pathlib import Path

from chunking_assets.live_index.promotion import promote, rollback

TESTS = Path(__file__).parent
READER = """
import sys
sys.path.insert(0, sys.argv[1])
import small_corpus
from chunking_assets.live_index.serve import open_live

reader, told = open_live(sys.argv[2]), None
while True:
    passages = reader.search(sys.argv[3])
    assert passages
    if reader.strategy != told:
        told = reader.strategy
        print(told, flush=True)
"""


def follows_promotion_and_rollback(corpus, place, question, **environment):
    """Promote one strategy, then another, then roll back; a reader of `place` tells each in turn."""
    workspace, strategies = corpus.workspace, corpus.config.strategies
    promote(workspace, strategies["recursive"], ["docs"])
    with subprocess.Popen(
        [sys.executable, "-c", READER, str(TESTS), str(place), question],
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        text=True,
    ) as reader:
        try:
            assert reader.stdout.readline().strip() == "recursive"
            promote(workspace, strategies["fixed"], ["docs"], force=True)
            assert reader.stdout.readline().strip() == "fixed"
            rollback(workspace, strategies)
            assert reader.stdout.readline().strip() == "recursive"
            assert reader.poll() is None
        finally:
            reader.kill()
