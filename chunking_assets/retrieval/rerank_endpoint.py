"""A reranker behind HTTP: `/rerank` as Cohere began it and vLLM, Infinity, Jina and TEI took it up.

Both request shapes differ in two names only; the body carries the ones that all but TEI read, and
TEI's where it says that it wants them. A busy server is asked again, a wrong key is not.
"""

import os
import time
from collections.abc import Sequence
from typing import Any

from chunking_assets.errors import CorpusError

KEY_VARIABLE = "CORPUS_RERANK_API_KEY"
ATTEMPTS = 4
LONGEST_WAIT = 20.0
"""Seconds. A server that wants more is told to the person who waits for the answer."""
_PASSING = frozenset((408, 409, 425, 429, 500, 502, 503, 504, 529))


class RerankEndpoint:
    """Scores of a server at `url`; the route `/rerank` is added where it is not there."""

    def __init__(self, url: str, model: str, timeout: float) -> None:
        self._url = url.rstrip("/")
        if not self._url.endswith("/rerank"):
            self._url += "/rerank"
        self._model, self._timeout = model, timeout
        self._texts_key = "documents"

    def __call__(self, question: str, texts: Sequence[str]) -> list[float]:
        """
        Raises:
            CorpusError: the server cannot be reached, refuses, or does not score every text once.
        """
        reply = self._ask(question, texts)
        rows = reply.get("results", reply.get("data")) if isinstance(reply, dict) else reply
        scores: dict[int, float] = {}
        try:
            for row in rows or ():
                value = row.get("relevance_score", row.get("score"))
                scores[int(row["index"])] = float(value)
        except (TypeError, ValueError, KeyError, AttributeError) as error:
            raise self._failed(f"replied {str(reply)[:200]!r}, which has no scores") from error
        if scores.keys() != {*range(len(texts))}:
            raise self._failed(f"scored {len(scores)} of {len(texts)} texts")
        return [scores[number] for number in range(len(texts))]

    def _ask(self, question: str, texts: Sequence[str]) -> Any:
        import httpx

        key = os.environ.get(KEY_VARIABLE, "").strip()
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        for attempt in range(1, ATTEMPTS + 1):
            body: dict[str, object] = {"query": question, self._texts_key: list(texts)}
            if self._texts_key == "documents":
                body |= {"model": self._model, "top_n": len(texts)}
            wait = min(LONGEST_WAIT, 0.5 * 2**attempt)
            try:
                reply = httpx.post(self._url, json=body, headers=headers, timeout=self._timeout)
            except httpx.HTTPError as error:
                if attempt == ATTEMPTS:
                    raise self._failed(f"cannot be reached ({type(error).__name__})") from None
                time.sleep(wait)
                continue
            if reply.status_code == 422 and self._texts_key == "documents":
                self._texts_key = "texts"  # TEI
            elif reply.status_code in _PASSING and attempt < ATTEMPTS:
                time.sleep(_seconds(reply.headers.get("retry-after"), wait))
            elif reply.is_success:
                try:
                    return reply.json()
                except ValueError:
                    raise self._failed("replied something that is not JSON") from None
            else:
                said = reply.text[:200].replace(key, "***") if key else reply.text[:200]
                raise self._failed(f"replied {reply.status_code} {said!r}")
        raise self._failed("is busy")

    def _failed(self, what: str) -> CorpusError:
        return CorpusError(
            f"the reranker at {_without_password(self._url)} {what}. Check `rerank.url`, "
            f"`rerank.model` and {KEY_VARIABLE}, or leave `rerank` out of the profile."
        )


def _seconds(retry_after: str | None, otherwise: float) -> float:
    try:
        return min(LONGEST_WAIT, max(0.0, float(retry_after or "")))
    except ValueError:
        return otherwise


def _without_password(url: str) -> str:
    from urllib.parse import urlsplit, urlunsplit

    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2], query=""))
