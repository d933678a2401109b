"""Whether this stage can run here: an endpoint in the environment, and a ragas that works.

Both can be missing on a machine that is otherwise fine. The stage then writes its rows as skipped,
with the reason and the cure; nothing else depends on either.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from urllib.parse import urlsplit

URL_VARIABLE = "OPENAI_BASE_URL"
KEY_VARIABLE = "OPENAI_API_KEY"
OPENAI_URL = "https://api.openai.com/v1"

RAGAS_VERSION = "0.4.3"
INSTALL = f"pip install 'ragas=={RAGAS_VERSION}' 'langchain-community>=0.3.27,<0.4'"

NO_JUDGE = (
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


def endpoint_from_environment(environment: Mapping[str, str] = os.environ) -> Endpoint | None:
    """The server named by the environment, or None if neither variable is set.

    A local server often wants no key: with a URL alone, a placeholder is sent.
    """
    base_url = environment.get(URL_VARIABLE, "").strip()
    api_key = environment.get(KEY_VARIABLE, "").strip()
    if not base_url and not api_key:
        return None
    return Endpoint(base_url.rstrip("/") or OPENAI_URL, api_key or "no-key")


def ragas_problem() -> str | None:
    """What keeps ragas from working here, with the cure; None if it imports.

    The version is compared before the import, which takes seconds: prompts of another release
    would be another measurement.
    """
    try:
        installed = version("ragas")
    except PackageNotFoundError:
        return f"ragas is not installed: {INSTALL}"
    if installed != RAGAS_VERSION:
        return f"ragas {installed} is installed, its prompts were not checked: {INSTALL}"
    return _import_problem()


@cache
def _import_problem() -> str | None:
    # Read once by ragas at its first use, and only this literal value turns its telemetry off.
    os.environ["RAGAS_DO_NOT_TRACK"] = "true"
    try:
        import ragas.metrics.collections  # noqa: F401
    except Exception as error:  # whatever a broken dependency raises disables this stage only
        return f"ragas does not import ({type(error).__name__}: {error}): {INSTALL}"
    return None
