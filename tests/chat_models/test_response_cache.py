import sqlite3
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from threading import Barrier

import pytest

from chunking_assets.chat_models.response_cache import ResponseCache
from chunking_assets.errors import CorpusError


def test_a_reply_outlives_the_process_that_stored_it(tmp_path):
    with ResponseCache(tmp_path / "deep" / "replies.sqlite") as cache:
        assert cache.get("k") is None
        cache.put("k", '{"a": 1}')
    with ResponseCache(tmp_path / "deep" / "replies.sqlite") as cache:
        assert cache.get("k") == '{"a": 1}'


def test_readers_and_writers_do_not_exclude_each_other(tmp_path):
    with ResponseCache(tmp_path / "r.sqlite") as one, ResponseCache(tmp_path / "r.sqlite") as two:
        one.put("k", "1")
        two.put("k", "2")
        assert one.get("k") == "2"
    with sqlite3.connect(tmp_path / "r.sqlite") as database:
        assert database.execute("pragma journal_mode").fetchone() == ("wal",)
    database.close()


def test_many_may_create_the_same_cache_at_once(tmp_path):
    def write(file, together, name):
        together.wait()
        with ResponseCache(file) as cache:
            cache.put(name, "reply")

    with ThreadPoolExecutor(6) as writers:
        for attempt in range(30):
            write_to = partial(write, tmp_path / f"{attempt}.sqlite", Barrier(6))
            assert list(writers.map(write_to, "abcdef")) == [None] * 6
    with ResponseCache(tmp_path / "0.sqlite") as cache:
        assert all(cache.get(name) == "reply" for name in "abcdef")


def test_a_damaged_cache_is_named_with_its_cure(tmp_path):
    (tmp_path / "r.sqlite").write_text("this is no database, " * 100)
    with pytest.raises(CorpusError, match=r"r\.sqlite .*Remove it and run again"):
        ResponseCache(tmp_path / "r.sqlite")
