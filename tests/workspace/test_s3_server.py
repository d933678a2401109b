"""The server that the tests of buckets speak to answers as another one, which is not ours, does."""

import re
import threading
from contextlib import closing
from html import unescape
from http.client import HTTPConnection
from types import MappingProxyType
from typing import NamedTuple
from urllib.parse import quote, urlsplit

import pytest
from s3_server import NAMES, Bucket, tag

from chunking_assets.storage import Bucket as Place
from chunking_assets.storage import Conflict, store_of


@pytest.fixture
def moto(monkeypatch):
    server_of = pytest.importorskip("moto.server")
    server = server_of.ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    url = "http://{}:{}".format(*server.get_host_and_port())
    Client(url).ask("PUT", "/corpus")
    yield url
    server.stop()


NAMED = ("etag", "content-length", "content-range")
PART = 5 << 20
"""The least that a part may have that is not the last, in bytes."""


class Answer(NamedTuple):
    """What clients look at: of an error its code, of anything else the body."""

    status: int
    headers: dict[str, str]
    body: bytes


SIGNED = (
    "AWS4-HMAC-SHA256 Credential=key/20260101/us-east-1/s3/aws4_request, SignedHeaders=host, "
    "Signature=0"
)
"""Neither server reads it, but one refuses who has none."""


class Client:
    """Sends each request once."""

    def __init__(self, url):
        self.host = urlsplit(url).netloc

    def ask(self, method, path, body=b"", headers=MappingProxyType({})):
        with closing(HTTPConnection(self.host)) as connection:
            connection.request(method, path, body, {"Authorization": SIGNED, **headers})
            response = connection.getresponse()
            content = response.read()
        if response.status >= 400:
            code = re.search(b"<Code>(.*?)</Code>", content)
            return Answer(response.status, {}, code[1] if code else b"")
        shown = response.headers.items() if method in ("GET", "HEAD") and "?" not in path else ()
        named = {name.lower(): value for name, value in shown if name.lower() in NAMED}
        return Answer(response.status, named, content)

    def pages(self, path):
        """Every page of a listing."""
        found, more = [], ""
        while more is not None:
            said = self.ask("GET", path + more)
            found.append(listed(said))
            token = re.search(b"<NextContinuationToken>(.*)</NextContinuationToken>", said.body)
            more = token and f"&continuation-token={quote(token[1], safe='')}"
        return found


def listed(answer):
    """The entries of a page, and whether there are more."""
    entries = re.findall(
        rb"<(?:Key|ETag|Size|CommonPrefixes><Prefix|IsTruncated|KeyCount)>([^<]*)<", answer.body
    )
    return answer.status, sorted(unescape(entry.decode()) for entry in entries)


def said(do):
    try:
        return do()
    except Conflict:
        return "conflict"


def conversation(url):
    store = store_of(Place("s3://corpus/a b", endpoint=url, region="us-east-1", allow_http=True))
    yield store.read("none")
    yield said(lambda: store.write_if_absent("x/é 1%2F.json", b"1"))
    yield said(lambda: store.write_if_absent("x/é 1%2F.json", b"2"))
    with store.transaction():
        yield store.read("x/é 1%2F.json")
        yield said(lambda: store.replace("x/é 1%2F.json", b"3"))
        other = threading.Thread(target=lambda: store.write("x/é 1%2F.json", b"4"))
        other.start()
        other.join()
        yield said(lambda: store.replace("x/é 1%2F.json", b"5"))
        yield said(store.check_unchanged)
        store.delete(["x/é 1%2F.json"])
        yield said(lambda: store.replace("x/é 1%2F.json", b"6"))
    with store.transaction():
        yield store.read("x/y")
        store.write("x/y", b"7")
        yield said(lambda: store.replace("x/y", b"8"))
    large = store.draft("x/large.parquet")
    large.write_bytes(bytes(range(256)) * 40_000)
    store.keep("x/large.parquet")
    large.unlink()
    yield store.local("x/large.parquet").read_bytes()
    yield sorted((file.key, file.size) for file in store.files())
    yield store.below("x").folders_with("y"), store.folders(), store.folders_with("y")
    store.delete(["x/y", "not there"])
    yield [file.key for file in store.files("x")], list(store.files("x/large"))


def test_both_servers_answer_the_same(bucket, moto, s3_server):
    assert isinstance(s3_server, Bucket)
    assert list(conversation(s3_server.url)) == list(conversation(moto))


def requests(url, name):
    """What the clients of tables and of LanceDB ask for, request by request; no client repeats or
    hides anything. `name` is the bucket."""
    client = Client(url)
    ask, below = client.ask, f"/{name}/requests"
    yield ask("GET", f"{below}/none"), ask("HEAD", f"{below}/none")
    yield ask("GET", "/no-such-bucket/x"), ask("GET", "/no-such-bucket?list-type=2")
    yield ask("PUT", f"{below}/a", b"first", {"If-None-Match": "*"})
    yield ask("PUT", f"{below}/a", b"second", {"If-None-Match": "*"})
    yield ask("PUT", f"{below}/a", b"second", {"If-Match": tag(b"other")})
    yield ask("PUT", f"{below}/none", b"second", {"If-Match": tag(b"first")})
    yield ask("PUT", f"{below}/a", b"0123456789", {"If-Match": tag(b"first")})
    yield ask("GET", f"{below}/a"), ask("HEAD", f"{below}/a")
    for asked in ("0-3", "4-", "-3", "8-99", "99-120"):
        yield ask("GET", f"{below}/a", headers={"Range": f"bytes={asked}"})
    for key in ("b/1", "b/2", "b/c/3", "d"):
        yield ask("PUT", f"{below}/{key}", b"x")
    yield ask("PUT", f"{below}/copy", headers={"x-amz-copy-source": f"{below}/a"})[0]
    yield ask("GET", f"{below}/copy")
    listing = f"/{name}?list-type=2&prefix=requests/"
    yield listed(ask("GET", listing)), listed(ask("GET", f"{listing}b/&delimiter=/"))
    yield listed(ask("GET", f"{listing}&start-after=requests/b/2&max-keys=2"))
    yield client.pages(f"{listing}&max-keys=2"), client.pages(f"{listing}&delimiter=/&max-keys=3")
    yield ask("DELETE", f"{below}/d"), ask("DELETE", f"{below}/d")
    doomed = "".join(f"<Object><Key>requests/{key}</Key></Object>" for key in ("b/1", "none"))
    said = ask("POST", f"/{name}?delete", f"<Delete>{doomed}</Delete>".encode())
    yield said.status, sorted(NAMES.findall(said.body))
    for headers in ({"If-None-Match": "*"}, {"If-None-Match": "*"}, {}):
        upload = re.search(b"<UploadId>(.*)</UploadId>", ask("POST", f"{below}/m?uploads").body)
        query = f"uploadId={upload[1].decode()}"
        parts = [PART * b"a", b"end"]
        yield [ask("PUT", f"{below}/m?partNumber={n}&{query}", parts[n - 1]) for n in (2, 1)]
        done = "".join(
            f"<Part><PartNumber>{n}</PartNumber><ETag>{tag(part)}</ETag></Part>"
            for n, part in enumerate(parts, 1)
        )
        done = f"<CompleteMultipartUpload>{done}</CompleteMultipartUpload>".encode()
        yield ask("POST", f"{below}/m?{query}", done, headers).status
        yield ask("DELETE", f"{below}/m?{query}").status in (204, 404)
        yield ask("HEAD", f"{below}/m").headers["content-length"]


def test_both_servers_answer_every_request_the_same(moto, s3_server):
    ours, theirs = (list(requests(url, "corpus")) for url in (s3_server.url, moto))
    for number, (of_ours, of_theirs) in enumerate(zip(ours, theirs, strict=True)):
        assert of_ours == of_theirs, f"answer {number}"
