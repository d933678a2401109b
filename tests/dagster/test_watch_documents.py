"""The sensor: what it reports, what it waits for, and that a fault never reads as a deletion."""

import os
import shutil
import time

import pytest


def shards(result):
    return [e.partition for e in result.asset_events if e.asset_key.path == ["raw_documents"]]


def versions(result):
    return [e.partition for e in result.asset_events if e.asset_key.path == ["chunker_versions"]]


def counts(result, shard):
    (event,) = (e for e in result.asset_events if e.partition == shard)
    return tuple(
        event.metadata[f"documents_{what}"].value for what in ("added", "changed", "removed")
    )


def test_a_first_look_reports_and_adds_every_shard_and_every_version(corpus):
    result = corpus.look()
    assert shards(result) == ["docs", "notes"]
    assert versions(result) == list(corpus.config.chunker_versions)
    assert counts(result, "docs") == (3, 0, 0)
    assert corpus.instance.get_dynamic_partitions("corpus_shard") == ["docs", "notes"]


def test_nothing_changed_is_a_reason_and_no_event(corpus):
    corpus.look()
    result = corpus.look()
    assert (result.asset_events, result.dynamic_partitions_requests) == ([], [])
    assert result.skip_reason.skip_message == "no document and no declaration changed"


def test_an_added_a_changed_and_a_removed_document_are_counted_in_their_shard_only(corpus):
    corpus.look()
    corpus.run("parsed_elements", "docs", "notes")
    corpus.write("notes/new.md", "Another note.")
    corpus.write("notes/1.md", "A changed note.")
    (corpus.root / "notes/2.md").unlink()
    result = corpus.look()
    assert shards(result) == ["notes"]
    assert counts(result, "notes") == (1, 1, 1)


def test_an_edit_undone_and_done_again_is_reported_each_time(corpus):
    corpus.look()
    reports = []
    for text in ("one", "another", "one"):
        corpus.write("docs/0.md", text)
        reports.append(corpus.reported())
    assert reports == [["docs"]] * 3


def test_a_touched_file_is_not_reported(corpus):
    corpus.look()
    os.utime(corpus.root / "docs/0.md", (time.time() + 5,) * 2)
    assert corpus.reported() == []


def test_a_change_that_keeps_size_and_time_is_reported(corpus):
    corpus.look()
    file = corpus.write("docs/0.md", "same size")
    old = file.stat()
    assert corpus.reported() == ["docs"]
    file.write_text("SAME SIZE")
    os.utime(file, ns=(old.st_atime_ns, old.st_mtime_ns))
    assert corpus.reported() == ["docs"]


def test_a_shard_with_a_file_still_being_written_is_waited_for(corpus_of):
    at_once = {name: {"path": name, "settle_seconds": 0} for name in ("docs", "notes")}
    corpus = corpus_of(collections={**at_once, "docs": {"path": "docs", "settle_seconds": 3600}})
    assert corpus.reported() == ["notes"]
    settled = time.time() - 7200
    for file in (corpus.root / "docs").iterdir():
        os.utime(file, (settled, settled))
    assert corpus.reported() == []  # the change time cannot be set, and counts as well
    corpus.declare()
    corpus.load()
    assert corpus.reported() == ["docs"]


@pytest.mark.parametrize("fault", ["missing", "a file in its place"])
def test_a_folder_that_cannot_be_listed_is_a_reason_deletes_nothing_and_holds_back_no_other(
    corpus, fault
):
    corpus.look()
    corpus.run("parsed_elements", "docs", "notes")
    shutil.move(corpus.root / "docs", corpus.root / "elsewhere")
    if fault == "a file in its place":
        corpus.write("docs", "not a folder")
    result = corpus.look()
    assert "cannot be listed" in result.skip_reason.skip_message
    assert result.asset_events == []
    assert "parsed_elements" not in corpus.tick()
    corpus.write("notes/0.md", "A changed note.")
    assert corpus.reported() == ["notes"]
    (corpus.root / "docs").unlink(missing_ok=True)
    shutil.move(corpus.root / "elsewhere", corpus.root / "docs")
    assert corpus.reported() == []


def test_a_lost_cursor_loses_nothing_and_redoes_nothing(corpus):
    corpus.look()
    corpus.run("parsed_elements", "docs", "notes")
    corpus.write("docs/0.md", "An edit.")
    corpus.seen = None
    assert corpus.reported() == ["docs", "notes"]
    assert corpus.tick()["parsed_elements"] == ["docs"]


def test_a_new_chunker_version_is_reported_alone(corpus):
    corpus.look()
    chunkers = yaml_chunkers(corpus)
    corpus.declare(chunkers={**chunkers, "fixed-40@1": {"kind": "fixed", "max_tokens": 40}})
    corpus.load()
    result = corpus.look()
    assert shards(result) == []
    assert versions(result) == ["fixed-40@1"]


def test_a_new_collection_becomes_a_partition(corpus):
    corpus.look()
    corpus.write("letters/1.md", "Dear reader.")
    collections = {n: {"path": n, "settle_seconds": 0} for n in ("docs", "notes", "letters")}
    corpus.declare(collections=collections)
    corpus.load()
    assert corpus.reported() == ["letters"]
    assert corpus.instance.has_dynamic_partition("corpus_shard", "letters")


def yaml_chunkers(corpus):
    return {
        name: {"kind": version.chunker.kind, "max_tokens": version.chunker.max_tokens}
        for name, version in corpus.config.chunker_versions.items()
    }
