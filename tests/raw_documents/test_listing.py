import os
import time

import pytest

from chunking_assets.errors import CorpusError, DeletionRefused
from chunking_assets.raw_documents.changes import guard_deletion
from chunking_assets.raw_documents.collection import Collection
from chunking_assets.raw_documents.listing import FileIndex, content_version, scan

LONG_AGO = time.time() - 1000


def write(folder, name, text="text", age=1000.0):
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    os.utime(file, (time.time() - age,) * 2)
    return file


def found(root, **settings):
    settings = {"settle_seconds": 0} | settings
    listing = scan("docs", Collection(path=".", **settings), root)
    return sorted(f.doc_id for files in listing.files.values() for f in files), listing


def test_documents_are_named_by_collection_and_relative_path(tmp_path):
    write(tmp_path, "a.md")
    write(tmp_path, "sub/b.txt")
    assert found(tmp_path)[0] == ["docs/a.md", "docs/sub/b.txt"]


def test_names_are_normalised_to_nfc(tmp_path):
    write(tmp_path, "cafe\u0301.md")
    assert found(tmp_path)[0] == ["docs/caf\u00e9.md"]


def test_two_spellings_of_one_name_are_reported(tmp_path):
    write(tmp_path, "caf\u00e9.md")
    write(tmp_path, "cafe\u0301.md")
    ids, listing = found(tmp_path)
    assert ids == ["docs/caf\u00e9.md"]
    assert "the same after normalisation" in listing.skipped[0][1]


def test_include_and_exclude_are_globs(tmp_path):
    for name in ("a.md", "b.txt", "sub/c.md", "drafts/d.md"):
        write(tmp_path, name)
    assert found(tmp_path, include=("**/*.md",), exclude=("drafts/**",))[0] == [
        "docs/a.md",
        "docs/sub/c.md",
    ]


def test_hidden_and_unfinished_files_are_left_alone(tmp_path):
    for name in (".hidden", "a.part", "b.tmp", "c.md~", ".git/config", "d.md"):
        write(tmp_path, name)
    assert found(tmp_path)[0] == ["docs/d.md"]


def test_symbolic_links_do_not_leave_the_folder(tmp_path):
    secret = write(tmp_path / "outside", "secret.md")
    inside = tmp_path / "inside"
    write(inside, "a.md")
    (inside / "link.md").symlink_to(secret)
    (inside / "folder").symlink_to(secret.parent)
    ids, listing = found(inside)
    assert ids == ["docs/a.md"]
    assert [reason for _, reason in listing.skipped] == ["symbolic links are not followed"] * 2


def test_a_pipe_is_not_opened(tmp_path):
    os.mkfifo(tmp_path / "pipe.md")
    ids, listing = found(tmp_path)
    assert ids == []
    assert listing.skipped[0][1] == "not a regular file"


def test_a_name_that_is_not_utf8_is_reported(tmp_path):
    write(tmp_path, "a.md")
    with open(os.fsencode(tmp_path) + b"/\xff.md", "wb"):
        pass
    ids, listing = found(tmp_path)
    assert ids == ["docs/a.md"]
    assert "UTF-8" in listing.skipped[0][1]


def test_a_file_just_written_is_held(tmp_path):
    write(tmp_path, "a.md")
    _, listing = found(tmp_path, settle_seconds=100.0)
    assert listing.held == {"docs/a.md"}


def test_a_missing_folder_is_an_error_and_not_an_empty_listing(tmp_path):
    with pytest.raises(CorpusError, match="Nothing is taken as deleted"):
        scan("docs", Collection(path="gone"), tmp_path)


def test_shards_share_the_documents_and_keep_them(tmp_path):
    for number in range(50):
        write(tmp_path, f"{number}.md")
    _, one = found(tmp_path, shards=4)
    assert sum(len(files) for files in one.files.values()) == 50
    assert all(one.files.values())
    write(tmp_path, "another.md")
    _, two = found(tmp_path, shards=4)
    before = {f.doc_id: shard for shard, files in one.files.items() for f in files}
    after = {f.doc_id: shard for shard, files in two.files.items() for f in files}
    assert {d: after[d] for d in before} == before


def versions(root, caches):
    _ids, listing = found(root)
    index = FileIndex(caches, "docs")
    revisions = {f.doc_id: index.revision(f, 1000) for f in listing.files["docs"]}
    index.save()
    return content_version(revisions)


def test_the_version_follows_content_and_not_times(tmp_path):
    file = write(tmp_path / "d", "a.md", "one")
    first = versions(tmp_path / "d", tmp_path / "caches")
    os.utime(file, (LONG_AGO, LONG_AGO))
    assert versions(tmp_path / "d", tmp_path / "caches") == first
    write(tmp_path / "d", "a.md", "two")
    assert versions(tmp_path / "d", tmp_path / "caches") != first
    write(tmp_path / "d", "a.md", "one")
    assert versions(tmp_path / "d", tmp_path / "caches") == first


def test_an_edit_of_equal_size_with_its_time_put_back_is_seen(tmp_path):
    file = write(tmp_path / "d", "a.md", "one")
    first = versions(tmp_path / "d", tmp_path / "caches")
    stat = file.stat()
    file.write_text("two")
    os.utime(file, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert versions(tmp_path / "d", tmp_path / "caches") != first


def test_a_damaged_index_of_files_is_only_a_cache(tmp_path):
    write(tmp_path / "d", "a.md")
    first = versions(tmp_path / "d", tmp_path / "caches")
    (tmp_path / "caches" / "files").mkdir(parents=True, exist_ok=True)
    (tmp_path / "caches" / "files" / "docs.json").write_text("{")
    assert versions(tmp_path / "d", tmp_path / "caches") == first


@pytest.mark.parametrize(("known", "removed"), [(1, 1), (10, 10), (10, 4), (3, 2)])
def test_losing_a_large_share_is_refused_with_the_command_that_confirms(known, removed):
    with pytest.raises(DeletionRefused, match="make confirm-deletions SHARD=docs"):
        guard_deletion("docs", known, removed)


@pytest.mark.parametrize(("known", "removed"), [(0, 0), (10, 0), (10, 3), (2, 1), (500, 150)])
def test_losing_a_few_is_not(known, removed):
    guard_deletion("docs", known, removed)


def test_a_time_in_the_future_holds_nothing_back(tmp_path):
    write(tmp_path, "a.md", age=-5000.0)
    collection = Collection(path=".", settle_seconds=2)
    assert scan("docs", collection, tmp_path, now=time.time() + 10).held == frozenset()
