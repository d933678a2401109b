"""Parsed elements as they are: small ones together, none torn that fits, tables by their rows.

`pack` fills the chunks. Here is said what else stays together (step lists, whole tables, what a
heading heads), where the pieces of what is too large end, and which header a table's rows get.
"""

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from functools import cache, cached_property
from itertools import pairwise
from typing import Literal

from chunking_assets.chunk_sets.chunker import Chunk, Chunker
from chunking_assets.chunk_sets.packing import SURELY_OVER, pack, prefix_at
from chunking_assets.chunk_sets.spans import Boundaries, Document, ElementSpan

HEADER_SHARE = 2
"""Prefix and table header together get at most half of the budget."""

DEEPEST = 6
"""Lists nested deeper are blocks like others: each level is looked at again by the one above."""

_NUMBER = re.compile(r"[\s>]*(\d{1,9})[.)](?!\S)")
_BULLET = re.compile(r"[\s>]*[-*+•](?!\S)")
_BETWEEN_STEPS = frozenset(("code", "table", "quote", "html", "caption"))
"""What may stand unindented between two steps, as the number of the next one tells."""
_CELL = re.compile(r"(?<!\\)\||(?<=\t)")
_BLANK_LINE = re.compile(r"(?>\r\n|[\n\r])[^\S\n\r]*+[\n\r]")


class ElementChunker(Chunker):
    """Each chunk holds as many sections as `max_tokens` allows, or else as many elements. A table,
    a block of code or a numbered list of steps (with what is nested in it) is not cut while it
    fits, and a heading stays with what it heads.

    What fits no chunk is cut where its kind allows: a table between rows, a row too long between
    cells, a list between steps, code at blank lines or else lines, prose as by `recursive`. Every
    piece of a table gets the table's header rows with their line of dashes behind the breadcrumb,
    as part of its prefix, unless they would take more than half of the budget or keep a row from
    fitting.

    Helps with documents that are more than prose: manuals with steps, price lists, reports,
    reference pages. After `chunk_by_title` of unstructured and HybridChunker of Docling, which do
    the same to text they have rewritten.

    Parameters: those of `Chunker`; `prefix` by default the breadcrumb; `overlap` in tokens never
    begins inside what stays together.
    """

    kind = "element"

    prefix: Literal["none", "breadcrumb", "title"] = "breadcrumb"

    def chunks(self, document: Document) -> Iterator[Chunk]:
        view = _Structure(document, self)
        levels: tuple[Boundaries, ...] = (
            "section",
            view.blocks(),
            view.lines(),
            "sentence",
            "word",
        )
        return pack(view, self, levels, prefixes=view.prefixes, prefix_share=HEADER_SHARE)


class _Structure(Document):
    """The document as this strategy sees it: more stays whole, what is too large has more seams."""

    def __init__(self, document: Document, settings: Chunker) -> None:
        tokens, rows = document.token_starts, document.wholes
        self.__dict__.update(vars(document))  # what was found is shared; what differs follows
        for name in ("wholes", "_whole_starts"):
            self.__dict__.pop(name, None)
        self.settings, self.token_starts = settings, tokens
        self.prefixes = cache(self._prefixes)
        self._rows = {a: b for a, b in rows if self._kind_at(a) == "table"}
        self._row_starts = list(self._rows)
        self._above = {after: start for start, after in self._headings_with_next}

    # What stands before a chunk

    def _prefixes(self, offset: int) -> Sequence[str]:
        """The breadcrumb and the table's header, unless that would cost a row its wholeness."""
        crumb, header = self._crumb(offset), self._header_at(offset)
        if not header:
            return [crumb]
        wanted, row_end = [crumb + header, header, crumb], self._rows.get(offset)
        if row_end is None or not self._fits(offset, row_end, crumb):
            return wanted
        return [prefix for prefix in wanted if self._fits(offset, row_end, prefix)]

    def _crumb(self, offset: int) -> str:
        return prefix_at(self, self.settings, offset)

    def _header_at(self, offset: int) -> str:
        """The header of the table whose body `offset` is in; none if it is longer than a chunk."""
        table = self.element_at(offset)
        if table is None or table.kind != "table" or offset >= table.end:
            return ""
        begin = table.attribute("header_start")  # of a table whose header stands in another
        start = self.skip_space(begin if isinstance(begin, int) else table.start, table.end)
        end = _header_end(table)
        if not start < end <= offset or end - start > self.settings.char_cap:
            return ""
        return self.kept(start, end).rstrip() + "\n"

    # What stays together

    @cached_property
    def wholes(self) -> list[tuple[int, int]]:
        return list(self._wholes_in(0, len(self.elements), 1))

    def _wholes_in(self, first: int, last: int, depth: int) -> Iterator[tuple[int, int]]:
        """What is not cut of the elements `[first, last)`: what fits, or else its parts."""
        while first < last:
            kind, steps = self.elements[first].kind, [first, first + 1]
            if depth <= DEEPEST and self._number(first) is not None:
                kind, steps = "steps", self._steps(first, last)
            if kind in ("steps", "code", "table"):
                start, end = self._span(first, steps[-1])
                if (whole := self._fitting(start, end)) is not None:
                    yield whole
                elif kind == "table":
                    yield from self._rows_between(start, end, _header_end(self.elements[first]))
                elif kind == "steps":
                    for step, following in pairwise(steps):
                        if (whole := self._fitting(*self._span(step, following))) is not None:
                            yield whole
                        else:
                            yield from self._wholes_in(step + 1, following, depth + 1)
            first = steps[-1]

    def _rows_between(self, start: int, end: int, header_end: int) -> Iterator[tuple[int, int]]:
        """The rows of a table; those of the header stay with the one below them if that fits."""
        first, after = (bisect_left(self._row_starts, offset) for offset in (start, end))
        rows = [(row, self._rows[row]) for row in self._row_starts[first:after]]
        if rows:
            below = min(
                bisect_left(self._row_starts, header_end, first, after) - first, len(rows) - 1
            )
            if (lead := self._fitting(start, rows[below][1])) is not None:
                rows[: below + 1] = [lead]
        yield from rows

    def _fitting(self, start: int, end: int) -> tuple[int, int] | None:
        """The span with the headings right above it, or without them; None if it fits no chunk."""
        starts = [start] if start < end else []  # else all of it is excluded
        while starts and (above := self._above.get(starts[-1])) is not None:
            starts.append(above)
        return next(
            ((a, end) for a in reversed(starts) if self._fits(a, end, self._crumb(a))), None
        )

    def _fits(self, start: int, end: int, prefix: str) -> bool:
        """Whether a chunk may hold the span; the tokenizer is asked where positions leave doubt."""
        most = self.settings.max_tokens
        n_tokens = self.count_texts([prefix])[0] + self.count(start, end)
        if end - start > self.settings.char_cap or n_tokens > SURELY_OVER * most:
            return False
        return (
            SURELY_OVER * n_tokens <= most or self.count_exactly([(prefix, start, end)])[0] <= most
        )

    def _steps(self, first: int, last: int) -> list[int]:
        """Which elements begin a step of the list that `first` begins, then the one after it.

        Deeper elements are nested in a step, and so is a paragraph of an item, which has no marker.
        """
        steps, level, number = [first], self.elements[first].level, self._number(first)
        after = first + 1
        for at in range(first + 1, last):
            element, following = self.elements[at], self._number(at)
            if element.kind == "list_item" and element.level == level:
                if following is None and _BULLET.match(self.text, element.start):
                    break
                if following is not None and number is not None:
                    least = number + 1 if after < at else number
                    if following < least or (after < at and following > least):
                        break
                    steps.append(at)
                    number = following
            elif element.kind == "heading" or element.level <= level:
                if element.kind in _BETWEEN_STEPS:
                    continue
                break
            after = at + 1
        return [*steps, after]

    def _number(self, at: int) -> int | None:
        """The number of a list item, by its marker: parsers keep it in the text."""
        element = self.elements[at]
        if element.kind != "list_item":
            return None
        found = _NUMBER.match(self.text, element.start, element.end)
        return int(found[1]) if found else None

    # Where what is too large may be cut

    def blocks(self) -> list[int]:
        """Where blocks start; of code that fits no chunk also what follows its blank lines."""
        found = {*self.boundaries("block")}
        for at, element in enumerate(self.elements):
            start, end = self._span(at, at + 1)
            if element.kind == "code" and not self._fits(start, end, self._crumb(start)):
                lines = pairwise([start, *self.lines_in(start, end)])
                found |= {b for a, b in lines if _BLANK_LINE.search(self.text, self.trim(a, b), b)}
        return sorted(found)

    def lines(self) -> list[int]:
        """Where lines start; of rows that fit no chunk also their cells."""
        found = {*self.boundaries("line")}
        for start, end in self._rows.items():
            if not self._fits(start, end, self._crumb(start)):
                found |= {m.start() for m in _CELL.finditer(self.text, start + 1, end - 1)}
        return sorted(found)

    def _span(self, first: int, after: int) -> tuple[int, int]:
        start = self._starts[first]
        return start, self.trim(start, self.elements[after - 1].end)

    def _kind_at(self, offset: int) -> str | None:
        element = self.element_at(offset)
        return element.kind if element else None


def _header_end(table: ElementSpan) -> int:
    """Where the body of a table begins; 0 if it has no header."""
    found = table.attribute("header_end")
    return found if isinstance(found, int) else 0
