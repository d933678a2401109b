"""Why a request to an OpenAI-compatible server got no reply, and what to do about it.

The SDK's own errors hold the key and the server's words may echo it, so neither leaves the module
that sent the request: what leaves it is a Rejection, whose text went through `scrubbed`.
"""

import random
import re
import time
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any, NamedTuple

from chunking_assets.chat_models.endpoint import KEY_VARIABLE, URL_VARIABLE

RETRIES = 4
TIMEOUT_RETRIES = 1
FIRST_WAIT_SECONDS, LONGEST_WAIT_SECONDS = 0.5, 120.0

_SHOWN_CHARS = 300
_SHORTEST_KEY = 8


class Hopeless(NamedTuple):
    """Why no further request to a server can succeed; the message names the cure.

    `kind` is invalid_api_key, permission_denied, model_not_found or insufficient_quota.
    """

    kind: str
    message: str


@dataclass(frozen=True)
class Rejection:
    """A request that was not answered as hoped.

    `kind` is rate_limited, timeout, content_filter or endpoint_error; `status` is HTTP's, None if
    there was no response; `after` the seconds the server asks to wait.
    """

    kind: str
    message: str
    status: int | None = None
    code: str | None = None
    param: str | None = None
    after: float | None = None

    @classmethod
    def of_status(cls, error: Any, key: str) -> "Rejection":
        """What `openai.APIStatusError` says, without `key`."""
        kind = "rate_limited" if error.status_code == 429 else "endpoint_error"
        return cls(
            kind="content_filter" if error.code == "content_filter" else kind,
            message=f"HTTP {error.status_code}: {scrubbed(_server_message(error), key)}",
            status=error.status_code,
            code=error.code,
            param=error.param,
            after=_seconds_to_wait(error.response.headers),
        )

    @property
    def is_foreign(self) -> bool:
        """Whether what is at the URL may be no server of this kind at all."""
        return self.kind == "endpoint_error" and self.status in (None, 200)

    def hopeless(
        self,
        host: str,
        model: str,
        key_variable: str = KEY_VARIABLE,
        url_setting: str = URL_VARIABLE,
    ) -> Hopeless | None:
        """Whether every further request would share this fate; settings are named in the cure."""
        if self.status == 401:
            return Hopeless("invalid_api_key", f"{host} rejects the key: correct {key_variable}")
        if self.status == 403:
            return Hopeless("permission_denied", f"{host}: {self.message}")
        if self.status == 404:
            return Hopeless(
                "model_not_found",
                f"{host} has no model {model!r} ({self.message}): correct the model's "
                f"name in corpus.yaml, or {url_setting}",
            )
        if self.status == 402 or self.code == "insufficient_quota":
            return Hopeless("insufficient_quota", f"{host}: {self.message}")
        return None

    def wait(self, failures: int) -> float | None:
        """Seconds before the request is repeated, None if it is not.

        `failures` were seen before this one. Doubling waits are jittered, so that calls rejected
        together do not return together; a longer wait asked for than anyone wants is a failure.
        """
        if self.kind == "timeout":
            return 0.0 if failures < TIMEOUT_RETRIES else None
        status = self.status or 500
        passing = status in (408, 409, 429) or status >= 500
        if failures >= RETRIES or not passing:
            return None
        if self.after is not None:
            return self.after if self.after <= LONGEST_WAIT_SECONDS else None
        jitter = random.uniform(0.5, 1)  # noqa: S311
        return FIRST_WAIT_SECONDS * jitter * (1 << failures)


def scrubbed(text: str, key: str) -> str:
    """Servers echo what they were sent, the key too; OpenAI echoes its ends."""
    # A placeholder such as "x" is no secret inside a word.
    own = re.escape(key) if len(key) >= _SHORTEST_KEY else rf"\b{re.escape(key)}\b"
    return re.sub(rf"{own}|\bsk-[\w*.-]+", "[key]", text)[:_SHOWN_CHARS]


def _server_message(error: Any) -> str:
    body = error.body
    if isinstance(body, dict) and isinstance(message := body.get("message"), str):
        return message
    return str(body or error.message)


def _seconds_to_wait(headers: Any) -> float | None:
    """`retry-after-ms`, or `retry-after` in seconds or as a date."""
    try:
        if (milliseconds := headers.get("retry-after-ms")) is not None:
            return max(0.0, float(milliseconds) / 1000)
        return max(0.0, float(headers["retry-after"]))
    except KeyError:
        return None
    except ValueError:
        pass
    try:
        return max(0.0, parsedate_to_datetime(headers["retry-after"]).timestamp() - time.time())
    except (KeyError, ValueError):
        return None
