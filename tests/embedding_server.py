"""An `/embeddings` server on loopback whose faults are chosen by the model's name.

A vector is made of the text's digest, so that a test can tell whose it is; a token is a word. The
faults are those of real servers: too many inputs, wrong counts, other orders, no numbers, other
dimensions, texts cut off. It has the batch API too: a job is done when the test says so.
"""

import base64
import json
import re
import threading
from collections import Counter
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np

KEY = "sk-live-0123456789-never-to-be-seen"
DIMENSIONS = 8


def word_tokenizer(folder):
    """The path of a new `tokenizer.json`: a token a word, and no special ones."""
    from tokenizers import Tokenizer, models, pre_tokenizers

    engine = Tokenizer(models.WordLevel({"[UNK]": 0}, unk_token="[UNK]"))
    engine.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    engine.save(str(folder / "tokenizer.json"))
    return str(folder / "tokenizer.json")


def vector_of(text, dimensions=DIMENSIONS):
    """float32, unit length."""
    numbers = np.frombuffer(sha256(text.encode()).digest(), np.uint8)[:dimensions]
    vector = numbers.astype(np.float64) + 1
    return (vector / np.linalg.norm(vector)).astype(np.float32)


class EmbeddingServer(ThreadingHTTPServer):
    """`requests` are the bodies received, `keys` the bearer tokens. Once `answers_left` requests
    were answered (None: never), `last_answer` is set and the rest hang until `released`.

    `files` are those uploaded or written, `jobs` those of the batch API by number; `finish` ends
    them. `forgets_replies` accepts a job and breaks the connection; without `has_batch_api` nothing
    is found there.
    """

    daemon_threads = True

    def __init__(self, answers_left=None, port=0):
        super().__init__(("127.0.0.1", port), _Handler)
        self.requests, self.keys, self.tries = [], [], Counter()
        self.answers_left = answers_left
        self.lock = threading.Lock()
        self.released, self.last_answer = threading.Event(), threading.Event()
        self.files, self.jobs = {}, {}
        self.forgets_replies, self.has_batch_api = False, True

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}/v1"

    @property
    def texts(self):
        return [text for body in self.requests for text in body["input"]]

    def finish(self, status="completed", failing=(), short=()):
        """End every job; requests with a text of `failing` end in an error, answers to one of
        `short` lack a vector."""
        for job in self.jobs.values():
            answers = []
            for line in self.files[job["input_file_id"]].splitlines():
                request = json.loads(line)
                code, _, content = _respond(request["body"], 1)
                if set(failing) & set(request["body"]["input"]):
                    code, content = 400, {"error": {"message": "input cannot be read"}}
                if set(short) & set(request["body"]["input"]):
                    content["data"] = content["data"][1:]
                response = {"status_code": code, "body": content}
                answers.append({"custom_id": request["custom_id"], "response": response})
            output = self.add_file("\n".join(map(json.dumps, reversed(answers))).encode())
            job |= {"status": status, "output_file_id": output if status != "failed" else None}
            if status == "failed":
                job["errors"] = {"object": "list", "data": [{"message": "line 1 is too long"}]}

    def add_file(self, content):
        name = f"file-{len(self.files)}"
        self.files[name] = content
        return name

    def handle_error(self, request, client_address):
        """A client that was killed is part of the tests."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: EmbeddingServer

    def log_message(self, format, *args):
        pass

    def do_GET(self):
        server, (_, kind, *rest) = self.server, self.path.partition("?")[0].strip("/").split("/")
        with server.lock:
            server.keys.append(self.headers["authorization"])
            if not server.has_batch_api or (
                rest and kind == "batches" and rest[0] not in server.jobs
            ):
                self._reply(*_error(404, None, "Not Found"))
            elif kind == "files":
                self._reply(
                    200, {"content-type": "application/octet-stream"}, server.files[rest[0]]
                )
            elif rest:
                self._reply(200, {}, server.jobs[rest[0]])
            else:
                listed = {"object": "list", "data": [*server.jobs.values()], "has_more": False}
                self._reply(200, {}, listed)

    def do_POST(self):
        content = self.rfile.read(int(self.headers["content-length"]))
        self.server.keys.append(self.headers["authorization"])
        if self.path != "/v1/embeddings" and not self.server.has_batch_api:
            self._reply(*_error(404, None, "Not Found"))
        elif self.path == "/v1/files":
            _, _, part = content.partition(b'filename="')
            content = part.partition(b"\r\n\r\n")[2].rpartition(b"\r\n--")[0]
            made = {"object": "file", "bytes": len(content), "created_at": 1, "purpose": "batch"}
            name = self.server.add_file(content)
            self._reply(200, {}, {**made, "id": name, "filename": "f.jsonl", "status": "processed"})
        elif self.path == "/v1/batches":
            self._accept(json.loads(content))
        else:
            self._embed(json.loads(content))

    def _accept(self, body):
        server = self.server
        with server.lock:
            number = f"batch_{len(server.jobs)}"
            server.jobs[number] = {
                "id": number, "object": "batch", "created_at": 1, "status": "in_progress", **body
            }  # fmt: skip
        if server.forgets_replies:
            self.close_connection = True
            return
        self._reply(200, {}, server.jobs[number])

    def _embed(self, body):
        server = self.server
        with server.lock:
            server.requests.append(body)
            attempt = server.tries[json.dumps(body["input"])] = (
                server.tries[json.dumps(body["input"])] + 1
            )
            hangs = server.answers_left == 0
            if server.answers_left:
                server.answers_left -= 1
        if hangs:
            server.last_answer.set()
            server.released.wait()
        if body["model"] == "breaks-off" and attempt == 1:
            self._break_off(*_respond(body, attempt))
        else:
            self._reply(*_respond(body, attempt))

    def _break_off(self, status, headers, content):
        """Die in the middle of the reply."""
        payload = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(payload)))
        self.end_headers()
        self.wfile.write(payload[: len(payload) // 2])
        self.close_connection = True

    def _reply(self, status, headers, content):
        payload = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.send_response(status)
        for name, value in {"content-type": "application/json", **headers}.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(payload)))
        self.end_headers()
        self.wfile.write(payload)


def _error(status, code, message, param=None, **headers):
    content = {"error": {"message": message, "type": "error", "code": code, "param": param}}
    return status, {k.replace("_", "-"): v for k, v in headers.items()}, content


def _respond(body, attempt):
    model, texts = body["model"], body["input"]
    if fault := _http_fault(model, body, texts, attempt):
        return fault
    if model == "html":
        return 200, {"content-type": "text/html"}, b"<html>Welcome</html>"
    if model == "other-shape":
        return 200, {}, {"vectors": []}
    if model == "cut-json" and attempt == 1:
        return 200, {}, b'{"object": "list", "data": [{"object": "embedding", "ind'
    dimensions = 4 if model == "short-vectors" else body.get("dimensions", DIMENSIONS)
    vectors = [vector_of(text, dimensions) for text in texts]
    for text, vector in zip(texts, vectors, strict=True):
        if "nan" in text and model == "bad-numbers":
            vector[0] = np.nan
        if "infinite" in text and model == "bad-numbers":
            vector[0] = np.inf
        if "zero" in text and model == "bad-numbers":
            vector[:] = 0
    as_bytes = body.get("encoding_format") == "base64" and model != "ignores-base64"
    as_bytes = as_bytes or model == "always-base64"
    data = [
        {
            "object": "embedding",
            "index": at,
            "embedding": base64.b64encode(vector.astype("<f4").tobytes()).decode()
            if as_bytes
            else vector.astype(float).tolist(),
        }
        for at, vector in enumerate(vectors)
    ]
    if model == "one-missing" and "lost" in texts:
        data = data[1:]
    if model == "one-more":
        data = [*data, {**data[-1], "index": len(data)}]
    if model == "nulls":
        data = [{**item, "embedding": [None, *item["embedding"][1:]]} for item in data]
    if model == "no-embedding":
        data = [{"object": "embedding", "index": item["index"]} for item in data]
    if model == "shuffled":
        data = data[::-1]
    if model == "no-index":
        data = [{**item, "index": 0} for item in data]
    if model == "empty-usage":
        return 200, {}, {"object": "list", "data": data, "model": model, "usage": {}}
    words = [len(text.split()) for text in texts]
    if cut := re.fullmatch(r"cuts-at-(\d+)", model):
        words = [min(n, int(cut[1])) for n in words]
    read = 0 if model == "counts-nothing" else sum(words)
    usage = {"prompt_tokens": read, "total_tokens": read}
    content = {"object": "list", "data": data, "model": model}
    return 200, {}, content if model == "no-usage" else {**content, "usage": usage}


def _http_fault(model, body, texts, attempt):
    if times := re.fullmatch(r"(429|500)x(\d+)(?:after(\d+))?", model):
        if attempt <= int(times[2]):
            wait = times[3] or "7"
            return _error(int(times[1]), "rate_limit_exceeded", "slow down", retry_after=wait)
    elif model == "quota":
        return _error(429, "insufficient_quota", "You exceeded your current quota")
    elif model == "auth":
        return _error(401, "invalid_api_key", f"Incorrect API key provided: {KEY}.")
    elif model == "missing":
        return _error(404, "model_not_found", f"The model `{model}` does not exist")
    elif model == "refuses-all":
        return _error(400, None, "unknown parameter: input")
    elif (few := re.fullmatch(r"at-most-3(?:-(\d+))?", model)) and len(texts) > 3:
        return _error(int(few[1] or 413), None, "batch size 32 > maximum allowed batch size 3")
    elif model == "poison" and any("poison" in text for text in texts):
        return _error(400, None, f"input cannot be read (key {KEY})")
    elif model == "no-base64" and body.get("encoding_format") == "base64":
        return _error(400, None, "encoding_format: base64 is not supported")
    elif model == "fixed-size" and "dimensions" in body:
        return _error(400, None, "Model does not support matryoshka: dimensions", "dimensions")
    return None
