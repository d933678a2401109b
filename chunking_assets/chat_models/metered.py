"""A chat that keeps count of what was sent, by what it was sent for.

One chat serves all that ask at the same time; who asks is known by the context the call is made
in, so that those who ask need not know that somebody counts.
"""

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

from chunking_assets.chat_models.chat import Chat
from chunking_assets.chat_models.chat_endpoint import CallFailed, Message, Output, Reply, Spent

_ASKED_FOR: ContextVar[str] = ContextVar("asked_for", default="")


@contextmanager
def asked_for(what: str) -> Iterator[None]:
    """What is asked inside, in this thread, is counted as sent for `what`."""
    token = _ASKED_FOR.set(what)
    try:
        yield
    finally:
        _ASKED_FOR.reset(token)


def asked_for_now() -> str:
    """What is asked in this thread is sent for; empty where nobody said."""
    return _ASKED_FOR.get()


class MeteredChat(Chat):
    """Asks another chat, and counts what its calls spent; safe for threads."""

    def __init__(self, chat: Chat) -> None:
        self._chat, self._counting = chat, threading.Lock()
        self._spent: dict[tuple[str, str], Spent] = {}

    def __reduce__(self) -> tuple[object, ...]:
        return MeteredChat, (self._chat,)

    @property
    def spent(self) -> Mapping[tuple[str, str], Spent]:
        """What was spent so far, by what it was for and the model."""
        with self._counting:
            return dict(self._spent)

    def ask(
        self,
        model: str,
        messages: Sequence[Message],
        output: type[Output],
        check: Callable[[Output], None],
    ) -> Reply[Output]:
        """As `Chat.ask`."""
        try:
            reply = self._chat.ask(model, messages, output, check)
        except CallFailed as failure:
            self._count(model, failure.spent)
            raise
        self._count(model, reply.spent)
        return reply

    def close(self) -> None:
        self._chat.close()

    def _count(self, model: str, spent: Spent) -> None:
        key = (asked_for_now(), model)
        with self._counting:
            self._spent[key] = self._spent.get(key, Spent()) + spent
