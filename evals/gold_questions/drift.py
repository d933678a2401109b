"""What became of a passage: the stretch of today's text most like it, and the words that differ.

A quote is kept with the words around it as they were when it was last found, so that a rewritten
sentence is recognised by its neighbours. The search counts words and is linear in the text; the
comparison is bounded in words and in what it shows.
"""

import re
from collections import Counter
from collections.abc import Sequence
from difflib import SequenceMatcher
from functools import cached_property

import numpy as np
import regex

CONTEXT_CHARS = 200
"""How much is kept on either side of a quote, in code points, cut to whole words."""
MOST_WORDS = 2000
"""A longer passage is compared by its first words only."""
LEAST_ALIKE = 0.4
"""The share of a passage's words that must stand in a stretch, in their order, to call it that
passage changed. Below it, nothing is better than a guess."""
SHOWN_CHARS = 1200
"""The most a diff shows."""

_KEPT_WORDS = 8
_UNSPACED = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}"
_SEPARATORS = r"\x1c-\x1f"
"""White space to `str.strip` and `re`, and not to `regex`."""
_WORD = regex.compile(rf"[{_UNSPACED}]|[^\W{_UNSPACED}]+|[^\w\s{_SEPARATORS}]")
_WHITE_SPACE = re.compile(r"\s+")


def passage_around(text: str, start: int, end: int) -> str:
    """The span with up to `CONTEXT_CHARS` before and behind it.

    >>> passage_around("One. Two. Three.", 5, 9)
    'One. Two. Three.'
    """
    first, last = max(0, start - CONTEXT_CHARS), min(len(text), end + CONTEXT_CHARS)
    if first > 0 and (space := _WHITE_SPACE.search(text, first, start)):
        first = space.end()
    if last < len(text):
        spaces = [space.start() for space in _WHITE_SPACE.finditer(text, end, last)]
        last = spaces[-1] if spaces else last
    return text[first:last].strip()


class Words:
    """A text's words, in which passages of an earlier revision can be looked for."""

    def __init__(self, text: str) -> None:
        self.text = text

    @cached_property
    def spans(self) -> list[tuple[int, int]]:
        return [match.span() for match in _WORD.finditer(self.text)]

    @cached_property
    def folded(self) -> list[str]:
        return [self.text[start:end].casefold() for start, end in self.spans]

    @cached_property
    def counts(self) -> Counter[str]:
        return Counter(self.folded)

    def diff(self, passage: str) -> str | None:
        """How the stretch most like `passage` differs from it; None if nothing is like it.

        In the format of wdiff and `git diff --word-diff`; what is the same far from any change is
        left out.

        >>> Words("Fees. The fee is 3 %, as ever. Bye.").diff("The fee is 2 %, as ever.")
        'The fee is [-2-]{+3+} %, as ever.'
        """
        old = Words(passage)
        old.spans = old.spans[:MOST_WORDS]
        if not old.spans or not self.spans:
            return None
        first, last = self._likeliest(old.folded)
        blocks = SequenceMatcher(None, old.folded, self.folded[first:last]).get_matching_blocks()
        if sum(block.size for block in blocks) < LEAST_ALIKE * len(old.spans):
            return None
        # As many new words belong to the stretch at either end as old ones were replaced there.
        head, tail = blocks[0], blocks[-2]
        behind = len(old.spans) - (tail.a + tail.size)
        last = min(last, first + tail.b + tail.size + behind)
        first += head.b - min(head.a, head.b)
        matcher = SequenceMatcher(None, old.folded, self.folded[first:last])
        return _rendered(
            [
                (kind == "equal", old._shown(a, a_end), self._shown(first + b, first + b_end))
                for kind, a, a_end, b, b_end in matcher.get_opcodes()
            ]
        )

    def _likeliest(self, wanted: Sequence[str]) -> tuple[int, int]:
        """The window, in words, with most of the wanted words that are rare in this text."""
        known = set(wanted)
        weights = np.array([1 / self.counts[word] * (word in known) for word in self.folded])
        size, margin = len(wanted), len(wanted) // 4 + 4
        sums = np.concatenate([[0.0], np.cumsum(weights)])
        if len(weights) <= size:
            return 0, len(weights)
        first = int(np.argmax(sums[size:] - sums[:-size]))
        return max(0, first - margin), min(len(weights), first + size + margin)

    def _shown(self, first: int, last: int) -> str:
        """These words as they stand, with the space before them."""
        if first >= last:
            return ""
        start = self.spans[first - 1][1] if first else self.spans[first][0]
        return _WHITE_SPACE.sub(" ", self.text[start : self.spans[last - 1][1]])


def _rendered(pieces: Sequence[tuple[bool, str, str]]) -> str:
    """Pieces are (is the same, old words, new words)."""
    shown = ""
    for number, (is_same, old, new) in enumerate(pieces):
        if is_same:
            shown += _shortened(new, is_first=number == 0, is_last=number == len(pieces) - 1)
            continue
        shown += " " if (new or old).startswith(" ") else ""
        shown += f"[-{old.strip()}-]" if old else ""
        shown += f"{{+{new.strip()}+}}" if new else ""
    shown = shown.strip()
    return shown if len(shown) <= SHOWN_CHARS else f"{shown[: SHOWN_CHARS - 2]} …"


def _shortened(same: str, *, is_first: bool, is_last: bool) -> str:
    """Words beside a change, without those far from any."""
    spans = [match.span() for match in _WORD.finditer(same)]
    if len(spans) <= 2 * _KEPT_WORDS:
        return same
    head = "" if is_first else same[: spans[_KEPT_WORDS - 1][1]]
    tail = "" if is_last else same[spans[-_KEPT_WORDS][0] :]
    return f"{head} … {tail}" if head or tail else f"{same[: spans[_KEPT_WORDS - 1][1]]} …"
