"""The objects that the API returns.

All classes are frozen. A change on the server is seen by fetching the object
again, never by assigning to an attribute.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Mapping

#: Number of decimals. Currencies that are not listed here are refused.
EXPONENTS: Mapping[str, int] = {
    "CHF": 2,
    "EUR": 2,
    "GBP": 2,
    "SEK": 2,
}

MAX_REFERENCE_LENGTH = 64
MAX_METADATA_KEYS = 20


class PaymentStatus(enum.Enum):
    """Where a payment is in its life."""

    CREATED = "created"
    IN_REVIEW = "in_review"
    AUTHORISED = "authorised"
    CAPTURED = "captured"
    PARTIALLY_REFUNDED = "partially_refunded"
    REFUNDED = "refunded"
    DECLINED = "declined"
    EXPIRED = "expired"
    CANCELLED = "cancelled"
    UNKNOWN = "unknown"

    @classmethod
    def _missing_(cls, value: object) -> "PaymentStatus":
        # A status added on the server must not break old clients.
        return cls.UNKNOWN

    @property
    def is_final(self) -> bool:
        """True if nothing more can happen without a new call."""
        return self in _FINAL


_FINAL = frozenset(
    {
        PaymentStatus.REFUNDED,
        PaymentStatus.DECLINED,
        PaymentStatus.EXPIRED,
        PaymentStatus.CANCELLED,
    }
)


@dataclass(frozen=True, slots=True, order=False)
class Money:
    """An amount in the minor unit of a currency."""

    minor: int
    currency: str

    def __post_init__(self) -> None:
        if isinstance(self.minor, bool) or not isinstance(self.minor, int):
            raise TypeError("amounts are integers in minor units, not decimals")
        if self.currency not in EXPONENTS:
            raise ValueError(f"currency {self.currency!r} is not supported")

    def __add__(self, other: "Money") -> "Money":
        self._same_currency(other)
        return Money(self.minor + other.minor, self.currency)

    def __sub__(self, other: "Money") -> "Money":
        self._same_currency(other)
        return Money(self.minor - other.minor, self.currency)

    def __str__(self) -> str:
        exponent = EXPONENTS[self.currency]
        whole, part = divmod(abs(self.minor), 10**exponent)
        sign = "-" if self.minor < 0 else ""
        return f"{sign}{whole}.{part:0{exponent}d} {self.currency}"

    def split(self, weights: list[int]) -> list["Money"]:
        """Share the amount by weight without losing a cent.

        What is left after rounding down goes to the parts with the largest
        remainders; among equals, to the first.
        """
        total = sum(weights)
        if total <= 0 or min(weights) < 0:
            raise ValueError("weights must not be negative, and not all zero")
        parts = [self.minor * weight // total for weight in weights]
        rests = [self.minor * weight % total for weight in weights]
        order = sorted(range(len(weights)), key=lambda i: (-rests[i], i))
        for i in order[: self.minor - sum(parts)]:
            parts[i] += 1
        return [Money(part, self.currency) for part in parts]

    def _same_currency(self, other: "Money") -> None:
        if self.currency != other.currency:
            raise ValueError(f"cannot mix {self.currency} and {other.currency}")


def _time(value: str | None) -> datetime | None:
    return None if value is None else datetime.fromisoformat(value)


@dataclass(frozen=True, slots=True)
class Payment:
    """A payment by a buyer."""

    id: str
    amount: Money
    status: PaymentStatus
    reference: str
    created_at: datetime | None
    expires_at: datetime | None = None
    captured: int = 0
    refunded: int = 0
    checkout_url: str | None = None
    risk_score: int | None = None
    risk_reasons: tuple[str, ...] = ()
    metadata: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def from_api(cls, raw: Mapping[str, Any]) -> "Payment":
        risk = raw.get("risk") or {}
        return cls(
            id=raw["id"],
            amount=Money(raw["amount"], raw["currency"]),
            status=PaymentStatus(raw["status"]),
            reference=raw.get("reference", ""),
            created_at=_time(raw.get("created_at")),
            expires_at=_time(raw.get("expires_at")),
            captured=raw.get("captured", 0),
            refunded=raw.get("refunded", 0),
            checkout_url=raw.get("checkout_url"),
            risk_score=risk.get("score"),
            risk_reasons=tuple(risk.get("reasons", ())),
            metadata=dict(raw.get("metadata") or {}),
        )

    @property
    def refundable(self) -> Money:
        """What can still be given back."""
        return Money(self.captured - self.refunded, self.amount.currency)


@dataclass(frozen=True, slots=True)
class Refund:
    """Money on its way back to a buyer."""

    id: str
    payment_id: str
    amount: Money
    reason: str | None = None

    @classmethod
    def from_api(cls, raw: Mapping[str, Any]) -> "Refund":
        return cls(
            id=raw["id"],
            payment_id=raw["payment"],
            amount=Money(raw["amount"], raw["currency"]),
            reason=raw.get("reason"),
        )


@dataclass(frozen=True, slots=True)
class Payout:
    """A transfer to the seller's bank."""

    id: str
    amount: Money
    external_id: str
    state: str
    failure_code: str | None = None

    @classmethod
    def from_api(cls, raw: Mapping[str, Any]) -> "Payout":
        return cls(
            id=raw["id"],
            amount=Money(raw["amount"], raw["currency"]),
            external_id=raw["external_id"],
            state=raw["state"],
            failure_code=raw.get("failure_code"),
        )


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of the seller's statement."""

    id: str
    kind: str
    amount: Money
    effective_at: datetime | None
    payment_id: str | None = None

    @classmethod
    def from_api(cls, raw: Mapping[str, Any]) -> "Entry":
        return cls(
            id=raw["id"],
            kind=raw["kind"],
            amount=Money(raw["amount"], raw["currency"]),
            effective_at=_time(raw.get("effective_at")),
            payment_id=raw.get("payment"),
        )
