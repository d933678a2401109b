"""What things cost: the `prices:` of corpus.yaml, and the one place that turns tokens into money.

A price holds from its day until the next one for the same model and unit. What has no price has no
cost, which is not a cost of 0: a model that costs nothing is one whose price is 0.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from chunking_assets.errors import CorpusError

STORAGE = "storage"
"""The `model` under which the price of keeping a gigabyte for a month stands."""

Unit = Literal["1M input tokens", "1M batch input tokens", "1M output tokens", "GB month"]


class Price(BaseModel):
    """One entry of `prices:`: what one `unit` of a model costs from the day `as_of` on.

    `model` is a name of `embedding_models:`, a model of the endpoint, or `storage`.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)
    model: str = Field(min_length=1)
    unit: Unit
    price: float = Field(ge=0, allow_inf_nan=False)
    currency: str = Field(default="USD", pattern="^[A-Z]{3}$")
    as_of: date


@dataclass(frozen=True)
class Money:
    """An amount of a currency (ISO 4217)."""

    amount: float
    currency: str

    def __str__(self) -> str:
        """
        >>> str(Money(0.00312, "USD")), str(Money(12.5, "EUR")), str(Money(0, "USD"))
        ('0.0031 USD', '12.50 EUR', '0.00 USD')
        """
        digits = 2 if self.amount >= 1 or self.amount == 0 else 4
        return f"{self.amount:,.{digits}f} {self.currency}"


class Prices:
    """The price table.

    >>> from datetime import date
    >>> entry = Price(model="m", unit="1M input tokens", price=2, as_of="2026-01-01")
    >>> str(Prices([entry]).of_tokens("m", 500_000, day=date(2026, 5, 1)))
    '1.00 USD'
    >>> Prices([entry]).of_tokens("m", 500_000, day=date(2025, 5, 1)) is None
    True
    """

    def __init__(self, entries: Iterable[Price] = ()) -> None:
        """
        Raises:
            CorpusError: a model has prices in two currencies, or two for one day.
        """
        self.entries = tuple(sorted(entries, key=lambda e: (e.model, e.unit, e.as_of)))
        currencies: dict[str, str] = {}
        days: set[tuple[str, str, date]] = set()
        for entry in self.entries:
            if currencies.setdefault(entry.model, entry.currency) != entry.currency:
                raise CorpusError(
                    f"{entry.model} has prices in {currencies[entry.model]} and {entry.currency}. "
                    "Write all prices of a model in one currency."
                )
            if (entry.model, entry.unit, entry.as_of) in days:
                raise CorpusError(
                    f"{entry.model} has two prices for {entry.unit} as of {entry.as_of}. "
                    "Keep one of them."
                )
            days.add((entry.model, entry.unit, entry.as_of))

    def of_tokens(
        self,
        model: str,
        sent: int | None,
        received: int | None = 0,
        *,
        day: date | None = None,
        by_jobs: bool = False,
    ) -> Money | None:
        """What these tokens cost on a day (today, in UTC); None if that cannot be known.

        `sent` and `received` None are numbers nobody knows. Tokens received need a price of their
        own only where there are some, tokens sent `by_jobs` of a batch API always.
        """
        if sent is None or received is None:
            return None
        unit: Unit = "1M batch input tokens" if by_jobs else "1M input tokens"
        parts = [self._of(model, unit, sent / 1e6, day)]
        if received:
            parts.append(self._of(model, "1M output tokens", received / 1e6, day))
        known = [part for part in parts if part is not None]
        if len(known) < len(parts):
            return None
        return Money(sum(part.amount for part in known), known[0].currency)

    def of_embedding(
        self, model: str, tokens: int, by_jobs: int = 0, *, day: date | None = None
    ) -> Money | None:
        """What embedding `tokens` costs, `by_jobs` of them sent by jobs of a batch API; None
        without a price for either.

        >>> entry = Price(model="m", unit="1M input tokens", price=2, as_of="2026-01-01")
        >>> str(Prices([entry]).of_embedding("m", 500_000)), Prices([entry]).of_embedding("m", 5, 5)
        ('1.00 USD', None)
        """
        parts = [self.of_tokens(model, by_jobs, day=day, by_jobs=True)] if by_jobs else []
        if by_jobs < tokens or not by_jobs:
            parts.append(self.of_tokens(model, tokens - by_jobs, day=day))
        known = [part for part in parts if part is not None]
        if len(known) < len(parts):
            return None
        return Money(sum(part.amount for part in known), known[0].currency)

    def of_storage(self, size: int, *, day: date | None = None) -> Money | None:
        """What keeping `size` bytes costs a month; None without a price."""
        return self._of(STORAGE, "GB month", size / 1e9, day)

    def _of(self, model: str, unit: Unit, amount: float, day: date | None) -> Money | None:
        day = day or datetime.now(UTC).date()
        found = [e for e in self.entries if (e.model, e.unit) == (model, unit) and e.as_of <= day]
        return Money(amount * found[-1].price, found[-1].currency) if found else None


NO_PRICES = Prices()
"""Without prices nothing has a cost."""
