"""A chat model for plain code: ask from any thread, get the reply or an error.

Strategies are synchronous and run in several threads; the endpoint is asynchronous and its cache
belongs to one thread. So one background thread runs one event loop, in which one ChatEndpoint
lives, and every thread's calls meet there: one bound on requests in flight, equal calls sent once.
"""

import asyncio
import os
import threading
import weakref
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import AsyncExitStack, closing
from pathlib import Path
from types import TracebackType

from chunking_assets.chat_models.chat_endpoint import (
    CallFailed,
    ChatEndpoint,
    Message,
    Output,
    Reply,
)
from chunking_assets.chat_models.endpoint import NO_ENDPOINT, Endpoint
from chunking_assets.chat_models.response_cache import ResponseCache

_CLOSING_SECONDS = 10.0


class NoEndpoint(CallFailed):
    """There is no endpoint to ask; `kind` is no_endpoint, the message names the cure."""


class Chat:
    """Asks chat models from plain code; safe for threads.

    Args:
        endpoint: The server; None where the environment names none.
        cache: The SQLite file of replies, which any number of processes share. What it holds is
            not asked again: not by other threads, later runs, or the run after a killed one.
        concurrency: Requests in flight at most, over all threads.
        timeout: Seconds one request may take.

    Nothing is opened before the first `ask`. `close`, the end of a `with` block or of the process
    ends what it opened; asking again opens it anew. A pickled Chat is its settings, the key among
    them: another process opens its own.
    """

    def __init__(
        self, endpoint: Endpoint | None, cache: Path, concurrency: int = 8, timeout: float = 60
    ) -> None:
        self._endpoint, self._cache = endpoint, cache
        self._concurrency, self._timeout = concurrency, timeout
        self._line: _Line | None = None
        self._end: Callable[[], object] = lambda: None
        self._opening = threading.Lock()

    def __reduce__(self) -> tuple[object, ...]:
        return Chat, (self._endpoint, self._cache, self._concurrency, self._timeout)

    def ask(
        self,
        model: str,
        messages: Sequence[Message],
        output: type[Output],
        check: Callable[[Output], None],
    ) -> Reply[Output]:
        """The model's reply as an `output` that `check` (raises ValueError) finds right.

        It returns when the reply is there. `check` runs in the background thread: it must be
        quick, and must not ask. A reply belongs to the server that gave it, since servers differ
        in what they call by one name: without an endpoint, cached replies are not found either.

        Raises:
            NoEndpoint: no endpoint is configured.
            EndpointStopped: no call to this endpoint can succeed, until `close`.
            CallFailed: this call has no usable reply.
            CorpusError: the cache cannot be used.
            concurrent.futures.CancelledError: `close` was called meanwhile.
        """
        if self._endpoint is None:
            raise NoEndpoint("no_endpoint", NO_ENDPOINT)
        with self._opening:
            # A forked process has the object and not its thread.
            if self._line is None or self._line.process != os.getpid():
                self._line = _Line(self._endpoint, self._cache, self._concurrency, self._timeout)
                self._end = weakref.finalize(self, self._line.close)
            asked = self._line.ask(model, messages, output, check)
        return asked.result()

    def close(self) -> None:
        """End the calls in progress and the background thread."""
        with self._opening:
            self._end()
            self._line = None

    def __enter__(self) -> "Chat":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


class _Line:
    """The background thread and what lives in it.

    It knows nothing of its Chat, which would live as long as the thread if it did.
    """

    def __init__(self, endpoint: Endpoint, cache: Path, concurrency: int, timeout: float) -> None:
        self.process = os.getpid()
        self._endpoint, self._cache = endpoint, cache
        self._concurrency, self._timeout = concurrency, timeout
        self._loop, self._closing = asyncio.new_event_loop(), asyncio.Event()
        opened: Future[ChatEndpoint] = Future()
        self._thread = threading.Thread(target=self._run, args=(opened,), name="chat", daemon=True)
        self._thread.start()
        self._chat = opened.result()

    def ask(
        self,
        model: str,
        messages: Sequence[Message],
        output: type[Output],
        check: Callable[[Output], None],
    ) -> "Future[Reply[Output]]":
        call = self._chat.ask(model, messages, output, check)
        return asyncio.run_coroutine_threadsafe(call, self._loop)

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._closing.set)
        if threading.current_thread() is not self._thread:  # where garbage is collected
            self._thread.join(_CLOSING_SECONDS)

    def _run(self, opened: "Future[ChatEndpoint]") -> None:
        # asyncio.run would start a thread to end the loop, which a process that ends may refuse.
        with closing(self._loop):
            self._loop.run_until_complete(self._serve(opened))

    async def _serve(self, opened: "Future[ChatEndpoint]") -> None:
        async with AsyncExitStack() as stack:
            try:
                chat = await stack.enter_async_context(
                    ChatEndpoint(
                        self._endpoint,
                        stack.enter_context(ResponseCache(self._cache)),
                        concurrency=self._concurrency,
                        timeout=self._timeout,
                    )
                )
            except Exception as error:  # whatever it is, the thread that asks gets it
                opened.set_exception(error)
                return
            opened.set_result(chat)
            await self._closing.wait()
            calls = asyncio.all_tasks() - {asyncio.current_task()}
            for call in calls:
                call.cancel()
            await asyncio.gather(*calls, return_exceptions=True)
