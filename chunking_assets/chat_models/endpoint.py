"""Where chat models are asked: an OpenAI-compatible server, named by the environment.

It can be missing on a machine that is otherwise fine, so its absence is a value here and not an
error. The key comes from the environment only: configuration is kept in version control.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

URL_VARIABLE = "OPENAI_BASE_URL"
KEY_VARIABLE = "OPENAI_API_KEY"
OPENAI_URL = "https://api.openai.com/v1"

NO_ENDPOINT = (
    f"no endpoint: set {KEY_VARIABLE} (and {URL_VARIABLE} for a server other than OpenAI's) "
    "and run again"
)


@dataclass(frozen=True)
class Endpoint:
    """An OpenAI-compatible server. The key shows in no representation of it."""

    base_url: str
    api_key: str = field(repr=False)

    @property
    def host(self) -> str:
        """Names the server in rows, without a password the URL may hold.

        >>> Endpoint("http://user:secret@localhost:8000/v1", "").host
        'localhost:8000'
        """
        return urlsplit(self.base_url).netloc.rpartition("@")[2]

    @property
    def address(self) -> str:
        """The URL as a person would type it, without a password.

        >>> Endpoint("http://user:secret@localhost:8000/v1", "").address
        'http://localhost:8000/v1'
        """
        return urlsplit(self.base_url)._replace(netloc=self.host).geturl()


def endpoint_from_environment(environment: Mapping[str, str] = os.environ) -> Endpoint | None:
    """The server named by the environment, or None if neither variable is set.

    A local server often wants no key: with a URL alone, a placeholder is sent.
    """
    base_url = environment.get(URL_VARIABLE, "").strip()
    api_key = environment.get(KEY_VARIABLE, "").strip()
    if not base_url and not api_key:
        return None
    return Endpoint(base_url.rstrip("/") or OPENAI_URL, api_key or "no-key")
