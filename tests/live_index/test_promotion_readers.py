"""A reader in another process follows what is promoted and rolled back, without being told."""

import subprocess
import sys
from pathlib import Path

import pytest
from small_corpus import SmallCorpus, write_corpus

from chunking_assets.live_index.promotion import promote, rollback

TESTS = Path(__file__).parents[1]
READER = """
import sys
sys.path.insert(0, sys.argv[1])
import small_corpus
from chunking_assets.live_index.serve import open_live
from chunking_assets.workspace import Workspace

reader, told = open_live(Workspace(sys.argv[2])), None
while True:
    passages = reader.search("money days")
    assert passages
    if reader.strategy != told:
        told = reader.strategy
        print(told, flush=True)
"""


@pytest.fixture
def corpus(tmp_path):
    corpus = SmallCorpus(write_corpus(tmp_path, {"refunds.md": "Money goes back in 120 days."}))
    corpus.update()
    return corpus


def test_a_reader_elsewhere_follows_promotion_and_rollback_in_their_order(corpus):
    workspace, strategies = corpus.workspace, corpus.config.strategies
    promote(workspace, strategies["recursive"], ["docs"])
    with subprocess.Popen(
        [sys.executable, "-c", READER, str(TESTS), str(workspace.root)],
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
