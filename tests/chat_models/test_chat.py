import gc
import logging
import multiprocessing
import os
import pickle
import subprocess
import sys
import threading
import traceback
from concurrent.futures import CancelledError, ThreadPoolExecutor
from contextlib import closing
from queue import Queue

import pytest
from pydantic import BaseModel

from chunking_assets.chat_models.chat import Chat, NoEndpoint
from chunking_assets.chat_models.chat_endpoint import CallFailed, EndpointStopped, Spent
from chunking_assets.chat_models.endpoint import Endpoint
from chunking_assets.errors import CorpusError


class Word(BaseModel):
    text: str


class Words(BaseModel):
    words: list[Word]


def said(chat, text, model="ok", check=lambda words: None):
    reply = chat.ask(model, [{"role": "user", "content": text}], Words, check)
    return " ".join(word.text for word in reply.output.words)


def chat_threads():
    return [thread for thread in threading.enumerate() if thread.name == "chat"]


@pytest.fixture
def file(tmp_path):
    return tmp_path / "replies" / "chat.sqlite"


@pytest.fixture
def chat(server, file, key):
    with Chat(Endpoint(server.url, key), file, concurrency=3, timeout=20) as chat:
        yield chat


class Announced(list):
    """Messages that release the server once they were taken up as often as there are askers."""

    def __init__(self, messages, askers, server):
        super().__init__(messages)
        self.askers, self.server, self.taken_up = askers, server, 0

    def __iter__(self):
        self.taken_up += 1  # in one thread only: that of the loop
        if self.taken_up == self.askers:
            self.server.released.set()
        return super().__iter__()


def test_a_question_of_plain_code_gets_its_reply_and_what_it_cost(chat):
    reply = chat.ask("ok", [{"role": "user", "content": "a b"}], Words, lambda words: None)
    assert [word.text for word in reply.output.words] == ["a", "b"]
    assert (reply.spent.requests, reply.spent.completion_tokens) == (1, 10)


def test_a_reply_that_fails_its_check_is_an_error_of_the_thread_that_asked(chat):
    def check(words):
        raise ValueError("not these")

    with pytest.raises(CallFailed, match="invalid_output: not these"):
        said(chat, "a", check=check)


def test_an_endpoint_that_is_hopeless_is_not_asked_again_until_the_chat_is_closed(chat, server):
    for text in "ab":
        with pytest.raises(EndpointStopped, match="correct OPENAI_API_KEY"):
            said(chat, text, "auth")
    assert len(server.requests) == 1
    chat.close()
    assert said(chat, "b") == "b"


def test_threads_share_one_loop_and_its_bound_on_requests_in_flight(chat, server):
    server.full_at = 3
    with ThreadPoolExecutor(9) as askers:
        replies = list(askers.map(lambda text: said(chat, text, "slow"), "abcdefghi"))
    assert replies == list("abcdefghi")
    assert server.peak == 3
    assert len(chat_threads()) == 1


def test_equal_questions_of_several_threads_are_sent_once(chat, server):
    messages = Announced([{"role": "user", "content": "a"}], 6, server)

    def ask(_):
        return chat.ask("hang", messages, Words, lambda words: None).spent

    with ThreadPoolExecutor(6) as askers:
        spent = list(askers.map(ask, range(6)))
    assert len(server.requests) == 1
    assert sorted((s.requests, s.cached) for s in spent) == [(0, 1)] * 5 + [(1, 0)]


def test_nothing_is_opened_before_the_first_question(server, file, key):
    chat = Chat(Endpoint(server.url, key), file)
    assert (chat_threads(), file.parent.exists()) == ([], False)
    with chat:
        said(chat, "a")
        assert (len(chat_threads()), file.exists()) == (1, True)


def test_a_closed_chat_leaves_no_thread_and_may_be_asked_again(chat, server):
    said(chat, "a")
    chat.close()
    chat.close()
    assert chat_threads() == []
    assert said(chat, "a") == "a"
    assert len(server.requests) == 1


def test_a_forgotten_chat_ends_its_thread(server, file, key):
    chat = Chat(Endpoint(server.url, key), file)
    said(chat, "a")
    del chat
    gc.collect()
    assert chat_threads() == []


def test_closing_ends_the_calls_in_progress(chat, server):
    arrived = threading.Event()
    server.reply = lambda body: arrived.set() or server.released.wait() or {"words": []}
    outcome = Queue()

    def ask():
        try:
            outcome.put(said(chat, "a"))
        except Exception as error:
            outcome.put(error)

    threading.Thread(target=ask, daemon=True).start()
    assert arrived.wait(20)
    chat.close()
    assert isinstance(outcome.get(timeout=20), CancelledError)


def test_without_an_endpoint_the_error_names_the_cure_and_nothing_is_opened(file):
    chat = Chat(None, file)
    with pytest.raises(NoEndpoint, match=r"set OPENAI_API_KEY \(and OPENAI_BASE_URL") as caught:
        said(chat, "a")
    assert isinstance(caught.value, CallFailed)
    assert caught.value.kind == "no_endpoint"
    assert (chat_threads(), file.parent.exists()) == ([], False)


def test_a_reply_belongs_to_the_server_that_gave_it(chat, server, file, key):
    said(chat, "a")
    with Chat(Endpoint(f"http://localhost:{server.server_port}/v1", key), file) as another:
        said(another, "a")
    assert len(server.requests) == 2


def test_a_cache_that_cannot_be_used_is_an_error_of_every_question(chat, server, file):
    file.parent.mkdir()
    file.write_text("this is no database, " * 100)
    for _ in range(2):
        with pytest.raises(CorpusError, match="Remove it and run again"):
            said(chat, "a")
    file.unlink()
    assert said(chat, "a") == "a"


def test_a_pickled_chat_is_its_settings(chat, server):
    said(chat, "a")
    with pickle.loads(pickle.dumps(chat)) as copy:
        assert said(copy, "a") == "a"
        assert said(copy, "b") == "b"
        assert len(chat_threads()) == 2
    assert len(server.requests) == 2


@pytest.mark.parametrize("kind", [CallFailed, EndpointStopped, NoEndpoint])
def test_a_failure_reaches_another_process_whole(kind):
    failure = pickle.loads(pickle.dumps(kind("refused", "no", Spent(requests=1))))
    assert type(failure) is kind
    assert str(failure) == "refused: no"
    assert (failure.kind, failure.message, failure.spent.requests) == ("refused", "no", 1)


def test_a_forked_process_opens_its_own(chat, server):
    said(chat, "a")
    forked = multiprocessing.get_context("fork").Process(target=said, args=(chat, "b"))
    forked.start()
    forked.join(60)
    assert forked.exitcode == 0
    assert said(chat, "c") == "c"
    assert said(chat, "b") == "b"
    assert len(server.requests) == 3


@pytest.mark.parametrize("model", ["ok", "auth", "forbidden", "refusal", "badjson", "hang"])
def test_the_key_is_in_no_log_error_or_file(server, file, key, caplog, model):
    caplog.set_level(logging.DEBUG)
    endpoint = Endpoint(server.url, key)
    error = None
    with Chat(endpoint, file, timeout=0.2 if model == "hang" else 20) as chat:
        try:
            said(chat, "a", model)
        except CallFailed as failure:
            error = failure
        assert (error is None) == (model == "ok")
        shown = [repr(chat), caplog.text, *(repr(vars(record)) for record in caplog.records)]
        while error is not None:
            shown += [repr(error), str(vars(error)), *traceback.format_exception(error)]
            assert not type(error).__module__.startswith(("openai", "httpx"))
            error = error.__cause__ or error.__context__
        shown += [part.read_bytes().decode("latin-1") for part in file.parent.iterdir()]
    assert key[:12] not in "".join(shown)
    assert len(caplog.records) > 0


ASK_PARTS = """
import sys
from pathlib import Path
from pydantic import BaseModel
from chunking_assets.chat_models.chat import Chat
from chunking_assets.chat_models.endpoint import endpoint_from_environment

class Word(BaseModel):
    text: str

class Words(BaseModel):
    words: list[Word]

chat = Chat(endpoint_from_environment(), Path(sys.argv[1]))
assert "openai" not in sys.modules
for part in range(6):
    message = {"role": "user", "content": f"part {part}"}
    print(chat.ask("ok", [message], Words, lambda words: None).output.words[1].text, flush=True)
"""


@pytest.fixture
def process(server, file, key):
    """A process that asks for six parts in turn and ends without closing anything."""
    environment = {**os.environ, "OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": key}
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-c", ASK_PARTS, str(file)],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_a_process_that_ends_closes_what_it_opened(process, file):
    output, errors = process.communicate(timeout=60)
    assert (output.split(), errors, process.returncode) == (list("012345"), "", 0)
    # SQLite removes its journal when the last connection is closed.
    assert {part.name for part in file.parent.iterdir()} == {file.name, f"{file.name}.lock"}


def test_a_killed_process_is_continued_where_it_stopped(server, process, chat):
    arrived, reply = threading.Event(), server.reply

    def stop_at_part_3(body):
        if body["messages"][-1]["content"] == "part 3":
            arrived.set()
            server.released.wait()
        return reply(body)

    server.reply = stop_at_part_3
    with closing(process.stdout), closing(process.stderr):
        assert arrived.wait(60)
        process.kill()
        process.wait()
    server.released.set()
    before = len(server.requests)
    assert [said(chat, f"part {part}") for part in range(6)] == [f"part {n}" for n in range(6)]
    asked = [body["messages"][-1]["content"] for body in server.requests[before:]]
    assert asked == ["part 3", "part 4", "part 5"]
