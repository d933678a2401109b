"""The one place that talks to the endpoint: how a typed reply is asked for, and how that fails.

Servers that call themselves OpenAI-compatible differ in what they accept and how they break. A
request is put in the words each model accepts, waited for, repaired once, and otherwise ends in a
failure with a kind; what no repetition can cure stops the stage. The key reaches the request and
nothing else: SDK errors, which hold it, never leave this module.
"""

import asyncio
import json
import re
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from pydantic import BaseModel, ValidationError

from chunking_assets.chat_models.endpoint import URL_VARIABLE, Endpoint
from chunking_assets.chat_models.rejection import Rejection, scrubbed
from chunking_assets.chat_models.response_cache import ResponseCache
from chunking_assets.errors import CorpusError
from chunking_assets.keys import digest

if TYPE_CHECKING:
    from openai.types.chat import ChatCompletion
    from openai.types.chat.chat_completion import Choice

PARAMETERS: dict[str, object] = {"temperature": 0, "seed": 7}
MAX_TOKENS = 4096
"""Output tokens asked for first; doubled once when a reply is cut."""

SUSPICIOUS_CHARS_PER_TOKEN = 8
"""No language tokenizes this thinly: the server read less than was sent."""

_FORMATS = ("json_schema", "json_object", "text")

Message = dict[str, str]
Output = TypeVar("Output", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class Spent:
    """What calls cost. Tokens are the endpoint's own count, None once it did not say.

    `requests` were sent, `cached` replies needed none; `seconds` are those from the first request
    of a call to its outcome, waiting for a free slot left out. `retries` are requests that repeat
    a failed one; `tokens_saved` are those of the cached replies.
    """

    requests: int = 0
    cached: int = 0
    prompt_tokens: int | None = 0
    completion_tokens: int | None = 0
    seconds: float = 0.0
    retries: int = 0
    tokens_saved: int | None = 0

    def __add__(self, other: "Spent") -> "Spent":
        return Spent(
            self.requests + other.requests,
            self.cached + other.cached,
            _sum(self.prompt_tokens, other.prompt_tokens),
            _sum(self.completion_tokens, other.completion_tokens),
            self.seconds + other.seconds,
            self.retries + other.retries,
            _sum(self.tokens_saved, other.tokens_saved),
        )

    @property
    def tokens(self) -> int | None:
        """Sent and received together."""
        return _sum(self.prompt_tokens, self.completion_tokens)


@dataclass(frozen=True, slots=True)
class Reply(Generic[Output]):
    """A reply that passed its checks."""

    output: Output
    spent: Spent


class CallFailed(CorpusError):
    """One call has no usable reply.

    `kind` is refused, content_filter, truncated, invalid_output, rate_limited, timeout or
    endpoint_error.
    """

    def __init__(self, kind: str, message: str, spent: Spent = Spent()) -> None:
        super().__init__(f"{kind}: {message}")
        self.kind, self.message, self.spent = kind, message, spent

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.kind, self.message, self.spent)

    def unpaid(self) -> "CallFailed":
        """The same failure for a caller that only shared the call."""
        return type(self)(self.kind, self.message)


class EndpointStopped(CallFailed):
    """A failure every further call would share; the message names the cure.

    `kind` is invalid_api_key, permission_denied, model_not_found, insufficient_quota or
    endpoint_unreachable.
    """


class ChatEndpoint:
    """Asks one server for replies of a given shape; used as an asynchronous context manager.

    At most `concurrency` requests are in flight, a call that waits to repeat its request counted;
    `timeout` bounds one request, in seconds. Equal calls share one conversation and, through
    `cache`, its reply for ever. `pause` is what waits.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        cache: ResponseCache,
        *,
        concurrency: int,
        timeout: float,
        pause: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        from openai import AsyncOpenAI

        self.host = endpoint.host
        self.stopped: EndpointStopped | None = None
        self.spent = Spent()
        self._endpoint, self._cache, self._timeout, self._pause = endpoint, cache, timeout, pause
        self._client = AsyncOpenAI(
            base_url=endpoint.base_url, api_key=endpoint.api_key, max_retries=0, timeout=timeout
        )
        self._slots = asyncio.Semaphore(concurrency)
        self._running: dict[str, asyncio.Task[Reply[Any]]] = {}
        self._dialects: dict[str, _Dialect] = {}
        self._ever_answered = False

    async def __aenter__(self) -> "ChatEndpoint":
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._client.close()

    @property
    def adaptations(self) -> dict[str, list[str]]:
        """Per model, what its server did not accept or seems to have got wrong."""
        return {model: d.notes for model, d in self._dialects.items() if d.notes}

    async def ask(
        self,
        model: str,
        messages: Sequence[Message],
        output: type[Output],
        check: Callable[[Output], None],
        seed: int | None = None,
    ) -> Reply[Output]:
        """The model's reply as an `output` that `check` (raises ValueError) finds right.

        A `seed` of its own makes it another call, answered anew: for the noise of a model.

        Raises:
            EndpointStopped: no call to this endpoint can succeed, this one or one before.
            CallFailed: this call has no usable reply.
        """
        call = _Call(model, list(messages), output, check, seed)
        key = digest("chat", self._endpoint.base_url, PARAMETERS, MAX_TOKENS, call.identity())
        if (output_before := self._stored(key, call)) is not None:
            saved = Spent(cached=1, tokens_saved=self._cache.tokens(key))
            self.spent += saved
            return Reply(output_before, saved)
        if (shared := self._running.get(key)) is not None:
            try:
                reply = await asyncio.shield(shared)
            except CallFailed as failure:
                raise failure.unpaid() from None
            saved = Spent(cached=1, tokens_saved=reply.spent.tokens)
            self.spent += saved
            return Reply(reply.output, saved)
        task = asyncio.create_task(self._converse(key, call))
        self._running[key] = task
        task.add_done_callback(lambda _: self._running.pop(key, None))
        return await task

    def _stored(self, key: str, call: "_Call[Output]") -> Output | None:
        stored = self._cache.get(key)
        if stored is None:
            return None
        try:
            return call.parsed(stored)
        except ValueError:
            return None  # it passed an older, laxer check: ask again

    async def _converse(self, key: str, call: "_Call[Output]") -> Reply[Output]:
        async with self._slots:
            conversation = _Conversation(call, time.monotonic())
            try:
                output = await self._outcome(conversation)
            except CallFailed as failure:
                failure.spent = conversation.spent()
                raise
            finally:
                self.spent += conversation.spent()
            spent = conversation.spent()
            self._cache.put(key, output.model_dump_json(), spent.tokens)
            return Reply(output, spent)

    async def _outcome(self, conversation: "_Conversation[Output]") -> Output:
        call, limit, repaired = conversation.call, MAX_TOKENS, False
        while True:
            choice = await self._send(conversation, limit)
            content = choice.message.content or ""
            if refusal := getattr(choice.message, "refusal", None):
                raise CallFailed("refused", self._scrubbed(refusal))
            if choice.finish_reason == "content_filter":
                raise CallFailed("content_filter", "the server's filter withheld the reply")
            if choice.finish_reason == "length":
                if limit > MAX_TOKENS:
                    raise CallFailed("truncated", f"the reply did not end within {limit} tokens")
                limit *= 2
                continue
            try:
                return call.parsed(content)
            except ValueError as error:
                problem = _described(error)
            if repaired:
                raise CallFailed("invalid_output", self._scrubbed(problem))
            repaired = True
            conversation.messages = [
                *call.messages,
                {"role": "assistant", "content": content},
                {
                    "role": "user",
                    "content": f"That was not right: {problem}\nReturn the corrected JSON only.",
                },
            ]

    async def _send(self, conversation: "_Conversation[Output]", limit: int) -> "Choice":
        """One answered request, after as many repetitions as its failures allow."""
        dialect = self._dialects.setdefault(conversation.call.model, _Dialect())
        failures = 0
        while True:
            if self.stopped is not None:
                raise self.stopped.unpaid()
            body = dialect.body(conversation.call, conversation.messages, limit)
            outcome = await self._post(body)
            conversation.requests += 1
            if not isinstance(outcome, Rejection):
                self._ever_answered = True
                self._note_usage(conversation, dialect, outcome)
                return outcome.choices[0]
            if dialect.adapt(body, outcome):
                continue
            self._stop_if_hopeless(outcome, conversation.call.model)
            wait = outcome.wait(failures)
            if wait is None:
                if outcome.is_foreign and not self._ever_answered:
                    self._stop("endpoint_unreachable", f"{outcome.message}; check {URL_VARIABLE}")
                raise CallFailed(outcome.kind, outcome.message)
            failures += 1
            conversation.retries += 1
            await self._pause(wait)

    async def _post(self, body: dict[str, Any]) -> "ChatCompletion | Rejection":
        import openai

        try:
            async with asyncio.timeout(self._timeout):
                completion: ChatCompletion = await self._client.chat.completions.create(**body)
        except (TimeoutError, openai.APITimeoutError):
            return Rejection("timeout", f"no reply within {self._timeout:g} s")
        except openai.APIStatusError as error:
            return Rejection.of_status(error, self._endpoint.api_key)
        except (openai.APIError, ValueError) as error:
            problem = str(error.__cause__ or error)
            return Rejection("endpoint_error", self._scrubbed(f"{self.host}: {problem}"))
        if not getattr(completion, "choices", None) or completion.choices[0].message is None:
            return Rejection("endpoint_error", f"{self.host} sent no chat completion", status=200)
        return completion

    def _note_usage(
        self, conversation: "_Conversation[Output]", dialect: "_Dialect", reply: "ChatCompletion"
    ) -> None:
        usage = reply.usage
        conversation.tokens += Spent(
            prompt_tokens=usage.prompt_tokens if usage else None,
            completion_tokens=usage.completion_tokens if usage else None,
        )
        sent = sum(len(message["content"]) for message in conversation.messages)
        if usage and sent > SUSPICIOUS_CHARS_PER_TOKEN * usage.prompt_tokens:
            dialect.note("prompts seem to be cut by the server: raise its context length")

    def _stop_if_hopeless(self, rejection: Rejection, model: str) -> None:
        if (hopeless := rejection.hopeless(self.host, model)) is not None:
            self._stop(*hopeless)

    def _stop(self, kind: str, message: str) -> None:
        self.stopped = EndpointStopped(kind, message)
        raise self.stopped.unpaid()

    def _scrubbed(self, text: str) -> str:
        return scrubbed(text, self._endpoint.api_key)


@dataclass(frozen=True)
class _Call(Generic[Output]):
    model: str
    messages: list[Message]
    output: type[Output]
    check: Callable[[Output], None]
    seed: int | None = None

    def schema(self) -> dict[str, Any]:
        schema: dict[str, Any] = _strict(self.output.model_json_schema())
        return schema

    def identity(self) -> list[object]:
        whole: list[object] = [self.model, self.messages, self.output.__name__, self.schema()]
        return whole if self.seed is None else [*whole, self.seed]

    def parsed(self, content: str) -> Output:
        output = self.output.model_validate(json_object(content))
        self.check(output)
        return output


@dataclass
class _Conversation(Generic[Output]):
    call: _Call[Output]
    started: float
    messages: list[Message] = field(init=False)
    requests: int = 0
    retries: int = 0
    tokens: Spent = Spent()

    def __post_init__(self) -> None:
        self.messages = self.call.messages

    def spent(self) -> Spent:
        return self.tokens + Spent(
            requests=self.requests,
            seconds=time.monotonic() - self.started,
            retries=self.retries,
        )


@dataclass
class _Dialect:
    """The words one model accepts, learned from what its server rejects."""

    parameters: dict[str, object] = field(default_factory=lambda: dict(PARAMETERS))
    limit_name: str = "max_completion_tokens"
    format: str = _FORMATS[0]
    notes: list[str] = field(default_factory=list)

    def body(self, call: _Call[Any], messages: list[Message], limit: int) -> dict[str, Any]:
        body: dict[str, Any] = {"model": call.model, "messages": messages, self.limit_name: limit}
        schema = {"name": call.output.__name__, "strict": True, "schema": call.schema()}
        if self.format != "text":
            body["response_format"] = {"type": self.format}
        if self.format == "json_schema":
            body["response_format"]["json_schema"] = schema
        body |= self.parameters
        if call.seed is not None and "seed" in body:
            body["seed"] = call.seed
        return body

    def adapt(self, body: dict[str, Any], rejection: Rejection) -> bool:
        """Whether the request can be put in other words, which later requests will use too."""
        if rejection.status not in (400, 422) or rejection.code == "context_length_exceeded":
            return False
        names = ["response_format", "json_schema", self.limit_name, *PARAMETERS]
        named = rejection.param or next(
            (n for n in names if re.search(rf"\b{n}\b", rejection.message)), ""
        )
        if named.startswith(("response_format", "json_schema")) and "response_format" in body:
            sent = _FORMATS.index(body["response_format"]["type"])
            # Requests in flight together are all rejected; only the first changes the dialect.
            if self.format == _FORMATS[sent]:
                self.format = _FORMATS[sent + 1]
                self.note(f"{_FORMATS[sent]} not supported, asked for {self.format}")
            return True
        if named == "max_completion_tokens" and named in body:
            self.limit_name = "max_tokens"
            self.note("max_completion_tokens not supported, sent as max_tokens")
            return True
        if named in PARAMETERS and named in body:
            self.parameters.pop(named, None)
            self.note(f"{named} not supported, left out")
            return True
        return False

    def note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)


def json_object(content: str) -> object:
    """The first JSON object of a reply; what models put around it is dropped.

    Raises:
        ValueError: there is none.

    >>> json_object('<think>{hm}</think>Here it is:\\n```json\\n{"found": false}\\n```')
    {'found': False}
    """
    if not content.lstrip().startswith("{"):
        content = content.rpartition("</think>")[2]
    start = content.find("{")
    if start < 0:
        raise ValueError("there is no JSON object in the reply")
    return json.JSONDecoder().raw_decode(content, start)[0]


def _strict(schema: Any) -> Any:
    """A JSON schema as strict mode wants it: every property required, no others, no defaults."""
    if isinstance(schema, list):
        return [_strict(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    strict = {key: _strict(value) for key, value in schema.items() if key != "default"}
    if strict.get("type") == "object":
        strict |= {
            "additionalProperties": False,
            "required": list(strict.get("properties", {})),
        }
    return strict


def _described(error: ValueError) -> str:
    if not isinstance(error, ValidationError):
        return str(error)
    return "; ".join(
        f"{'.'.join(map(str, part['loc'])) or 'reply'}: {part['msg']}"
        for part in error.errors(include_url=False, include_input=False)[:5]
    )


def _sum(left: int | None, right: int | None) -> int | None:
    return None if left is None or right is None else left + right
