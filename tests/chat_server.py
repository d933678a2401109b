"""An OpenAI-compatible server on loopback whose faults are chosen by the model's name.

The protocol and the faults are those of real servers. What it says where nothing fails is
`OpenAIServer.reply`: a test replaces it, or a stage's tests subclass it.
"""

import json
import re
import threading
from collections import Counter
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

KEY = "gsk_0123456789-never-to-be-seen"


class OpenAIServer(ThreadingHTTPServer):
    """`requests` are the bodies received, `keys` the bearer tokens. A model named `slow` replies
    once `full_at` requests are in flight, `hang` once `released` is set."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.requests, self.keys = [], []
        self.tries = Counter()
        self.lock = threading.Lock()
        self.released = threading.Event()
        self.in_flight = self.peak = 0
        self.full_at = 0
        self.full = threading.Event()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}/v1"

    @property
    def host(self):
        return f"127.0.0.1:{self.server_port}"

    def reply(self, body):
        """The JSON a model answers this request with: what the user said, unless replaced."""
        return {"words": [{"text": word} for word in body["messages"][-1]["content"].split()]}

    def handle_error(self, request, client_address):
        """A client that gave up waiting is part of the tests."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: OpenAIServer

    def log_message(self, format, *args):
        pass

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        server = self.server
        with server.lock:
            server.requests.append(body)
            server.keys.append(self.headers["authorization"])
            prompt = json.dumps([body["model"], body["messages"][0], body["messages"][-1]])
            server.tries[prompt] += 1
            attempt = server.tries[prompt]
            server.in_flight += 1
            server.peak = max(server.peak, server.in_flight)
            if server.in_flight == server.full_at:
                server.full.set()
        try:
            status, headers, content = _respond(server, body, attempt)
        finally:
            with server.lock:
                server.in_flight -= 1
        payload = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.send_response(status)
        for name, value in {"content-type": "application/json", **headers}.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(payload)))
        self.end_headers()
        self.wfile.write(payload)


def _respond(server, body, attempt):
    model, messages = body["model"], body["messages"]
    if fault := _http_fault(model, body, attempt):
        return fault
    if model == "hang":
        server.released.wait()
    if model == "slow":
        server.full.wait(timeout=10)
    if model == "html":
        return 200, {"content-type": "text/html"}, b"<html>Welcome</html>"
    repairing = len(messages) > 1 and messages[-2]["role"] == "assistant"
    content, refusal, finish = json.dumps(server.reply(body), ensure_ascii=False), None, "stop"
    if model == "badjson" or (model == "badjson1" and not repairing):
        content = 'Sure! {"statements": ["unfinished'
    elif model == "fenced":
        content = f"Here you are:\n```json\n{content}\n```\nAnything else?"
    elif model == "think":
        content = f"<think>\n{{maybe}} {{}}\n</think>\n{content}"
    elif model == "length" or (model == "length1" and max_tokens(body) == 4096):
        content, finish = content[:20], "length"
    elif model == "refusal":
        content, refusal = None, f"I cannot help. Your key is {KEY}."
    elif model == "filter":
        content, finish = "", "content_filter"
    read = sum(len(m["content"]) for m in messages)
    completion = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": f"{model}-2026-01-01",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": content, "refusal": refusal},
                "finish_reason": finish,
            }
        ],
    }
    if model != "nousage":
        read = 50 if model == "cut" else read // 4
        completion["usage"] = {
            "prompt_tokens": read,
            "completion_tokens": 10,
            "total_tokens": read + 10,
        }
    return 200, {}, completion


def _http_fault(model, body, attempt):
    def error(status, code, message, param=None, **headers):
        content = {"message": message, "type": "error", "code": code, "param": param}
        return status, {k.replace("_", "-"): v for k, v in headers.items()}, {"error": content}

    if times := re.fullmatch(r"(429|500)x(\d+)", model):
        if attempt <= int(times[2]):
            return error(int(times[1]), "rate_limit_exceeded", "slow down", retry_after="0")
    elif model == "later":
        return error(429, "rate_limit_exceeded", "come back tomorrow", retry_after="86400")
    elif model == "quota":
        return error(429, "insufficient_quota", "You exceeded your current quota")
    elif model == "auth":
        return error(401, "invalid_api_key", f"Incorrect API key provided: {KEY}.")
    elif model == "forbidden":
        return error(403, None, f"not for {KEY} or sk-proj-ab**cd")
    elif model == "missing":
        return error(404, "model_not_found", f"The model `{model}` does not exist")
    elif model == "toolong":
        message = "This model's maximum context length is 8192 tokens, max_completion_tokens too"
        return error(400, "context_length_exceeded", message, "messages")
    elif model == "promptfilter":
        return error(400, "content_filter", "The prompt was filtered", "prompt")
    format_sent = body.get("response_format", {}).get("type", "text")
    if model == "noschema" and format_sent == "json_schema":
        return error(400, None, "Invalid response_format: json_schema is not supported")
    if model == "noformat" and format_sent != "text":
        return error(400, "unsupported", "not supported", "response_format")
    if model == "reasoning":
        for name in ("temperature", "seed"):
            if name in body:
                return error(400, "unsupported_value", f"'{name}' is not supported", name)
    if model == "oldlimit" and "max_completion_tokens" in body:
        return error(422, None, "extra field max_completion_tokens")
    return None


def max_tokens(body):
    return body.get("max_completion_tokens", body.get("max_tokens"))


@contextmanager
def serving(server):
    """`server` answering in a thread of its own, stopped at the end."""
    with server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            server.released.set()
            server.shutdown()
            thread.join()


def without_endpoint(monkeypatch):
    """The machine's own endpoint and proxy out of the environment, and of what it starts."""
    for name in ("OPENAI_BASE_URL", "OPENAI_API_KEY", "OPENAI_ORG_ID", "OPENAI_LOG"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1,localhost")
