"""What was sent to models and what it cost: a table that only grows.

An entry says what one run really sent, so a run after a crash, which finds the work done, adds
nothing to what was paid. The cost is fixed at the prices of the day; numbers nobody knows, and
costs without a price, are empty and never 0.
"""

from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime

import polars as pl

from chunking_assets.chat_models.chat_endpoint import Spent
from chunking_assets.prices import Prices
from chunking_assets.workspace import Workspace

COSTS = "costs"
EMBED, EMBED_BY_JOBS = "embed", "embed_batch"
"""Work: vectors, and those that jobs of a batch API brought, which have a price of their own."""
EMBED_SENTENCES, EMBED_QUESTIONS = "embed_sentences", "embed_questions"
"""Work: vectors that decide where a text is cut, and vectors of questions."""

COSTS_SCHEMA = pl.Schema(
    {
        "at": pl.Datetime("us", "UTC"),
        "run_id": pl.String(),
        "asset": pl.String(),
        "partition": pl.String(),
        "strategy": pl.String(),
        "question_id": pl.String(),
        "work": pl.String(),
        "model": pl.String(),
        "tokens_sent": pl.Int64(),
        "tokens_received": pl.Int64(),
        "tokens_saved": pl.Int64(),
        "requests": pl.Int64(),
        "requests_saved": pl.Int64(),
        "retries": pl.Int64(),
        "seconds": pl.Float64(),
        "cost": pl.Float64(),
        "currency": pl.String(),
    }
)


@dataclass(frozen=True, kw_only=True)
class Entry:
    """What one piece of work sent to one model.

    `work` is `embed`, `embed_batch`, `embed_sentences`, `embed_questions`, `chunk`, `answer` or the
    name of a judged metric; `model` is named as in corpus.yaml. `tokens_saved` and `requests_saved`
    are what a cache made unnecessary. Of a model that runs in this process, batches count as
    requests. None is a number nobody knows.
    """

    work: str
    model: str
    strategy: str | None = None
    question_id: str | None = None
    tokens_sent: int | None = 0
    tokens_received: int | None = 0
    tokens_saved: int | None = 0
    requests: int = 0
    requests_saved: int = 0
    retries: int = 0
    seconds: float = 0.0

    @classmethod
    def of_calls(cls, work: str, model: str, spent: Spent, **of: str | None) -> "Entry":
        """What calls to a chat model spent; `of` names the strategy and the question."""
        return cls(
            work=work,
            model=model,
            tokens_sent=spent.prompt_tokens,
            tokens_received=spent.completion_tokens,
            tokens_saved=spent.tokens_saved,
            requests=spent.requests,
            requests_saved=spent.cached,
            retries=spent.retries,
            seconds=spent.seconds,
            **of,
        )

    @property
    def is_empty(self) -> bool:
        """Whether nothing was sent and nothing saved."""
        return not (self.requests or self.requests_saved or self.tokens_saved)


def added(one: Entry, more: Entry) -> Entry:
    """Two entries as one of the first's work; what is not known of either is not of both.

    >>> added(Entry(work="embed", model="m", requests=1), Entry(work="embed", model="m", retries=2))
    ... # doctest: +ELLIPSIS
    Entry(work='embed', model='m', ..., requests=1, requests_saved=0, retries=2, seconds=0.0)
    """

    def both(a: int | None, b: int | None) -> int | None:
        return None if a is None or b is None else a + b

    return replace(
        one,
        tokens_sent=both(one.tokens_sent, more.tokens_sent),
        tokens_received=both(one.tokens_received, more.tokens_received),
        tokens_saved=both(one.tokens_saved, more.tokens_saved),
        requests=one.requests + more.requests,
        requests_saved=one.requests_saved + more.requests_saved,
        retries=one.retries + more.retries,
        seconds=one.seconds + more.seconds,
    )


def record_costs(
    workspace: Workspace,
    prices: Prices,
    asset: str,
    partition: str,
    run_id: str,
    entries: Iterable[Entry],
) -> None:
    """Add what a run sent for one partition, all of it in one step; empty entries leave no row."""
    now = datetime.now(UTC)
    rows = []
    for entry in entries:
        if not entry.is_empty:
            money = prices.of_tokens(
                entry.model,
                entry.tokens_sent,
                entry.tokens_received,
                day=now.date(),
                by_jobs=entry.work == EMBED_BY_JOBS,
            )
            rows.append(
                {
                    "at": now,
                    "run_id": run_id,
                    "asset": asset,
                    "partition": partition,
                    **asdict(entry),
                    "cost": money and money.amount,
                    "currency": money and money.currency,
                }
            )
    if rows:
        key = f"{asset}|{partition}"
        with workspace.lock(f"{COSTS} {key}"):
            workspace.table(COSTS).append(pl.DataFrame(rows, schema=COSTS_SCHEMA), key)
