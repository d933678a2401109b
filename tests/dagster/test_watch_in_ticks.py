"""The sensor when a look takes longer than a tick: nothing lost, nothing swallowed, in turn."""

import itertools
import json

import dagster as dg
import fsspec
import pytest
from small_corpus import SmallCorpus

from chunking_assets.live_index.retire import retire_shards
from chunking_assets.raw_documents.look import Look, Unfinished


@pytest.fixture
def slow(corpus, monkeypatch):
    """A corpus whose sensor has time for about four files a tick: each look at the clock is 1 s."""
    sensors = corpus.module("sensors")
    plain = sensors.Ticking

    def ticking(config, workspace):
        return plain(config, workspace, seconds=4, clock=itertools.count().__next__)

    monkeypatch.setattr(sensors, "Ticking", ticking)
    return corpus


def reports(corpus, ticks):
    return list(itertools.chain.from_iterable(corpus.reported() for _ in range(ticks)))


def many(corpus, count=11):
    for number in range(count):
        corpus.write(f"docs/{number}.md", f"Text {number}.")


def test_a_look_goes_on_in_the_next_tick_and_is_reported_once_it_is_whole(slow):
    many(slow)
    first = slow.look()
    assert "docs: 4 files looked at so far" in first.skip_reason.skip_message
    assert [e.partition for e in first.asset_events if e.asset_key.path == ["raw_documents"]] == []
    assert json.loads(slow.seen)["next"] == "docs"
    assert reports(slow, 4) == ["docs", "notes"]
    assert slow.workspace.stamps.read("raw_documents", "docs") is not None


def test_the_cursor_does_not_grow_with_the_documents(slow):
    slow.look()
    small = len(slow.seen)
    many(slow, 40)
    slow.look()
    assert len(slow.seen) < small + 200


@pytest.mark.parametrize("loss", ["the cursor", "the memory of the look", "both"])
def test_what_is_lost_between_two_ticks_costs_a_look_and_no_change(slow, loss):
    many(slow)
    slow.look()
    if loss != "the memory of the look":
        slow.seen = None
    if loss != "the cursor":
        (slow.workspace.caches / "files/docs.look").unlink()
    assert sorted(set(reports(slow, 8))) == ["docs", "notes"]
    assert slow.tick() == {"parsed_elements": ["docs", "notes"]}


def test_a_collection_that_takes_long_does_not_starve_the_others(slow):
    reports(slow, 3)
    many(slow, 40)
    slow.write("notes/0.md", "Edited.")
    assert "notes" in reports(slow, 14)
    slow.write("notes/0.md", "Edited again.")
    assert "notes" in reports(slow, 14)


def test_an_edit_undone_while_a_look_was_unfinished_is_no_change_and_a_third_text_is_one(slow):
    many(slow)
    reports(slow, 6)
    slow.write("docs/0.md", "B")
    slow.look()
    slow.write("docs/0.md", "Text 0.")
    assert set(reports(slow, 8)) <= {"docs"}
    slow.run("parsed_elements", "docs", "notes")
    slow.write("docs/0.md", "C")
    assert "docs" in reports(slow, 8)
    assert slow.tick()["parsed_elements"] == ["docs"]


def test_ticking_gives_no_time_to_what_follows_an_unfinished_look(corpus):
    many(corpus)
    sensors = corpus.module("sensors")
    clock = itertools.count().__next__
    ticking = sensors.Ticking(corpus.config, corpus.workspace, seconds=4, clock=clock)
    found = [ticking.look(name, c) for name, c in corpus.config.collections.items()]
    assert [type(f) for f in found] == [Unfinished, Unfinished]
    assert (found[1].files, ticking.interrupted) == (0, "docs")
    whole = sensors.Ticking(corpus.config, corpus.workspace, seconds=99, clock=clock)
    assert isinstance(whole.look("docs", corpus.config.collections["docs"]), Look)


def test_shards_that_come_and_go_and_come_and_go_are_retired_each_time(corpus):
    keys = []
    for _ in range(2):
        corpus.declare()
        SmallCorpus(corpus.root / "corpus.yaml").update()
        corpus.declare(collections={"docs": {"path": "docs", "settle_seconds": 0}})
        corpus.load()
        (request,) = corpus.look().run_requests
        keys.append(request.run_key)
        retire_shards(corpus.workspace, ["notes"])
    assert len(set(keys)) == 2


@pytest.fixture
def bucket():
    system = fsspec.filesystem("memory")
    system.store.clear()
    yield system
    system.store.clear()
    system.pseudo_dirs[:] = [""]


def test_a_distant_source_is_watched_by_its_listing_and_read_by_the_run_only(
    corpus_of, bucket, monkeypatch
):
    bucket.pipe({f"/kb/{n}.md": f"Text {n}.".encode() for n in range(3)})
    corpus = corpus_of(collections={"docs": {"path": "memory://kb", "settle_seconds": 0}})
    read, whole = [], type(bucket).cat_file

    def cat_file(self, path, *args, **options):
        read.append(path)
        return whole(self, path, *args, **options)

    monkeypatch.setattr(type(bucket), "cat_file", cat_file)
    assert corpus.reported() == ["docs"]
    assert read == []
    assert corpus.tick() == {"parsed_elements": ["docs"]}
    corpus.run("parsed_elements", "docs")
    assert len(read) == 3
    assert "parsed_elements" not in corpus.tick()  # before the next look, and after it
    corpus.look()
    assert "parsed_elements" not in corpus.tick()
    bucket.pipe("/kb/1.md", b"Another text.")
    assert corpus.reported() == ["docs"]
    corpus.run("parsed_elements", "docs")
    assert len(read) == 4
    bucket.rm("/kb", recursive=True)
    result = corpus.look()
    assert "cannot be listed" in result.skip_reason.skip_message
    assert result.asset_events == []
    assert isinstance(result, dg.SensorResult)


def test_an_object_that_cannot_be_read_is_not_asked_for_at_every_look(
    corpus_of, bucket, monkeypatch
):
    bucket.pipe({f"/kb/{n}.md": f"Text {n}.".encode() for n in range(3)})
    corpus = corpus_of(collections={"docs": {"path": "memory://kb", "settle_seconds": 0}})
    whole = type(bucket).cat_file

    def cat_file(self, path, *args, **options):
        if path.endswith("1.md"):
            raise PermissionError("no right to read it")
        return whole(self, path, *args, **options)

    with monkeypatch.context() as patch:
        patch.setattr(type(bucket), "cat_file", cat_file)
        corpus.look()
        corpus.run("parsed_elements", "docs")
        for _ in range(2):
            corpus.look()
            assert "parsed_elements" not in corpus.tick()
    documents = corpus.workspace.table("documents").read("docs", ["doc_id", "status"])
    assert dict(documents.iter_rows())["docs/1.md"] == "unreadable"
    assert corpus.materialize("parsed_elements")["parsed_elements"] == 1
    documents = corpus.workspace.table("documents").read("docs", ["status"])
    assert set(documents["status"]) == {"ok"}
