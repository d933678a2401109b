"""Embeds at an endpoint so that what was paid for is kept, and what is wrong is seen.

Texts are packed into requests within the server's limits; each answered request is handed on at
once, so that a killed run loses what was in flight. Vectors are taken by their index and checked;
a text the server will not take is found by halving, and does not keep the others from theirs.
"""

import base64
import binascii
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from chunking_assets.chat_models.chat_endpoint import CallFailed, EndpointStopped, Spent
from chunking_assets.chat_models.endpoint import KEY_VARIABLE, Endpoint
from chunking_assets.chat_models.rejection import Rejection, scrubbed
from chunking_assets.embedding_models.batch_jobs import FINAL, BatchJobs, BatchPending
from chunking_assets.embedding_models.model import Batch, ModelIdentity, Progress, Role, Tokenizer
from chunking_assets.embedding_models.openai_model import Limits
from chunking_assets.embedding_models.tokenizer import TextTokenizer
from chunking_assets.errors import CorpusError

if TYPE_CHECKING:
    from openai.types import Batch as RemoteBatch
    from openai.types import CreateEmbeddingResponse

_REFUSED_AT_FIRST = 8
"""So many texts refused one by one, and none taken: it is not the texts."""
STOP_SECONDS = 60
"""So long nobody asks a server that can answer nobody; then it may have been put right."""
HEAR_SECONDS = 1
"""A thread that waits without an end may not hear Ctrl-C, where another thread received it."""
_NAMED = 5
_SHOWN_CHARS = 60
UNREAD_SHARE = 0.02
"""Of the tokens sent, so many may be missing from a server's own count of what it read: room for
white space and characters it normalises. Special tokens, which not every server counts, besides."""
UNREAD_SHARE_OF_ESTIMATE = 0.5
"""The same where texts are counted in another model's tokens. Of one text in sixteen languages,
XLM-R's tokens and BERT's differ by up to 1.7 times in Latin script, and 5 times in others."""
_URL_SETTING = "base_url of the embedding model"

_log = logging.getLogger(__name__)

Reply = TypeVar("Reply")
Pause = Callable[[float, threading.Event], object]
"""Waits so many seconds, or until the event says that nobody wants the answer any more."""


def _wait(seconds: float, over: threading.Event) -> None:
    over.wait(seconds)


class _NotAnAnswer(ValueError):
    """What was replied is not what was asked for: there may be no such server there."""


class TextsRefused(CorpusError):
    """The server gave no usable vector for some texts; the others have theirs.

    `reasons` are by text.
    """

    def __init__(self, model: str, reasons: dict[int, str], texts: Sequence[str]) -> None:
        some = "; ".join(
            f"text {at} ({texts[at][:_SHOWN_CHARS]!r}…): {reasons[at]}"
            for at in sorted(reasons)[:_NAMED]
        )
        more = f", and {len(reasons) - _NAMED} more" if len(reasons) > _NAMED else ""
        self.model, self.reasons = model, {texts[at]: reason for at, reason in reasons.items()}
        super().__init__(
            f"{model} gave no vector for {len(reasons)} of {len(texts)} texts: {some}{more}. "
            "The other vectors are kept. Leave those documents out, or chunk them otherwise."
        )


class RemoteEmbedder:
    """A model behind an OpenAI-compatible `/embeddings`; safe for threads.

    `shorten` sends the dimensions wanted; `speaks_base64` asks for vectors as bytes, a quarter of
    the size. From `batch_from` new passages on, the batch API is used; its jobs are kept in the
    folder `jobs`. `counts_exactly` says that the tokenizer is the model's own: a server that then
    counts fewer tokens than it was sent cuts texts off. `pause` is what waits.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        tokenizer: Tokenizer,
        identity: ModelIdentity,
        limits: Limits,
        *,
        truncate: bool = False,
        shorten: bool = False,
        speaks_base64: bool = False,
        key_variable: str = KEY_VARIABLE,
        jobs: Path | None = None,
        batch_from: int | None = None,
        counts_exactly: bool = False,
        pause: Pause = _wait,
    ) -> None:
        from openai import OpenAI

        self.identity, self.tokenizer = identity, tokenizer
        self.spent = self.spent_by_jobs = Spent()
        self.retries = 0
        self._endpoint, self._limits, self._truncate = endpoint, limits, truncate
        self._key_variable, self._pause = key_variable, pause
        self._options: dict[str, Any] = {"encoding_format": "base64" if speaks_base64 else "float"}
        if shorten:
            self._options["dimensions"] = identity.dimensions
        self._client = OpenAI(
            base_url=endpoint.base_url,
            api_key=endpoint.api_key,
            max_retries=0,
            timeout=limits.timeout,
        )
        self._batch_from = batch_from
        self._jobs = None
        if jobs is not None:
            body = {"model": identity.id, **self._options}
            self._jobs = BatchJobs(jobs, self._client, self._ask, body)
        self._counts_exactly, self._warned = counts_exactly, False
        self.reads_at_most = identity.max_tokens
        self._special = 0
        if isinstance(tokenizer, TextTokenizer):
            self._special = sum(map(len, tokenizer.special_tokens()))
        self._pace = _Pace(limits, pause)
        self._lock = threading.Lock()
        self._stopped: EndpointStopped | None = None
        self._stopped_until = 0.0
        self._answered = self._refused = 0

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Tokens of each passage, prefix and special tokens included, whatever is cut off."""
        prefix = self.identity.passage_prefix
        return self._counted([prefix + text for text in texts])

    def _counted(self, sent: Sequence[str]) -> list[int]:
        return [n + self._special for n in self.tokenizer.count(sent)]

    def embed_passages(self, texts: Sequence[str], progress: Progress | None = None) -> np.ndarray:
        """
        Raises:
            EndpointStopped: no request to this server can succeed; the message names the cure.
            CallFailed: a request has no usable answer after all repetitions.
            TextsRefused: some texts have no vector.
            CorpusError: a text is empty, or longer than the model reads.
        """
        return self._embed(texts, "passage", progress)

    def embed_queries(self, texts: Sequence[str]) -> np.ndarray:
        """As `embed_passages`, for the question side."""
        return self._embed(texts, "query", None)

    def embed_batches(self, texts: Sequence[str], role: Role) -> Iterator[Batch]:
        """Positions and unit vectors of each answered request, in the order of the answers.

        Whoever stops taking them waits for the requests in flight, and for no repetition.

        Raises: As `embed_passages`; what was answered before has been handed on.
        """
        sent, tokens = self._as_sent(texts, role)
        left: Sequence[int] = range(len(sent))
        if self._jobs is not None and self._batch_from is not None and role == "passage":
            left = self._left_by_jobs(self._jobs, self._batch_from, sent, tokens)
        refused: dict[int, str] = {}
        failure: Exception | None = None
        waiting = deque(self._packed(left, sent, tokens))
        running: set[Future[tuple[list[int], np.ndarray, dict[int, str]]]] = set()
        over = threading.Event()
        with ThreadPoolExecutor(self._limits.concurrency, thread_name_prefix="embed") as pool:
            try:
                while running or (waiting and failure is None):
                    while waiting and failure is None and len(running) < self._limits.concurrency:
                        pack = waiting.popleft()
                        running.add(pool.submit(self._request, pack, sent, tokens, over))
                    done, running = wait(running, HEAR_SECONDS, FIRST_COMPLETED)
                    for future in done:
                        try:
                            positions, vectors, reasons = future.result()
                        except CorpusError as error:
                            failure = failure or error
                            if isinstance(error, EndpointStopped):
                                over.set()
                            continue
                        refused |= reasons
                        if positions:
                            yield positions, vectors
            finally:
                over.set()
        if failure is not None:
            raise failure
        if refused:
            raise TextsRefused(self.identity.id, refused, texts)

    def collect_earlier(self) -> Iterator[tuple[list[str], np.ndarray]]:
        """
        Raises:
            CallFailed: the server could not do a job, or a part of one; what it brought is handed
                on, and the job forgotten.
        """
        if self._jobs is None or not self._jobs.open():
            return
        lead = len(self.identity.passage_prefix)
        with self._jobs.alone():
            for job in self._jobs.open():
                batch = self._jobs.batch(job)
                if batch.status not in FINAL:
                    continue
                failure = _failure(batch)
                for sent, answer in self._jobs.answers(job, batch):
                    self._note(answer, Spent(requests=1), by_jobs=True)
                    try:
                        self._check_read(self._counted(sent), answer, job.file)
                        vectors = self._vectors(answer, len(sent))
                    except EndpointStopped:
                        raise
                    except CallFailed as error:
                        failure = failure or error
                        continue
                    usable = np.flatnonzero(_usable(vectors))
                    yield [sent[n][lead:] for n in usable], _units(vectors[usable])
                self._jobs.forget(job)
                if failure is not None:
                    raise failure

    def in_jobs(self, texts: Sequence[str]) -> set[str]:
        """Of these passages, those in jobs whose answers were not taken yet. Nobody is asked."""
        if self._jobs is None:
            return set()
        sent = {self.identity.passage_prefix + text: text for text in texts}
        return {sent[text] for _, held in self._jobs.holding([*sent]) for text in held}

    def jobs(self) -> tuple[list[str], int]:
        """The server's numbers of jobs that `collect_earlier` would take now, and how many are
        under way. A number is of one attempt: texts sent again have another."""
        if self._jobs is None or not self._jobs.open():
            return [], 0
        with self._jobs.alone():
            batches = [self._jobs.batch(job) for job in self._jobs.open()]
        done = [batch.id for batch in batches if batch.status in FINAL]
        return done, len(batches) - len(done)

    def _left_by_jobs(
        self, jobs: BatchJobs, batch_from: int, sent: Sequence[str], tokens: Sequence[int]
    ) -> list[int]:
        """The positions of texts not worth a job.

        Raises:
            BatchPending: some of the texts are in a job, or are now.
        """
        with jobs.alone():
            pending, under_way = [], set[str]()
            for job, texts in jobs.holding(sent):
                under_way |= texts
                pending.append(jobs.batch(job))
            left = [at for at, text in enumerate(sent) if text not in under_way]
            if len(left) >= batch_from:
                packs = [[sent[at] for at in pack] for pack in self._packed(left, sent, tokens)]
                pending += [jobs.batch(job) for job in jobs.prepare(packs)]
                left = []
        if pending:
            told = ", ".join(f"{batch.id} ({batch.status})" for batch in pending)
            raise BatchPending(
                f"{self.identity.id}: jobs of the batch API are under way: {told}. They are "
                "collected by the next run after they are done; nothing is sent twice."
            )
        return left

    def _embed(self, texts: Sequence[str], role: Role, progress: Progress | None) -> np.ndarray:
        vectors = np.empty((len(texts), self.identity.dimensions), np.float32)
        done = 0
        for positions, some in self.embed_batches(texts, role):
            vectors[positions] = some
            done += len(positions)
            if progress is not None:
                progress(done, len(texts))
        return vectors

    def _as_sent(self, texts: Sequence[str], role: Role) -> tuple[list[str], list[int]]:
        """The texts behind their prefix, each within what the model reads, and their tokens."""
        identity = self.identity
        prefix = identity.query_prefix if role == "query" else identity.passage_prefix
        for at, text in enumerate(texts):
            if not text.strip():
                raise CorpusError(
                    f"text {at} to be embedded by {identity.id} is empty, which endpoints refuse."
                )
        sent = [prefix + text for text in texts]
        counts = self._counted(sent)
        long = [at for at, n in enumerate(counts) if n > identity.max_tokens]
        if long and not self._truncate:
            at = long[0]
            raise CorpusError(
                f"{len(long)} of {len(texts)} texts are longer than the {identity.max_tokens} "
                f"tokens {identity.id} reads, such as text {at} with {counts[at]} "
                f"({texts[at][:_SHOWN_CHARS]!r}…). Lower the chunker's max_tokens, or set "
                "truncate: true on the model to lose what is beyond."
            )
        room = identity.max_tokens - self._special
        for at in long:
            start_of_first_left_out = int(self.tokenizer.starts([sent[at]])[0][room])
            sent[at], counts[at] = sent[at][:start_of_first_left_out], identity.max_tokens
        return sent, counts

    def _packed(
        self, positions: Iterable[int], sent: Sequence[str], tokens: Sequence[int]
    ) -> Iterator[list[int]]:
        """Positions by request, each within every limit of one request."""
        limits = self._limits
        pack: list[int] = []
        in_pack = size = 0
        for at in positions:
            n_bytes = len(sent[at].encode())
            full = (
                len(pack) >= limits.inputs
                or in_pack + tokens[at] > limits.tokens
                or size + n_bytes > 1_000 * limits.kilobytes
            )
            if pack and full:
                yield pack
                pack, in_pack, size = [], 0, 0
            pack.append(at)
            in_pack += tokens[at]
            size += n_bytes
        if pack:
            yield pack

    def _request(
        self, pack: list[int], sent: Sequence[str], tokens: Sequence[int], over: threading.Event
    ) -> tuple[list[int], np.ndarray, dict[int, str]]:
        """Vectors of one pack, halved where the server refuses it; and why texts have none."""
        outcome = self._answer([sent[at] for at in pack], sum(tokens[at] for at in pack), over)
        if not isinstance(outcome, Rejection):
            self._check_read([tokens[at] for at in pack], outcome)
            vectors = self._vectors(outcome, len(pack))
            usable = _usable(vectors)
            reasons = {pack[n]: "not finite, or zero" for n in np.flatnonzero(~usable)}
            kept = [pack[n] for n in np.flatnonzero(usable)]
            return kept, _units(vectors[usable]), reasons
        if len(pack) == 1:
            self._note_refusal(outcome)
            return (
                [],
                np.empty((0, self.identity.dimensions), np.float32),
                {pack[0]: outcome.message},
            )
        half = len(pack) // 2
        left = self._request(pack[:half], sent, tokens, over)
        right = self._request(pack[half:], sent, tokens, over)
        return left[0] + right[0], np.concatenate([left[1], right[1]]), left[2] | right[2]

    def _note_refusal(self, rejection: Rejection) -> None:
        with self._lock:
            self._refused += 1
            hopeless = not self._answered and self._refused >= _REFUSED_AT_FIRST
        if hopeless:
            self._stop(
                "endpoint_error", f"{self._endpoint.host} refuses every text: {rejection.message}"
            )

    def _answer(
        self, inputs: list[str], tokens: int, over: threading.Event
    ) -> "CreateEmbeddingResponse | Rejection":
        """The server's answer; a Rejection only where fewer or other texts may be taken."""
        while True:
            options, started = dict(self._options), time.monotonic()
            answer = self._ask(partial(self._create, inputs, options), tokens, over)
            if not isinstance(answer, Rejection):
                self._note(answer, Spent(seconds=time.monotonic() - started))
                return answer
            if not self._adapts(options, answer):
                return answer

    def _create(self, inputs: list[str], options: dict[str, Any]) -> "CreateEmbeddingResponse":
        answer = self._client.embeddings.create(model=self.identity.id, input=inputs, **options)
        if not isinstance(getattr(answer, "data", None), list):
            raise _NotAnAnswer("the server sent no embeddings")
        return answer

    def _ask(
        self,
        send: Callable[[], Reply],
        tokens: int = 0,
        over: threading.Event | None = None,
        missing: str | None = None,
    ) -> Reply | Rejection:
        """What the server replies; a Rejection where it does not take what was sent.

        `missing` is said instead of that there is no such model, where a model was not asked for.

        Raises:
            EndpointStopped: no request to this server can succeed.
            CallFailed: it did not reply after all repetitions, or nobody waits for it any more.
        """
        over, failures = over or threading.Event(), 0
        while True:
            self._pace.take_turn(tokens, over)
            if self._stopped is not None and time.monotonic() < self._stopped_until:
                raise self._stopped.unpaid()
            if over.is_set():
                raise CallFailed("endpoint_error", "given up, as nobody waits for it any more")
            outcome = self._sent(send)
            if not isinstance(outcome, Rejection):
                return outcome
            if outcome.status == 404 and missing is not None:
                return replace(outcome, message=f"{missing} ({outcome.message})")
            hopeless = outcome.hopeless(
                self._endpoint.host, self.identity.id, self._key_variable, _URL_SETTING
            )
            if hopeless is not None:
                self._stop(*hopeless)
            if outcome.status in (400, 413, 422):
                return outcome
            pause = outcome.wait(failures)
            if pause is None:
                if outcome.is_foreign and not self._answered:
                    self._stop(
                        "endpoint_unreachable",
                        f"{self._endpoint.address}: {outcome.message}; check {_URL_SETTING}",
                    )
                raise CallFailed(outcome.kind, f"{self._endpoint.host}: {outcome.message}")
            failures += 1
            with self._lock:
                self.retries += 1
            if outcome.kind == "rate_limited":
                self._pace.hold(pause)
            else:
                self._pause(pause, over)

    def _sent(self, send: Callable[[], Reply]) -> Reply | Rejection:
        import openai

        with self._lock:
            self.spent += Spent(requests=1)
        key = self._endpoint.api_key
        try:
            reply = send()
        except openai.APITimeoutError:
            return Rejection(
                "timeout",
                f"no answer within {self._limits.timeout:g} s at {self._endpoint.address}; check "
                f"{_URL_SETTING}, or raise its limits.timeout",
            )
        except openai.APIStatusError as error:
            return Rejection.of_status(error, key)
        except _NotAnAnswer as error:
            return Rejection("endpoint_error", str(error), status=200)
        except (openai.APIError, ValueError) as error:
            return Rejection("endpoint_error", scrubbed(str(error.__cause__ or error), key))
        return reply

    def _adapts(self, options: dict[str, Any], rejection: Rejection) -> bool:
        """Whether the request can be put in words the server knows."""
        refuses_bytes = (
            rejection.status in (400, 422)
            and options["encoding_format"] == "base64"
            and ("encoding_format" in (rejection.param or rejection.message))
        )
        if refuses_bytes:
            self._options["encoding_format"] = "float"
        elif (
            rejection.status in (400, 422)
            and "dimensions" in options
            and "dimensions" in (rejection.param or rejection.message)
        ):
            self._stop(
                "endpoint_error",
                f"{self._endpoint.host} does not shorten the vectors of {self.identity.id} "
                f"({rejection.message}): give the model's own number of dimensions, and "
                "send_dimensions: false if you set it",
            )
        return refuses_bytes

    def _vectors(self, answer: "CreateEmbeddingResponse", count: int) -> np.ndarray:
        """float32 (count, dimensions), in the order of the inputs."""
        host, dimensions = self._endpoint.host, self.identity.dimensions
        by_index = {getattr(item, "index", None): item for item in answer.data}
        if len(answer.data) != count or by_index.keys() != set(range(count)):
            told = "" if len(answer.data) != count else ", and not one for each"
            raise CallFailed(
                "invalid_output", f"{host} sent {len(answer.data)} vectors for {count} texts{told}"
            )
        vectors = np.empty((count, dimensions), np.float32)
        for at, item in by_index.items():
            values = _values(getattr(item, "embedding", None))
            if values is None or values.shape != (dimensions,):
                found = "something else" if values is None else f"{values.size} dimensions"
                asked = "dimensions" in self._options
                self._stop(
                    "endpoint_error",
                    f"{self.identity.id} at {host} gives {found}, not {dimensions} dimensions: "
                    "correct dimensions of the embedding model"
                    + ("" if asked else ", or set send_dimensions: true to ask for so many"),
                )
            vectors[at] = values
        return vectors

    def _check_read(
        self, tokens: Sequence[int], answer: "CreateEmbeddingResponse", job: Path | None = None
    ) -> None:
        """Notice a server that cuts texts off without a word, by its own count of what it read.

        `tokens` are those of each text of a request, which is one of a `job` or of none. Where
        texts may be cut, what the server reads is kept; where they are counted in another model's
        tokens, a person is told.

        Raises:
            EndpointStopped: it cuts texts off. A job's answers are there for the next run, which
                so does not pay for the same again.
        """
        read, sent = _tokens_read(answer), sum(tokens)
        least = sent - self._special * len(tokens)
        share = UNREAD_SHARE if self._counts_exactly else UNREAD_SHARE_OF_ESTIMATE
        if read is None or not len(tokens) <= read < (1 - share) * least:
            return  # fewer tokens than texts are no count
        name, most = self.identity.id, self.identity.max_tokens
        # Who counts no special tokens reads them all the same.
        bare = [count - self._special for count in tokens]
        limit = max(_most_read(tokens, read), _most_read(bare, read) + self._special)
        found = (
            f"{name} at {self._endpoint.host} says that it read {read:,} of {sent:,} tokens of "
            f"{len(tokens)} texts, as if it cut each off after about {limit:,}"
        )
        cure = (
            "raise the context length of the server (num_ctx of Ollama, --max-model-len of vLLM) "
            f"to the {most:,} of max_tokens, or set max_tokens to what it reads"
        )
        if job is not None:
            cure += f"; {job} is the job, without which its texts are sent again"
        if not self._counts_exactly:
            if not self._warned:
                self._warned = True
                _log.warning(
                    "%s. The tokens were counted by another model's tokenizer, so this need not be "
                    "so: give the embedding model its own tokenizer.json, then it is known. If it "
                    "is so, %s",
                    *(found, cure),
                )
        elif self._truncate:
            self._keep_reads(limit, found)
        else:
            self._stop("endpoint_error", f"{found}: {cure}")

    def _keep_reads(self, limit: int, found: str) -> None:
        with self._lock:
            if limit >= self.reads_at_most:
                return
            self.reads_at_most = limit
        _log.warning("%s; chunks that are longer are marked in embedded_chunks", found)

    def _note(
        self, answer: "CreateEmbeddingResponse", also: Spent, *, by_jobs: bool = False
    ) -> None:
        spent = also + Spent(prompt_tokens=_tokens_read(answer))
        with self._lock:
            self._answered += 1
            if by_jobs:
                self.spent_by_jobs += spent
            else:
                self.spent += spent

    def _stop(self, kind: str, message: str) -> None:
        self._stopped_until = time.monotonic() + STOP_SECONDS
        self._stopped = EndpointStopped(kind, message)
        raise self._stopped.unpaid()


def _failure(batch: "RemoteBatch") -> CallFailed | None:
    if batch.status != "failed":
        return None
    errors = batch.errors.data if batch.errors and batch.errors.data else []
    why = "; ".join(str(error.message) for error in errors) or "no reason given"
    return CallFailed("endpoint_error", f"a job of the batch API failed: {why}")


class _Pace:
    """Spreads requests over time so that neither rate of a minute is exceeded."""

    def __init__(self, limits: Limits, pause: Pause) -> None:
        self._limits, self._pause = limits, pause
        self._lock = threading.Lock()
        self._free_at = 0.0

    def take_turn(self, tokens: int, over: threading.Event) -> None:
        """Wait until a request of so many tokens may be sent, or nobody wants it any more."""
        cost = max(
            60 / self._limits.requests_per_minute if self._limits.requests_per_minute else 0.0,
            60 * tokens / self._limits.tokens_per_minute if self._limits.tokens_per_minute else 0.0,
        )
        with self._lock:
            now = time.monotonic()
            at = max(now, self._free_at)
            self._free_at = at + cost
        if at > now:
            self._pause(at - now, over)

    def hold(self, seconds: float) -> None:
        """Nobody sends for so long: the server asked one of us to wait."""
        with self._lock:
            self._free_at = max(self._free_at, time.monotonic() + seconds)


def _tokens_read(answer: "CreateEmbeddingResponse") -> int | None:
    tokens: int | None = getattr(getattr(answer, "usage", None), "prompt_tokens", None)
    return tokens


def _most_read(tokens: Sequence[int], read: int) -> int:
    """The limit under which texts of so many tokens are read with `read` in all.

    >>> _most_read([10, 900, 700], 10 + 512 + 512), _most_read([2, 2, 17], 2 + 2 + 8)
    (512, 8)
    """
    left = read
    for done, count in enumerate(sorted(tokens)):
        others = len(tokens) - done
        if count * others > left:
            return left // others
        left -= count
    return max(tokens)


def _usable(vectors: np.ndarray) -> np.ndarray:
    return np.asarray(np.isfinite(vectors).all(axis=1) & vectors.any(axis=1))


def _units(vectors: np.ndarray) -> np.ndarray:
    norms = np.linalg.norm(vectors.astype(np.float64), axis=1, keepdims=True)
    return np.asarray(vectors / norms, np.float32)


def _values(embedding: object) -> np.ndarray | None:
    """float32, whatever shape a server sends: some ignore the format asked for."""
    try:
        if isinstance(embedding, str):
            return np.frombuffer(base64.b64decode(embedding, validate=True), "<f4")
        values = np.asarray(embedding, np.float32)
        return values if values.ndim == 1 else None
    except (binascii.Error, TypeError, ValueError):
        return None
