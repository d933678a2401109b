"""Python client for version 3 of the Tidepay API.

A payment in four lines::

    from tidepay import Client

    client = Client.from_env()
    payment = client.create_payment(2500, "EUR", reference="order-1041")
    print(payment.checkout_url)

Amounts are integers in the minor unit of the currency, so ``2500`` is
twenty-five euros. The client has no dependencies outside the standard
library and can be shared between threads.
"""

from __future__ import annotations

from .client import Client
from .errors import (
    ApiError,
    AuthenticationError,
    ConflictError,
    ConnectionFailed,
    InvalidRequest,
    NotFound,
    RateLimited,
    ServerError,
    SignatureError,
    StaleWebhook,
    TidepayError,
)
from .models import Entry, Money, Payment, PaymentStatus, Payout, Refund
from .pagination import Page, iterate
from .retries import RetryPolicy, retrying
from .webhooks import Event, WebhookVerifier

__version__ = "3.4.1"

__all__ = [
    "ApiError",
    "AuthenticationError",
    "Client",
    "ConflictError",
    "ConnectionFailed",
    "Entry",
    "Event",
    "InvalidRequest",
    "Money",
    "NotFound",
    "Page",
    "Payment",
    "PaymentStatus",
    "Payout",
    "RateLimited",
    "Refund",
    "RetryPolicy",
    "ServerError",
    "SignatureError",
    "StaleWebhook",
    "TidepayError",
    "WebhookVerifier",
    "__version__",
    "iterate",
    "retrying",
]
