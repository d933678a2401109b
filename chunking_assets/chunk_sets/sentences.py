"""Where sentences begin, in one linear pass and without knowing the language.

Rules and word lists, because a sentence boundary is only one of the places where a chunk may end:
a wrong one costs a little cohesion, so exact offsets and speed weigh more than the last percent.
Terminators are matched as whole runs, and what is looked at around them is bounded.
"""

import re
from collections.abc import Iterator
from heapq import merge

import regex

from chunking_assets.chunk_sets.abbreviations import (
    ABBREVIATIONS,
    CAPITALISED,
    ELIDED_OPENERS,
    FOR_EXAMPLE,
    LABELLED,
    NEVER_LAST,
    NUMBERED,
    ONE_LETTER_WORDS,
    OPENERS,
    ORDINAL_DETERMINERS,
    ORDINAL_NOUNS,
    WEAK_OPENERS,
)

# U+104A, the Burmese comma, is a terminator to Unicode; `;` asks in Greek.
_TERMINATORS = regex.compile(
    r"(?V1)(?P<marks>[[\p{Sentence_Terminal}…‥;]--\u104a]+)(?P<closed>[\p{Pe}\p{Pf}\"'*_]*)"
    # References to notes, as encyclopedias set them: `.[3][4]`, `.²`
    r"(?:\[[^\s\[\]]{1,8}\])*[¹²³⁰-⁹]*"
    # German quotations close with what opens English ones, French ones after a space.
    r"(?:[“«]|[ \u00a0\u202f]»(?!\S))?"
)
_SPACE = re.compile(r"\s*")
_NEEDS_SPACE = frozenset(".!?…‥․;")
"""Also written inside words and numbers; every other terminator ends a sentence by itself."""
_QUOTED_SPEECH_GOES_ON = frozenset("とっ")
"""Japanese `「…。」と言った`."""

# Thai and Lao part clauses by spaces. Not around the mark of repetition, nor before `พ.ศ.`
_UNSPACED_SCRIPT = re.compile(r"[\u0e01-\u0edf]")
_CLAUSE_SPACE = re.compile(
    r"(?:[\u0e01-\u0e45\u0e47-\u0e4e][ \u00a0]++(?=[\u0e01-\u0e2e\u0e40-\u0e44])(?!.\.)"
    r"|[\u0e81-\u0ec4\u0ec8-\u0ece][ \u00a0]++(?=[\u0e81-\u0eae\u0ec0-\u0ec4\u0edc-\u0edf])(?!.\.))"
)
_LONGEST_THAI_ABBREVIATION = 4

_LOOK_BACK = 32
_LAST_WORD = regex.compile(r"(?r)[\w.]+")
_WORD_BEFORE = regex.compile(r"(?r)(\w+)\W+")
_LETTER_BEFORE = regex.compile(r"(?r)\b\w\.\s?")
_NUMBER_BEFORE = regex.compile(r"(?r)\b\d{1,4}\.\s?")
_LINE_START = regex.compile(r"(?r)(?:^|[\n\r])[ \t>*_#(-]*")
_UNIT = regex.compile(r"(?r)\d\s?")
_DAY = re.compile(r"\d{1,2}\.")
_MONTH_AND_DAY = re.compile(r"\d{1,2}\.\s?\d")
_ENUMERATOR = re.compile(r"\d{1,3}|[^\W\d_]|[ivxIVX]{1,5}")
_NUMBER = re.compile(r"\d|(?:[IVXLC]{2,}|[VX])\b|[A-Z][.-]?\s?\d")
_FIRST_WORDS = regex.compile(r"[\p{P}\p{S}]{0,3}(\w+)(['’]?)(?:\s+(\w))?(\.?)")
_ONE_LETTER = regex.compile(r"\p{L}\p{M}*")
_VARIABLES = frozenset("jklqwxy")
"""Small letters that abbreviate nothing by themselves."""
_NO_LETTER = "\u1100"
"""From here on a single character is a syllable or a word, and no initial."""
_EMPHASIS = "*_"


def sentence_starts(text: str) -> Iterator[int]:
    """The offset of every sentence but the first, in code points, increasing.

    A sentence begins after a terminator of any script and the quotes that close with it. `.`,
    `!`, `?` and `…` must be followed by white space and not by a lower-case letter; a single `.`
    does not count after an abbreviation, an initial or dotted letters (`J.`, `z.B.`), a German
    ordinal (`3. Mai`) or a number or letter that opens a line, unless a word follows that opens
    sentences (`plan B. Then`). In Thai and Lao a space between words ends a clause, which is what
    these languages have in place of sentences.

    >>> text = "Dr. Ito paid 3.50. 「本当？」はい。 Ok?"
    >>> [text[a:] for a in sentence_starts(text)]
    ['「本当？」はい。 Ok?', 'はい。 Ok?', 'Ok?']
    """
    if _UNSPACED_SCRIPT.search(text) is None:
        return _after_terminators(text)
    return merge(_after_terminators(text), (m.end() for m in _CLAUSE_SPACE.finditer(text)))


def _after_terminators(text: str) -> Iterator[int]:
    for match in _TERMINATORS.finditer(text):
        marks = match["marks"]
        needs_space = marks[-1] in _NEEDS_SPACE
        end = match.end()
        if not needs_space and not text[end : end + 1].isspace():
            end = match.end("closed")
        start = _SPACE.match(text, end).end()  # type: ignore[union-attr]
        if start == len(text):
            return
        if needs_space:
            inside = (
                start == end
                or (_is_lower_case(text, start) and not _is_caseless(text, match.start() - 1))
                or (marks == "." and _goes_on(text, match.start(), start))
                or (marks[-1] == ";" and not _asks_in_greek(text, match.start()))
            )
        else:
            inside = start == end and (
                text[start].isdigit()
                or (marks == "．" and text[match.start() - 1].isdigit())
                or (bool(match["closed"]) and text[start] in _QUOTED_SPEECH_GOES_ON)
            )
        if not inside:
            yield start


def _is_lower_case(text: str, start: int) -> bool:
    """Whether the text goes on in lower case; `iPhone` and `mRNA` do not count."""
    while text[start] in _EMPHASIS and start + 1 < len(text):
        start += 1
    return text[start].islower() and not text[start + 1 : start + 2].isupper()


def _is_caseless(text: str, letter: int) -> bool:
    """Whether the script there has no capitals, so that a small letter after it says nothing."""
    character = text[letter] if letter >= 0 else ""
    return character.isalpha() and character.lower() == character.upper()


def _asks_in_greek(text: str, mark: int) -> bool:
    return "\u0370" <= text[mark - 1] < "\u0400" or "\u1f00" <= text[mark - 1] < "\u2000"


def _goes_on(text: str, stop: int, following: int) -> bool:
    """Whether the full stop at `stop` ends no sentence: by the word before it and what follows."""
    found = _LAST_WORD.match(text, max(0, stop - _LOOK_BACK), stop)
    if found is None or text.count("\n", stop, following) > 1:
        return False
    word, begin = found.group().lstrip("."), found.start()
    if not word:
        return False
    if _ENUMERATOR.fullmatch(word) and _follows(_LINE_START, text, begin):
        return True
    if word.isdecimal():
        return _is_ordinal(text, word, begin, stop, following)
    last = word.casefold()
    if last in NEVER_LAST:
        return True
    if last in NUMBERED and _NUMBER.match(text, following):
        return True
    if (word == "ms" or len(word) == 1) and word.islower() and _follows(_UNIT, text, begin):
        return False
    if last in ABBREVIATIONS or word in CAPITALISED or last.endswith("str"):
        return not _opens_sentence(text, following)
    if last in ("es", "ex", "ej"):
        return f"{_word_before(text, begin)} {last}" in FOR_EXAMPLE
    letters = word.split(".")
    if len(letters) > 1 and all(x.isalpha() and len(x) <= 2 for x in letters):
        is_in_lower_case = word.islower() and last not in ("a.m", "p.m")
        return is_in_lower_case or not _opens_sentence(text, following)
    if _ONE_LETTER.fullmatch(word) and word < _NO_LETTER:
        return _is_initial(text, word, begin, following)
    is_thai_or_lao = "\u0e00" < word[0] < "\u0ee0"
    return is_thai_or_lao and len(word) <= _LONGEST_THAI_ABBREVIATION


def _follows(what: "regex.Pattern[str]", text: str, begin: int) -> bool:
    return what.match(text, max(0, begin - _LOOK_BACK), begin) is not None


def _is_ordinal(text: str, number: str, begin: int, stop: int, following: int) -> bool:
    if len(number) > 4 or not text[begin - 1].isspace():
        return False
    is_in_date = _follows(_NUMBER_BEFORE, text, begin)
    if text[following].isdecimal():
        next_number = (_DAY if len(number) <= 2 else _MONTH_AND_DAY).match(text, following)
        return "\n" not in text[stop:following] and (is_in_date or next_number is not None)
    if len(number) > 3:
        return False
    if is_in_date and len(number) <= 2:
        return not _opens_sentence(text, following)
    next_word = _FIRST_WORDS.match(text, following, following + _LOOK_BACK)
    if next_word is not None and next_word[1].casefold() in ORDINAL_NOUNS:
        return True
    word_before = _word_before(text, begin)
    return word_before in ORDINAL_DETERMINERS and not _opens_sentence(text, following)


def _is_initial(text: str, letter: str, begin: int, following: int) -> bool:
    if begin and not (text[begin - 1].isspace() or text[begin - 1] in "(.-"):
        return False  # `don't.`, `R&D.`
    if letter.islower():  # `z. B.`, `p. ex.`; but `for all n. Then`
        if _follows(_LETTER_BEFORE, text, begin):
            return True
        return letter not in _VARIABLES and not _opens_sentence(text, following)
    if letter.isupper():
        is_label = _word_before(text, begin) in LABELLED
        return not is_label and not _opens_sentence(text, following)
    return letter not in ONE_LETTER_WORDS


def _word_before(text: str, begin: int) -> str:
    found = _WORD_BEFORE.match(text, max(0, begin - _LOOK_BACK), begin)
    return found[1].casefold() if found else ""


def _opens_sentence(text: str, start: int) -> bool:
    """Whether the word at `start` is one that opens sentences, and no part of a name."""
    found = _FIRST_WORDS.match(text, start, start + _LOOK_BACK)
    if found is None:
        return False
    word, apostrophe, next_letter, stop = found.groups()
    word = word.casefold()
    if apostrophe and len(word) == 1 and word != "i":  # `L'équipe`, not `O'Neil`
        return word in ELIDED_OPENERS
    if word in WEAK_OPENERS:
        return next_letter is not None and next_letter.islower()
    return word in OPENERS and not (len(word) == 1 and stop)
