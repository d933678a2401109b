"""Retrying of calls that failed for a passing reason.

The rules in short: a call is repeated if the connection failed, or if the
server answered 429 or 503. It is repeated with the same idempotency key, so
a payment is never made twice. Other errors are final.
"""

from __future__ import annotations

import functools
import logging
import random
import time
from dataclasses import dataclass
from typing import Callable, ParamSpec, TypeVar

from .errors import ConnectionFailed, RateLimited, ServerError, TidepayError

logger = logging.getLogger("tidepay.retries")

P = ParamSpec("P")
T = TypeVar("T")

#: Statuses of :class:`ServerError` that are worth another try. A 500 is not:
#: the server may have done half of the work.
RETRYABLE_STATUSES = frozenset({503})

#: A server that asks for a longer pause than this is taken at its word, and
#: the error is raised so that the caller can decide.
MAX_RETRY_AFTER = 30.0


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often and how patiently to try.

    Args:
        attempts: number of calls in all, the first one included.
        base_delay: upper bound of the pause after the first failure, in seconds.
        max_delay: upper bound of any pause that the server did not ask for.
        jitter: if true, the pause is drawn at random between zero and the bound.
    """

    attempts: int = 4
    base_delay: float = 0.4
    max_delay: float = 6.0
    jitter: bool = True

    def __post_init__(self) -> None:
        if self.attempts < 1:
            raise ValueError("attempts must be at least 1")
        if self.base_delay < 0 or self.max_delay < self.base_delay:
            raise ValueError("need 0 <= base_delay <= max_delay")

    @classmethod
    def none(cls) -> "RetryPolicy":
        """A policy that never tries again."""
        return cls(attempts=1)

    def delay(self, failures: int, error: TidepayError) -> float:
        """Seconds to wait after ``failures`` failed calls."""
        asked = getattr(error, "retry_after", None)
        if asked is not None:
            return float(asked)
        bound = min(self.max_delay, self.base_delay * 2 ** (failures - 1))
        return random.uniform(0, bound) if self.jitter else bound


def is_retryable(error: TidepayError) -> bool:
    """Whether another try has a chance."""
    if isinstance(error, ConnectionFailed):
        return True
    if isinstance(error, RateLimited):
        return error.retry_after <= MAX_RETRY_AFTER
    if isinstance(error, ServerError):
        if error.status not in RETRYABLE_STATUSES:
            return False
        return error.retry_after is None or error.retry_after <= MAX_RETRY_AFTER
    return False


def retrying(
    policy: RetryPolicy | None = None,
    *,
    sleep: Callable[[float], None] = time.sleep,
) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Decorator that repeats a function according to a policy.

    The function must be safe to repeat::

        @retrying(RetryPolicy(attempts=6))
        def poll() -> Payment:
            return client.get_payment("pay_01HX")

    The last error is raised unchanged when all attempts are used up.
    """
    chosen = policy or RetryPolicy()

    def decorate(function: Callable[P, T]) -> Callable[P, T]:
        @functools.wraps(function)
        def wrapper(*args: P.args, **kwargs: P.kwargs) -> T:
            failures = 0
            while True:
                try:
                    return function(*args, **kwargs)
                except TidepayError as error:
                    failures += 1
                    if failures >= chosen.attempts or not is_retryable(error):
                        raise
                    pause = chosen.delay(failures, error)
                    logger.info(
                        "attempt %d of %d failed (%s), next in %.2f s",
                        failures,
                        chosen.attempts,
                        error,
                        pause,
                    )
                    sleep(pause)

        return wrapper

    return decorate
