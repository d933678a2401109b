"""A source that takes a connection and never says a word."""

import itertools
import socket

import pytest

from chunking_assets.errors import CorpusError
from chunking_assets.raw_documents.collection import Collection
from chunking_assets.raw_documents.listing import scan


@pytest.fixture
def silent_host():
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"127.0.0.1:{server.getsockname()[1]}"


@pytest.fixture
def silent(corpus_of, silent_host):
    """A corpus of a silent source and, looked at after it, two folders."""
    local = {name: {"path": name, "settle_seconds": 0} for name in ("docs", "notes")}
    distant = {"path": f"http://{silent_host}/list.txt", "timeout_seconds": 0.2}
    return corpus_of(collections={"archive": distant, **local})


def test_a_silent_source_is_named_and_the_others_are_looked_at_in_the_same_tick(
    silent, silent_host
):
    result = silent.look()
    said = result.skip_reason.skip_message
    assert f"http://{silent_host}/list.txt: cannot be listed (TimeoutError: no answer" in said
    assert "Nothing is taken as deleted" in said
    reported = [e.partition for e in result.asset_events if e.asset_key.path == ["raw_documents"]]
    assert reported == ["docs", "notes"]


def test_a_silent_source_that_used_up_the_tick_leaves_the_others_to_the_next(silent, monkeypatch):
    sensors = silent.module("sensors")
    plain = sensors.Ticking

    def ticking(config, workspace):
        return plain(config, workspace, seconds=1, clock=itertools.count().__next__)

    monkeypatch.setattr(sensors, "Ticking", ticking)
    reported = [silent.reported() for _ in range(8)]
    assert reported[0] == []
    assert {*itertools.chain.from_iterable(reported)} == {"docs", "notes"}


class Silence:
    """A file system of a package without asynchronous calls, whose server hangs."""

    def __init__(self, host):
        self.address = host.split(":")

    def invalidate_cache(self):
        pass

    def ls(self, path, detail):
        with socket.create_connection(self.address) as connection:
            return connection.recv(1)


@pytest.mark.parametrize("client", ["of S3", "of anyone"])
def test_any_client_is_given_up_however_often_it_would_try_again(
    client, silent_host, monkeypatch, tmp_path
):
    for name, value in {
        "AWS_ENDPOINT_URL": f"http://{silent_host}", "AWS_ACCESS_KEY_ID": "a",
        "AWS_SECRET_ACCESS_KEY": "b", "AWS_DEFAULT_REGION": "us-east-1",
    }.items():  # fmt: skip
        monkeypatch.setenv(name, value)
    scheme = {"of S3": "s3", "of anyone": "memory"}[client]
    collection = Collection(path=f"{scheme}://a-silent-bucket/kb", timeout_seconds=0.3)
    if client == "of anyone":
        source = collection.source(tmp_path)
        source._system = Silence(silent_host)
        monkeypatch.setattr(Collection, "source", lambda self, root: source)
    with pytest.raises(CorpusError, match=r"cannot be listed .*timeout_seconds"):
        scan("docs", collection, tmp_path)
