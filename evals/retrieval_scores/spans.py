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


Evidence = Sequence[Sequence[Span]]
"""Per quote its occurrences: any of them is the evidence."""


@dataclass(frozen=True)
class Retrieval:
    """The passages one question was answered with, best first, and the evidence it needed.

    Raises:
        ValueError: there is no evidence, or a span of it is empty: nothing could be measured.
    """

    passages: Sequence[Passage]
    evidence: Evidence
    convention: Convention = "half-open"

    def __post_init__(self) -> None:
        if not self.evidence or not all(self.evidence):
            raise ValueError("a question without located evidence cannot be scored")
        if any(span.start >= span.end for spans in self.evidence for span in spans):
            raise ValueError("an evidence span must hold at least one character")

    @cached_property
    def gold(self) -> tuple[Span, ...]:
        """Of each quote the occurrence covered best; of equals the first in reading order."""
        return tuple(
            max(sorted(spans, key=_position), key=self.coverage) for spans in self.evidence
        )

    def coverage(self, span: Span) -> float:
        """The share of a span that all passages together cover, 0 to 1."""
        return _overlap(span, self._retrieved) / len(span)

    @cached_property
    def gold_chars(self) -> int:
        if self.convention == "touching":
            return sum(map(len, self.gold))
        return sum(map(len, union(self.gold)))

    @cached_property
    def covered_chars(self) -> int:
        return sum(_overlap(span, self._retrieved) for span in union(self.gold))

    @cached_property
    def uncovered_chars(self) -> int:
        gold = self.gold if self.convention == "touching" else union(self.gold)
        return sum(len(span) - _overlap(span, self._retrieved) for span in gold)

    @cached_property
    def retrieved_chars(self) -> int:
        """The sum over passages: text retrieved twice is paid for twice."""
        return sum(map(len, self.passages))

    @cached_property
    def _retrieved(self) -> list[Span]:
        return union(self.passages)

    def first_ranks(self, share: float) -> list[int]:
        """For each quote found, the rank (from 1) of the first passage to hold `share` of it."""
        ranks = (
            next(
                (
                    rank
                    for rank, passage in enumerate(self.passages, start=1)
                    if any(_overlap(span, [passage]) >= share * len(span) for span in spans)
                ),
                None,
            )
            for spans in self.evidence
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


def _position(span: Span | Passage) -> tuple[str, int, int]:
    return span.doc_id, span.start, span.end


def _overlap(span: Span, disjoint: Iterable[Span | Passage]) -> int:
    return sum(
        max(0, min(span.end, other.end) - max(span.start, other.start))
        for other in disjoint
        if other.doc_id == span.doc_id
    )
