"""A bucket, spoken to by the real client over HTTP: listing in pages, marks, reads, refusals."""

import http.server
import threading
from hashlib import md5
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

import pytest
from small_corpus import SmallCorpus, write_corpus

from chunking_assets.errors import CorpusError
from chunking_assets.raw_documents.collection import Collection
from chunking_assets.raw_documents.file_system import FileSystem
from chunking_assets.raw_documents.listing import scan

pytest.importorskip("s3fs")
KEY = "AKIA-NEVER-TO-BE-SEEN"


class Bucket(http.server.ThreadingHTTPServer):
    """What a listing and a read need of S3. `objects` are key -> bytes in the bucket `kb`, listed
    `page` at a time; `refused` keys answer 403, and so does the page after `breaks_after` pages."""

    def __init__(self):
        self.objects, self.refused, self.requests = {}, set(), []
        self.page, self.breaks_after = 1000, None
        super().__init__(("127.0.0.1", 0), _Handler)

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}"

    @property
    def read(self):
        """The keys whose content was asked for."""
        return sorted(path for path, query in self.requests if "list-type" not in query)

    def listed(self, query):
        prefix, delimiter = query["prefix"][0], query.get("delimiter", [""])[0]
        names = set()
        for key in self.objects:
            if key.startswith(prefix):
                inner, cut, _ = key[len(prefix) :].partition(delimiter or "\0")
                names.add(prefix + inner + cut)
        begin = int(query.get("continuation-token", ["0"])[0])
        shown, rest = sorted(names)[begin:][: self.page], sorted(names)[begin + self.page :]
        lines = [
            f"<CommonPrefixes><Prefix>{escape(name)}</Prefix></CommonPrefixes>"
            if name not in self.objects
            else f"<Contents><Key>{escape(name)}</Key><Size>{len(self.objects[name])}</Size>"
            f"<ETag>&quot;{tag(self.objects[name])}&quot;</ETag>"
            "<LastModified>2026-01-31T12:00:00.000Z</LastModified></Contents>"
            for name in shown
        ]
        more = f"<NextContinuationToken>{begin + self.page}</NextContinuationToken>" if rest else ""
        return (
            f"<ListBucketResult><Name>kb</Name><IsTruncated>{str(bool(rest)).lower()}</IsTruncated>"
            f"<KeyCount>{len(shown)}</KeyCount>{more}{''.join(lines)}</ListBucketResult>"
        ).encode()


def tag(content):
    return md5(content, usedforsecurity=False).hexdigest()


class _Handler(http.server.BaseHTTPRequestHandler):
    server: Bucket

    def do_GET(self):
        parts = urlsplit(self.path)
        query = parse_qs(parts.query, keep_blank_values=True)
        key = unquote(parts.path).removeprefix("/kb").removeprefix("/")
        if self.command == "GET":
            self.server.requests.append((key, query))
        pages = sum("list-type" in asked for _, asked in self.server.requests)
        breaks = self.server.breaks_after is not None and pages > self.server.breaks_after
        if "list-type" in query:
            self.reply(403 if breaks else 200, b"" if breaks else self.server.listed(query))
        elif key in self.server.refused:
            self.reply(403, b"<Error><Code>AccessDenied</Code></Error>")
        elif key in self.server.objects:
            self.reply(200, self.server.objects[key])
        else:
            self.reply(404, b"<Error><Code>NoSuchKey</Code></Error>")

    do_HEAD = do_GET

    def reply(self, status, body):
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("ETag", f'"{tag(body)}"')
        self.send_header("Last-Modified", "Sat, 31 Jan 2026 12:00:00 GMT")
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)

    def log_message(self, *args):
        pass


@pytest.fixture
def bucket(monkeypatch, tmp_path):
    with Bucket() as server:
        for name, value in {
            "AWS_ENDPOINT_URL": server.url,
            "AWS_ACCESS_KEY_ID": KEY,
            "AWS_SECRET_ACCESS_KEY": KEY,
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_CONFIG_FILE": str(tmp_path / "none"),
            "AWS_SHARED_CREDENTIALS_FILE": str(tmp_path / "none"),
            "NO_PROXY": "127.0.0.1",
        }.items():
            monkeypatch.setenv(name, value)
        FileSystem("s3://kb")._system.clear_instance_cache()  # one made for another server
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


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
