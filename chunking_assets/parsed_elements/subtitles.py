"""WebVTT and SubRip. The canonical text is the decoded file itself; a cue is a turn.

A cue is what stands between two blank lines and has a line with `-->`: its time and, where a voice
is named, its speaker are attributes. Notes, styles and the file's first line are residual.
"""

import re
from itertools import pairwise

from chunking_assets.parsed_elements.decoding import decode
from chunking_assets.parsed_elements.document import (
    Element,
    ParsedText,
    Scalar,
    inked_lines,
    line_starts,
)

VERSION = 1
LIBRARIES = ("charset-normalizer",)

_TIMING = re.compile(
    r"[ \t]{0,8}((?:\d{1,4}:)?\d{1,2}:\d{2}[.,]\d{1,3})[ \t]{1,8}-->[ \t]{1,8}"
    r"((?:\d{1,4}:)?\d{1,2}:\d{2}[.,]\d{1,3})"
)
_VOICE = re.compile(r"<v(?:\.[^\s<>]{1,80})?[ \t]+([^<>\r\n]{1,120})>")
_LINES_BEFORE_TIMING = 2
"""A cue may have a number or a name above its time."""


def parse(data: bytes) -> ParsedText:
    return parse_text(decode(data))


def parse_text(text: str) -> ParsedText:
    """
    >>> parsed = parse_text("1\\n00:01,0 --> 00:02,5\\nHello.\\n\\n00:03,0 --> 00:04,0\\nYes?\\n")
    >>> [e.attribute("time") for e in parsed.elements]
    ['00:01,0', '00:03,0']
    """
    elements: list[Element] = []
    lines: list[tuple[int, int]] = []
    for start, end in [*pairwise(line_starts(text)), (len(text), len(text))]:
        if text[start:end].strip():
            lines.append((start, end))
        elif lines:
            elements.append(_block(text, lines))
            lines = []
    return ParsedText(text, tuple(elements))


def _block(text: str, lines: list[tuple[int, int]]) -> Element:
    start, end = inked_lines(text, lines[0][0], lines[-1][1]) or lines[0]
    timing = next(
        (found for line, _ in lines[:_LINES_BEFORE_TIMING] if (found := _TIMING.match(text, line))),
        None,
    )
    if timing is None:
        return Element("residual", start, end)
    facts: dict[str, Scalar] = {"time": timing[1], "until": timing[2]}
    if voice := _VOICE.search(text, timing.end(), end):
        facts["speaker"] = voice[1].strip()
    return Element("turn", start, end, attributes=tuple(facts.items()))
