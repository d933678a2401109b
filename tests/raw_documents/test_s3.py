"""A bucket, spoken to by the real client over HTTP: listing in pages, marks, reads, refusals."""

import pytest
from s3_server import KEY, Bucket
from small_corpus import SmallCorpus, write_corpus

from chunking_assets.errors import CorpusError
from chunking_assets.raw_documents.collection import Collection
from chunking_assets.raw_documents.file_system import FileSystem
from chunking_assets.raw_documents.listing import scan

pytest.importorskip("s3fs")


@pytest.fixture
def bucket(monkeypatch):
    with Bucket("kb").serving() as server:
        for name, value in server.environment.items():
            monkeypatch.setenv(name, value)
        FileSystem("s3://kb")._system.clear_instance_cache()  # one made for another server
        yield server


def test_a_bucket_of_many_pages_is_listed_whole_and_read_below_its_prefix(bucket):
    bucket.page = 3
    bucket.objects = {f"docs/{n}.md": f"Text {n}.".encode() for n in range(10)}
    bucket.objects |= {"docs/en/ção & co.md": b"C", "docs2/x.md": b"X", "docs/": b""}
    listing = scan("kb", Collection(path="s3://kb/docs", settle_seconds=0), "/")
    contents = {f.doc_id: f.read() for files in listing.files.values() for f in files}
    assert contents == {
        "kb/en/ção & co.md": b"C",
        **{f"kb/{n}.md": f"Text {n}.".encode() for n in range(10)},
    }


@pytest.mark.parametrize(("path", "breaks_after"), [("s3://kb/gone", None), ("s3://kb/docs", 1)])
def test_a_prefix_that_is_not_there_or_fails_half_way_deletes_nothing_and_tells_no_key(
    bucket, path, breaks_after
):
    bucket.objects = {f"docs/{n}.md": b"x" for n in range(4)}
    bucket.page, bucket.breaks_after = 3, breaks_after
    with pytest.raises(CorpusError, match="Nothing is taken as deleted") as raised:
        scan("kb", Collection(path=path, settle_seconds=0), "/")
    assert KEY not in str(raised.value)


def test_a_change_in_a_bucket_reads_one_object_and_one_that_is_refused_is_a_row(bucket, tmp_path):
    bucket.objects = {f"docs/{n}.md": f"What object {n} says.".encode() for n in range(4)}
    bucket.refused = {"docs/3.md"}
    collections = {"docs": {"path": "s3://kb/docs", "settle_seconds": 0}}
    corpus = SmallCorpus(write_corpus(tmp_path, {}, collections=collections))
    (first,), _, _ = corpus.update()
    assert (first.rows, first.failed) == (4, ("docs/3.md",))
    bucket.refused.clear()
    bucket.requests.clear()
    bucket.objects["docs/1.md"] = b"Something else."
    (second,), _, _ = corpus.update()
    assert (second.parsed, second.failed) == (2, ())
    assert bucket.read == ["docs/1.md", "docs/3.md"]
    bucket.requests.clear()
    corpus.update()
    assert bucket.read == []
