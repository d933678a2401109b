"""The client itself: one method for each call of the API."""

from __future__ import annotations

import functools
import json
import os
import urllib.error
import urllib.parse
import urllib.request
import uuid
from datetime import datetime, timedelta, timezone
from typing import Any, Callable, Iterable, Iterator, Mapping, TypeVar

from . import errors
from .models import (
    MAX_METADATA_KEYS,
    MAX_REFERENCE_LENGTH,
    Entry,
    Money,
    Payment,
    Payout,
    Refund,
)
from .pagination import DEFAULT_PAGE_SIZE, Page, check_page_size, iterate
from .retries import RetryPolicy, retrying

LIVE_URL = "https://api.tidepay.example/v3"
TEST_URL = "https://api.test.tidepay.example/v3"

#: Seconds to wait for an answer. Creating a payment can take long, since the
#: bank of the buyer is asked.
DEFAULT_TIMEOUT = 25.0

#: The largest payout batch that the API accepts.
MAX_BATCH_ITEMS = 800

MIN_EXPIRY = timedelta(minutes=10)
MAX_EXPIRY = timedelta(hours=72)

F = TypeVar("F", bound=Callable[..., Any])


def live_only(method: F) -> F:
    """Decorator for calls that do not exist in test mode."""

    @functools.wraps(method)
    def wrapper(self: "Client", *args: Any, **kwargs: Any) -> Any:
        if self.is_test:
            raise RuntimeError(f"{method.__name__} is not available with a test key")
        return method(self, *args, **kwargs)

    return wrapper  # type: ignore[return-value]


class Client:
    """Talks to the API on behalf of one seller.

    Args:
        api_key: begins with ``tp_live_`` or ``tp_test_``, which also decides
            the address.
        timeout: seconds to wait for each attempt.
        retry: see :class:`~tidepay.retries.RetryPolicy`.
    """

    def __init__(
        self,
        api_key: str,
        *,
        timeout: float = DEFAULT_TIMEOUT,
        retry: RetryPolicy | None = None,
        base_url: str | None = None,
    ) -> None:
        if not api_key.startswith(("tp_live_", "tp_test_")):
            raise ValueError("not a Tidepay key; keys of API v2 no longer work")
        self._key = api_key
        self._timeout = timeout
        self._base_url = base_url or (TEST_URL if self.is_test else LIVE_URL)
        self._send = retrying(retry or RetryPolicy())(self._send_once)

    @classmethod
    def from_env(cls, **kwargs: Any) -> "Client":
        """Make a client from the variable ``TIDEPAY_API_KEY``."""
        try:
            return cls(os.environ["TIDEPAY_API_KEY"], **kwargs)
        except KeyError:
            raise errors.TidepayError("TIDEPAY_API_KEY is not set") from None

    @property
    def is_test(self) -> bool:
        return self._key.startswith("tp_test_")

    # Payments

    def create_payment(
        self,
        amount: int,
        currency: str,
        *,
        reference: str,
        capture: str = "automatic",
        expires_in: timedelta | None = None,
        metadata: Mapping[str, str] | None = None,
        idempotency_key: str | None = None,
    ) -> Payment:
        """Create a payment and get the address to send the buyer to.

        Raises:
            ValueError: if a value cannot be right; nothing is sent then.
            InvalidRequest: if the server disagrees.
        """
        money = Money(amount, currency)
        if len(reference) > MAX_REFERENCE_LENGTH:
            raise ValueError(f"reference is longer than {MAX_REFERENCE_LENGTH}")
        if metadata and len(metadata) > MAX_METADATA_KEYS:
            raise ValueError(f"metadata has more than {MAX_METADATA_KEYS} keys")
        if capture not in ("automatic", "manual"):
            raise ValueError("capture is 'automatic' or 'manual'")
        body: dict[str, Any] = {
            "amount": money.minor,
            "currency": money.currency,
            "reference": reference,
            "capture": capture,
            "metadata": dict(metadata or {}),
        }
        if expires_in is not None:
            if not MIN_EXPIRY <= expires_in <= MAX_EXPIRY:
                raise ValueError("expires_in is between 10 minutes and 72 hours")
            body["expires_at"] = (datetime.now(timezone.utc) + expires_in).isoformat()
        return Payment.from_api(self._post("/payments", body, idempotency_key))

    def get_payment(self, payment_id: str) -> Payment:
        return Payment.from_api(self._get(f"/payments/{_quote(payment_id)}"))

    def capture_payment(
        self,
        payment_id: str,
        amount: int | None = None,
        *,
        idempotency_key: str | None = None,
    ) -> Payment:
        """Capture all of an authorised payment, or a part of it."""
        body = {} if amount is None else {"amount": amount}
        path = f"/payments/{_quote(payment_id)}/capture"
        return Payment.from_api(self._post(path, body, idempotency_key))

    def refund(
        self,
        payment: Payment,
        amount: int | None = None,
        *,
        reason: str | None = None,
        idempotency_key: str | None = None,
    ) -> Refund:
        """Give money back. Without an amount, everything that is left.

        Raises:
            ValueError: if the amount is more than what is left.
            ConflictError: if the balance of the seller does not cover it.
        """
        left = payment.refundable.minor
        wanted = left if amount is None else amount
        if not 0 < wanted <= left:
            raise ValueError(f"cannot refund {wanted}, {left} is left")
        body = {"payment": payment.id, "amount": wanted, "reason": reason}
        return Refund.from_api(self._post("/refunds", body, idempotency_key))

    def list_payments(
        self,
        *,
        since: datetime | None = None,
        page_size: int = DEFAULT_PAGE_SIZE,
        limit: int | None = None,
    ) -> Iterator[Payment]:
        """Payments from the newest to the oldest, fetched as you go."""
        query: dict[str, Any] = {"page_size": check_page_size(page_size)}
        if since is not None:
            query["since"] = since.isoformat()
        return self._list("/payments", query, Payment.from_api, limit)

    # Money of the seller

    def list_entries(
        self, *, page_size: int = DEFAULT_PAGE_SIZE, limit: int | None = None
    ) -> Iterator[Entry]:
        query = {"page_size": check_page_size(page_size)}
        return self._list("/entries", query, Entry.from_api, limit)

    @live_only
    def create_payout_batch(
        self, items: Iterable[Mapping[str, Any]], *, idempotency_key: str
    ) -> list[Payout]:
        """Pay several people at once. The key is not optional here.

        Raises:
            ValueError: if the batch is empty, too large, or has the same
                ``external_id`` twice.
        """
        batch = [dict(item) for item in items]
        if not batch:
            raise ValueError("the batch is empty")
        if len(batch) > MAX_BATCH_ITEMS:
            raise ValueError(f"a batch has at most {MAX_BATCH_ITEMS} items")
        if len({item["external_id"] for item in batch}) != len(batch):
            raise ValueError("external_id must be unique within a batch")
        raw = self._post("/payout-batches", {"items": batch}, idempotency_key)
        return [Payout.from_api(item) for item in raw["payouts"]]

    # Plumbing

    def _get(self, path: str, query: Mapping[str, Any] | None = None) -> dict[str, Any]:
        if query:
            path += "?" + urllib.parse.urlencode(query)
        return self._send("GET", path, None, None)

    def _post(self, path: str, body: Mapping[str, Any], key: str | None) -> dict[str, Any]:
        # The key is made outside the retried call, so all attempts share it.
        return self._send("POST", path, body, key or str(uuid.uuid4()))

    def _list(
        self,
        path: str,
        query: dict[str, Any],
        build: Callable[[Mapping[str, Any]], Any],
        limit: int | None,
    ) -> Iterator[Any]:
        def fetch(cursor: str | None) -> Page[Any]:
            asked = query if cursor is None else {**query, "cursor": cursor}
            return Page.from_api(self._get(path, asked), build)

        return iterate(fetch, limit=limit)

    def _send_once(
        self, method: str, path: str, body: Mapping[str, Any] | None, key: str | None
    ) -> dict[str, Any]:
        headers = {
            "Authorization": f"Bearer {self._key}",
            "Accept": "application/json",
            "User-Agent": "tidepay-python/3.4.1",
        }
        data = None
        if body is not None:
            data = json.dumps(body).encode("utf-8")
            headers["Content-Type"] = "application/json"
        if key is not None:
            headers["Idempotency-Key"] = key
        request = urllib.request.Request(
            self._base_url + path, data=data, headers=headers, method=method
        )
        try:
            with urllib.request.urlopen(request, timeout=self._timeout) as response:
                return _decode(response.read())
        except urllib.error.HTTPError as error:
            lower = {name.lower(): value for name, value in error.headers.items()}
            raise errors.from_response(error.code, _decode(error.read()), lower) from None
        except (urllib.error.URLError, TimeoutError, ConnectionError) as error:
            raise errors.ConnectionFailed(str(error)) from error


def _quote(part: str) -> str:
    return urllib.parse.quote(part, safe="")


def _decode(raw: bytes) -> dict[str, Any]:
    try:
        value = json.loads(raw or b"{}")
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}
