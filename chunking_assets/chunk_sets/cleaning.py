"""What of a text is not embedded: marked as excluded spans, so that no offset ever moves.

Nothing is rewritten. A block is boilerplate because other documents of the shard have it too; a
shard is a random sample of its collection, so a share means the same in each.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Literal

import regex

from chunking_assets.chunk_sets.chunker import Cleaning
from chunking_assets.chunk_sets.spans import ElementSpan
from chunking_assets.keys import text_sha

Reason = Literal["furniture", "boilerplate", "blank_lines", "invisible"]

LEAST_DOCUMENTS = 3
"""Two documents with a block in common are a copy and its original, not a habit."""

NAME_CHARS = 12
"""Of a block's name, 48 bits: a shard has millions of blocks, and all names are held at once."""

_REPEATABLE = frozenset(
    ("paragraph", "list_item", "table", "quote", "caption", "definition", "html", "residual")
)
"""Kinds of element that may be boilerplate: many documents have a heading "Introduction", and code
is quoted on purpose."""
_VERBATIM = frozenset(("code", "front_matter", "import", "class", "function", "method"))
_BLANK_LINES = re.compile(
    r"(?P<kept>(?:\r\n|[\n\r])[^\S\n\r]*+(?:\r\n|[\n\r]))(?P<more>[^\S\n\r]*+[\n\r]\s*)"
)
# Soft hyphen, zero-width space, joiners of words, marks of direction, byte order marks, and control
# characters that are no white space. Joiners of letters and emoji are part of what they join.
_INVISIBLE = regex.compile(
    r"[\u00ad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff\ufff9-\ufffb"
    r"\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f]+"
)


@dataclass(frozen=True, slots=True)
class Excluded:
    """A span `[start, end)` of the canonical text that is not embedded."""

    start: int
    end: int
    reason: Reason


def excluded_spans(
    text: str,
    elements: Sequence[ElementSpan],
    cleaning: Cleaning | None,
    boilerplate: Collection[str] = (),
) -> list[Excluded]:
    """What is left out of a document, sorted and disjoint: always what its pages repeat, and what
    cleaning says.

    `boilerplate` are the blocks other documents have too, as `boilerplate_blocks` names them.
    """
    found = [Excluded(e.start, e.end, "furniture") for e in elements if e.kind == "furniture"]
    if cleaning is None:
        return found
    if boilerplate:
        for element, name in _blocks(text, elements):
            if name in boilerplate:
                found.append(Excluded(element.start, element.end, "boilerplate"))
    if cleaning.blank_lines:
        verbatim = [(e.start, e.end) for e in elements if e.kind in _VERBATIM]
        found += _blank_lines(text, verbatim)
    if cleaning.invisible:
        found += [Excluded(m.start(), m.end(), "invisible") for m in _INVISIBLE.finditer(text)]
    return list(_disjoint(sorted(found, key=lambda e: (e.start, -e.end))))


def blocks_of(text: str, elements: Sequence[ElementSpan]) -> set[str]:
    """The names of a document's blocks: equal for equal words, however they are spaced."""
    return {name for _, name in _blocks(text, elements)}


def boilerplate_blocks(documents: Iterable[set[str]], share: float) -> frozenset[str]:
    """The blocks that stand in at least that share of the documents, and in at least three.

    >>> sorted(boilerplate_blocks([{"a", "b"}, {"a"}, {"a", "c"}, {"c"}], 0.5))
    ['a']
    """
    counts: Counter[str] = Counter()
    total = 0
    for blocks in documents:
        counts.update(blocks)
        total += 1
    least = max(LEAST_DOCUMENTS, ceil(share * total))
    return frozenset(block for block, count in counts.items() if count >= least)


def _blocks(text: str, elements: Sequence[ElementSpan]) -> Iterator[tuple[ElementSpan, str]]:
    for element in elements:
        if element.kind in _REPEATABLE:
            words = " ".join(text[element.start : element.end].split())
            yield element, text_sha(words)[:NAME_CHARS]


def _blank_lines(text: str, verbatim: Sequence[tuple[int, int]]) -> Iterator[Excluded]:
    """All but the first of blank lines that follow each other, outside code."""
    closed = iter(verbatim)
    start, end = next(closed, (len(text), len(text)))
    for match in _BLANK_LINES.finditer(text):
        while end <= match.start():
            start, end = next(closed, (len(text), len(text) + 1))
        if match.end() <= start or match.start() >= end:
            first, last = match.span("more")
            line = max(text.rfind("\n", first, last), text.rfind("\r", first, last)) + 1
            yield Excluded(first, line, "blank_lines")


def _disjoint(found: Iterable[Excluded]) -> Iterator[Excluded]:
    position = 0
    for span in found:
        if span.end > position:
            yield Excluded(max(span.start, position), span.end, span.reason)
            position = span.end
