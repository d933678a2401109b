import asyncio
import email.utils
import logging
import time
import traceback

import pytest
from pydantic import BaseModel

from chunking_assets.chat_models.chat_endpoint import (
    CallFailed,
    ChatEndpoint,
    EndpointStopped,
    _strict,
    json_object,
)
from chunking_assets.chat_models.endpoint import Endpoint
from chunking_assets.chat_models.rejection import _seconds_to_wait
from chunking_assets.chat_models.response_cache import ResponseCache

QUESTION = "How often is the pump serviced?"
CONTEXT = "The pump is serviced every 6 months. " * 20


class Word(BaseModel):
    text: str


class Words(BaseModel):
    words: list[Word]


def messages(question, contexts):
    return [
        {"role": "system", "content": "\n".join(contexts)},
        {"role": "user", "content": question},
    ]


class Asker:
    """Asks the test server in one event loop and records the waits instead of waiting."""

    def __init__(self, server, file, key, concurrency=4, timeout=10.0):
        self.server, self.file, self.key = server, file, key
        self.concurrency, self.timeout = concurrency, timeout
        self.waits = []

    def __call__(self, *models, contexts=(CONTEXT,)):
        return self.gather([(model, QUESTION) for model in models], contexts)

    def gather(self, asked, contexts=(CONTEXT,), check=lambda words: None):
        async def pause(seconds):
            self.waits.append(seconds)

        async def run():
            with ResponseCache(self.file) as cache:
                async with ChatEndpoint(
                    Endpoint(self.server.url, self.key),
                    cache,
                    concurrency=self.concurrency,
                    timeout=self.timeout,
                    pause=pause,
                ) as self.chat:
                    calls = [
                        self.chat.ask(model, messages(question, contexts), Words, check)
                        for model, question in asked
                    ]
                    return await asyncio.gather(*calls, return_exceptions=True)

        return asyncio.run(run())


@pytest.fixture
def ask(server, tmp_path, key):
    return Asker(server, tmp_path / "replies.sqlite", key)


def test_a_reply_comes_with_what_it_cost(ask, server):
    [reply] = ask("ok")
    assert [word.text for word in reply.output.words] == QUESTION.split()
    assert (reply.spent.requests, reply.spent.cached, reply.spent.completion_tokens) == (1, 0, 10)
    assert reply.spent.prompt_tokens > 100


def test_the_request_asks_for_a_strict_schema_and_a_repeatable_reply(ask, server, key):
    ask("ok")
    [body] = server.requests
    assert server.keys == [f"Bearer {key}"]
    assert (body["temperature"], body["seed"], body["max_completion_tokens"]) == (0, 7, 4096)
    asked = body["response_format"]["json_schema"]
    assert asked["strict"] is True
    assert asked["schema"]["required"] == ["words"]
    assert asked["schema"]["$defs"]["Word"]["additionalProperties"] is False


def test_a_strict_schema_requires_every_property_and_has_no_defaults():
    class Inner(BaseModel):
        x: int = 3

    class Outer(BaseModel):
        inner: list[Inner] = []

    schema = _strict(Outer.model_json_schema())
    assert "default" not in str(schema)
    assert schema["required"] == ["inner"]
    assert schema["$defs"]["Inner"]["required"] == ["x"]


@pytest.mark.parametrize("model", ["fenced", "think"])
def test_what_models_put_around_their_json_is_dropped(ask, model):
    [reply] = ask(model)
    assert reply.output.words
    assert reply.spent.requests == 1


@pytest.mark.parametrize("content", ["", "no json", "{'a': 1}", '{"a": ', "<think>{"])
def test_a_reply_without_a_json_object_is_an_error(content):
    with pytest.raises(ValueError):  # noqa: PT011 - the message is the decoder's own
        json_object(content)


def test_a_reply_that_begins_with_json_may_mention_thinking():
    assert json_object('{"a": "x</think>y"}') == {"a": "x</think>y"}


def test_broken_json_is_repaired_once(ask, server):
    [reply] = ask("badjson1")
    assert reply.spent.requests == 2
    roles = [message["role"] for message in server.requests[1]["messages"]]
    assert roles == ["system", "user", "assistant", "user"]


def test_json_that_stays_broken_is_an_invalid_output_after_two_requests(ask, server):
    [failure] = ask("badjson")
    assert (failure.kind, failure.spent.requests, len(server.requests)) == ("invalid_output", 2, 2)


def test_a_reply_that_fails_its_check_is_repaired_once_with_the_reason(ask, server):
    def check(words):
        raise ValueError("not what was asked")

    [failure] = ask.gather([("ok", QUESTION)], check=check)
    assert (failure.kind, failure.message) == ("invalid_output", "not what was asked")
    assert "not what was asked" in server.requests[1]["messages"][-1]["content"]


def test_a_placeholder_key_is_not_cut_out_of_words(ask):
    def check(words):
        raise ValueError("not what was asked")

    ask.key = "k"
    [failure] = ask.gather([("ok", QUESTION)], check=check)
    assert failure.message == "not what was asked"


def test_the_output_limit_is_doubled_once(ask, server):
    [reply] = ask("length1")
    assert reply.output.words
    assert [body["max_completion_tokens"] for body in server.requests] == [4096, 8192]


def test_a_reply_that_never_ends_is_truncated(ask, server):
    [failure] = ask("length")
    assert (failure.kind, len(server.requests)) == ("truncated", 2)


@pytest.mark.parametrize(
    ("model", "kind"),
    [
        ("refusal", "refused"),
        ("filter", "content_filter"),
        ("promptfilter", "content_filter"),
        ("toolong", "endpoint_error"),
    ],
)
def test_a_failure_that_would_come_again_is_not_repeated(ask, server, model, kind):
    [failure] = ask(model)
    assert (failure.kind, len(server.requests)) == (kind, 1)


def test_a_crowded_endpoint_is_waited_for_as_long_as_it_asks(ask, server):
    [reply] = ask("429x2")
    assert (bool(reply.output.words), len(server.requests), ask.waits) == (True, 3, [0.0, 0.0])


def test_a_crowd_that_stays_is_rate_limited(ask, server):
    [failure] = ask("429x9")
    assert (failure.kind, len(server.requests), len(ask.waits)) == ("rate_limited", 5, 4)


def test_a_wait_nobody_wants_is_a_failure_at_once(ask, server):
    [failure] = ask("later")
    assert (failure.kind, len(server.requests), ask.waits) == ("rate_limited", 1, [])


def test_a_server_error_is_repeated(ask, server):
    [reply] = ask("500x1")
    assert (bool(reply.output.words), reply.spent.requests) == (True, 2)


def test_waits_double_and_are_jittered_when_the_server_names_none(ask, server):
    server.shutdown()
    server.server_close()
    [failure] = ask("ok")
    assert failure.kind == "endpoint_unreachable"
    assert len(ask.waits) == 4
    for wait, most in zip(ask.waits, [0.5, 1, 2, 4], strict=True):
        assert most / 2 <= wait <= most


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "1.5"}, 1.5),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-3"}, 0.0),
    ],
)
def test_the_wait_asked_for_is_read_in_all_its_forms(headers, seconds):
    assert _seconds_to_wait(headers) == seconds


def test_a_wait_until_a_date_lasts_until_then():
    soon = email.utils.formatdate(time.time() + 60, usegmt=True)
    assert 50 < _seconds_to_wait({"retry-after": soon}) <= 60


def test_a_server_that_hangs_times_out_after_one_repetition(server, tmp_path, key):
    ask = Asker(server, tmp_path / "replies.sqlite", key, timeout=0.2)
    [failure] = ask("hang")
    assert (failure.kind, failure.spent.requests) == ("timeout", 2)
    assert "0.2 s" in failure.message


@pytest.mark.parametrize(
    ("model", "formats"),
    [
        ("noschema", ["json_schema", "json_object"]),
        ("noformat", ["json_schema", "json_object", ""]),
    ],
)
def test_a_format_the_server_rejects_is_replaced_and_noted(ask, server, model, formats):
    [reply] = ask(model)
    assert reply.output.words
    sent = [body.get("response_format", {}).get("type", "") for body in server.requests]
    assert sent == formats
    assert len(ask.chat.adaptations[model]) == len(formats) - 1


def test_parameters_the_model_rejects_are_left_out_and_noted(ask, server):
    [reply] = ask("reasoning")
    assert reply.output.words
    assert not {"temperature", "seed"} & set(server.requests[-1])
    assert ask.chat.adaptations == {
        "reasoning": ["temperature not supported, left out", "seed not supported, left out"]
    }


def test_an_older_name_of_the_output_limit_is_tried(ask, server):
    [reply] = ask("oldlimit")
    assert reply.output.words
    assert server.requests[-1]["max_tokens"] == 4096


def test_calls_in_flight_together_learn_what_is_rejected_once(ask, server):
    replies = ask.gather([("noschema", f"{QUESTION} {n}") for n in range(4)])
    assert not any(isinstance(reply, Exception) for reply in replies)
    assert len(server.requests) <= 8
    assert ask.chat.adaptations["noschema"] == ["json_schema not supported, asked for json_object"]


def test_tokens_the_endpoint_does_not_count_are_unknown(ask):
    [reply] = ask("nousage")
    assert (reply.spent.prompt_tokens, reply.spent.completion_tokens) == (None, None)


def test_a_server_that_reads_less_than_was_sent_is_noted(ask):
    ask("cut", "ok")
    [note] = ask.chat.adaptations["cut"]
    assert "context length" in note
    assert "ok" not in ask.chat.adaptations


@pytest.mark.parametrize(
    ("model", "kind", "cure"),
    [
        ("auth", "invalid_api_key", "correct OPENAI_API_KEY"),
        ("forbidden", "permission_denied", "not for [key] or [key]"),
        ("missing", "model_not_found", "correct the model's name in corpus.yaml"),
        ("quota", "insufficient_quota", "exceeded your current quota"),
    ],
)
def test_what_no_repetition_cures_stops_every_call(server, tmp_path, key, model, kind, cure):
    ask = Asker(server, tmp_path / "replies.sqlite", key, concurrency=1)
    failures = ask.gather([(model, f"{QUESTION} {n}") for n in range(5)])
    assert {type(failure) for failure in failures} == {EndpointStopped}
    assert {failure.kind for failure in failures} == {kind}
    assert cure in ask.chat.stopped.message
    assert len(server.requests) == 1
    assert sum(failure.spent.requests for failure in failures) == 1


def test_an_endpoint_that_is_no_chat_server_stops_every_call(ask):
    [failure] = ask("html")
    assert isinstance(failure, EndpointStopped)
    assert "check OPENAI_BASE_URL" in failure.message


def test_one_strange_reply_of_a_working_endpoint_is_one_failure(ask):
    ask.concurrency = 1
    reply, failure = ask("ok", "html")
    assert reply.output.words
    assert (type(failure), failure.kind) == (CallFailed, "endpoint_error")


def test_equal_calls_share_one_request(ask, server):
    replies = ask("ok", "ok", "ok")
    assert len(server.requests) == 1
    assert [reply.spent.cached for reply in replies] == [0, 1, 1]
    assert sum(reply.spent.requests for reply in replies) == 1


def test_equal_calls_share_a_failure_and_its_cost_is_counted_once(ask, server):
    failures = ask("refusal", "refusal")
    assert [failure.kind for failure in failures] == ["refused", "refused"]
    assert [failure.spent.requests for failure in failures] == [1, 0]


def test_a_reply_is_never_asked_for_twice(ask, server):
    ask("ok")
    [reply] = ask("ok")
    assert len(server.requests) == 1
    assert (bool(reply.output.words), reply.spent.cached, reply.spent.requests) == (True, 1, 0)


def test_a_failure_is_asked_again(ask, server):
    ask("refusal")
    ask("refusal")
    assert len(server.requests) == 2


@pytest.mark.parametrize("contexts", [[CONTEXT, "More."], [CONTEXT + " "]])
def test_another_prompt_is_another_call(ask, server, contexts):
    ask("ok")
    ask("ok", contexts=contexts)
    assert len(server.requests) == 2


def test_another_model_is_another_call(ask, server):
    ask("ok", "fenced")
    assert len(server.requests) == 2


def test_requests_in_flight_never_exceed_the_limit_and_reach_it(server, tmp_path, key):
    server.full_at = 3
    ask = Asker(server, tmp_path / "replies.sqlite", key, concurrency=3)
    replies = ask.gather([("slow", f"{QUESTION} {n}") for n in range(9)])
    assert not any(isinstance(reply, Exception) for reply in replies)
    assert server.peak == 3


@pytest.mark.parametrize("model", ["ok", "auth", "forbidden", "refusal", "badjson", "429x9"])
def test_the_key_is_in_no_log_error_or_file(ask, key, caplog, model):
    caplog.set_level(logging.DEBUG)
    [outcome] = ask(model)
    shown = [caplog.text, *(repr(vars(record)) for record in caplog.records)]
    error = outcome if isinstance(outcome, Exception) else None
    while error is not None:
        shown += [repr(error), str(vars(error)), *traceback.format_exception(error)]
        assert not type(error).__module__.startswith(("openai", "httpx"))
        error = error.__cause__ or error.__context__
    shown += [file.read_bytes().decode("latin-1") for file in ask.file.parent.iterdir()]
    assert key[:12] not in "".join(shown)
    assert len(caplog.records) > 0
