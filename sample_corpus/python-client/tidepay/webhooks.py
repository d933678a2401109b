"""Verification and parsing of webhooks.

Tidepay signs each delivery with the secret of the endpoint. The header looks
like this, on one line::

    Tidepay-Signature: t=1767225600,v1=5f8c...e2,v1=09ab...77

``t`` is the time of sending, in seconds since 1970. There can be several
``v1`` values while a secret is being rotated: one for the old secret and one
for the new. A delivery is accepted if any of them matches any secret you
pass in. Values of other schemes, such as ``v0``, are ignored.
"""

from __future__ import annotations

import functools
import hashlib
import hmac
import json
import time
from dataclasses import dataclass
from typing import Any, Callable, Iterable

from .errors import SignatureError, StaleWebhook

SIGNATURE_HEADER = "Tidepay-Signature"

#: How old a delivery may be, in seconds. Retries are signed afresh, so this
#: need not cover the two days over which a delivery is retried.
DEFAULT_TOLERANCE = 300

#: A delivery from the future is accepted up to this many seconds, because
#: clocks differ.
MAX_CLOCK_SKEW = 45

#: Larger bodies are refused before the signature is computed.
MAX_BODY_BYTES = 262_144

Handler = Callable[["Event"], None]


@dataclass(frozen=True, slots=True)
class Event:
    """One event. ``id`` is the same for all deliveries of the event."""

    id: str
    type: str
    created: int
    data: dict[str, Any]
    livemode: bool = True

    @classmethod
    def from_json(cls, body: bytes) -> "Event":
        try:
            raw = json.loads(body)
            return cls(
                id=raw["id"],
                type=raw["type"],
                created=int(raw["created"]),
                data=raw["data"],
                livemode=bool(raw.get("livemode", True)),
            )
        except (ValueError, KeyError, TypeError) as error:
            raise SignatureError(f"body is not an event: {error}") from error


def compute_signature(secret: str, timestamp: int, body: bytes) -> str:
    """The hexadecimal HMAC with SHA-256 of ``timestamp.body``."""
    message = str(timestamp).encode("ascii") + b"." + body
    return hmac.new(secret.encode("utf-8"), message, hashlib.sha256).hexdigest()


def parse_header(header: str) -> tuple[int, list[str]]:
    """Split a signature header into its timestamp and its ``v1`` values."""
    timestamp: int | None = None
    signatures: list[str] = []
    for part in header.split(","):
        name, _, value = part.strip().partition("=")
        if name == "t":
            try:
                timestamp = int(value)
            except ValueError:
                raise SignatureError("timestamp is not a number") from None
        elif name == "v1" and value:
            signatures.append(value)
    if timestamp is None:
        raise SignatureError("header has no timestamp")
    if not signatures:
        raise SignatureError("header has no v1 signature")
    return timestamp, signatures


class WebhookVerifier:
    """Checks deliveries and hands events to your functions.

    Args:
        secrets: one secret, or several during a rotation.
        tolerance: how old a delivery may be, in seconds.
        clock: for tests.
    """

    def __init__(
        self,
        secrets: str | Iterable[str],
        *,
        tolerance: float = DEFAULT_TOLERANCE,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._secrets = [secrets] if isinstance(secrets, str) else list(secrets)
        if not self._secrets or not all(self._secrets):
            raise ValueError("at least one secret is needed, and none may be empty")
        self._tolerance = tolerance
        self._clock = clock
        self._handlers: dict[str, list[Handler]] = {}

    def verify(self, body: bytes, header: str | None) -> Event:
        """Return the event, or raise :class:`SignatureError`.

        ``body`` must be the bytes as received. Parsing the JSON and writing
        it out again changes spaces, and the signature no longer matches.
        """
        if not header:
            raise SignatureError(f"no {SIGNATURE_HEADER} header")
        if len(body) > MAX_BODY_BYTES:
            raise SignatureError("body is too large")
        timestamp, signatures = parse_header(header)
        if not self._matches(timestamp, body, signatures):
            raise SignatureError("no signature matches")
        # The age is looked at last, so that a forger learns nothing from it.
        age = self._clock() - timestamp
        if age > self._tolerance or age < -MAX_CLOCK_SKEW:
            raise StaleWebhook(age, self._tolerance)
        return Event.from_json(body)

    def _matches(self, timestamp: int, body: bytes, signatures: list[str]) -> bool:
        found = False
        for secret in self._secrets:
            expected = compute_signature(secret, timestamp, body)
            for signature in signatures:
                # No early exit: the time must not tell which one was right.
                found |= hmac.compare_digest(expected.encode(), signature.encode())
        return found

    def on(self, *types: str) -> Callable[[Handler], Handler]:
        """Decorator that registers a handler for event types.

        A type that ends in ``.*`` takes all events of a family, and ``*``
        takes everything::

            @verifier.on("payment.captured", "refund.*")
            def book(event: Event) -> None:
                ...
        """

        def register(handler: Handler) -> Handler:
            for name in types:
                self._handlers.setdefault(name, []).append(handler)
            return handler

        return register

    def dispatch(self, body: bytes, header: str | None) -> int:
        """Verify, call the handlers, and return how many were called."""
        event = self.verify(body, header)
        family = event.type.partition(".")[0] + ".*"
        called = 0
        for name in (event.type, family, "*"):
            for handler in self._handlers.get(name, ()):
                handler(event)
                called += 1
        return called


def once(seen: set[str]) -> Callable[[Handler], Handler]:
    """Decorator that drops events whose id was seen before.

    An id is added only after the handler has returned, so an event whose
    handler failed is handled again at the next delivery. Use a persistent
    set in production.
    """

    def decorate(handler: Handler) -> Handler:
        @functools.wraps(handler)
        def wrapper(event: Event) -> None:
            if event.id in seen:
                return
            handler(event)
            seen.add(event.id)

        return wrapper

    return decorate
