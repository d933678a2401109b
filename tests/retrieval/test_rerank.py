"""Reranking against real servers on loopback, a real ONNX folder and a chat model's replies."""

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace

import numpy as np
import pytest
from chat_server import OpenAIServer
from pydantic import ValidationError
from small_corpus import CONFIGURATION, SmallCorpus, write_corpus

from chunking_assets.chat_models.endpoint import KEY_VARIABLE as CHAT_KEY
from chunking_assets.chat_models.endpoint import URL_VARIABLE as CHAT_URL
from chunking_assets.errors import CorpusError
from chunking_assets.retrieval import rerank_endpoint
from chunking_assets.retrieval.cross_encoder import CrossEncoder
from chunking_assets.retrieval.hit import Hit
from chunking_assets.retrieval.open import open_strategy
from chunking_assets.retrieval.rerank import Rerank, rerank
from chunking_assets.retrieval.rerank_endpoint import KEY_VARIABLE, RerankEndpoint
from chunking_assets.retrieval.rerank_llm import ChatReranker

KEY = "rerank-key-never-to-be-seen"
TEXTS = ["one", "three", "five"]


@contextmanager
def server(reply, retry_after="0"):
    """`reply(body, number)` gives status and what is sent; requests are kept with their headers."""

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, format, *args):
            pass

        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            self.server.requests.append((self.path, body, self.headers.get("authorization")))
            status, content = reply(body, len(self.server.requests))
            content = content if isinstance(content, bytes) else json.dumps(content).encode()
            self.send_response(status)
            self.send_header("content-length", str(len(content)))
            self.send_header("retry-after", retry_after)
            self.end_headers()
            self.wfile.write(content)

    running = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    running.requests = []
    running.url = f"http://127.0.0.1:{running.server_port}/v1"
    threading.Thread(target=running.serve_forever, daemon=True).start()
    try:
        yield running
    finally:
        running.shutdown()
        running.server_close()


def by_length(body, number):
    rows = [
        {"index": i, "relevance_score": len(text) / 10} for i, text in enumerate(body["documents"])
    ]
    return 200, {"results": sorted(rows, key=lambda row: -row["relevance_score"])}


def hits(*texts):
    return [
        Hit(text, "d", n, n, n + 1, "", text, (), 1, 1 - n / 100) for n, text in enumerate(texts)
    ]


def test_scores_are_given_to_the_texts_they_are_of(monkeypatch):
    monkeypatch.setenv(KEY_VARIABLE, KEY)
    with server(by_length) as running:
        scores = RerankEndpoint(running.url, "m", 5)("question", TEXTS)
    assert scores == [0.3, 0.5, 0.4]
    path, body, key = running.requests[0]
    assert (path, key) == ("/v1/rerank", f"Bearer {KEY}")
    assert body == {"model": "m", "query": "question", "documents": TEXTS, "top_n": 3}


def test_a_server_that_calls_them_texts_is_asked_so():
    def tei(body, number):
        if "texts" not in body:
            return 422, {"error": "missing field `texts`"}
        return 200, [{"index": i, "score": len(t)} for i, t in enumerate(body["texts"])]

    with server(tei) as running:
        ask = RerankEndpoint(running.url + "/rerank", "", 5)
        assert ask("q", TEXTS) == ask("q", TEXTS) == [3, 5, 4]
    assert len(running.requests) == 3


def test_a_busy_server_is_asked_again():
    with server(lambda b, n: by_length(b, n) if n == 3 else (429, {})) as running:
        assert RerankEndpoint(running.url, "m", 5)("q", TEXTS) == [0.3, 0.5, 0.4]


@pytest.mark.parametrize(("asked", "waits"), [("3", 3.0), ("900", 20.0), ("soon", 1.0)])
def test_a_busy_server_says_how_long_to_wait_within_reason(monkeypatch, asked, waits):
    pauses = []
    # Of this module only: threads that other tests left behind sleep too.
    monkeypatch.setattr(rerank_endpoint, "time", SimpleNamespace(sleep=pauses.append))
    with server(lambda b, n: by_length(b, n) if n == 2 else (503, {}), asked) as running:
        RerankEndpoint(running.url, "m", 5)("q", TEXTS)
    assert pauses == [waits]


@pytest.mark.parametrize(
    ("status", "content", "said"),
    [
        (401, {"error": f"bad key {KEY}"}, "replied 401"),
        (200, {"results": [{"index": 0, "relevance_score": 1}]}, "scored 1 of 3 texts"),
        (200, {"results": [{"index": 0}] * 3}, "which has no scores"),
        (200, {"results": [{"index": 0, "relevance_score": 1}] * 3}, "scored 1 of 3"),
        (200, b"<html>", "not JSON"),
        (200, {"message": "hello"}, "scored 0 of 3"),
    ],
)
def test_a_wrong_reply_is_an_error_that_names_the_server_and_hides_the_key(
    monkeypatch, status, content, said
):
    monkeypatch.setenv(KEY_VARIABLE, KEY)
    with (
        server(lambda b, n: (status, content)) as running,
        pytest.raises(CorpusError, match=said) as caught,
    ):
        RerankEndpoint(running.url, "m", 5)("q", TEXTS)
    assert KEY not in str(caught.value)
    assert f"127.0.0.1:{running.server_port}" in str(caught.value)


def test_a_dead_server_is_one_clear_error(monkeypatch):
    monkeypatch.setattr(rerank_endpoint.time, "sleep", lambda seconds: None)
    with server(by_length) as running:
        url = running.url.replace("http://", "http://user:secret@")
    with pytest.raises(CorpusError, match=r"cannot be reached.*rerank\.url") as caught:
        RerankEndpoint(url, "m", 1)("q", TEXTS)
    assert "secret" not in str(caught.value)


def test_only_the_first_are_judged_and_handed_on():
    found = rerank("q", hits("one", "three", "fourteen"), 2, lambda q, t: [0.1, 0.9])
    assert [(hit.text, hit.score, hit.rerank_score) for hit in found] == [
        ("three", 0.9, 0.9),
        ("one", 0.1, 0.1),
    ]


def test_logits_become_shares_in_the_same_order():
    found = rerank("q", hits("a", "b", "c"), 3, lambda q, t: [-800.0, 3.0, 0.0])
    assert [hit.text for hit in found] == ["b", "c", "a"]
    assert [hit.score for hit in found] == pytest.approx([0.952574, 0.5, 0.0])


@pytest.mark.parametrize("scores", [[0.1], [0.1, float("nan")], [0.1, float("inf")]])
def test_scores_that_are_none_are_refused(scores):
    with pytest.raises(CorpusError, match="no number"):
        rerank("q", hits("a", "b"), 2, lambda q, t: scores)


@pytest.mark.parametrize("kind", ["endpoint", "onnx", "llm"])
def test_a_kind_without_what_it_needs_is_refused(kind):
    with pytest.raises(ValidationError, match=f"a reranker of kind {kind} needs"):
        Rerank(kind=kind)


@pytest.fixture
def cross_encoder(tmp_path):
    """Scores a pair by the sum of its token ids."""
    from onnx import TensorProto, helper, save
    from tokenizers import Tokenizer, models, pre_tokenizers, processors

    words = ["[UNK]", "[SEP]", "red", "green", "blue"]
    tokenizer = Tokenizer(models.WordLevel({w: n for n, w in enumerate(words)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="$A", pair="$A [SEP] $B:1", special_tokens=[("[SEP]", 1)]
    )
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    ids = helper.make_tensor_value_info("input_ids", TensorProto.INT64, [1, "tokens"])
    out = helper.make_tensor_value_info("logits", TensorProto.FLOAT, [1, 1])
    nodes = [
        helper.make_node("Cast", ["input_ids"], ["f"], to=TensorProto.FLOAT),
        helper.make_node("ReduceSum", ["f", "axes"], ["logits"], keepdims=1),
    ]
    axes = helper.make_tensor("axes", TensorProto.INT64, [1], np.array([1], np.int64))
    graph = helper.make_graph(nodes, "sum", [ids], [out], [axes])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    save(model, tmp_path / "model.onnx")
    return tmp_path


def test_a_cross_encoder_reads_the_pair(cross_encoder):
    assert CrossEncoder(cross_encoder)("red", ["blue", "green green"]) == [2 + 1 + 4, 2 + 1 + 6]


def test_a_cross_encoder_reads_the_whole_question_and_of_a_text_what_fits(cross_encoder):
    (cross_encoder / "config.json").write_text('{"max_position_embeddings": 8}')
    question, text = "red red red red red", "blue blue green green"  # and one separator
    assert CrossEncoder(cross_encoder)(question, [text]) == [5 * 2 + 1 + 2 * 4]


def test_a_folder_without_a_cross_encoder_is_named(tmp_path):
    with pytest.raises(CorpusError, match=r"no model\.onnx and tokenizer\.json"):
        CrossEncoder(tmp_path)


class Judge(OpenAIServer):
    def reply(self, body):
        passages = body["messages"][-1]["content"].split("[")[1:]
        grades = [{"passage": n, "grade": min(10, len(p))} for n, p in enumerate(passages, 1)]
        return {"grades": grades}


def test_a_chat_model_grades_and_is_asked_once(tmp_path, monkeypatch):
    running = Judge()
    threading.Thread(target=running.serve_forever, daemon=True).start()
    monkeypatch.setenv(CHAT_URL, running.url)
    monkeypatch.setenv(CHAT_KEY, KEY)
    try:
        first = ChatReranker("judge", tmp_path, 10)("q", ["", "longer text"])
        again = ChatReranker("judge", tmp_path, 10)("q", ["", "longer text"])
    finally:
        running.shutdown()
        running.server_close()
    assert first == again
    assert first[0] < first[1] == 1.0
    assert len(running.requests) == 1


def test_a_profile_reranks_through_the_reader(tmp_path):
    with server(by_length) as running:
        profile = {
            "search": "hybrid",
            "k": 2,
            "rerank": {"kind": "endpoint", "url": running.url, "model": "m", "top": 2},
        }
        corpus = SmallCorpus(
            write_corpus(
                tmp_path,
                {f"{n}.md": "same words " + "x" * n for n in range(4)},
                retrieval_profiles={**CONFIGURATION["retrieval_profiles"], "hybrid": profile},
            )
        )
        corpus.update()
        reader = open_strategy(corpus.workspace, corpus.config.strategies["recursive"])
        answer = reader.answer("same words")
    assert len(running.requests) == 1
    lengths = [len(hit.text) for hit in answer.candidates if hit.dropped is None]
    assert lengths == sorted(lengths, reverse=True)
    assert {hit.dropped for hit in answer.candidates[2:]} == {"rerank: not among the first 2"}
