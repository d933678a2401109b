"""What is scored: ranked passages against gold spans, as half-open ranges of code points.

Chunk ids change with every chunker version and whole-text similarity measures chunk size;
characters of the canonical text are the one unit in which strategies can be compared.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

Convention = Literal["half-open", "touching"]
"""How ranges are counted.

`half-open`: ranges that only touch share nothing, and the gold is the union of the evidence.

`touching`: as the published tool counts (chunking_evaluation, commit 23ee965, `base_evaluation`),
to compare with its numbers. It differs in two things only. Ranges that touch count as
overlapping, which changes which chunks *hold* evidence (`published.minimum_k`,
`published.precision_omega`) but no covered character, hence no recall, precision or IoU at a
given k. Where evidence spans overlap one another, their lengths are summed in the denominators
while the covered characters are united, so that recall cannot reach 1; where they do not, as in
the published data, nothing changes.
"""


@dataclass(frozen=True, slots=True)
class Span:
    """`[start, end)` of a document's canonical text, in code points."""

    doc_id: str
    start: int
    end: int

    def __len__(self) -> int:
        return self.end - self.start


@dataclass(frozen=True, slots=True)
class Passage:
    """One retrieved span, and what it costs to read in the tokens of the index's model."""

    doc_id: str
    start: int
    end: int
    n_tokens: int

    def __len__(self) -> int:
        return self.end - self.start


@dataclass(frozen=True, slots=True)
class AnyOf:
    """Quotes of which one is enough, each by its occurrences."""

    alternatives: Sequence[Sequence[Span]]


Slot = Sequence[Span] | AnyOf
"""A quote by its occurrences, any of which is the evidence, or alternatives to choose from."""

Evidence = Sequence[Slot]
"""What a question needs: every slot."""


@dataclass(frozen=True)
class Retrieval:
    """The passages one question was answered with, best first, and the evidence it needed.

    Slots with alternatives count so that no score depends on which one a strategy happened to
    find: such a slot weighs as many characters as its shortest alternative, and is covered to the
    share to which its best covered one is. What was retrieved is relevant where it is of any
    alternative.

    Raises:
        ValueError: there is no evidence, or a span of it is empty: nothing could be measured.
    """

    passages: Sequence[Passage]
    evidence: Evidence
    convention: Convention = "half-open"

    def __post_init__(self) -> None:
        slots = [_alternatives(slot) for slot in self.evidence]
        if not slots or not all(alternatives and all(alternatives) for alternatives in slots):
            raise ValueError("a question without located evidence cannot be scored")
        if any(span.start >= span.end for slot in slots for spans in slot for span in spans):
            raise ValueError("an evidence span must hold at least one character")

    @cached_property
    def gold(self) -> tuple[Span, ...]:
        """Of each slot the alternative covered best; of equals the shortest, then the first."""
        return tuple(
            max(sorted(slot, key=lambda span: (len(span), *_position(span))), key=self.coverage)
            for slot in self._slots
        )

    @cached_property
    def _slots(self) -> list[list[Span]]:
        """Per slot its alternatives, each as the occurrence covered best; of equals the first in
        reading order."""
        return [
            [max(sorted(spans, key=_position), key=self.coverage) for spans in _alternatives(slot)]
            for slot in self.evidence
        ]

    @cached_property
    def _fixed(self) -> list[Span]:
        """The slots without alternatives."""
        return [slot[0] for slot in self._slots if len(slot) == 1]

    @cached_property
    def _choices(self) -> list[tuple[int, float]]:
        """The slots with alternatives: characters each weighs, and the share covered."""
        return [
            (
                min(len(span) for spans in _alternatives(slot) for span in spans),
                max(map(self.coverage, chosen)),
            )
            for slot, chosen in zip(self.evidence, self._slots, strict=True)
            if len(chosen) > 1
        ]

    def coverage(self, span: Span) -> float:
        """The share of a span that all passages together cover, 0 to 1."""
        return _overlap(span, self._retrieved) / len(span)

    def covered(self, spans: Iterable[Span]) -> int:
        """How many characters of these spans all passages together cover, each counted once."""
        return sum(_overlap(span, self._retrieved) for span in union(spans))

    @cached_property
    def gold_chars(self) -> int:
        gold = self._fixed if self.convention == "touching" else union(self._fixed)
        return sum(map(len, gold)) + sum(weight for weight, _ in self._choices)

    @cached_property
    def covered_chars(self) -> float:
        """Of `gold_chars`, those covered."""
        return self.covered(self._fixed) + sum(weight * share for weight, share in self._choices)

    @cached_property
    def uncovered_chars(self) -> float:
        gold = self._fixed if self.convention == "touching" else union(self._fixed)
        missing = sum(len(span) - _overlap(span, self._retrieved) for span in gold)
        return missing + sum(weight * (1 - share) for weight, share in self._choices)

    @cached_property
    def relevant_chars(self) -> int:
        """Characters retrieved of any alternative, each counted once."""
        return self.covered(span for slot in self._slots for span in slot)

    @cached_property
    def retrieved_chars(self) -> int:
        """The sum over passages: text retrieved twice is paid for twice."""
        return sum(map(len, self.passages))

    @cached_property
    def _retrieved(self) -> list[Span]:
        return union(self.passages)

    def first_ranks(self, share: float) -> list[int]:
        """For each slot found, the rank (from 1) of the first passage to hold `share` of one of its
        alternatives."""
        ranks = (
            next(
                (
                    rank
                    for rank, passage in enumerate(self.passages, start=1)
                    if any(
                        _overlap(span, [passage]) >= share * len(span)
                        for spans in _alternatives(slot)
                        for span in spans
                    )
                ),
                None,
            )
            for slot in self.evidence
        )
        return sorted(rank for rank in ranks if rank is not None)


def union(spans: Iterable[Span | Passage]) -> list[Span]:
    """The same characters as disjoint spans, sorted.

    >>> union([Span("a", 5, 9), Span("a", 0, 5), Span("b", 1, 2)])
    [Span(doc_id='a', start=0, end=9), Span(doc_id='b', start=1, end=2)]
    """
    merged: list[Span] = []
    for span in sorted(spans, key=_position):
        last = merged[-1] if merged else None
        if last is not None and last.doc_id == span.doc_id and span.start <= last.end:
            merged[-1] = Span(last.doc_id, last.start, max(last.end, span.end))
        else:
            merged.append(Span(span.doc_id, span.start, span.end))
    return merged


def _alternatives(slot: Slot) -> Sequence[Sequence[Span]]:
    return slot.alternatives if isinstance(slot, AnyOf) else [slot]


def _position(span: Span | Passage) -> tuple[str, int, int]:
    return span.doc_id, span.start, span.end


def _overlap(span: Span, disjoint: Iterable[Span | Passage]) -> int:
    return sum(
        max(0, min(span.end, other.end) - max(span.start, other.start))
        for other in disjoint
        if other.doc_id == span.doc_id
    )
