"""The server that the tests of buckets speak to answers as another one, which is not ours, does."""

import threading

import pytest
from s3_server import Bucket

from chunking_assets.storage import Bucket as Place
from chunking_assets.storage import Conflict, store_of


@pytest.fixture
def moto(monkeypatch):
    server_of = pytest.importorskip("moto.server")
    server = server_of.ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    yield "http://{}:{}".format(*server.get_host_and_port())
    server.stop()


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
    import urllib.request

    opened = urllib.request.urlopen(
        urllib.request.Request(f"{moto}/corpus", method="PUT", headers={"Content-Length": "0"})
    )
    opened.close()
    assert isinstance(s3_server, Bucket)
    assert list(conversation(s3_server.url)) == list(conversation(moto))
