"""A document as chunkers see it: where its tokens start and where it may be cut.

Tokens and boundaries are found once and kept as sorted offsets, so counting and cutting are binary
searches and a further chunker over the same document costs next to nothing. All offsets are code
points into the canonical text; every search is linear in the text, whatever the text is.
Excluded spans are walked over like white space: no token is in them, no chunk begins or ends there.
"""

import re
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Literal, Protocol
from unicodedata import normalize

import numpy as np
import regex

from chunking_assets.chunk_sets.sentences import sentence_starts
from chunking_assets.embedding_models.model import Tokenizer
from chunking_assets.embedding_models.tokenizer import PLAIN_SPACE, READ_AS_SPACE
from chunking_assets.errors import CorpusError

if TYPE_CHECKING:
    from chunking_assets.chat_models.chat import Chat
    from chunking_assets.embedding_models.loaded import Models

Level = Literal["section", "block", "line", "sentence", "word"]
"""Kinds of boundary, coarse to fine. Below a word only grapheme clusters are left."""

Boundaries = Level | Sequence[int]
"""A level, or the offsets of a strategy's own boundaries, increasing."""

_VERBATIM = frozenset(("code", "table", "front_matter", "import", "class", "function", "method"))
"""Kinds of element whose blank lines and full stops mean nothing."""

SEGMENT_CHARS = 4096
"""The most text tokenized in one piece: tokenizers are slow, or worse, on one enormous input."""
SEGMENTS_PER_CALL = 256

_SPACE = re.compile(r"\s*")
# A run is matched whole and never looked into again: a look-ahead after it would be quadratic.
_LINE = re.compile(r"[\n\r\v\f\x85\u2028\u2029]\s*")
_BLANK_LINE = re.compile(r"(?>\r\n|[\n\r])[^\S\n\r]*+[\n\r]\s*")
_ENDS_A_WORD = re.compile(r"[\s\u0e00-\u0eff\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff]")

_GRAPHEME = regex.compile(r"\X")
# Two characters that no cluster holds together, by Unicode Standard Annex 29. Surely so, and
# exactly so beside white space.
_APART = regex.compile(
    r"(?s:[\p{GCB=Control}\n].|\r[^\n]|[^\r][\p{GCB=Control}\r\n]|[^\r\p{GCB=Prepend}]\s"
    r"|\p{GCB=Other}[^\p{GCB=Extend}\p{GCB=ZWJ}\p{GCB=SpacingMark}]"
    r"|[\p{GCB=LV}\p{GCB=LVT}]"
    r"[^\p{GCB=Extend}\p{GCB=ZWJ}\p{GCB=SpacingMark}\p{GCB=V}\p{GCB=T}])"
)


class ElementSpan(Protocol):
    """What is used of a parsed element: a typed span, and the headings it stands under."""

    @property
    def kind(self) -> str: ...
    @property
    def start(self) -> int: ...
    @property
    def end(self) -> int: ...
    @property
    def level(self) -> int: ...
    @property
    def heading_path(self) -> Sequence[str]: ...
    def attribute(self, name: str) -> str | int | bool | None: ...


UnicodeForm = Literal["none", "NFC", "NFKC"]


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of a document besides its text, and decides about its chunks too.

    `language` is an ISO 639-1 code, None if unknown; `title` names the document in prefixes.
    """

    media_type: str = "text/plain"
    language: str | None = None
    title: str = ""


class Document:
    """A canonical text with its elements, counted in the tokens of one tokenizer.

    `elements` are sorted by `start` and do not overlap; text outside them is allowed. `excluded`
    are sorted, disjoint spans `[start, end)` that are no part of what is embedded, and `form` the
    Unicode normalisation of what is. `models` and `chat` are for strategies that ask a model where
    to cut. Nothing is computed before it is asked for, and nothing twice.
    """

    def __init__(
        self,
        text: str,
        elements: Sequence[ElementSpan],
        tokenizer: Tokenizer,
        *,
        excluded: Sequence[tuple[int, int]] = (),
        form: UnicodeForm = "none",
        facts: Facts = Facts(),
        models: "Models | None" = None,
        chat: "Chat | None" = None,
    ) -> None:
        self.text, self.elements, self.tokenizer = text, elements, tokenizer
        self.excluded, self.form, self.facts = excluded, form, facts
        self._models, self._chat = models, chat
        self._excluded_ends = [end for _, end in excluded]
        self._boundaries: dict[Level, array[int]] = {}
        self._counted: dict[str, int] = {}

    @property
    def models(self) -> "Models":
        """The embedding models a strategy may ask."""
        if self._models is None:
            raise CorpusError("This strategy asks an embedding model; open the document with one.")
        return self._models

    @property
    def chat(self) -> "Chat":
        """The chat endpoint a strategy may ask."""
        if self._chat is None:
            raise CorpusError("This strategy asks a chat model; open the document with one.")
        return self._chat

    # Tokens

    @cached_property
    def token_starts(self) -> "array[int]":
        """Where each token starts, non-decreasing: one character may be several tokens."""
        found = array("q")
        segments = list(self._kept_of(pairwise(self._seams)))
        for first in range(0, len(segments), SEGMENTS_PER_CALL):
            batch = segments[first : first + SEGMENTS_PER_CALL]
            starts = self.tokenizer.starts([self.text[a:b] for a, b in batch])
            for (a, _), offsets in zip(batch, starts, strict=True):
                found.frombytes((np.asarray(offsets, np.int64) + a).tobytes())
        return found

    @cached_property
    def _seams(self) -> list[int]:
        """The ends of what is tokenized in one piece: a block, cut only if it is long, so that an
        edit moves no seam outside its block."""
        seams = [0]
        for end in [*self.boundaries("block"), len(self.text)]:
            while end - seams[-1] > SEGMENT_CHARS:
                start, at_most = seams[-1], seams[-1] + SEGMENT_CHARS
                cut = self.last_boundary(start, at_most, ("line", "word"))
                seams.append(self.grapheme_end(start, at_most) if cut is None else cut)
            seams.append(end)
        return seams

    def _kept_of(self, spans: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
        """The spans without what is excluded of them."""
        if not self.excluded:
            yield from spans
            return
        for start, end in spans:
            at = start
            for gap, after in self._excluded_in(start, end):
                if at < gap:
                    yield at, gap
                at = after
            if at < end:
                yield at, end

    def _excluded_in(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        """The excluded spans that reach into `[start, end)`."""
        for index in range(bisect_right(self._excluded_ends, start), len(self.excluded)):
            if self.excluded[index][0] >= end:
                break
            yield self.excluded[index]

    def kept(self, start: int, end: int) -> str:
        """What is embedded of `[start, end)`: without excluded spans, normalised."""
        if not self.excluded and self.form == "none":
            return self.text[start:end]
        text = "".join(self.text[a:b] for a, b in self._kept_of([(start, end)]))
        return text if self.form == "none" else normalize(self.form, text)

    def count(self, start: int, end: int) -> int:
        """Tokens that reach into `[start, end)`; tokenized alone, the span may count a few more or
        fewer (see `count_exactly`)."""
        return bisect_left(self.token_starts, end) - self._token_at(start)

    def reach(self, start: int, budget: int) -> int:
        """The furthest end such that `count(start, end) <= budget`; `start` if there is none."""
        tokens, beyond = self.token_starts, self._token_at(start) + budget
        return max(start, tokens[beyond]) if beyond < len(tokens) else len(self.text)

    def back(self, end: int, budget: int) -> int:
        """The furthest start such that at most `budget` tokens start in `[start, end)`."""
        tokens, first = self.token_starts, bisect_left(self.token_starts, end) - budget
        if first <= 0:
            return 0
        is_split = tokens[first - 1] == tokens[first]  # a character of which `first` is a part
        return tokens[first] + is_split

    def _token_at(self, offset: int) -> int:
        """The index of the token that holds `offset`, of the first one if several start there."""
        index = bisect_left(self.token_starts, offset)
        starts_here = index < len(self.token_starts) and self.token_starts[index] == offset
        return index if starts_here else max(0, index - 1)

    def count_exactly(self, spans: Sequence[tuple[str, int, int]]) -> list[int]:
        """Tokens of `prefix + kept(start, end)`, tokenized alone, for each `(prefix, start, end)`.

        Subword counts are not additive, so this tokenizes again, in one call. A tokenizer may say
        `splits_at_white_space`: no token holds white space, and a word between white space gives
        the same tokens wherever it stands. Then spans cut at white space are only added up, unless
        they end in what a tokenizer might take for white space too.
        """
        added = [self._added_up(*span) for span in spans]
        unsure = [span for span, count in zip(spans, added, strict=True) if count is None]
        counted = iter(self.count_texts([p + self.kept(a, b) for p, a, b in unsure]))
        return [next(counted) if count is None else count for count in added]

    def _added_up(self, prefix: str, start: int, end: int) -> int | None:
        """What the span counts alone, where positions suffice to know it."""
        if (
            not self.tokenizer.splits_at_white_space
            or self.excluded
            or self.form != "none"
            or not self._after_space(start)
            or (end < len(self.text) and self.text[end] not in PLAIN_SPACE)
            or _may_be_space(self.text[end - 1 : end])
            or (prefix and prefix[-1] not in PLAIN_SPACE)
            or (prefix and _may_be_space(prefix.rstrip(PLAIN_SPACE)[-1:]))
        ):
            return None
        tokens, seams = self.token_starts, self._seams_in_words
        if bisect_right(seams, start) < bisect_left(seams, end):
            return None
        own = bisect_left(tokens, end) - bisect_left(tokens, start)
        return own + self.count_texts([prefix])[0] if prefix else own

    @cached_property
    def _seams_in_words(self) -> list[int]:
        return [seam for seam in self._seams if not self._after_space(seam)]

    def _after_space(self, offset: int) -> bool:
        return offset == 0 or self.text[offset - 1] in PLAIN_SPACE

    def count_texts(self, texts: Sequence[str]) -> list[int]:
        """Tokens of each text, those not yet known counted in one call of the tokenizer."""
        unknown = list(dict.fromkeys(text for text in texts if text not in self._counted))
        if unknown:
            counts = self.tokenizer.count(unknown)
            self._counted.update(zip(unknown, counts, strict=True))
        return [self._counted[text] for text in texts]

    # Boundaries

    def boundaries(self, level: Level) -> "array[int]":
        """Where a unit of this level starts, strictly inside the text, increasing.

        Code and tables have no blocks and sentences inside, only lines and words. A heading is
        parted from what it heads only between words.
        """
        if level not in self._boundaries:
            self._boundaries[level] = array("q", self._find(level))
        return self._boundaries[level]

    def _find(self, level: Level) -> Iterable[int]:
        text = self.text
        match level:
            case "section":
                found = [start for start, _ in self.sections]
                return _outside(found, self._headings_with_next, len(text))
            case "block":
                found = sorted({m.end() for m in _BLANK_LINE.finditer(text)}.union(self._starts))
                return _outside(found, self._indivisible, len(text))
            case "line":
                found = [m.end() for m in _LINE.finditer(text)]
                return _outside(found, self._headings_with_next, len(text))
            case "sentence":
                found = sorted({*sentence_starts(text), *self.boundaries("block")})
                return _outside(found, self._indivisible, len(text))
            case "word":
                return _word_starts(text)

    @cached_property
    def _starts(self) -> "array[int]":
        """Where the text of each element starts, behind its indentation."""
        length = len(self.text)
        return array("q", (self.skip_space(e.start, length) for e in self.elements))

    @cached_property
    def sections(self) -> list[tuple[int, ElementSpan]]:
        """Where each section starts, with its heading.

        A heading inside a quote or a list item opens none: what follows is not under it.
        """
        following = [*self.elements, None][1:]
        return [
            (start, heading)
            for start, heading, after in zip(self._starts, self.elements, following, strict=True)
            if heading.kind == "heading"
            and (
                after is None
                or after.kind == "heading"
                or after.heading_path[: len(heading.heading_path)] == heading.heading_path
            )
        ]

    @cached_property
    def _headings_with_next(self) -> list[tuple[int, int]]:
        """From each heading to the start of what it heads, which may be a deeper heading."""
        return [
            (start, after_start)
            for (start, heading), (after_start, after) in pairwise(
                zip(self._starts, self.elements, strict=True)
            )
            if heading.kind == "heading"
            and (after.kind != "heading" or after.level > heading.level)
        ]

    @cached_property
    def _indivisible(self) -> list[tuple[int, int]]:
        verbatim = [
            (start, element.end - 1)
            for start, element in zip(self._starts, self.elements, strict=True)
            if element.kind in _VERBATIM
        ]
        return sorted([*self._headings_with_next, *verbatim])

    def last_boundary(self, after: int, at_most: int, levels: Sequence[Boundaries]) -> int | None:
        """The last boundary in `(after, at_most]` of the first level that has one."""
        for level in levels:
            found = self.boundaries(level) if isinstance(level, str) else level
            index = bisect_right(found, at_most) - 1
            while index >= 0 and found[index] > after:
                if self.is_apart(found[index]):
                    return found[index]
                index -= 1
        return None

    def first_boundary(self, at_least: int, before: int, level: Level) -> int | None:
        """The first boundary of a level in `[at_least, before)`."""
        return self.next_boundary(at_least - 1, before, level)

    def next_boundary(self, after: int, before: int, level: Boundaries) -> int | None:
        """The first boundary of a level in `(after, before)`."""
        found = self.boundaries(level) if isinstance(level, str) else level
        for index in range(bisect_right(found, after), len(found)):
            if found[index] >= before:
                break
            if self.is_apart(found[index]):
                return found[index]
        return None

    # Characters

    def is_apart(self, offset: int) -> bool:
        """Whether the characters at both sides of `offset` surely belong to two clusters."""
        return (
            offset in (0, len(self.text))
            or _APART.match(self.text, offset - 1, offset + 1) is not None
        )

    def grapheme_end(self, start: int, at_most: int) -> int:
        """The last end of a grapheme cluster in `(start, at_most]`, or the end of the first one.

        `start` begins a cluster.
        """
        end = at_most
        while end > start and not self.is_apart(end):
            end -= 1
        while end < at_most or end == start:
            following = self._cluster_end(end)
            if following > at_most and end > start:
                break
            end = following
        return end

    def _cluster_end(self, start: int) -> int:
        """The end of the cluster that begins at `start`.

        Matched on a copy, because the pattern looks back over a whole row of flags at each of them.
        """
        for size in (32, 1024, len(self.text)):
            piece = self.text[start : start + size]
            end: int = start + _GRAPHEME.match(piece).end()
            if end < start + len(piece):
                break
        return end

    def skip_space(self, offset: int, end: int) -> int:
        """Where the text begins at or after `offset`, at most `end`; a space that carries a
        combining mark is text."""
        while True:
            found: int = _SPACE.match(self.text, offset, end).end()  # type: ignore[union-attr]
            if found > offset and not self.is_apart(found):
                found -= 1
            gap = self._excluded_at(found)
            if gap is None or found >= end:
                return found
            offset = min(gap[1], end)

    def trim(self, start: int, end: int) -> int:
        """The end of `[start, end)` without the white space it ends in."""
        while True:
            found = start + len(self.text[start:end].rstrip())
            if found < end and not self.is_apart(found):
                found += 1
            gap = self._excluded_at(found - 1)
            if gap is None or found <= start:
                return found
            end = max(gap[0], start)

    def _excluded_at(self, offset: int) -> tuple[int, int] | None:
        return next(self._excluded_in(offset, offset + 1), None) if self.excluded else None

    # What belongs together

    @cached_property
    def wholes(self) -> list[tuple[int, int]]:
        """Spans nothing cuts while they fit a chunk: blocks of code, rows of tables."""
        found = []
        for start, element in zip(self._starts, self.elements, strict=True):
            if element.kind == "code":
                found.append((start, self.trim(start, element.end)))
            elif element.kind == "table":
                rows = pairwise([start, *self.lines_in(start, element.end), element.end])
                found += [(a, self.trim(a, b)) for a, b in rows]
        return [(a, b) for a, b in found if a < b]

    def lines_in(self, start: int, end: int) -> "array[int]":
        """Where lines start strictly inside `[start, end)`."""
        lines = self.boundaries("line")
        return lines[bisect_right(lines, start) : bisect_left(lines, end)]

    def whole_around(self, offset: int) -> tuple[int, int] | None:
        """The block of code or row of a table that a cut at `offset` would divide."""
        index = bisect_left(self._whole_starts, offset) - 1
        return None if index < 0 or self.wholes[index][1] <= offset else self.wholes[index]

    @cached_property
    def _whole_starts(self) -> list[int]:
        return [start for start, _ in self.wholes]

    # Headings

    def element_at(self, offset: int) -> ElementSpan | None:
        """The element that holds `offset`, or else the last one before it."""
        index = bisect_right(self._starts, offset) - 1
        return self.elements[index] if index >= 0 else None

    def starts_element(self, element: ElementSpan, offset: int) -> bool:
        """Whether the text of an element begins at `offset`."""
        return self.skip_space(element.start, max(element.start, offset)) == offset

    def heading_path(self, offset: int) -> tuple[str, ...]:
        """The headings above `offset`, outermost first."""
        element = self.element_at(offset)
        return tuple(element.heading_path) if element else ()


@cache
def _word_tables() -> tuple[np.ndarray, np.ndarray]:
    """For each character of the basic plane: whether a word may end behind it, whether it is white
    space."""
    plane = "".join(map(chr, range(0x10000)))
    ends, spaces = np.zeros((2, 0x10000), np.bool_)
    for found in _ENDS_A_WORD.finditer(plane):
        ends[found.start()] = True
        spaces[found.start()] = found[0].isspace()
    return ends, spaces


def _word_starts(text: str) -> "array[int]":
    """Where a word starts behind white space, or behind a character of a script without it."""
    ends, spaces = _word_tables()
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)
    plane = np.minimum(codes, 0xFFFF)  # beyond the basic plane is neither
    starts = np.flatnonzero(ends[plane[:-1]] & ~spaces[plane[1:]]) + 1
    return array("q", starts.astype(np.int64).tobytes())


def _may_be_space(character: str) -> bool:
    """Whether some tokenizer may take it for white space; most are plain letters and stops."""
    return not (" " < character < "\x7f") and READ_AS_SPACE.match(character) is not None


def _outside(found: Sequence[int], closed: Sequence[tuple[int, int]], length: int) -> Iterator[int]:
    """The offsets inside the text that lie in none of the intervals `(start, last]`."""
    starts = [start for start, _ in closed]
    for offset in found:
        index = bisect_left(starts, offset) - 1
        if 0 < offset < length and (index < 0 or offset > closed[index][1]):
            yield offset
