"""A reader in another process follows what is promoted and rolled back, without being told."""

import pytest
from following_reader import follows_promotion_and_rollback
from small_corpus import SmallCorpus, write_corpus

pytestmark = pytest.mark.usefixtures("place")


def test_a_reader_elsewhere_follows_promotion_and_rollback_in_their_order(tmp_path):
    corpus = SmallCorpus(write_corpus(tmp_path, {"refunds.md": "Money goes back in 120 days."}))
    corpus.update()
    follows_promotion_and_rollback(corpus, corpus.workspace.place, "money days")
