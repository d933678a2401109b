import polars as pl
import pytest
from small_corpus import CONFIGURATION, SmallCorpus, write_corpus

from chunking_assets.config import check_recorded
from chunking_assets.errors import CorpusError
from chunking_assets.live_index import serve
from chunking_assets.live_index.promotion import (
    PROMOTIONS,
    PromotionRefused,
    live,
    promote,
    rollback,
)
from chunking_assets.live_index.serve import open_live

DOCUMENTS = {
    "refunds.md": "Money goes back within 120 days.",
    "fees.md": "A card costs 1.4 percent.",
}


@pytest.fixture
def corpus(tmp_path):
    corpus = SmallCorpus(write_corpus(tmp_path, DOCUMENTS))
    corpus.update()
    return corpus


def go_live(corpus, name, **how):
    return promote(
        corpus.workspace, corpus.config.strategies[name], list(corpus.config.shards()), **how
    )


def say(corpus, verdict, strategy="fixed", baseline="recursive"):
    row = {
        "strategy": strategy,
        "baseline": baseline,
        "is_primary": True,
        "verdict": verdict,
        "metric": "recall@5",
        "n_questions": 40,
        "difference": 0.02,
        "ci_low": -0.01,
        "ci_high": 0.05,
    }
    corpus.workspace.table("strategy_comparisons").replace(pl.DataFrame([row]))


def test_the_first_promotion_has_nothing_to_beat(corpus):
    assert live(corpus.workspace) is None
    event = go_live(corpus, "recursive")
    assert (event["action"], event["verdict"], event["forced"]) == ("promote", "first", False)
    assert live(corpus.workspace).strategy == "recursive"


def test_a_better_strategy_goes_live_and_can_be_rolled_back(corpus):
    go_live(corpus, "recursive")
    say(corpus, "better")
    go_live(corpus, "fixed")
    assert live(corpus.workspace).strategy == "fixed"
    event = rollback(corpus.workspace, corpus.config.strategies, reason="customers complained")
    assert (event["strategy"], event["previous"]) == ("recursive", "fixed")
    assert live(corpus.workspace).strategy == "recursive"


@pytest.mark.parametrize("verdict", ["cannot tell", "worse", "baseline"])
def test_the_gate_refuses_what_is_not_better_and_says_how_to_insist(corpus, verdict):
    go_live(corpus, "recursive")
    say(corpus, verdict)
    with pytest.raises(
        PromotionRefused, match=rf"{verdict} \(recall@5 \+0.020 \[-0.010, \+0.050\]\).*FORCE=1"
    ):
        go_live(corpus, "fixed")
    assert live(corpus.workspace).strategy == "recursive"
    assert go_live(corpus, "fixed", force=True)["forced"]


def test_a_verdict_against_another_baseline_does_not_count(corpus):
    go_live(corpus, "recursive")
    say(corpus, "better", baseline="something-else")
    with pytest.raises(PromotionRefused, match="not compared with the live strategy yet"):
        go_live(corpus, "fixed")


def test_an_incomplete_index_is_never_promoted(tmp_path):
    corpus = SmallCorpus(write_corpus(tmp_path, DOCUMENTS))
    corpus.parse()
    with pytest.raises(PromotionRefused, match="does not hold docs yet"):
        go_live(corpus, "recursive", force=True)


def test_promoting_what_is_live_changes_nothing(corpus):
    go_live(corpus, "recursive")
    with pytest.raises(PromotionRefused, match="live already"):
        go_live(corpus, "recursive")


def test_there_is_an_end_to_rolling_back(corpus):
    go_live(corpus, "recursive")
    with pytest.raises(PromotionRefused, match="nothing to roll back to"):
        rollback(corpus.workspace, corpus.config.strategies)
    go_live(corpus, "fixed", force=True)
    rollback(corpus.workspace, corpus.config.strategies)
    with pytest.raises(PromotionRefused, match="nothing to roll back to"):
        rollback(corpus.workspace, corpus.config.strategies)


def test_every_event_is_kept_with_who_and_why(corpus):
    go_live(corpus, "recursive", reason="start")
    go_live(corpus, "fixed", force=True)
    rollback(corpus.workspace, corpus.config.strategies)
    events = corpus.workspace.table(PROMOTIONS).read()
    assert events["action"].to_list() == ["promote", "promote", "rollback"]
    assert events["reason"].to_list() == ["start", "", ""]
    assert events["by"].null_count() == 0
    assert events["at"].is_sorted()


def test_the_live_reader_follows_promotion_and_rollback(corpus, monkeypatch):
    monkeypatch.setattr(serve, "FOLLOW_SECONDS", 0.0)
    with pytest.raises(CorpusError, match="Nothing is live yet"):
        open_live(corpus.workspace)
    go_live(corpus, "recursive")
    reader = open_live(corpus.workspace)
    assert reader.search("money days")[0].doc_id == "docs/refunds.md"
    go_live(corpus, "fixed", force=True)
    assert reader.strategy == "fixed"
    rollback(corpus.workspace, corpus.config.strategies)
    assert reader.strategy == "recursive"


def redeclare(corpus, **strategies):
    """The corpus under a changed corpus.yaml, as `make check` reads it."""
    changed = SmallCorpus(write_corpus(corpus.config.root, DOCUMENTS, strategies=strategies))
    check_recorded(changed.config)
    return changed


def test_what_is_live_does_not_change_with_the_configuration(corpus):
    go_live(corpus, "recursive")
    declared = CONFIGURATION["strategies"]
    otherwise = {"chunker": "fixed-20@1", "model": "hash", "profile": "vector"}
    with pytest.raises(CorpusError, match="recursive, is declared otherwise than it was promoted"):
        redeclare(corpus, **{**declared, "recursive": otherwise})
    assert live(corpus.workspace).index_version == "recursive-20@1+hash"
    assert open_live(corpus.workspace).search("money days")


def test_what_is_live_must_stay_declared_and_may_go_when_another_is_promoted(corpus):
    go_live(corpus, "recursive")
    only_fixed = {"fixed": CONFIGURATION["strategies"]["fixed"]}
    with pytest.raises(CorpusError, match="recursive, is not declared in"):
        redeclare(corpus, **only_fixed)
    go_live(corpus, "fixed", force=True)
    changed = redeclare(corpus, **only_fixed)
    with pytest.raises(CorpusError, match="The strategy to return to, recursive, is not declared"):
        rollback(changed.workspace, changed.config.strategies)
    assert live(corpus.workspace).strategy == "fixed"
