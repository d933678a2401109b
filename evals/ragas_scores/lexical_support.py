"""Lexical support: the share of an answer's sentences whose words stand together in a passage.

A heuristic that needs no judge, and no substitute for one: it takes a paraphrase for an invention,
and swapped roles or a lost negation for support. So it is computed on request only, under this name
and apart from judged scores, and nothing is decided by it.
"""

from collections.abc import Iterable, Sequence
from itertools import pairwise

from evals.ragas_scores.flags import numbers
from evals.ragas_scores.words import sentences, words

LEXICAL_VERSION = 1
"""Raised when the same answer would be measured otherwise."""

COVERED = 0.7
"""The share of a sentence's words that one sentence of a passage, or two in a row, must hold."""


SHORT = 3
"""Letters of the longest word that is left out."""


def lexical_support(said: Iterable[str], contexts: Sequence[str]) -> float | None:
    """In [0, 1], over the sentences an answer has `said`; None if it has no words.

    A sentence counts whose words are covered and whose numbers all stand there too. Short words
    say little of what a sentence is about and are left out, where it has others.

    >>> lexical_support(["A filter costs 45 EUR.", "The filter is green."],
    ...     ["A filter costs 40 EUR.", "The old filter is green."])
    0.5
    """
    windows = [
        (frozenset(words(window)), frozenset(numbers(window)))
        for passage in contexts
        for window in _windows(sentences(passage))
    ]
    found = [_is_supported(text, windows) for text in said if words(text)]
    return sum(found) / len(found) if found else None


def _content(text: str) -> set[str]:
    found = set(words(text))
    return {w for w in found if len(w) > SHORT or not w.isascii()} or found


def _windows(passage: list[str]) -> list[str]:
    return [*passage, *(f"{first} {second}" for first, second in pairwise(passage))]


def _is_supported(text: str, windows: Sequence[tuple[frozenset[str], frozenset[str]]]) -> bool:
    wanted, wanted_numbers = _content(text), set(numbers(text))
    return any(
        len(wanted & held) >= COVERED * len(wanted) and wanted_numbers <= held_numbers
        for held, held_numbers in windows
    )
