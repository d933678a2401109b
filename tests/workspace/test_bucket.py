"""A workspace in a bucket: who writes at once, what other machines get, and what nobody is told."""

import os
import subprocess
import sys
import threading
import time
import traceback
from contextlib import nullcontext
from datetime import timedelta
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from s3_server import KEY, SECRET, SECRETS, Bucket
from small_corpus import SmallCorpus, write_corpus, write_document

from chunking_assets import shared_cache
from chunking_assets.chat_models.response_cache import ResponseCache
from chunking_assets.chunk_embeddings import word_frequencies
from chunking_assets.chunk_embeddings.build import update_index
from chunking_assets.chunk_embeddings.lance_index import LanceIndex
from chunking_assets.chunk_embeddings.reconcile import reconcile
from chunking_assets.embedding_models.vector_cache import VECTORS, VectorCache
from chunking_assets.errors import ConfigError, CorpusError
from chunking_assets.live_index.promotion import promote
from chunking_assets.live_index.repair import remove_damaged
from chunking_assets.live_index.serve import open_live
from chunking_assets.s3_store import TOUCHED, UNUSED_SECONDS, S3Store
from chunking_assets.storage import Conflict, StorageUnavailable
from chunking_assets.workspace import MANIFEST, UNREFERENCED_GRACE_SECONDS, Workspace
from chunking_assets.workspace_overlay import Overlay

TESTS = Path(__file__).parents[1]
ONE = {
    "chunkers": {"recursive-20@1": {"kind": "recursive", "max_tokens": 20}},
    "strategies": {"one": {"chunker": "recursive-20@1", "model": "hash", "profile": "hybrid"}},
}


@pytest.fixture
def on_machine(bucket, monkeypatch, tmp_path):
    """Makes this process one on another machine: nothing of the first one's folder is there."""

    def become(name):
        monkeypatch.setenv("CORPUS_LOCAL", str(tmp_path / name))

    return become


def frame(*values):
    return pl.DataFrame({"value": [*values]})


def values(table, partition="all"):
    return table.read(partition)["value"].to_list()


# --- two writers ---------------------------------------------------------------------------------


def change(workspace, add, meanwhile=lambda: None):
    """What a stage does: under a lock read a partition, think, and replace it."""
    with workspace.lock("stage"):
        table = workspace.table("t")
        before = table.read("a")
        meanwhile()
        rows = frame(add) if before is None else pl.concat([before, frame(add)])
        table.replace(rows, "a", keys={"n": str(add)})


@pytest.mark.parametrize("is_new", [False, True])
@pytest.mark.parametrize("winner", [2, 3])
def test_of_two_who_replace_what_both_read_one_wins_and_the_other_goes_on_top(
    bucket, on_machine, is_new, winner
):
    two = Workspace(bucket)
    on_machine("another")
    three = Workspace(bucket)
    if not is_new:
        two.table("t").replace(frame(1), "a")
    change_by = {2: lambda **how: change(two, 2, **how), 3: lambda **how: change(three, 3, **how)}
    loser = 5 - winner
    with pytest.raises(Conflict, match="written by somebody else meanwhile"):
        change_by[loser](meanwhile=lambda: in_a_thread(change_by[winner]))
    before = [] if is_new else [1]
    assert values(two.table("t"), "a") == [*before, winner]
    change_by[loser]()
    assert values(three.table("t"), "a") == [*before, winner, loser]
    kept = [f.key for f in two.store.files("tables/t/a") if f.key.endswith(".parquet")]
    assert len(kept) == len(before) + 2, "what the loser wrote is gone"


def in_a_thread(do):
    """As another machine would, without a part in what this thread has read."""
    thread = threading.Thread(target=do)
    thread.start()
    thread.join()


APPENDER = """
import sys
import polars as pl
from chunking_assets.workspace import Workspace
print("ready", flush=True)
sys.stdin.readline()
table = Workspace(sys.argv[1]).table("costs")
for n in range(8):
    table.append(pl.DataFrame({"value": [f"{sys.argv[2]}-{n}"]}), "p")
"""


def test_histories_that_machines_append_to_at_once_lose_nothing(bucket, tmp_path):
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", APPENDER, bucket, name],
            env={
                **os.environ,
                "PYTHONPATH": str(TESTS.parent),
                "CORPUS_LOCAL": str(tmp_path / name),
            },
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for name in ("a", "b")
    ]
    assert [process.stdout.readline() for process in processes] == ["ready\n"] * 2
    for process in processes:
        process.stdin.write("\n")
        process.stdin.close()
    assert [process.wait(60) for process in processes] == [0, 0]
    for process in processes:
        process.stdout.close()
    found = values(Workspace(bucket).table("costs"), "p")
    assert sorted(found) == sorted(f"{name}-{n}" for name in "ab" for n in range(8))
    of_a = [value for value in found if value.startswith("a")]
    assert of_a == sorted(of_a)


def test_an_event_decided_on_what_was_read_is_not_added_to_what_was_not(bucket):
    """Two rollbacks of one promotion would be two steps back."""
    log = Workspace(bucket).table("promotions")
    log.append(frame(1))

    def decide():
        with Workspace(bucket).lock("promotions"):
            assert values(log) == [1]
            in_a_thread(lambda: log.append(frame(2)))
            log.append(frame(3))

    with pytest.raises(Conflict):
        decide()
    assert values(log) == [1, 2]


def test_a_declaration_is_that_of_the_first_machine(bucket, s3_server):
    workspace = Workspace(bucket)

    def another_is_faster(method, key):
        if method == "PUT" and "/declarations/" in f"/{key}":
            s3_server.before = lambda method, key: None
            s3_server.put(key, b'{"max_tokens": 40}')

    s3_server.before = another_is_faster
    with pytest.raises(CorpusError, match="max_tokens: 40 → 20"):
        workspace.record_declaration("chunkers", "a@1", {"max_tokens": 20})


@pytest.mark.parametrize("is_new", [False, True])
def test_a_write_that_meets_another_in_the_bucket_is_a_conflict(
    bucket, s3_server, monkeypatch, is_new
):
    monkeypatch.setattr("chunking_assets.s3_store.RETRIES", 0)
    table = Workspace(bucket).table("t")
    if not is_new:
        table.replace(frame(1))
    meets = (409, "ConditionalRequestConflict")
    monkeypatch.setattr(
        s3_server, "broken_condition", lambda _, headers: meets if conditions(headers) else None
    )
    with pytest.raises(Conflict):
        table.replace(frame(2))


def conditions(headers):
    return headers.get("If-Match") or headers.get("If-None-Match")


def test_a_write_whose_answer_was_lost_is_no_conflict(bucket, s3_server):
    table = Workspace(bucket).table("t")
    table.replace(frame(1))
    s3_server.lost_answers = 2
    table.replace(frame(2))
    s3_server.lost_answers = 2
    table.append(frame(3))
    assert values(table) == [2, 3]


@pytest.mark.parametrize("fails", ["PUT", "POST"])
def test_a_file_that_a_manifest_may_name_stays_whatever_fails_then(
    bucket, s3_server, monkeypatch, fails
):
    """The answer to the manifest is lost for good, or what is over cannot be deleted; and the next
    request is answered again."""
    monkeypatch.setattr("chunking_assets.s3_store.RETRIES", 0)
    table = Workspace(bucket).table("costs")
    table.append(frame(1))
    table.append(frame(2))
    age(s3_server)

    def fail_once(method, key):
        if method == fails and not key.endswith((".parquet", TOUCHED)):
            s3_server.before = lambda method, key: None
            s3_server.lost_answers = method == "PUT"
            if method == "POST":
                raise ConnectionAbortedError

    s3_server.before = fail_once
    table.append(frame(3))
    assert values(table) == [1, 2, 3], "it is looked for"
    age(s3_server)
    s3_server.before = fail_once
    with pytest.raises(StorageUnavailable):
        table.replace(frame(4))
    assert values(table) == [4]


@pytest.mark.parametrize("is_decided", [False, True])
def test_what_was_added_is_added_once_if_another_machine_adds_before_it_is_known(
    bucket, s3_server, is_decided
):
    """The answer is lost, the client asks again, and by then the file is not as it was written."""
    log, sent = Workspace(bucket).table("promotions"), []
    log.append(frame(1))

    def lose_the_answer(method, key):
        if method == "PUT" and key.endswith(MANIFEST):
            sent.append(key)
            s3_server.lost_answers = len(sent) == 1
            if len(sent) == 2:
                s3_server.heal()
                log.append(frame(3))

    s3_server.before = lose_the_answer
    with Workspace(bucket).lock("promotions"):
        if is_decided:
            log.read()
        log.append(frame(2))
    assert values(log) == [1, 2, 3]


def test_what_was_not_added_for_lack_of_an_answer_is_said(bucket, s3_server, monkeypatch):
    monkeypatch.setattr("chunking_assets.s3_store.RETRIES", 0)
    table = Workspace(bucket).table("costs")
    table.append(frame(1))
    s3_server.refused = {f"{table.store.uri.removeprefix('s3://corpus/')}/all/{MANIFEST}"}
    with pytest.raises(StorageUnavailable):
        table.append(frame(2))
    s3_server.heal()
    table.append(frame(2))
    assert values(table) == [1, 2]


def test_a_replaced_file_is_there_for_its_readers_and_goes_after_the_grace(bucket, s3_server):
    table = Workspace(bucket).table("t")
    table.replace(frame(1), "a")
    age(s3_server)
    table.replace(frame(2), "a")
    table.replace(frame(3), "a")
    assert parquet_files(table) == 3, "the grace begins when a file is replaced, however old it is"
    age(s3_server)
    table.replace(frame(4), "a")
    assert parquet_files(table) == 2
    age(s3_server)
    assert table.drop_unnamed() > 0
    assert parquet_files(table) == 1
    assert values(table, "a") == [4]


def test_files_of_what_is_replaced_all_the_time_go_after_the_grace_too(bucket, s3_server):
    table = Workspace(bucket).table("t")
    for n in range(8):
        table.replace(frame(n), "a")
        age(s3_server, UNREFERENCED_GRACE_SECONDS / 2)
    assert parquet_files(table) <= 4
    assert len(list(table.store.files())) <= 8


def test_a_copy_that_is_being_read_stays_while_its_successor_is_written(bucket):
    table = Workspace(bucket).table("t")
    old = table.snapshot(table.replace(frame(1), "a"))
    make_old(old.files)
    reading = table.snapshot(table.manifest("a"))  # what `_Merge` and every reader hold
    table.replace(frame(2), "a")
    assert reading.read()["value"].to_list() == [1]
    make_old(old.files)
    table.replace(frame(3), "a")
    assert not any(file.exists() for file in old.files)


def make_old(files):
    past = time.time() - 2 * UNUSED_SECONDS
    for file in files:
        os.utime(file, (past, past))


def parquet_files(table):
    return sum(file.key.endswith(".parquet") for file in table.store.files())


def age(server, seconds=UNREFERENCED_GRACE_SECONDS + 60):
    past = timedelta(seconds=seconds)
    server.times = {key: at - past for key, at in server.times.items()}


# --- two machines and one index ------------------------------------------------------------------


def document(name, revision=0):
    return "\n\n".join(f"Sentence {n} of {name}, revision {revision}." for n in range(3))


def corpus_in(bucket, root, **changes):
    texts = {f"{n}.md": document(n) for n in range(3)}
    return SmallCorpus(write_corpus(root, texts, workspace=bucket, **{**ONE, **changes}))


def test_what_another_machine_writes_into_a_table_meanwhile_is_not_served_half(
    bucket, tmp_path, monkeypatch
):
    corpus = corpus_in(bucket, tmp_path)
    corpus.update()
    (index,) = corpus.config.index_versions
    served = LanceIndex(corpus.workspace, index).served_version()
    publish = LanceIndex.publish

    def half(lance):
        monkeypatch.setattr(LanceIndex, "publish", publish)
        other = LanceIndex(Workspace(bucket), index)
        in_a_thread(lambda: other._open().delete("doc_id = 'docs/1.md'"))
        return publish(lance)

    write_document(tmp_path, "0.md", document(0, 1))
    monkeypatch.setattr(LanceIndex, "publish", half)
    with pytest.raises(Conflict, match="another machine writes to the table"):
        corpus.update()
    assert LanceIndex(corpus.workspace, index).served_version() == served
    corpus.update()
    assert documents_served(corpus, index) == {"docs/0.md", "docs/1.md", "docs/2.md"}


def test_the_tag_is_not_moved_over_what_another_machine_published(
    bucket, tmp_path, on_machine, monkeypatch
):
    corpus = corpus_in(bucket, tmp_path)
    corpus.update()
    (index,) = corpus.config.index_versions
    check = LanceIndex._check_alone

    def too_late(lance, table):
        check(lance, table)
        monkeypatch.setattr(LanceIndex, "_check_alone", check)
        on_machine("another")
        other = corpus_in(bucket, tmp_path / "other")
        in_a_thread(other.embed)

    write_document(tmp_path, "0.md", document(0, 1))
    corpus.parse()
    corpus.chunk()
    monkeypatch.setattr(LanceIndex, "_check_alone", too_late)
    monkeypatch.setattr(S3Store, "turn", lambda *_: nullcontext())  # each thinks it has it
    with pytest.raises(Conflict):
        corpus.embed()
    corpus.embed()
    assert documents_served(corpus, index) == {"docs/0.md", "docs/1.md", "docs/2.md"}
    texts = LanceIndex(corpus.workspace, index).rows(columns=["text"], served=True)["text"]
    assert sum("revision 1" in text for text in texts.to_pylist()) > 0


def test_machines_that_write_to_one_table_take_turns(bucket, tmp_path, on_machine, monkeypatch):
    monkeypatch.setattr("chunking_assets.s3_store.TURN_LOOK_SECONDS", 0.01)
    collections = {name: {"path": name, "settle_seconds": 0} for name in ("a", "b")}
    for name in collections:
        (tmp_path / name).mkdir()
        (tmp_path / name / "1.md").write_text(document(name))
    corpora = []
    for name in collections:
        on_machine(name)
        corpora.append(corpus_in(bucket, tmp_path, collections=collections))
    corpora[0].parse()
    corpora[0].chunk()
    (index,) = corpora[0].config.index_versions.values()
    updates, failures = [], []

    def update(corpus, shard):
        try:
            embedder = corpus.embedder
            updates.extend(update_index(corpus.workspace, index, [shard], lambda _: embedder))
        except CorpusError as error:
            failures.append(error)

    threads = [
        threading.Thread(target=update, args=pair) for pair in zip(corpora, "ab", strict=True)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert len(updates) == 2
    assert documents_served(corpora[0], index.name) == {"a/1.md", "b/1.md"}


def test_the_turn_of_a_machine_that_is_gone_is_taken_after_a_while(bucket, on_machine, monkeypatch):
    monkeypatch.setattr("chunking_assets.s3_store.TURN_LOOK_SECONDS", 0.01)
    store = Workspace(bucket).store
    gone = b'{"machine": "gone", "turn": "1"}'
    store.write("x.turn", gone)
    waited = threading.Event()
    s3_get = S3Store._get

    def get(self, key):
        found = s3_get(self, key)
        if waited.is_set():
            monkeypatch.setattr("chunking_assets.s3_store.TURN_SECONDS", -1)
        waited.set()
        return found

    monkeypatch.setattr(S3Store, "_get", get)
    with store.turn("x.turn"):
        assert store.read("x.turn") != gone
    assert store.read("x.turn") is None
    assert waited.is_set()


def documents_served(corpus, index):
    rows = LanceIndex(corpus.workspace, index).rows(columns=["doc_id"], served=True)
    return {*rows["doc_id"].to_pylist()}


def test_another_machine_embeds_and_counts_nothing_that_one_has_done(
    bucket, tmp_path, on_machine, monkeypatch
):
    corpus = corpus_in(bucket, tmp_path)
    corpus.update()
    promote(corpus.workspace, corpus.config.strategies["one"], ["docs"])
    on_machine("another")
    with monkeypatch.context() as patch:
        patch.setattr(word_frequencies, "_write", None)  # nothing is counted
        assert open_live(bucket).search("sentence revision")
    again = corpus_in(bucket, tmp_path, chunkers=again_under_a_new_name(), strategies=ANEW)
    again.update()
    assert again.embedder.embedded == []
    assert LanceIndex(again.workspace, "recursive-20@2+hash").count("docs") > 0


ANEW = {"one": {"chunker": "recursive-20@2", "model": "hash", "profile": "hybrid"}}


def again_under_a_new_name():
    return {f"recursive-20@{n}": ONE["chunkers"]["recursive-20@1"] for n in (1, 2)}


def test_looking_at_what_would_be_done_writes_nothing_into_the_bucket(bucket, tmp_path, s3_server):
    corpus = corpus_in(bucket, tmp_path)
    corpus.update()
    before = dict(s3_server.objects)
    write_document(tmp_path, "0.md", document(0, 1))
    (tmp_path / "overlay").mkdir()
    corpus.workspace = Overlay(corpus.workspace, tmp_path / "overlay")
    (parsed,), chunked = corpus.parse(), corpus.chunk()
    assert parsed.changes.changed == ("docs/0.md",)
    assert chunked[0].changes.redo == ("docs/0.md",)
    assert s3_server.objects == before


@pytest.mark.parametrize("denied", ["/data/", ".manifest", "/_refs/", "/_versions", "/"])
def test_a_table_that_cannot_be_asked_for_is_not_taken_for_damaged(
    bucket, tmp_path, s3_server, denied
):
    corpus = corpus_in(bucket, tmp_path)
    corpus.update()
    (index,) = corpus.config.index_versions.values()
    stored = dict(s3_server.objects)
    lance = LanceIndex(corpus.workspace, index.name)
    s3_server.denied = denied
    for look in (
        lambda: reconcile(corpus.workspace, index, "docs"),
        lambda: LanceIndex._is_readable(lance),
        lance.heal_unreadable,
    ):
        with pytest.raises(StorageUnavailable):
            look()
    s3_server.denied = None
    assert {k: v for k, v in s3_server.objects.items() if not k.endswith(".turn")} == stored


def test_a_manifest_that_cannot_be_asked_for_is_not_taken_for_damaged(bucket, s3_server):
    workspace = Workspace(bucket)
    workspace.table("chunks").replace(frame(1))
    s3_server.denied = MANIFEST
    with pytest.raises(StorageUnavailable):
        remove_damaged(workspace)
    s3_server.denied = None
    assert values(workspace.table("chunks")) == [1]


# --- what machines compute -----------------------------------------------------------------------


def cached(bucket):
    return VectorCache(Workspace(bucket).caches / VECTORS, "model", 2)


def put(cache, *keys):
    cache.put_many(keys, np.ones((len(keys), 2), np.float32), [1] * len(keys))


def test_vectors_of_one_machine_are_found_on_another_and_a_damaged_segment_is_a_miss(
    bucket, on_machine, s3_server
):
    cache = cached(bucket)
    put(cache, "a", "b")
    put(cache, "killed before it was given")
    on_machine("another")
    other = cached(bucket)
    assert other.get_many(["a"]) == {}
    cache.give()
    assert other.get_many(["a", "b", "c"]).keys() == {"a", "b"}
    put(other, "c")
    other.give()
    assert cache.get_many(["c"]).keys() == {"c"}
    damaged = [key for key in s3_server.objects if "/caches/vectors/" in key]
    assert len(damaged) == 2, "what was fetched is not given back"
    for key in damaged:
        s3_server.put(key, s3_server.objects[key][:50])
    on_machine("a third")
    assert cached(bucket).get_many(["a", "c"]) == {}


def test_many_segments_become_few(bucket, monkeypatch, on_machine):
    monkeypatch.setattr(shared_cache, "MANY_SEGMENTS", 3)
    cache = cached(bucket)
    for key in "abcd":
        put(cache, key)
        cache.give()
    segments = Workspace(bucket).store.below("caches")
    assert len(list(segments.files())) == 4
    cache.prune(days=1, keep=[])
    assert len(list(segments.files())) == 1
    on_machine("another")
    assert cached(bucket).get_many([*"abcd"]).keys() == {*"abcd"}


def test_a_segment_given_while_many_become_few_stays(bucket, monkeypatch, on_machine):
    monkeypatch.setattr(shared_cache, "MANY_SEGMENTS", 1)
    cache = cached(bucket)
    put(cache, "a")
    cache.give()
    on_machine("another")
    other, take = cached(bucket), shared_cache.Segments.take

    def then_one_is_given(segments):
        taken = take(segments)
        monkeypatch.setattr(shared_cache.Segments, "take", take)
        put(other, "b")
        other.give()
        return taken

    monkeypatch.setattr(shared_cache.Segments, "take", then_one_is_given)
    cache.prune(days=1, keep=[])
    on_machine("a third")
    assert cached(bucket).get_many(["a", "b"]).keys() == {"a", "b"}


def test_replies_of_one_machine_are_not_paid_for_by_another(bucket, on_machine):
    file = Path("judge") / "chat_replies.sqlite"
    with ResponseCache(Workspace(bucket).caches / file) as replies:
        replies.put("key", '"said"', 7)
        replies.put("other", '"unknown"')
    on_machine("another")
    with ResponseCache(Workspace(bucket).caches / file) as replies:
        assert (replies.get("key"), replies.tokens("key")) == ('"said"', 7)
        assert (replies.get("other"), replies.tokens("other")) == ('"unknown"', None)


def test_a_folder_has_nothing_of_this(tmp_path):
    cache = VectorCache(Workspace(tmp_path).caches / VECTORS, "model", 2)
    put(cache, "a")
    cache.give()
    assert sorted(path.name for path in tmp_path.rglob("*") if path.is_file()) == [
        "model.lock",
        "model.sqlite",
    ]


# --- what nobody is told -------------------------------------------------------------------------


def test_a_bucket_that_refuses_is_named_without_what_the_request_was_signed_with(
    bucket, tmp_path, s3_server, caplog
):
    corpus = corpus_in(bucket, tmp_path)
    corpus.update()
    (index,) = corpus.config.index_versions
    for denied, ask in (
        ("/", lambda: corpus.workspace.table("chunks").read_all()),
        ("/", lambda: corpus.workspace.stamps.write("a", "b")),
        ("/", lambda: corpus.update()),
        (".manifest", LanceIndex(corpus.workspace, index).open_served),  # LanceDB's own request
    ):
        s3_server.denied = denied
        with pytest.raises(CorpusError, match=r"InvalidAccessKeyId|cannot be read") as raised:
            ask()
        shown = "".join(traceback.format_exception(raised.value))
        assert not [secret for secret in SECRETS if secret in shown + caplog.text]
    assert "<AWSAccessKeyId>***" in shown


def test_a_question_that_the_bucket_refuses_is_answered_without_what_it_was_signed_with(
    bucket, tmp_path, s3_server
):
    corpus = corpus_in(bucket, tmp_path)
    corpus.update()
    promote(corpus.workspace, corpus.config.strategies["one"], ["docs"])
    reader = open_live(bucket)
    reader.search("sentence revision")
    s3_server.denied = "/data/"
    with pytest.raises(StorageUnavailable, match="InvalidAccessKeyId") as raised:
        reader.search("another question")
    shown = "".join(traceback.format_exception(raised.value))
    assert not [secret for secret in SECRETS if secret in shown]


def test_credentials_are_in_no_file_of_this_machine_or_the_bucket(bucket, tmp_path, s3_server):
    corpus = corpus_in(bucket, tmp_path)
    corpus.update()
    files = [file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()]
    assert len(files) > 10
    said = [*files, *s3_server.objects.values(), repr(corpus.config).encode()]
    assert not [secret for secret in SECRETS if secret.encode() in b"".join(said)]


def test_a_bucket_nobody_answers_for_is_said(monkeypatch, bucket, tmp_path):
    with Bucket() as gone:
        url = gone.url
    monkeypatch.setattr("chunking_assets.s3_store.RETRIES", 0)
    config = {"workspace": f"{bucket}/gone", "storage": {"endpoint": url, "allow_http": True}}
    corpus = SmallCorpus(write_corpus(tmp_path, {}, **config))
    with pytest.raises(StorageUnavailable, match=r"/gone: cannot .* \(no answer\). Look at"):
        corpus.workspace.stamps.read("a")


def test_a_bucket_that_does_not_exist_is_said(bucket):
    workspace = Workspace("s3://another/prefix")
    for ask in (
        workspace.table("t").partitions,
        lambda: workspace.stamps.write("a", "b"),
        lambda: workspace.table("t").replace(frame(1)),
        lambda: workspace.record_declaration("chunkers", "a@1", {}),
    ):
        with pytest.raises(StorageUnavailable, match="404 Not Found, NoSuchBucket"):
            ask()


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"storage": {"endpoint": f"https://{KEY}:{SECRET}@host"}}, "storage.endpoint"),
        ({"storage": {"access_key_id": KEY}}, "storage.access_key_id: unknown key"),
        ({"workspace": f"s3://{KEY}:{SECRET}@corpus"}, "workspace: .* nothing more"),
        ({"workspace": "s3:/corpus"}, "Give the URL as text"),
    ],
)
def test_credentials_in_the_configuration_are_refused_and_not_repeated(tmp_path, changes, said):
    with pytest.raises(ConfigError, match=said) as raised:
        SmallCorpus(write_corpus(tmp_path, {}, **changes))
    assert KEY not in str(raised.value)
    assert SECRET not in str(raised.value)
