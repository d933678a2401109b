"""Texts embedded by the batch API: half the price, within a day, across as many runs as it takes.

What was sent is kept in a folder until its answers were taken, so that no run sends it again: the
requests of a job, and beside them, once the server has accepted it, the job's number there. A run
killed between the two finds the job on the server by its name.
"""

import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from chunking_assets.chat_models.chat_endpoint import CallFailed
from chunking_assets.chat_models.rejection import Rejection
from chunking_assets.errors import CorpusError
from chunking_assets.keys import digest
from chunking_assets.workspace import Workspace

if TYPE_CHECKING:
    from openai import OpenAI
    from openai.types import Batch, CreateEmbeddingResponse

JOB_TEXTS, JOB_BYTES = 50_000, 100_000_000
"""Most that one job of OpenAI's holds."""
POLL_SECONDS = 60
"""A run that has much to do looks at a job once in so long."""
LOST = frozenset(("expired", "cancelled", "cancelling", "failed"))
FINAL = (LOST - {"cancelling"}) | {"completed"}
NAME = "corpus_job"
"""The metadata key under which the server keeps a job's name."""

Reply = TypeVar("Reply")


_NO_BATCH_API = "the server has no batch API: remove batch_from"


class _NotTaken(CallFailed):
    """A job the server will not take however often it is sent."""


class BatchPending(CorpusError):
    """Texts wait for the batch API; nothing is wrong."""


@dataclass(frozen=True)
class Job:
    """Requests sent as one job; `file` has one a line."""

    file: Path

    @property
    def name(self) -> str:
        return self.file.stem

    @property
    def number_file(self) -> Path:
        return self.file.with_suffix(".id")

    def requests(self) -> dict[str, list[str]]:
        """The texts of each request, by its name in the job."""
        lines = map(json.loads, self.file.read_bytes().splitlines())
        return {line["custom_id"]: line["body"]["input"] for line in lines}


class BatchJobs:
    """The jobs of one model that are not done with, in `folder`.

    `ask` sends a request as often as it takes, and is told what to say where nothing is found;
    what it gives up on, it raises. `alone` is for whoever asks after jobs or makes some.
    """

    def __init__(
        self,
        folder: Path,
        client: "OpenAI",
        ask: Callable[..., Any],
        body: dict[str, Any],
    ) -> None:
        self._folder, self._client, self._ask, self._body = folder, client, ask, body
        self._texts: dict[str, frozenset[bytes]] = {}
        self._seen: dict[str, tuple[float, Batch]] = {}

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Without other processes that would send the same job, or take it away."""
        with Workspace(self._folder).lock("jobs"):
            yield

    def open(self) -> list[Job]:
        """Jobs whose answers were not taken yet."""
        return [Job(file) for file in sorted(self._folder.glob("*.jsonl"))]

    def holding(self, texts: Sequence[str]) -> Iterator[tuple[Job, set[str]]]:
        """The open jobs that some of these texts are in, and which."""
        asked = {_sha(text): text for text in texts}
        for job in self.open():
            if job.name not in self._texts:
                try:
                    requests = job.requests().values()
                except FileNotFoundError:  # collected just now; not `alone`, one is told of less
                    continue
                self._texts[job.name] = frozenset(_sha(t) for sent in requests for t in sent)
            if common := self._texts[job.name] & asked.keys():
                yield job, {asked[sha] for sha in common}

    def prepare(self, packs: Sequence[Sequence[str]]) -> list[Job]:
        """Keep these requests, each of some texts, as jobs; `batch` sends them."""
        jobs: list[Job] = []
        lines: list[bytes] = []
        texts = size = 0
        for pack in packs:
            body = {**self._body, "input": list(pack)}
            line = {"custom_id": digest(*pack), "method": "POST", "url": "/v1/embeddings"}
            encoded = json.dumps({**line, "body": body}, ensure_ascii=False).encode() + b"\n"
            if lines and (texts + len(pack) > JOB_TEXTS or size + len(encoded) > JOB_BYTES):
                jobs.append(self._keep(lines))
                lines, texts, size = [], 0, 0
            lines.append(encoded)
            texts += len(pack)
            size += len(encoded)
        if lines:
            jobs.append(self._keep(lines))
        return jobs

    def batch(self, job: Job) -> "Batch":
        """The job as the server sees it, now or not long ago; sent first if it was not.

        Raises:
            CallFailed: the server does not take it, and it is forgotten; or does not know it.
        """
        at, seen = self._seen.get(job.name, (0.0, None))
        if seen is not None and time.monotonic() - at < POLL_SECONDS:
            return seen
        if job.number_file.exists():
            number = job.number_file.read_text(encoding="utf-8")
            batch = self._told(
                lambda: self._client.batches.retrieve(number),
                f"the server does not know the job {number}. Ask with the key and the base_url it "
                f"was sent with, or remove {job.number_file} to send it again",
            )
        else:
            try:
                batch = self._told(lambda: self._on_the_server(job)) or self._send(job)
            except _NotTaken:
                self.forget(job)
                raise
            _write(job.number_file, batch.id.encode())
        self._seen[job.name] = time.monotonic(), batch
        return batch

    def answers(
        self, job: Job, batch: "Batch"
    ) -> Iterator[tuple[list[str], "CreateEmbeddingResponse"]]:
        """The texts of each answered request of a final job, and the answer."""
        from openai.types import CreateEmbeddingResponse

        if batch.output_file_id is None:
            return
        requests = job.requests()
        content = self._told(
            lambda: self._client.files.content(str(batch.output_file_id)),
            f"the answers of the job {batch.id} are gone. Remove {job.file} and "
            f"{job.number_file} to send it again",
        )
        for line in content.content.splitlines():
            answer = json.loads(line)
            response = answer.get("response") or {}
            if answer.get("custom_id") in requests and response.get("status_code") == 200:
                yield (
                    requests[answer["custom_id"]],
                    CreateEmbeddingResponse.construct(**response["body"]),
                )

    def forget(self, job: Job) -> None:
        """The answers were taken."""
        job.number_file.unlink(missing_ok=True)
        job.file.unlink(missing_ok=True)
        self._seen.pop(job.name, None)

    def _keep(self, lines: Sequence[bytes]) -> Job:
        self._folder.mkdir(parents=True, exist_ok=True)
        content = b"".join(lines)
        job = Job(self._folder / f"{sha256(content).hexdigest()[:24]}.jsonl")
        _write(job.file, content)
        return job

    def _on_the_server(self, job: Job) -> "Batch | None":
        """The job if it was accepted and nobody here knows: of a killed run, or a lost reply."""
        listed = self._client.batches.list(limit=100)
        return next(
            (
                batch
                for batch in listed.data
                if (batch.metadata or {}).get(NAME) == job.name and batch.status not in LOST
            ),
            None,
        )

    def _send(self, job: Job) -> "Batch":
        content = job.file.read_bytes()
        file = self._told(
            lambda: self._client.files.create(file=(job.file.name, content), purpose="batch")
        )
        return self._told(lambda: self._on_the_server(job) or self._create(job, file.id))

    def _create(self, job: Job, file_id: str) -> "Batch":
        return self._client.batches.create(
            input_file_id=file_id,
            endpoint="/v1/embeddings",
            completion_window="24h",
            metadata={NAME: job.name},
        )

    def _told(self, send: Callable[[], Reply], missing: str = _NO_BATCH_API) -> Reply:
        reply: Reply | Rejection = self._ask(send, missing=missing)
        if isinstance(reply, Rejection):
            if missing != _NO_BATCH_API:
                raise CallFailed(reply.kind, reply.message)
            raise _NotTaken(reply.kind, f"the batch API does not take a job: {reply.message}")
        return reply


def _sha(text: str) -> bytes:
    return sha256(text.encode()).digest()


def _write(file: Path, content: bytes) -> None:
    """Whole or not at all."""
    new = file.with_name(f".{file.name}.new")
    new.write_bytes(content)
    new.replace(file)
