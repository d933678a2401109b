"""Exceptions raised by the client.

Everything derives from :class:`TidepayError`, so one ``except`` clause is
enough for code that only wants to know that a call did not work::

    TidepayError
    |-- ConnectionFailed         nothing came back from the server
    |-- SignatureError           a webhook is not from Tidepay
    |   `-- StaleWebhook         ... or it is, but too old
    `-- ApiError                 the server answered with an error
        |-- InvalidRequest       400, 422
        |-- AuthenticationError  401, 403
        |-- NotFound             404
        |-- ConflictError        409
        |-- RateLimited          429
        `-- ServerError          500 and above
"""

from __future__ import annotations

from typing import Any, Mapping


class TidepayError(Exception):
    """Base class of all errors of this package."""


class ConnectionFailed(TidepayError):
    """The request may or may not have reached the server.

    Repeat a write only with the same idempotency key. The client does this
    by itself as long as the retry policy allows.
    """


class SignatureError(TidepayError):
    """The signature of a webhook is missing, malformed or wrong."""


class StaleWebhook(SignatureError):
    """The signature is right, but the timestamp is outside the tolerance."""

    def __init__(self, age_seconds: float, tolerance: float) -> None:
        super().__init__(
            f"webhook is {age_seconds:.0f} s old, the tolerance is {tolerance:.0f} s"
        )
        self.age_seconds = age_seconds
        self.tolerance = tolerance


class ApiError(TidepayError):
    """The server answered with a status of 400 or above.

    Attributes:
        status: the HTTP status.
        code: the machine-readable code, such as ``too_many_captures``.
        request_id: quote this when you write to support.
        field: the name of the offending field, if there is one.
    """

    def __init__(
        self,
        message: str,
        *,
        status: int,
        code: str = "unknown",
        request_id: str | None = None,
        field: str | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.request_id = request_id
        self.field = field

    def __str__(self) -> str:
        text = f"{self.args[0]} ({self.status}, {self.code})"
        if self.request_id:
            text += f" [request {self.request_id}]"
        return text


class InvalidRequest(ApiError):
    """A field is missing or has a value that is not allowed."""


class AuthenticationError(ApiError):
    """The key is wrong, was revoked, or may not do this."""


class NotFound(ApiError):
    """There is no such object, or it belongs to another seller."""


class ConflictError(ApiError):
    """The object is in a state that does not allow the call.

    Also raised when an idempotency key was used before with another body;
    the code is then ``idempotency_mismatch``.
    """

    @property
    def is_key_reuse(self) -> bool:
        return self.code == "idempotency_mismatch"


class RateLimited(ApiError):
    """Too many requests. ``retry_after`` is in seconds."""

    def __init__(self, message: str, *, retry_after: float = 1.0, **kwargs: Any) -> None:
        super().__init__(message, **kwargs)
        self.retry_after = retry_after


class ServerError(ApiError):
    """Something broke on the side of Tidepay."""

    def __init__(
        self, message: str, *, retry_after: float | None = None, **kwargs: Any
    ) -> None:
        super().__init__(message, **kwargs)
        self.retry_after = retry_after


_BY_STATUS: dict[int, type[ApiError]] = {
    400: InvalidRequest,
    401: AuthenticationError,
    403: AuthenticationError,
    404: NotFound,
    409: ConflictError,
    422: InvalidRequest,
}


def _retry_after(headers: Mapping[str, str], default: float | None) -> float | None:
    try:
        return max(1.0, float(headers["retry-after"]))
    except (KeyError, ValueError):
        return default


def from_response(
    status: int, body: Mapping[str, Any], headers: Mapping[str, str]
) -> ApiError:
    """Make the right exception for an error response.

    ``headers`` must have lower-case names. A body that is not in the usual
    shape still gives an exception, with the code ``unknown``.
    """
    detail = body.get("error") or {}
    message = detail.get("message") or f"request failed with status {status}"
    common: dict[str, Any] = {
        "status": status,
        "code": detail.get("code", "unknown"),
        "request_id": headers.get("tidepay-request-id"),
        "field": detail.get("field"),
    }
    if status == 429:
        wait = _retry_after(headers, 1.0)
        return RateLimited(message, retry_after=wait or 1.0, **common)
    if status >= 500:
        return ServerError(message, retry_after=_retry_after(headers, None), **common)
    return _BY_STATUS.get(status, ApiError)(message, **common)
