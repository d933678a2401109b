"""What chat models are sent is counted by what it was for, and what is kept is saved."""

import pytest
from chat_server import KEY, OpenAIServer, serving
from pydantic import BaseModel

from chunking_assets.chat_models.chat import Chat
from chunking_assets.chat_models.chat_endpoint import CallFailed, Spent
from chunking_assets.chat_models.endpoint import Endpoint
from chunking_assets.chat_models.metered import MeteredChat, asked_for
from chunking_assets.cost_ledger import Entry


class Word(BaseModel):
    text: str


class Words(BaseModel):
    words: list[Word]


@pytest.fixture
def chat(tmp_path):
    with (
        serving(OpenAIServer()) as server,
        Chat(Endpoint(server.url, KEY), tmp_path / "replies.sqlite") as chat,
    ):
        yield MeteredChat(chat)


def ask(chat, text, model="ok"):
    chat.ask(model, [{"role": "user", "content": text}], Words, lambda words: None)


def test_calls_are_counted_for_what_they_were_asked_and_by_model(chat):
    with asked_for("llm-400@1"):
        ask(chat, "forty characters of text, as there are.")
        ask(chat, "and again", model="other")
    ask(chat, "for nobody")
    counted = {key: spent.requests for key, spent in chat.spent.items()}
    assert counted == {("llm-400@1", "ok"): 1, ("llm-400@1", "other"): 1, ("", "ok"): 1}
    assert chat.spent["llm-400@1", "ok"].prompt_tokens > 0


def test_a_reply_that_is_kept_saves_the_tokens_it_took(chat):
    ask(chat, "the same words")
    first = chat.spent["", "ok"]
    ask(chat, "the same words")
    second = chat.spent["", "ok"]
    assert (second.requests, second.cached) == (first.requests, 1)
    assert second.tokens_saved == first.prompt_tokens + first.completion_tokens > 0


def test_repeated_requests_are_counted_as_retries(chat):
    ask(chat, "busy", model="429x2")
    spent = chat.spent["", "429x2"]
    assert (spent.requests, spent.retries) == (3, 2)


def test_what_a_failed_call_sent_is_counted(chat):
    with pytest.raises(CallFailed):
        ask(chat, "no", model="badjson")
    assert chat.spent["", "badjson"].requests == 2
    assert chat.spent["", "badjson"].prompt_tokens > 0


def test_tokens_nobody_counted_are_not_0(chat):
    for _ in range(2):
        ask(chat, "how many?", model="nousage")
    entry = Entry.of_calls("chunk", "nousage", chat.spent["", "nousage"])
    assert (entry.tokens_sent, entry.tokens_received, entry.tokens_saved) == (None, None, None)


def test_calls_that_never_were_leave_no_entry():
    assert Entry.of_calls("chunk", "ok", Spent()).is_empty
