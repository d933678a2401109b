"""A collection that should change and does not is late; the check says so once, and when it ends."""

import dagster as dg
import pytest

HOUR = 3600


@pytest.fixture
def watched(corpus_of):
    collections = {
        "docs": {"path": "docs", "settle_seconds": 0, "late_after_hours": 24},
        "notes": {"path": "notes", "settle_seconds": 0, "shards": 2, "late_after_hours": 48},
    }
    return corpus_of(collections=collections, questions=[])


def tick(corpus, cursor=None):
    """(what is newly said of the check, the cursor)"""
    with dg.build_sensor_context(
        instance=corpus.instance, cursor=cursor, resources=corpus.resources
    ) as context:
        result = corpus.module("freshness").watch_freshness(context)
    for event in result.asset_events:
        corpus.instance.report_runless_asset_event(event)
    return [event.passed for event in result.asset_events], result.cursor or cursor


def late(corpus, hours):
    """The collections that are late so long after the newest change of any."""
    newest = corpus.instance.fetch_materializations(dg.AssetKey("raw_documents"), limit=1)
    now = newest.records[0].timestamp + hours * HOUR
    return [*corpus.module("freshness").late_collections(corpus.config, corpus.instance, now)]


def test_a_collection_is_late_after_its_own_limit(watched):
    watched.look()
    assert {hours: late(watched, hours) for hours in (23, 25, 49)} == {
        23: [], 25: ["docs"], 49: ["docs", "notes"],
    }  # fmt: skip


def test_a_change_in_one_shard_keeps_the_whole_collection_fresh(watched, monkeypatch):
    watched.look()
    module = watched.module("freshness")
    first = watched.instance.fetch_materializations(dg.AssetKey("raw_documents"), limit=1)
    with monkeypatch.context() as later:
        stamp = first.records[0].timestamp + 40 * HOUR
        later.setattr("time.time", lambda: stamp)
        watched.instance.report_runless_asset_event(
            dg.AssetMaterialization("raw_documents", partition="notes-01")
        )
    now = stamp + 47 * HOUR
    assert module.late_collections(watched.config, watched.instance, now).keys() == {"docs"}


def test_the_sensor_says_it_once_and_takes_it_back(watched, monkeypatch):
    watched.look()
    said, cursor = tick(watched)
    assert said == []
    module = watched.module("freshness")
    now = module.time.time
    with monkeypatch.context() as later:
        later.setattr(module.time, "time", lambda: now() + 25 * HOUR)
        said, cursor = tick(watched, cursor)
        assert said == [False]
        assert tick(watched, cursor)[0] == []
    said, cursor = tick(watched, cursor)
    assert said == [True]
    assert tick(watched, cursor)[0] == []


def test_no_limit_is_never_late_and_dagsters_policy_is_of_the_liveliest(corpus_of, watched):
    policy = watched.graph.get(dg.AssetKey("raw_documents")).freshness_policy
    assert policy.fail_window.to_timedelta().total_seconds() == 24 * HOUR
    plain = corpus_of()
    plain.look()
    assert plain.graph.get(dg.AssetKey("raw_documents")).freshness_policy is None
    assert late(plain, 10_000) == []
