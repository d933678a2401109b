import json

import polars as pl
import pytest
from places import both_places
from small_corpus import CONFIGURATION, SmallCorpus, write_corpus, write_document

from chunking_assets.chunk_embeddings.lance_index import LanceIndex
from chunking_assets.config import check_recorded
from chunking_assets.errors import CorpusError
from chunking_assets.live_index import serve
from chunking_assets.live_index.gate import UNSOUND, PromotionSettings
from chunking_assets.live_index.promotion import (
    PROMOTIONS,
    PromotionRefused,
    live,
    promote,
    retained,
    rollback,
)
from chunking_assets.live_index.serve import open_live
from chunking_assets.prices import Price, Prices
from evals.database import publish

pytestmark = pytest.mark.usefixtures("place")

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


def say(corpus, verdict, strategy="fixed", baseline="recursive", **numbers):
    """Store a comparison; of what is better, the interval lies above 0."""
    row = {
        "strategy": strategy,
        "baseline": baseline,
        "is_primary": True,
        "verdict": verdict,
        "metric": "recall@5",
        "n_questions": 40,
        "difference": 0.02,
        "ci_low": 0.01 if verdict == "better" else -0.01,
        "ci_high": 0.05,
        "confidence": 0.95,
        "coverage": 1.0,
        **numbers,
    }
    of_baseline = {**row, "strategy": baseline, "verdict": "baseline", "coverage": 1.0}
    corpus.workspace.table("strategy_comparisons").replace(pl.DataFrame([row, of_baseline]))


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


@both_places
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


def test_an_event_keeps_the_numbers_the_gate_decided_on(corpus):
    go_live(corpus, "recursive")
    say(corpus, "better")
    go_live(corpus, "fixed")
    event = corpus.workspace.table(PROMOTIONS).read().row(-1, named=True)
    numbers = json.loads(event["numbers"])
    assert (numbers["metric"], numbers["difference"], numbers["ci_low"]) == ("recall@5", 0.02, 0.01)
    assert (numbers["coverage"], numbers["live_coverage"]) == (1.0, 1.0)
    assert (event["forced"], event["overridden"]) == (False, [])


def test_what_a_person_overrides_is_kept_with_the_event(corpus):
    go_live(corpus, "recursive")
    say(corpus, "cannot tell")
    event = go_live(corpus, "fixed", force=True)
    assert event["forced"]
    assert event["overridden"] == ["cannot tell (recall@5 +0.020 [-0.010, +0.050])"]


def test_force_that_overrides_nothing_is_not_recorded_as_forced(corpus):
    go_live(corpus, "recursive")
    say(corpus, "better")
    assert not go_live(corpus, "fixed", force=True)["forced"]


def test_better_by_less_than_is_asked_for_is_refused(corpus):
    go_live(corpus, "recursive")
    say(corpus, "better")
    with pytest.raises(PromotionRefused, match=r"recall@5 by \+0.010 at least, and \+0.015 are"):
        go_live(corpus, "fixed", settings=PromotionSettings(min_difference=0.015))


def test_a_doubt_about_a_verdict_that_would_do_refuses(corpus):
    go_live(corpus, "recursive")
    say(corpus, "better")
    with pytest.raises(PromotionRefused, match="recursive was scored long ago"):
        go_live(corpus, "fixed", doubts=lambda live: [f"{live} was scored long ago"])


@pytest.mark.parametrize("asset", ["chunk_sets", "chunk_embeddings"])
def test_an_index_that_failed_a_blocking_check_is_never_promoted(corpus, asset):
    corpus.workspace.stamps.write(asset, UNSOUND, "fixed-20@1|docs")
    with pytest.raises(PromotionRefused, match=rf"check failed on {asset} of fixed-20@1\|docs"):
        go_live(corpus, "fixed", force=True)
    assert go_live(corpus, "recursive")


def test_a_cost_above_its_ceiling_is_refused_and_so_is_one_nobody_knows(corpus):
    limit = PromotionSettings(max_reindex_cost=0.001)
    with pytest.raises(PromotionRefused, match="cost of embedding it anew is not known"):
        go_live(corpus, "recursive", settings=limit)
    for price, outcome in ((1_000.0, "embedding it anew: 0.0"), (0.0, None)):
        entry = Price(model="hash", unit="1M input tokens", price=price, as_of="2020-01-01")
        if outcome:
            with pytest.raises(PromotionRefused, match=outcome):
                go_live(corpus, "recursive", settings=limit, prices=Prices([entry]))
        else:
            go_live(corpus, "recursive", settings=limit, prices=Prices([entry]))
    assert live(corpus.workspace).strategy == "recursive"


def test_events_of_an_earlier_release_without_numbers_count(corpus):
    go_live(corpus, "recursive")
    table = corpus.workspace.table(PROMOTIONS)
    table.replace(table.read().drop("numbers", "overridden"))
    assert live(corpus.workspace).strategy == "recursive"
    go_live(corpus, "fixed", force=True)
    assert publish(corpus.workspace).rows["promotions"] == 2
    rollback(corpus.workspace, corpus.config.strategies)
    assert live(corpus.workspace).strategy == "recursive"


def test_events_of_an_earlier_release_are_published_as_they_are(corpus):
    go_live(corpus, "recursive")
    table = corpus.workspace.table(PROMOTIONS)
    table.replace(table.read().drop("numbers", "overridden"))
    assert publish(corpus.workspace).rows["promotions"] == 1


def test_the_live_index_and_as_many_before_it_as_configured_are_retained(corpus):
    assert retained(corpus.workspace, PromotionSettings()) == []
    go_live(corpus, "recursive")
    go_live(corpus, "fixed", force=True)
    both = ["fixed-20@1+hash", "recursive-20@1+hash"]
    assert retained(corpus.workspace, PromotionSettings(retain=1)) == both
    rollback(corpus.workspace, corpus.config.strategies)
    assert retained(corpus.workspace, PromotionSettings(retain=1)) == both[::-1]


@both_places
def test_a_rollback_serves_whole_content_while_the_next_run_is_half_done(corpus, monkeypatch):
    go_live(corpus, "recursive")
    go_live(corpus, "fixed", force=True)
    before = {p.text for p in open_live(corpus.workspace).search("money days")}
    write_document(corpus.config.root, "refunds.md", "Money never goes back.")
    corpus.parse()
    corpus.chunk()

    def killed(self):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(LanceIndex, "publish", killed)
        with pytest.raises(KeyboardInterrupt):
            corpus.embed()
    rollback(corpus.workspace, corpus.config.strategies)
    reader = open_live(corpus.workspace)
    assert reader.strategy == "recursive"
    assert {p.text for p in reader.search("money days")} == before
    corpus.embed()
    assert "Money never goes back." in {
        p.text for p in open_live(corpus.workspace).search("money never")
    }
