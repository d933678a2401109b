"""A model behind an endpoint: what is sent, what comes back, and every way it fails."""

import os
import re
import signal
import socket
import subprocess
import sys
import textwrap

import numpy as np
import pytest
from chat_server import serving, without_endpoint
from embedding_server import DIMENSIONS, KEY, EmbeddingServer, vector_of
from pydantic import ValidationError
from tiktoken import Encoding
from tokenizers import Tokenizer as Engine
from tokenizers import models, pre_tokenizers, processors

from chunking_assets.chat_models.chat_endpoint import CallFailed, EndpointStopped
from chunking_assets.chat_models.endpoint import Endpoint
from chunking_assets.embedding_models.model import BatchEmbedder
from chunking_assets.embedding_models.openai_model import Limits, OpenAIModel
from chunking_assets.embedding_models.remote_embedder import TextsRefused
from chunking_assets.embedding_models.tiktoken_tokenizer import TiktokenTokenizer
from chunking_assets.embedding_models.vector_cache import VectorCache, embed_through_cache
from chunking_assets.errors import CorpusError


@pytest.fixture
def server(monkeypatch):
    without_endpoint(monkeypatch)
    with serving(EmbeddingServer()) as running:
        yield running


@pytest.fixture
def tokenizer_file(tmp_path):
    """A token a word, between two special ones."""
    engine = Engine(models.WordLevel({"[UNK]": 0, "[CLS]": 1, "[SEP]": 2}, unk_token="[UNK]"))
    engine.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    engine.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 1), ("[SEP]", 2)]
    )
    file = tmp_path / "tokenizer.json"
    engine.save(str(file))
    return file


@pytest.fixture
def declare(server, tokenizer_file):
    def declare(model="good", **settings):
        told = {"dimensions": DIMENSIONS, "max_tokens": 20, "base_url": server.url}
        return OpenAIModel(model=model, tokenizer=str(tokenizer_file), **told | settings)

    return declare


@pytest.fixture
def load(declare, tmp_path, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)

    def load(model="good", pauses=None, **settings):
        embedder = declare(model, **settings).embedder(tmp_path)
        waited = [] if pauses is None else pauses
        embedder._pause = embedder._pace._pause = lambda seconds, over: waited.append(seconds)
        return embedder

    return load


def expected(texts):
    return np.stack([vector_of(text) for text in texts])


def test_vectors_are_those_of_the_texts_in_their_order(load, server):
    texts = [f"text {n}" for n in range(100)]
    embedder = load(limits={"inputs": 7})
    np.testing.assert_array_equal(embedder.embed_passages(texts), expected(texts))
    assert [len(body["input"]) for body in server.requests].count(7) == 14
    assert set(server.keys) == {f"Bearer {KEY}"}
    assert isinstance(embedder, BatchEmbedder)


def test_questions_and_passages_are_led_by_their_prefixes_which_count(load, server):
    embedder = load(query_prefix="query: ", passage_prefix="the passage: ")
    embedder.embed_queries(["who"])
    embedder.embed_passages(["you"])
    assert server.texts == ["query: who", "the passage: you"]
    assert embedder.count_tokens(["you"]) == [2 + 1 + 2]


def test_the_same_vectors_come_as_numbers_and_as_bytes(load, server):
    texts = ["a", "b"]
    as_bytes = load()
    as_bytes._options["encoding_format"] = "base64"
    np.testing.assert_array_equal(load().embed_passages(texts), expected(texts))
    np.testing.assert_array_equal(as_bytes.embed_passages(texts), expected(texts))
    assert [body["encoding_format"] for body in server.requests] == ["float", "base64"]


@pytest.mark.parametrize(
    "model",
    ["shuffled", "ignores-base64", "no-base64", "always-base64", "no-usage", "empty-usage"],
)
def test_servers_that_answer_in_their_own_way_give_the_same_vectors(load, model):
    texts = ["a", "b", "c"]
    embedder = load(model)
    if model != "always-base64":
        embedder._options["encoding_format"] = "base64"
    np.testing.assert_array_equal(embedder.embed_passages(texts), expected(texts))


@pytest.mark.parametrize("model", ["at-most-3", "at-most-3-422", "at-most-3-400"])
def test_a_server_that_takes_fewer_inputs_gets_fewer(load, model):
    texts = [f"text {n}" for n in range(20)]
    np.testing.assert_array_equal(load(model).embed_passages(texts), expected(texts))


def test_requests_stay_within_tokens_and_bytes(load, server):
    load(limits={"tokens": 10}).embed_passages(["one two three"] * 4)  # 5 tokens each
    assert [len(body["input"]) for body in server.requests] == [2, 2]
    server.requests.clear()
    load(limits={"kilobytes": 1}).embed_passages(["x" * 600, "y" * 600, "z" * 300])
    assert sorted(len(body["input"]) for body in server.requests) == [1, 2]


def batches(embedder, texts):
    """What was handed on, by position, and the error that ended it."""
    given = {}
    try:
        for positions, vectors in embedder.embed_batches(texts, "passage"):
            given |= dict(zip(positions, vectors, strict=True))
    except CorpusError as error:
        return given, error
    return given, None


def test_one_bad_text_of_two_hundred_is_found_and_the_others_have_their_vectors(load, server):
    texts = [f"text {n}" for n in range(200)]
    texts[137] = "poison"
    given, error = batches(load("poison", limits={"inputs": 200}), texts)
    assert isinstance(error, TextsRefused)
    assert "1 of 200 texts: text 137 ('poison'" in str(error)
    assert KEY not in str(error)
    assert given.keys() == set(range(200)) - {137}
    assert len(server.requests) <= 2 * 8 + 1  # 200 is halved eight times


@pytest.mark.parametrize("encoding", ["float", "base64"])
def test_a_vector_that_is_no_number_or_zero_is_never_handed_on(load, encoding):
    embedder = load("bad-numbers")
    embedder._options["encoding_format"] = encoding
    given, error = batches(embedder, ["fine", "nan", "zero", "infinite", "good"])
    assert isinstance(error, TextsRefused)
    assert error.reasons == dict.fromkeys(["nan", "zero", "infinite"], "not finite, or zero")
    assert given.keys() == {0, 4}


def test_numbers_that_are_null_are_no_vector(load):
    given, error = batches(load("nulls"), ["a", "b"])
    assert isinstance(error, TextsRefused)
    assert (given, len(error.reasons)) == ({}, 2)


@pytest.mark.parametrize(
    ("model", "said"),
    [
        ("auth", "invalid_api_key: .*rejects the key: correct OPENAI_API_KEY"),
        ("quota", "insufficient_quota"),
        ("missing", "has no model 'missing'.*base_url of the embedding model"),
        ("short-vectors", "gives 4 dimensions, not 8.*correct dimensions"),
        ("no-embedding", "gives something else, not 8 dimensions"),
        ("refuses-all", "refuses every text"),
        ("html", "check base_url"),
        ("other-shape", "check base_url"),
    ],
)
def test_what_no_repetition_cures_ends_it_after_few_requests(load, server, model, said):
    with pytest.raises(EndpointStopped, match=said) as caught:
        load(model, limits={"inputs": 1, "concurrency": 2}).embed_passages(
            [f"text {n}" for n in range(500)]
        )
    assert KEY not in str(caught.value)
    assert len(server.requests) <= 12


def test_a_dead_endpoint_is_named_with_its_url_and_the_setting(load):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}/v1"
    said = rf"{re.escape(url)}.*check base_url of the embedding model"
    with pytest.raises(EndpointStopped, match=said):
        load(base_url=url).embed_passages(["a"])


def test_a_storm_of_rate_limits_is_waited_out_by_all(load):
    pauses = []
    texts = [f"text {n}" for n in range(40)]
    embedder = load("429x2", pauses, limits={"inputs": 4, "concurrency": 3})
    np.testing.assert_array_equal(embedder.embed_passages(texts), expected(texts))
    assert embedder.retries == 20
    assert max(pauses) > 6.9  # what the server asked for


def test_a_storm_that_does_not_end_ends_in_a_failure_and_not_in_more_requests(load, server):
    embedder = load("429x999", limits={"inputs": 1, "concurrency": 2})
    with pytest.raises(CallFailed, match=r"rate_limited.*slow down"):
        embedder.embed_passages([f"text {n}" for n in range(100)])
    assert max(server.tries.values()) == 5
    assert len(server.requests) <= 10


@pytest.mark.parametrize("model", ["500x2", "breaks-off", "cut-json"])
def test_a_server_that_stumbles_is_asked_again(load, model):
    texts = ["a", "b", "c"]
    embedder = load(model)
    np.testing.assert_array_equal(embedder.embed_passages(texts), expected(texts))
    assert embedder.retries == (2 if model == "500x2" else 1)


def test_a_server_that_hangs_is_given_up_with_its_url_and_the_settings(load, server):
    server.answers_left = 0
    said = (
        rf"timeout: .*no answer within 0\.2 s at {re.escape(server.url)}; check base_url .*limits"
    )
    with pytest.raises(CallFailed, match=said):
        load(limits={"timeout": 0.2, "inputs": 1, "concurrency": 1}).embed_passages(["a", "b"])
    assert server.texts == ["a", "a"]
    server.released.set()


def test_a_server_that_came_back_is_asked_again_by_the_same_embedder(load, monkeypatch):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    embedder = load(base_url=f"http://127.0.0.1:{port}/v1")
    with pytest.raises(EndpointStopped):
        embedder.embed_queries(["a"])
    with serving(EmbeddingServer(port=port)) as back:
        with pytest.raises(EndpointStopped):  # not at once: nobody knocks all the time
            embedder.embed_queries(["a"])
        assert back.requests == []
        embedder._stopped_until = 0
        np.testing.assert_array_equal(embedder.embed_queries(["a"]), expected(["a"]))


def test_vectors_that_do_not_say_whose_they_are_are_refused(load):
    with pytest.raises(CallFailed, match="2 vectors for 2 texts, and not one for each"):
        load("no-index").embed_passages(["a", "b"])


def test_more_vectors_than_texts_are_refused(load):
    with pytest.raises(CallFailed, match="sent 3 vectors for 2 texts"):
        load("one-more").embed_passages(["a", "b"])


def test_a_request_that_fails_for_good_keeps_what_others_brought(load):
    embedder = load("one-missing", limits={"inputs": 2, "concurrency": 1})
    given, error = batches(embedder, ["a", "b", "lost", "c", "d", "e"])
    assert isinstance(error, CallFailed)
    assert "invalid_output" in str(error)
    assert "sent 1 vectors for 2 texts" in str(error)
    assert given.keys() == {0, 1}


def test_a_text_beyond_the_model_is_refused_before_anything_is_sent(load, server):
    long = " ".join(["word"] * 19)  # and two special tokens
    said = r"1 of 2 texts are longer than the 20 tokens .* text 1 with 21 .*truncate: true"
    with pytest.raises(CorpusError, match=said):
        load().embed_passages(["short", long])
    assert server.requests == []


def test_with_truncate_a_text_is_cut_where_the_model_stops_and_its_tokens_are_told(load, server):
    long = " ".join(f"w{n}" for n in range(30))
    embedder = load(truncate=True)
    embedder.embed_passages([long])
    assert server.texts == [" ".join(f"w{n}" for n in range(18)) + " "]
    assert embedder.count_tokens([long]) == [32]
    assert embedder.identity.fingerprint != load().identity.fingerprint


def words(n, of="w"):
    return " ".join([of] * n)


def test_a_server_that_cuts_texts_off_without_a_word_is_refused_with_the_settings(load, server):
    said = (
        r"read 20 of 37 tokens of 3 texts, as if it cut each off after about 10: raise the "
        r"context length of the server .* to the 20 of max_tokens, or set max_tokens to what it reads"
    )
    embedder = load("cuts-at-8")
    with pytest.raises(EndpointStopped, match=said):
        embedder.embed_passages([words(4), words(12), words(15)])
    assert embedder.spent.prompt_tokens == 20  # it was paid for
    assert len(server.requests) == 1


@pytest.mark.parametrize("model", ["good", "cuts-at-18", "counts-nothing", "no-usage"])
def test_a_server_that_counts_otherwise_is_not_taken_for_one_that_cuts(load, model):
    """It does not count special tokens, or none at all."""
    texts = [words(18), words(2), "x"]
    np.testing.assert_array_equal(load(model).embed_passages(texts), expected(texts))


def test_with_truncate_what_a_server_reads_is_kept_and_its_vectors_are_used(load, caplog):
    texts = [words(4), words(12), words(15)]
    embedder = load("cuts-at-8", truncate=True)
    np.testing.assert_array_equal(embedder.embed_passages(texts), expected(texts))
    assert "read 20 of 37 tokens" in caplog.text
    assert embedder.reads_at_most == 8 + 2, "special tokens, which it does not count, included"
    short = load("cuts-at-8", truncate=True)
    short.embed_passages([*(f"t{n} short" for n in range(12)), words(17)])
    assert short.reads_at_most == 10, "short texts make it no less"


@pytest.mark.parametrize(("limit", "warnings"), [(8, 1), (12, 0)])
def test_what_another_models_tokens_hint_at_is_said_once(load, caplog, limit, warnings):
    """Less than half of the tokens counted is more than tokenizers differ by."""
    embedder = load(f"cuts-at-{limit}")
    embedder._counts_exactly = False
    for n in range(2):
        embedder.embed_passages([words(18, f"w{n}")])
    assert caplog.text.count("read 8 of 20 tokens of 1 texts") == warnings
    assert caplog.text.count("its own tokenizer.json") == warnings


@pytest.mark.parametrize(
    ("settings", "exactly"),
    [
        ({}, True),
        ({"tokenizer": "cl100k_base"}, False),
        ({"model": "text-embedding-3-small", "tokenizer": "cl100k_base"}, True),
        ({"model": "text-embedding-3-small", "tokenizer": "o200k_base"}, False),
        ({"tokenizer": "cl100k_base", "base_url": "https://mine.openai.azure.com/v1/"}, True),
    ],
)
def test_tokens_are_counted_exactly_by_the_models_own_tokenizer(declare, settings, exactly):
    told = declare().model_dump(mode="json") | settings
    model = OpenAIModel.model_validate(told)
    assert model._counts_exactly(Endpoint(model.base_url, KEY)) == exactly


def test_an_empty_text_is_refused_before_anything_is_sent(load, server):
    with pytest.raises(CorpusError, match=r"text 1 .* is empty"):
        load().embed_passages(["a", " \n"])
    assert server.requests == []


def test_shorter_vectors_are_asked_for_only_of_who_gives_longer_ones(declare, load, server):
    load().embed_passages(["a"])
    assert "dimensions" not in server.requests[0]
    short = OpenAIModel(model="text-embedding-3-small", dimensions=4, base_url=server.url)
    assert short.declaration()["dimensions"] == 4
    embedder = load("fixed-size")
    embedder._options["dimensions"] = 4
    with pytest.raises(EndpointStopped, match="does not shorten the vectors of fixed-size"):
        embedder.embed_passages(["a"])


@pytest.mark.parametrize(
    ("settings", "sent"),
    [
        ({}, None),
        ({"send_dimensions": True}, 8),
        ({"model": "text-embedding-3-small", "dimensions": 8}, 8),
        ({"model": "text-embedding-3-small", "dimensions": 8, "send_dimensions": False}, None),
        ({"model": "text-embedding-3-small", "dimensions": None}, None),
    ],
)
def test_dimensions_are_sent_where_said_or_where_openai_is_to_shorten(
    declare, tmp_path, settings, sent
):
    embedder = declare(**settings).embedder(tmp_path)
    assert embedder._options.get("dimensions") == sent


def test_a_deployment_is_asked_for_shorter_vectors_where_that_is_said(load, server):
    asked = load(dimensions=4, send_dimensions=True)
    assert asked.embed_passages(["a"]).shape == (1, 4)
    assert server.requests[0]["dimensions"] == 4
    with pytest.raises(EndpointStopped, match=r"gives 8 dimensions.*send_dimensions: true"):
        load(dimensions=4).embed_passages(["a"])
    with pytest.raises(EndpointStopped, match=r"does not shorten.*send_dimensions: false"):
        load("fixed-size", send_dimensions=True).embed_passages(["a"])


def test_requests_and_tokens_keep_the_rates_declared(load):
    pauses = []
    texts = ["one two three"] * 5  # 5 tokens each
    embedder = load(
        pauses=pauses,
        limits={"inputs": 1, "concurrency": 1, "tokens_per_minute": 60, "requests_per_minute": 60},
    )
    embedder.embed_passages(texts)
    assert pauses == pytest.approx([5, 10, 15, 20], abs=2)  # nothing waits in this test


def test_the_limits_are_those_of_the_kind_of_server_unless_said(declare, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    azure = declare(base_url="https://mine.openai.azure.com/openai/v1/", limits={"inputs": 5})
    assert azure.limits_at(azure.endpoint()) == Limits(inputs=5, tokens=300_000, kilobytes=8_000)
    other = declare()
    assert other.limits_at(other.endpoint()).inputs == 32


def test_openai_is_not_asked_without_a_key_and_others_are(declare, server, monkeypatch, tmp_path):
    with pytest.raises(CorpusError, match="wants a key: set MY_KEY"):
        OpenAIModel(model="text-embedding-3-small", key_variable="MY_KEY").endpoint()
    declare(key_variable="MY_KEY").embedder(tmp_path).embed_passages(["a"])
    assert server.keys == ["Bearer no-key"]


def test_where_and_how_fast_a_model_is_asked_is_no_part_of_what_it_is(declare):
    here = declare()
    assert (
        here.declaration()
        == declare(base_url="http://elsewhere/v1", limits={"inputs": 1}).declaration()
    )
    for other in (
        {"revision": "2"},
        {"query_prefix": "q: "},
        {"max_tokens": 9},
        {"truncate": True},
    ):
        assert here.declaration() != declare(**other).declaration()


def test_a_model_is_the_same_after_it_was_stored_with_a_promotion(declare):
    model = declare(limits={"inputs": 5}, truncate=True)
    assert OpenAIModel.model_validate(model.model_dump(mode="json")) == model


def test_what_is_not_known_of_a_model_has_to_be_said(server):
    with pytest.raises(ValidationError, match="give dimensions, max_tokens, tokenizer"):
        OpenAIModel(model="nomic-embed-text")
    for url in ("http://me:secret@host/v1", "http://token@host/v1"):
        with pytest.raises(ValidationError, match="holds a user or password"):
            OpenAIModel(model="text-embedding-3-small", base_url=url)


def test_a_missing_tokenizer_is_named_with_the_cure(declare, tmp_path):
    file = tmp_path / "nowhere.json"
    with pytest.raises(CorpusError, match=r"nowhere\.json, is not there"):
        OpenAIModel(model="m", dimensions=8, max_tokens=9, tokenizer=str(file)).declaration()


def test_a_byte_pair_encoding_counts_and_says_where_tokens_start():
    ranks = {bytes([n]): n for n in range(256)} | {b"he": 256, b"llo": 258, b"ll": 257}
    encoding = Encoding(
        "own", pat_str=r"\S+|\s+", mergeable_ranks=ranks, special_tokens={"<s>": 300}
    )
    tokenizer = TiktokenTokenizer(encoding)
    assert tokenizer.count(["hello", "<s>", "é"]) == [2, 3, 2]
    (starts,) = tokenizer.starts(["hello é!"])
    assert starts.tolist() == [0, 2, 5, 6, 6, 7]


KILLED = """
import sys
from pathlib import Path
from chunking_assets.embedding_models.openai_model import OpenAIModel
from chunking_assets.embedding_models.vector_cache import VectorCache, embed_through_cache
url, tokenizer, cache = sys.argv[1:]
model = OpenAIModel(model="good", tokenizer=tokenizer, dimensions=8, max_tokens=20, base_url=url,
                    limits={"inputs": 10, "concurrency": 1})
embedder = model.embedder(Path(cache))
store = VectorCache(Path(cache), embedder.identity.fingerprint, 8)
embed_through_cache(embedder, store, [f"text {n}" for n in range(100)])
"""


def test_killed_at_ninety_percent_a_rerun_pays_for_the_rest_only(
    tmp_path, tokenizer_file, load, declare, monkeypatch
):
    texts = [f"text {n}" for n in range(100)]
    with serving(EmbeddingServer(answers_left=9)) as paid:
        process = subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(KILLED), paid.url, tokenizer_file, tmp_path],
            env={**os.environ, "NO_PROXY": "127.0.0.1"},
        )
        assert paid.last_answer.wait(timeout=60)
        process.send_signal(signal.SIGKILL)
        process.wait()
        paid.released.set()
    embedder = load()
    cache = VectorCache(tmp_path, embedder.identity.fingerprint, DIMENSIONS)
    embedded = embed_through_cache(embedder, cache, texts)
    assert (embedded.computed, embedded.reused) == (10, 90)
    np.testing.assert_array_equal(embedded.vectors, expected(texts))


INTERRUPTED = """
import signal
import sys
from pathlib import Path
from chunking_assets.embedding_models.openai_model import OpenAIModel
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have it ignored
url, tokenizer, models = sys.argv[1:]
model = OpenAIModel(model="429x9after100", tokenizer=tokenizer, dimensions=8, max_tokens=20,
                    base_url=url, limits={"inputs": 1})
model.embedder(Path(models)).embed_passages([f"text {n}" for n in range(100)])
"""


def test_an_interrupt_does_not_wait_for_what_a_server_asked_to_wait(
    tmp_path, tokenizer_file, server
):
    server.answers_left, server.released = 2, server.last_answer
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(INTERRUPTED), server.url, tokenizer_file, tmp_path],
        env={**os.environ, "NO_PROXY": "127.0.0.1"},
        stderr=subprocess.PIPE,
    )
    assert server.last_answer.wait(timeout=60)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert said.rstrip().endswith(b"KeyboardInterrupt")


def test_nothing_that_is_shown_of_an_embedder_holds_the_key(load, declare):
    embedder = load()
    embedder.embed_passages(["a"])
    shown = [
        repr(embedder),
        repr(embedder.identity),
        repr(declare()),
        str(vars(embedder)["_endpoint"]),
    ]
    assert not any(KEY in text for text in shown)
    assert KEY not in str(declare().declaration())
