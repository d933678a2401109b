"""What is kept, for how long, and what takes the space."""

import os
import time
from datetime import UTC, datetime, timedelta

import pytest
from places import BUCKET, both_places
from small_corpus import SmallCorpus, write_corpus, write_document

from chunking_assets.chat_models.response_cache import CACHE_FILE, ResponseCache
from chunking_assets.chunk_embeddings.lance_index import LanceIndex
from chunking_assets.chunk_embeddings.superseded import SUPERSEDED_CHUNKS
from chunking_assets.embedding_models import vector_cache
from chunking_assets.live_index.maintenance import MaintenanceSettings, maintain, report
from chunking_assets.live_index.promotion import promote
from chunking_assets.live_index.serve import open_past

pytestmark = pytest.mark.usefixtures("place")

STRATEGIES = {"one": {"chunker": "fixed-20@1", "model": "hash", "profile": "vector"}}
INDEX = "fixed-20@1+hash"


@pytest.fixture
def corpus(tmp_path):
    corpus = SmallCorpus(write_corpus(tmp_path, {"a.md": "First words."}, strategies=STRATEGIES))
    corpus.update()
    return corpus


def edit(corpus, text):
    write_document(corpus.config.root, "a.md", text)
    corpus.update()


def in_days(days):
    return datetime.now(UTC) + timedelta(days=days)


@both_places
def test_a_state_that_was_promoted_outlives_those_that_were_not(corpus):
    promote(corpus.workspace, corpus.config.strategies["one"], ["docs"])
    promoted = datetime.now(UTC)
    edit(corpus, "Second words.")
    second = datetime.now(UTC)
    edit(corpus, "Third words.")
    maintain(corpus.workspace, MaintenanceSettings(), in_days(30))
    _, reader = open_past(corpus.workspace, promoted)
    assert reader.search("words")[0].text == "First words."
    index = LanceIndex(corpus.workspace, INDEX)
    with pytest.raises(Exception, match="is cleaned"):
        index.open_at(second)
    maintain(corpus.workspace, MaintenanceSettings(), in_days(100))
    with pytest.raises(Exception, match="is cleaned"):
        index.open_at(promoted)


def test_vectors_that_nobody_asks_for_and_no_index_holds_are_forgotten(corpus, monkeypatch):
    edit(corpus, "Second words.")
    settings = MaintenanceSettings(unused_vectors_days=30)
    assert maintain(corpus.workspace, settings).vectors == 0
    later = time.time() + 31 * 86_400
    with monkeypatch.context() as patch:
        patch.setattr(vector_cache.time, "time", lambda: later)
        assert maintain(corpus.workspace, settings).vectors == 1, "of the first words"
    corpus.embedder.embedded.clear()
    edit(corpus, "First words.")
    edit(corpus, "Second words.")
    assert corpus.embedder.embedded == ["First words."]


def test_replies_that_nobody_asks_for_are_forgotten(corpus, monkeypatch):
    corpus.workspace.caches.mkdir(exist_ok=True)
    with ResponseCache(corpus.workspace.caches / CACHE_FILE) as replies:
        replies.put("old", "reply")
        replies.put("used", "reply")
    now = time.time()
    monkeypatch.setattr(vector_cache.time, "time", lambda: now + 200 * 86_400)
    with ResponseCache(corpus.workspace.caches / CACHE_FILE) as replies:
        assert replies.get("used") == "reply"
    monkeypatch.setattr(vector_cache.time, "time", lambda: now + 400 * 86_400)
    assert maintain(corpus.workspace, MaintenanceSettings()).replies == 1
    with ResponseCache(corpus.workspace.caches / CACHE_FILE) as replies:
        assert (replies.get("old"), replies.get("used")) == (None, "reply")


@both_places
def test_files_that_no_manifest_names_go_after_a_while(corpus, place, s3_server):
    """Orphans in the store are what a killed writer leaves."""
    store = corpus.workspace.store.below("tables/chunks")
    orphans = [f"{folder}/orphan.parquet" for folder in ("fixed-20@1%7Cdocs", "never-committed")]
    for orphan in orphans:
        store.write(orphan, b"x" * 1000)
    assert maintain(corpus.workspace, MaintenanceSettings()).files == 0
    for orphan in orphans:
        if place == BUCKET:
            (key,) = (key for key in s3_server.objects if key.endswith(orphan))
            s3_server.times[key] -= timedelta(seconds=90_000)
        else:
            os.utime(store.here / orphan, (time.time() - 90_000,) * 2)
    assert maintain(corpus.workspace, MaintenanceSettings()).files == 2000
    assert corpus.workspace.table("chunks").read("fixed-20@1|docs").height == 1


def test_chunks_that_went_are_remembered_for_a_while(corpus):
    edit(corpus, "Second words.")
    assert corpus.workspace.table(SUPERSEDED_CHUNKS).read_all().height == 1
    maintain(corpus.workspace, MaintenanceSettings(), in_days(400))
    assert corpus.workspace.table(SUPERSEDED_CHUNKS).read_all().height == 0


@both_places
def test_a_damaged_table_is_named_and_the_others_are_cleaned(corpus):
    broken = "lance/broken_v1__hash.lance/_versions/1.manifest"
    corpus.workspace.store.write(broken, b"no manifest")
    upkeep = maintain(corpus.workspace, MaintenanceSettings())
    assert "index broken@1+hash cannot be read" in upkeep.problems[0]
    assert {size.index_version for size in upkeep.sizes} == {INDEX, "broken@1+hash"}


def test_the_report_says_what_takes_the_space(corpus):
    upkeep = maintain(corpus.workspace, MaintenanceSettings())
    (size,) = upkeep.sizes
    assert size.index_version == INDEX
    assert min(size.table, size.chunks, size.ledger) > 0
    assert size.table + size.chunks + size.ledger < upkeep.total
    assert upkeep.caches["vectors"] > 0
    assert f"| {INDEX} |" in report(upkeep)
