"""Leaving out what better hits say already: chunks of several sizes, or overlapping ones."""

from bisect import bisect_left
from collections.abc import Iterable

from chunking_assets.retrieval.hit import Hit


def dedupe(ranked: Iterable[Hit], share: float) -> list[Hit]:
    """The hits without those whose span is covered for at least `share` (above 0, at most 1) by
    better-ranked hits that are kept, of the same document.

    A large chunk below a small one of it stays while less than that share of it is known.
    """
    kept: list[Hit] = []
    covered: dict[str, _Covered] = {}
    for hit in ranked:
        spans = covered.setdefault(hit.doc_id, _Covered())
        if spans.within(hit.start, hit.end) / (hit.end - hit.start) < share:
            kept.append(hit)
            spans.add(hit.start, hit.end)
    return kept


class _Covered:
    """Disjoint spans `[start, end)` in order."""

    def __init__(self) -> None:
        self.starts: list[int] = []
        self.ends: list[int] = []

    def reached(self, start: int, end: int) -> tuple[int, int]:
        """The positions of the spans that touch or overlap `[start, end)`."""
        return bisect_left(self.ends, start), bisect_left(self.starts, end + 1)

    def within(self, start: int, end: int) -> int:
        """How many characters of `[start, end)` are covered."""
        first, after = self.reached(start, end)
        spans = zip(self.starts[first:after], self.ends[first:after], strict=True)
        return sum(min(b, end) - max(a, start) for a, b in spans)

    def add(self, start: int, end: int) -> None:
        first, after = self.reached(start, end)
        if first < after:
            start, end = min(start, self.starts[first]), max(end, self.ends[after - 1])
        self.starts[first:after], self.ends[first:after] = [start], [end]
