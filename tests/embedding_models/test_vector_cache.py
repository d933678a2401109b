import os
import signal
import sqlite3
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from chunking_assets.embedding_models import vector_cache
from chunking_assets.embedding_models.model import ModelIdentity
from chunking_assets.embedding_models.vector_cache import (
    BATCH,
    VectorCache,
    embed_through_cache,
    vec_key,
)
from chunking_assets.errors import CorpusError

IDENTITY = ModelIdentity("m", "1", 4, 8, "query: ", "passage: ", "mean", True)


class CountingEmbedder:
    """Gives each text a vector of its own and remembers what it was asked."""

    def __init__(self, identity: ModelIdentity = IDENTITY) -> None:
        self.identity = identity
        self.asked: list[str] = []

    def count_tokens(self, texts):
        return [len(text) for text in texts]

    def embed_passages(self, texts, progress=None):
        self.asked += texts
        rows = [np.random.default_rng(list(text.encode())).normal(size=4) for text in texts]
        return np.array([row / np.linalg.norm(row) for row in rows], np.float32)

    embed_queries = embed_passages


@pytest.fixture
def cache(tmp_path: Path) -> VectorCache:
    return VectorCache(tmp_path, IDENTITY.fingerprint, 4)


def test_what_was_embedded_once_is_not_embedded_again(cache):
    embedder = CountingEmbedder()
    first = embed_through_cache(embedder, cache, ["a", "b"])
    second = embed_through_cache(embedder, cache, ["b", "c", "a"])
    assert embedder.asked == ["a", "b", "c"]
    assert (first.computed, first.reused) == (2, 0)
    assert (second.computed, second.reused, second.tokens_computed) == (1, 2, 1)
    assert second.vectors[[2, 0]].tobytes() == first.vectors.tobytes()


def test_equal_texts_are_embedded_once(cache):
    embedder = CountingEmbedder()
    embedded = embed_through_cache(embedder, cache, ["aa", "b", "aa"])
    assert embedder.asked == ["aa", "b"]
    assert embedded.n_tokens == [2, 1, 2]
    assert embedded.vectors[0].tobytes() == embedded.vectors[2].tobytes()
    assert (embedded.computed, embedded.tokens_computed) == (2, 3)


def test_no_texts_need_no_vectors(cache):
    embedded = embed_through_cache(CountingEmbedder(), cache, [])
    assert embedded.vectors.shape == (0, 4)
    assert (embedded.computed, embedded.reused, embedded.n_tokens) == (0, 0, [])


def test_progress_counts_what_is_computed(cache):
    embed_through_cache(CountingEmbedder(), cache, ["0"])
    told: list[tuple[int, int, int]] = []
    embedder, texts = CountingEmbedder(), [str(number) for number in range(BATCH + 11)]
    embed_through_cache(embedder, cache, texts, "passage", lambda *numbers: told.append(numbers))
    first, every = (sum(embedder.count_tokens(texts[1 : end + 1])) for end in (BATCH, BATCH + 10))
    assert told == [(BATCH, BATCH + 10, first), (BATCH + 10, BATCH + 10, every)]


@pytest.mark.parametrize(
    "change",
    [
        {"id": "n"}, {"revision": "2"}, {"dimensions": 5}, {"max_tokens": 9}, {"pooling": "cls"},
        {"passage_prefix": ""}, {"query_prefix": ""}, {"normalised": False},
    ],
)  # fmt: skip
def test_another_model_has_another_key(change):
    other = replace(IDENTITY, **change)
    assert vec_key(other, "passage", "a") != vec_key(IDENTITY, "passage", "a")


def test_a_question_and_a_passage_have_different_keys():
    same = replace(IDENTITY, query_prefix="", passage_prefix="")
    assert vec_key(same, "query", "a") != vec_key(same, "passage", "a")


@pytest.mark.parametrize(
    "damage",
    [
        "vector = substr(vector, 1, 15)",
        "vector = zeroblob(16)",
        "checksum = checksum + 1",
        "n_tokens = 1, vector = x''",
    ],
)
def test_a_damaged_row_is_computed_again(cache, damage):
    embedder = CountingEmbedder()
    good = embed_through_cache(embedder, cache, ["a", "b"])
    key = vec_key(IDENTITY, "passage", "a")
    with sqlite3.connect(cache.file) as connection:
        connection.execute(f"update vectors set {damage} where vec_key = ?", [key])
    connection.close()
    again = embed_through_cache(embedder, cache, ["a", "b"])
    assert embedder.asked == ["a", "b", "a"]
    assert again.vectors.tobytes() == good.vectors.tobytes()
    assert embed_through_cache(embedder, cache, ["a"]).reused == 1


def test_a_vector_that_is_not_finite_is_a_miss(cache):
    cache.put_many(["k"], np.array([[1, np.nan, 0, 0]], np.float32), [1])
    assert cache.get_many(["k"]) == {}


def test_a_file_that_is_no_database_is_named_with_the_cure(cache):
    cache.file.write_bytes(b"not a database" * 100)
    with pytest.raises(CorpusError, match=r"remove it: its vectors will be computed again"):
        cache.get_many(["k"])


def test_a_thousand_keys_are_found_at_once(cache):
    keys = [f"{number:04}" for number in range(1234)]
    vectors = np.random.default_rng(0).normal(size=(len(keys), 4)).astype(np.float32)
    cache.put_many(keys, vectors, range(len(keys)))
    found = cache.get_many([*keys, "missing"])
    assert len(found) == len(keys)
    assert all(found[k].vector.tobytes() == v.tobytes() for k, v in zip(keys, vectors, strict=True))
    assert found["0042"].n_tokens == 42


WRITER = """
import sys
from pathlib import Path
import numpy as np
from chunking_assets.embedding_models.vector_cache import VectorCache

folder, own = Path(sys.argv[1]), sys.argv[2]
for round in range(20):
    cache = VectorCache(folder, "shared", 4)
    keys = [f"{own}-{round}-{n}" for n in range(10)] + [f"common-{n}" for n in range(10)]
    cache.put_many(keys, np.ones((20, 4), np.float32), [1] * 20)
    assert len(cache.get_many(keys)) == 20
"""


def test_processes_share_a_cache(tmp_path):
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path), str(number)])
        for number in range(3)
    ]
    assert [writer.wait(timeout=120) for writer in writers] == [0, 0, 0]
    keys = [f"{own}-{round}-{n}" for own in range(3) for round in range(20) for n in range(10)]
    found = VectorCache(tmp_path, "shared", 4).get_many(
        [*keys, *(f"common-{n}" for n in range(10))]
    )
    assert len(found) == 610


def test_batches_that_take_no_time_are_committed_together_and_kept_if_the_next_fails(
    cache, monkeypatch
):
    class FailsInTheThirdBatch(CountingEmbedder):
        def embed_passages(self, texts, progress=None):
            if len(self.asked) == 2 * BATCH:
                raise CorpusError("out of order")
            return super().embed_passages(texts)

    commits = []
    put_many = VectorCache.put_many
    monkeypatch.setattr(
        VectorCache,
        "put_many",
        lambda self, keys, *values: commits.append(len(keys)) or put_many(self, keys, *values),
    )
    monkeypatch.setattr(vector_cache, "SECONDS_PER_COMMIT", 3600.0)
    texts = [str(number) for number in range(3 * BATCH)]
    with pytest.raises(CorpusError, match="out of order"):
        embed_through_cache(FailsInTheThirdBatch(), cache, texts)
    assert commits == [2 * BATCH]
    assert embed_through_cache(CountingEmbedder(), cache, texts).reused == 2 * BATCH


# Where an earlier test loaded lance, that warns of every fork; the child does not use it.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_killed_run_keeps_the_batches_it_finished(cache, monkeypatch):
    monkeypatch.setattr(vector_cache, "SECONDS_PER_COMMIT", 0.0)

    class KilledInTheThirdBatch(CountingEmbedder):
        def embed_passages(self, texts, progress=None):
            if len(self.asked) == 2 * BATCH:
                os.kill(os.getpid(), signal.SIGKILL)
            return super().embed_passages(texts)

    texts = [str(number) for number in range(3 * BATCH)]
    child = os.fork()
    if child == 0:
        embed_through_cache(KilledInTheThirdBatch(), cache, texts)
        os._exit(0)
    assert os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGKILL
    embedded = embed_through_cache(CountingEmbedder(), cache, texts)
    assert (embedded.reused, embedded.computed) == (2 * BATCH, BATCH)


def test_the_default_model_gives_the_same_bits_through_the_cache(e5, tmp_path):
    texts = ["The sea is blue.", "O mar é azul."]
    cache = VectorCache(tmp_path, e5.identity.fingerprint, e5.identity.dimensions)
    computed = embed_through_cache(e5, cache, texts)
    read = embed_through_cache(e5, cache, texts)
    assert (
        read.vectors.tobytes() == computed.vectors.tobytes() == e5.embed_passages(texts).tobytes()
    )
    assert read.n_tokens == e5.count_tokens(texts)


def test_a_file_of_an_earlier_release_is_used_on_and_counts_as_used_today(cache):
    embedder = CountingEmbedder()
    embed_through_cache(embedder, cache, ["a"])
    with sqlite3.connect(cache.file) as connection:
        connection.execute("alter table vectors drop column used_on")
    again = VectorCache(cache.file.parent, IDENTITY.fingerprint, 4)
    assert again.prune(1, ()) == 0
    embed_through_cache(embedder, again, ["a"])
    assert embedder.asked == ["a"]


def test_pruning_spares_what_is_held_and_what_was_asked_for(cache, monkeypatch):
    embedder = CountingEmbedder()
    embed_through_cache(embedder, cache, ["held", "asked", "old"])
    held = vec_key(IDENTITY, "passage", "held")
    later = vector_cache.time.time() + 40 * 86_400
    monkeypatch.setattr(vector_cache.time, "time", lambda: later)
    embed_through_cache(embedder, cache, ["asked"])
    size = cache.file.stat().st_size
    assert cache.prune(30, [held]) == 1
    assert cache.file.stat().st_size <= size
    embedder.asked.clear()
    embed_through_cache(embedder, cache, ["held", "asked", "old"])
    assert embedder.asked == ["old"]
