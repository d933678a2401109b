"""What an answer holds that the contexts do not, letter by letter: numbers, names, quotations.

No model and no threshold: a flag names what is not there, and says nothing about the rest. It is a
reason to look, not a verdict; a number worked out from two others is flagged too.
"""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from evals.ragas_scores.answers import folded
from evals.ragas_scores.words import sentences

FLAGS_VERSION = 1
"""Raised when the same answer would be flagged otherwise."""

_NUMBER = re.compile(r"\d+(?:[.,'’ \u00a0\u202f]\d{3})*(?:[.,]\d+)?")
_NAME = re.compile(r"[^\W\d_][^\W_]*(?:[-.&’'][^\W_]+)*")
_QUOTED = re.compile(r"[\"“„]([^\"“”„]+)[\"“”]|«([^«»]+)»|「([^「」]+)」|『([^『』]+)』")
_OPENERS = frozenset("\"'“„«‘(*_-–—•:「『[")
_COMMON_NOUNS_ARE_CAPITAL = frozenset({"de", "lb", "nds", "gsw", "bar"})


@dataclass(frozen=True, slots=True)
class Flags:
    """Each as the answer writes it, once, in its order."""

    numbers: list[str]
    names: list[str]
    quotes: list[str]


def flags(answer: str, contexts: Sequence[str], language: str = "") -> Flags:
    """What of `answer` is not in any of `contexts`.

    Numbers are equal whatever their separators and digits (`1,000`, `1 000`, `١٠٠٠`). Names are
    words with a capital that opens no sentence, in scripts that have capitals; where common nouns
    have one too (`language` is a BCP 47 tag), only words with another capital inside. Quotations
    count from two words, or four characters without spaces. Case, white space and typographic
    variants do not matter.

    >>> flags("Ada says it costs 45 EUR, “all taxes included”.", ["It costs 40 EUR."])
    Flags(numbers=['45'], names=[], quotes=['all taxes included'])
    """
    text = folded("\n".join(contexts))
    known = {reading for number in numbers("\n".join(contexts)) for reading in _readings(number)}
    quoted = [next(filter(None, match.groups())) for match in _QUOTED.finditer(answer)]
    return Flags(
        numbers=_once(n for n in numbers(answer) if not known & _readings(n)),
        names=_once(n for n in _names(answer, language) if folded(n) not in text),
        quotes=_once(
            q for q in quoted if _is_quotation(q) and folded(q).rstrip(".,;:!? ") not in text
        ),
    )


def numbers(text: str) -> list[str]:
    """The numbers of a text, in the digits 0 to 9, as they are written."""
    ascii_digits = "".join(
        str(unicodedata.decimal(c)) if c.isdecimal() else c
        for c in unicodedata.normalize("NFKC", text)
    )
    return _NUMBER.findall(ascii_digits)


def _readings(number: str) -> set[str]:
    """What a number may mean: `1.500` is fifteen hundred, or one and a half."""
    digits = re.sub(r"\D", "", number)
    found = set()
    groups = re.split(r"\D", number)
    if len(groups) == 1 or all(len(group) == 3 for group in groups[1:]):
        found.add(digits.lstrip("0") or "0")
    if len(groups) > 1 and number[-len(groups[-1]) - 1] in ".,":
        whole = "".join(groups[:-1]).lstrip("0") or "0"
        fraction = groups[-1].rstrip("0")
        found.add(f"{whole}.{fraction}" if fraction else whole)
    return found


def _names(answer: str, language: str) -> list[str]:
    only_inner = language.partition("-")[0].lower() in _COMMON_NOUNS_ARE_CAPITAL
    found = []
    for sentence in sentences(answer):
        for match in _NAME.finditer(sentence):
            name = re.sub(r"[’']s$", "", match.group())
            before = sentence[: match.start()].rstrip()
            opens = not before or before[-1] in _OPENERS
            inner = len(name) > 1 and any(c.isupper() for c in name[1:])
            if len(name) > 1 and (inner or (name[0].isupper() and not opens and not only_inner)):
                found.append(name)
    return found


def _is_quotation(quoted: str) -> bool:
    return len(quoted.split()) > 1 or (len(quoted) > 3 and not quoted.isascii())


def _once(found: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(found))
