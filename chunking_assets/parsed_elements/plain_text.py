"""Plain text. The canonical text is the decoded file itself.

Paragraphs end at blank lines. A conversation (most lines read `Name: text`, or messages start
`[2026-05-12 09:14] Ana (customer): text`, or as messengers export them,
`12/05/2026, 09:14 - Ana: text`) is cut into its turns instead, because a message is what
a reader quotes and what must not be torn from its speaker.
"""

import re
from collections.abc import Iterator
from itertools import pairwise

from chunking_assets.parsed_elements.decoding import decode
from chunking_assets.parsed_elements.document import Element, ParsedText, line_starts

VERSION = 2
LIBRARIES = ("charset-normalizer",)

_TURN = re.compile(
    r"(?:\[(?P<time>[^\]\r\n]{3,40})\][ \t]{0,8}|(?P<date>\d{1,4}[./-]\d{1,2}[./-]\d{1,4},?[ \t]"
    r"\d{1,2}[:.]\d{2}(?:[:.]\d{2})?(?:[ \u202f]?[AaPp]\.?[Mm]\.?)?)[ \t][-–][ \t])?"
    r"(?P<speaker>[^\W\d_][^:()\[\]<>/\r\n]{0,60})"
    r"(?:\((?P<role>[^()\r\n]{1,40})\)[ \t]{0,8})?:(?=[ \t\r\n]|\Z)"
)
_STOPS = frozenset(".?!…。？！")
_LOG_LEVELS = {"trace", "debug", "info", "notice", "warn", "warning", "error", "critical", "fatal"}


def parse(data: bytes) -> ParsedText:
    return parse_text(decode(data))


def parse_text(text: str) -> ParsedText:
    """
    >>> [e.kind for e in parse_text("Two lines\\nof one.\\n\\nAnother.").elements]
    ['paragraph', 'paragraph']
    """
    starts = line_starts(text)
    lines = [span for span in pairwise(starts) if span[0] < span[1]]
    return ParsedText(text, tuple(_elements(text, lines, _turns(text, lines))))


def _turns(text: str, lines: list[tuple[int, int]]) -> dict[int, re.Match[str]]:
    """The first line of each message by its offset; empty unless speakers take turns here.

    A quarter of the lines must start a message that carries a time. Without times, half of them
    must start one, speakers must come again, and some of what they say must be sentences: mail
    headers, licence files and settings look alike.
    """
    inked = sum(1 for start, end in lines if not text[start:end].isspace())
    named = {start: turn for start, _ in lines if (turn := _TURN.match(text, start))}
    stamped = {start: turn for start, turn in named.items() if turn["time"] or turn["date"]}
    if _n_speakers(stamped) > 1 and 4 * len(stamped) > inked:
        return stamped
    sentences = sum(
        1 for start, end in lines if start in named and text[start:end].rstrip()[-1] in _STOPS
    )
    if 1 < _n_speakers(named) <= 2 * len(named) / 3 and 2 * len(named) > inked:
        return named if 3 * sentences >= len(named) else {}
    return {}


def _n_speakers(turns: dict[int, re.Match[str]]) -> int:
    return len({turn["speaker"].strip().lower() for turn in turns.values()} - _LOG_LEVELS)


def _elements(
    text: str, lines: list[tuple[int, int]], turns: dict[int, re.Match[str]]
) -> Iterator[Element]:
    """Runs of lines: cut at blank lines before the first turn, at turns from there on."""
    turn: re.Match[str] | None = None
    start = end = -1
    for line, line_end in lines:
        blank = text[line:line_end].isspace()
        if start >= 0 and (line in turns or (blank and turn is None)):
            yield _element(text, start, end, turn)
            start = -1
        turn = turns.get(line, turn)
        if not blank:
            start, end = (line if start < 0 else start), line_end
    if start >= 0:
        yield _element(text, start, end, turn)


def _element(text: str, start: int, end: int, turn: re.Match[str] | None) -> Element:
    end = start + len(text[start:end].rstrip("\r\n"))
    if turn is None:
        return Element("paragraph", start, end)
    found = turn.groupdict()
    found["time"] = found["time"] or found.pop("date")
    facts = {name: value.strip() for name, value in found.items() if name != "date" and value}
    return Element("turn", start, end, attributes=tuple(sorted(facts.items())))
