"""What embedding the texts of one shard sent, told also where it fails half way.

An embedder behind an endpoint counts what the server counted; for one that runs here the tokens it
read are the tokens sent, and batches the requests.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from chunking_assets.chat_models.chat_endpoint import Spent
from chunking_assets.cost_ledger import EMBED, EMBED_BY_JOBS, Entry
from chunking_assets.embedding_models.model import Embedder
from chunking_assets.embedding_models.vector_cache import BATCH, Embedded

Spending = Callable[[str, Entry], object]
"""Told the shard and what was sent for it."""


@runtime_checkable
class CountsRequests(Protocol):
    """An embedder that counts what it sends, all callers together."""

    spent: Spent
    retries: int


@runtime_checkable
class CountsJobs(Protocol):
    """An embedder that counts apart what jobs of a batch API brought."""

    spent_by_jobs: Spent


@dataclass
class Outcome:
    """What came of it; None where it failed."""

    embedded: Embedded | None = None


@contextmanager
def metered(
    embedder: Embedder, model: str, shard: str, spending: Spending | None
) -> Iterator[Outcome]:
    """Tell `spending` what was sent inside, under the model's name in corpus.yaml."""
    counter = embedder if isinstance(embedder, CountsRequests) else None
    before = (counter.spent, counter.retries) if counter else (Spent(), 0)
    jobs = embedder if isinstance(embedder, CountsJobs) else None
    brought_before = jobs.spent_by_jobs if jobs else Spent()
    started, outcome = time.monotonic(), Outcome()
    try:
        yield outcome
    finally:
        if spending is not None:
            seconds = time.monotonic() - started
            brought = _since(brought_before, jobs.spent_by_jobs) if jobs else Spent()
            spending(shard, _entry(model, outcome.embedded, counter, before, brought, seconds))
            by_jobs = Entry.of_calls(EMBED_BY_JOBS, model, brought)
            if not by_jobs.is_empty:
                spending(shard, by_jobs)


def _since(before: Spent, now: Spent) -> Spent:
    """Requests and tokens sent since."""
    was, tokens = before.prompt_tokens, now.prompt_tokens
    return Spent(
        requests=now.requests - before.requests,
        # An endpoint that did not say once leaves a sum that means nothing from then on.
        prompt_tokens=None if was is None or tokens is None else tokens - was,
    )


def _entry(
    model: str,
    embedded: Embedded | None,
    counter: CountsRequests | None,
    before: tuple[Spent, int],
    brought: Spent,
    seconds: float,
) -> Entry:
    saved: int | None = embedded.tokens_reused if embedded else 0
    if brought.requests:  # what a job has just brought into the cache was not saved by it
        paid = brought.prompt_tokens
        saved = None if paid is None or saved is None else max(0, saved - paid)
    if counter is None:
        computed = embedded.computed if embedded else 0
        tokens: int | None = embedded.tokens_computed if embedded else 0
        requests, retries = -(-computed // BATCH), 0
    else:
        sent = _since(before[0], counter.spent)
        tokens, requests = sent.prompt_tokens, sent.requests
        retries = counter.retries - before[1]
    return Entry(
        work=EMBED,
        model=model,
        tokens_sent=tokens,
        tokens_saved=saved,
        requests=requests,
        retries=retries,
        seconds=seconds,
    )
