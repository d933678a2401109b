"""Where sentences begin, in one linear pass and without knowing the language.

A rule and short lists, because a sentence boundary is only one of the places where a chunk may
end: a wrong one costs a little cohesion, so exact offsets and speed weigh more than the last
percent. Terminators are matched as whole runs, never looked at twice.
"""

import re
from collections.abc import Iterator

import regex

_TERMINATORS = regex.compile(
    r"(?P<marks>[\p{Sentence_Terminal}…‥]+)(?P<closed>[\p{Pe}\p{Pf}\"'*_]*)"
    # German quotations close with what opens English ones, French ones after a space.
    r"(?:[“«]|[ \u00a0\u202f]»(?!\S))?"
)
_SPACE = re.compile(r"\s*")
_NEEDS_SPACE = frozenset(".!?…‥․")
"""Also written inside words and numbers; every other terminator ends a sentence by itself."""

_LOOK_BACK = 16
_LAST_WORD = re.compile(r"[^\W\d_]+(?:\.[^\W\d_]+)*\Z")
_ENUMERATOR = re.compile(r"(?:\A|[\n\r])[ \t>]*\d{1,3}\Z")

_BEFORE_NAMES = {
    "en": "mr mrs ms messrs dr prof rev hon gen col capt sgt lt cmdr gov sen rep mt st vs al dept",
    "pt": "sr sra srs sras srta dr dra drs dras prof profa exmo exma eng av",
    "fr": "mme mmes mlle mlles mgr ste cf",
    "es": "sr sra srta dr dra dña prof ud uds vd vds ee uu avda gral",
    "de": "hr fr dr prof bzw bspw evtl ggf inkl vgl geb str",
    "it": "sig sigg sigra dott prof avv geom spett egr",
}
_BEFORE_NUMBERS = {
    "en": "no nos fig figs vol ch chap sec sect eq p pp jan feb aug sept oct nov dec approx",
    "pt": "n nº num art arts cap pág págs p tel",
    "fr": "n nº art fig vol chap p env tél",
    "es": "n nº núm art cap pág págs p tel",
    "de": "nr abb bd tab abs art ca tel",
    "it": "n nº art cap fig pag p tel",
}
"""Followed by a number they abbreviate; by anything else they are words that end a sentence."""
_NAMES = frozenset(" ".join(_BEFORE_NAMES.values()).split())
_NUMBERED = frozenset(" ".join(_BEFORE_NUMBERS.values()).split())


def sentence_starts(text: str) -> Iterator[int]:
    """The offset of every sentence but the first, in code points, increasing.

    A sentence begins after a terminator of any script and the quotes that close with it. `.`,
    `!`, `?` and `…` must be followed by white space and not by a lower-case letter; a single `.`
    does not count after an abbreviation, an initial or dotted letters (`J.`, `z.B.`), or a number
    that opens a line. Not decided here: German ordinals (`3. Mai`) and a sentence that ends in a
    single capital (`plan B.`).

    >>> text = "Dr. Ito paid 3.50. 「本当？」はい。 Ok?"
    >>> [text[a:] for a in sentence_starts(text)]
    ['「本当？」はい。 Ok?', 'はい。 Ok?', 'Ok?']
    """
    for match in _TERMINATORS.finditer(text):
        marks = match["marks"]
        needs_space = marks[-1] in _NEEDS_SPACE
        end = match.end() if needs_space else match.end("closed")
        start = _SPACE.match(text, end).end()  # type: ignore[union-attr]
        if start == len(text):
            return
        if needs_space:
            inside = start == end or text[start].islower()
            inside = inside or (marks == "." and _is_abbreviation(text, match.start(), start))
        else:
            inside = start == end and text[start].isdigit()
        if not inside:
            yield start


def _is_abbreviation(text: str, dot: int, following: int) -> bool:
    before = text[max(0, dot - _LOOK_BACK) : dot]
    word = _LAST_WORD.search(before)
    if word is None:
        return _ENUMERATOR.search(before) is not None
    last = word.group().casefold()
    letters = word.group().split(".")
    return (
        last in _NAMES
        or (last in _NUMBERED and text[following].isdigit())
        or (len(letters) > 1 and all(len(letter) == 1 for letter in letters))
        or (len(last) == 1 and word.group().isupper())
    )
