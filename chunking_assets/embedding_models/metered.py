"""What embedding some texts sent, told also where it fails half way.

An embedder behind an endpoint counts what the server counted; for one that runs here the tokens it
read are the tokens sent, and batches the requests. Vectors of chunks, of sentences that decide
where a text is cut, and of questions are told apart, for only the first are an index's own.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Protocol, runtime_checkable

import numpy as np

from chunking_assets.chat_models.chat_endpoint import Spent
from chunking_assets.chat_models.metered import asked_for_now
from chunking_assets.cost_ledger import (
    EMBED,
    EMBED_BY_JOBS,
    EMBED_QUESTIONS,
    EMBED_SENTENCES,
    Entry,
    added,
)
from chunking_assets.embedding_models.loaded import Models
from chunking_assets.embedding_models.model import Embedder, Tokenizer
from chunking_assets.embedding_models.vector_cache import (
    BATCH,
    CachedQueries,
    Embedded,
    embed_through_cache,
)

Tell = Callable[[Entry], object]
"""Told what was sent."""


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
    embedder: Embedder, model: str, tell: Tell | None, work: str = EMBED
) -> Iterator[Outcome]:
    """Tell what was sent inside as this work, under the model's name in corpus.yaml."""
    counter = embedder if isinstance(embedder, CountsRequests) else None
    before = (counter.spent, counter.retries) if counter else (Spent(), 0)
    jobs = embedder if isinstance(embedder, CountsJobs) else None
    brought_before = jobs.spent_by_jobs if jobs else Spent()
    started, outcome = time.monotonic(), Outcome()
    try:
        yield outcome
    finally:
        if tell is not None:
            seconds = time.monotonic() - started
            brought = _since(brought_before, jobs.spent_by_jobs) if jobs else Spent()
            tell(_entry(work, model, outcome.embedded, counter, before, brought, seconds))
            by_jobs = Entry.of_calls(EMBED_BY_JOBS, model, brought)
            if not by_jobs.is_empty:
                tell(by_jobs)


class MeteredQueries(CachedQueries):
    """Vectors of questions, and in `spent` what all of them sent for one strategy."""

    def __init__(
        self, embedder: Embedder, folder: Path, model: str, strategy: str | None = None
    ) -> None:
        super().__init__(embedder, folder)
        self._model = model
        self.spent = Entry(work=EMBED_QUESTIONS, model=model, strategy=strategy)

    def embed_queries(self, texts: Sequence[str]) -> np.ndarray:
        with metered(self._embedder, self._model, self._add, EMBED_QUESTIONS) as outcome:
            outcome.embedded = embed_through_cache(self._embedder, self._cache, texts, "query")
        return outcome.embedded.vectors

    def _add(self, entry: Entry) -> None:
        self.spent = added(self.spent, entry)


class MeteredModels(Models):
    """The models of another, and what `vectors` sent, by what it was for; safe for threads."""

    def __init__(self, models: Models) -> None:
        super().__init__(models.declared, models.workspace)
        self._models, self._counting = models, Lock()
        self._spent: dict[tuple[str, str, str], Entry] = {}

    @property
    def spent(self) -> Mapping[str, list[Entry]]:
        """By what it was for (`chat_models.metered.asked_for`)."""
        found: dict[str, list[Entry]] = {}
        for (what, _, _), entry in self._spent.items():
            found.setdefault(what, []).append(entry)
        return found

    def tokenizer(self, name: str) -> Tokenizer:
        return self._models.tokenizer(name)

    def embedder(self, name: str) -> Embedder:
        return self._models.embedder(name)

    def vectors(self, name: str, texts: Sequence[str]) -> np.ndarray:
        what = asked_for_now()

        def add(entry: Entry) -> None:
            key = what, name, entry.work
            before = self._spent.get(key)
            self._spent[key] = entry if before is None else added(before, entry)

        # An embedder counts for all who ask: one after the other, so that each gets its own.
        embedder = self.embedder(name)
        with self._counting, metered(embedder, name, add, EMBED_SENTENCES) as outcome:
            outcome.embedded = embed_through_cache(embedder, self.cache_of(embedder), texts)
        return outcome.embedded.vectors


def _since(before: Spent, now: Spent) -> Spent:
    """Requests and tokens sent since."""
    was, tokens = before.prompt_tokens, now.prompt_tokens
    return Spent(
        requests=now.requests - before.requests,
        # An endpoint that did not say once leaves a sum that means nothing from then on.
        prompt_tokens=None if was is None or tokens is None else tokens - was,
    )


def _entry(
    work: str,
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
        work=work,
        model=model,
        tokens_sent=tokens,
        tokens_saved=saved,
        requests=requests,
        retries=retries,
        seconds=seconds,
    )
