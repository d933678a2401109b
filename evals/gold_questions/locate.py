"""Where a quote stands in a document, whatever typography lies between the two.

Both sides are folded (compatibility forms, case, white space, curly quotes, dashes, invisible
characters) and every folded character remembers the code points it came from, so a match is a
span of the original text. Only whole words and numbers match: "30 days" is not in "130 days".
"""

import re
import unicodedata

import numpy as np
import regex

VERSION = 1
"""Raised when the same quote would be found elsewhere in the same text."""

_LOOK_ALIKES = str.maketrans(
    {
        **dict.fromkeys("‘’‚‛´′", "'"),
        **dict.fromkeys("“”„‟", '"'),
        **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212", "-"),
        **dict.fromkeys("\u00ad\u200b\u2060\ufeff", None),  # soft hyphen and zero-width marks
    }
)
# Normalisation acts inside grapheme clusters, so a cluster is the unit that is folded. A run of
# ASCII needs only its case folded, except its last character: a combining mark may follow it.
_PIECES = regex.compile(r"[\x00-\x7f]+(?=[\x00-\x7f]|\Z)|\X", regex.DOTALL)
_WHITE_SPACE = re.compile(r"\s+")
_SEPARATED_DIGITS = re.compile(r"\d[.,]\d")


class FoldedText:
    """A text folded once, in which many quotes can be located.

    >>> FoldedText("The “notice”\\u00a0period is\\n30 days.").locate('"Notice" period')
    [(4, 19)]
    """

    def __init__(self, text: str) -> None:
        pieces: list[str] = []
        origins: list[tuple[int, int, int, bool]] = []
        for match in _PIECES.finditer(text):
            piece = match.group()
            ascii_run = piece.isascii()
            folded = piece.lower() if ascii_run else _fold_cluster(piece)
            pieces.append(folded)
            origins.append((match.start(), match.end(), len(folded), ascii_run))
        spaced = "".join(pieces)
        kept = np.ones(len(spaced), dtype=bool)
        for match in _WHITE_SPACE.finditer(spaced):
            kept[match.start() + 1 : match.end()] = False
        self.folded = _WHITE_SPACE.sub(" ", spaced)
        starts, ends = _code_points(origins)
        self._starts, self._ends = starts[kept], ends[kept]

    def locate(self, quote: str) -> list[tuple[int, int]]:
        """Every occurrence as half-open code points of the original text, by start.

        Occurrences may overlap; a quote that folds to nothing has none.
        """
        wanted = FoldedText(quote).folded.strip()
        spans: list[tuple[int, int]] = []
        at = self.folded.find(wanted) if wanted else -1
        while at >= 0:
            end = at + len(wanted)
            if not self._inside_word(at) and not self._inside_word(end):
                spans.append((int(self._starts[at]), int(self._ends[end - 1])))
            at = self.folded.find(wanted, at + 1)
        return spans

    def _inside_word(self, at: int) -> bool:
        """Whether a cut before the folded character `at` would halve a word or a number."""
        if not 0 < at < len(self.folded):
            return False
        left, right = self.folded[at - 1], self.folded[at]
        if self._ends[at - 1] > self._starts[at]:
            return True
        if left.isalnum() and right.isalnum():
            return not (_caseless(left) or _caseless(right))
        return _SEPARATED_DIGITS.search(self.folded, max(0, at - 2), at + 2) is not None


def locate(quote: str, text: str) -> list[tuple[int, int]]:
    """Every occurrence of a quote in a text; see `FoldedText.locate`.

    >>> locate("30 days", "130 days, or 30\\u00a0Days")
    [(13, 20)]
    """
    return FoldedText(text).locate(quote)


def _code_points(origins: list[tuple[int, int, int, bool]]) -> tuple[np.ndarray, np.ndarray]:
    """First and past-the-last code point of each folded character, two int64 arrays.

    A character of an ASCII run comes from one code point, one of a cluster from all of it.
    """
    start, end, length, ascii_run = np.array(origins, dtype=np.int64).reshape(-1, 4).T
    inside = np.arange(length.sum()) - np.repeat(np.cumsum(length) - length, length)
    one_to_one = np.repeat(ascii_run, length) == 1
    first = np.repeat(start, length) + np.where(one_to_one, inside, 0)
    return first, np.where(one_to_one, first + 1, np.repeat(end, length))


def _fold_cluster(cluster: str) -> str:
    composed = unicodedata.normalize("NFKC", cluster).casefold()
    if composed[0].isspace() and not cluster[0].isspace():
        # A spacing accent such as ´, which NFKC takes apart into a space and a mark.
        return cluster.translate(_LOOK_ALIKES)
    return unicodedata.normalize("NFKC", composed).translate(_LOOK_ALIKES)


def _caseless(character: str) -> bool:
    """Letters of scripts without case (CJK, Thai, Arabic …), whose words need no space between."""
    return character.isalpha() and character.lower() == character.upper()
