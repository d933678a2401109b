"""reStructuredText. The canonical text is the decoded file itself.

docutils says what a document means but not where each part of it stands, so the blocks are read
here by the rules of its specification: titles by their line of punctuation, directives and literal
blocks by indentation, tables by their rules, all else by blank lines.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from chunking_assets.parsed_elements.decoding import decode
from chunking_assets.parsed_elements.document import (
    Element,
    HeadingStack,
    Kind,
    ParsedText,
    inked_lines,
    line_starts,
)

VERSION = 1
LIBRARIES = ("charset-normalizer",)

_ADORNMENT = re.compile(r"([!-/:-@\[-`{-~])\1{1,}[ \t]*[\r\n]*\Z")
_DIRECTIVE = re.compile(r"[ \t]*\.\.[ \t]+(?:\|[^|\r\n]+\|[ \t]+)?([\w:+.-]+)::[ \t]*([^\r\n]*)")
_EXPLICIT = re.compile(r"[ \t]*\.\.(?:[ \t]|[\r\n]|\Z)")
_NUMBER = r"\(?(?:\d{1,9}|#|[A-Za-z]|[ivxlcIVXLC]{1,8})[.)]"
_ITEM = re.compile(rf"[ \t]*(?:[-*+•‣⁃]|{_NUMBER})(?:[ \t]+|[\r\n])")
_FIELD = re.compile(r":[^:\r\n]{1,80}:(?:[ \t]|[\r\n]|\Z)")
_TABLE_RULE = re.compile(r"[ \t]*(?:\+[-=+]{2,}\+|={2,}(?:[ \t]+={2,})+)[ \t]*[\r\n]*\Z")
_CODE = {"code", "code-block", "sourcecode", "parsed-literal", "doctest", "math", "raw"}
_INDENT = re.compile(r"[ \t]*")


@dataclass(frozen=True, slots=True)
class _Line:
    start: int
    end: int
    text: str

    @property
    def blank(self) -> bool:
        return not self.text.strip()

    @property
    def indent(self) -> int:
        found = _INDENT.match(self.text)
        return len(found.group().expandtabs()) if found else 0


def parse(data: bytes) -> ParsedText:
    return parse_text(decode(data))


def parse_text(text: str) -> ParsedText:
    """
    >>> parsed = parse_text("Fees\\n====\\n\\nPay::\\n\\n    $ pay\\n\\n- card\\n")
    >>> [(e.kind, parsed.text[e.start : e.end]) for e in parsed.elements[1:]]
    [('paragraph', 'Pay::'), ('code', '    $ pay'), ('list_item', '- card')]
    """
    lines = [_Line(a, b, text[a:b]) for a, b in pairwise(line_starts(text))]
    return ParsedText(text, tuple(_elements(text, lines)))


def _elements(text: str, lines: list[_Line]) -> Iterator[Element]:
    headings, styles = HeadingStack(), list[str]()
    indents: list[int] = []
    at, literal = 0, False
    while at < len(lines):
        line = lines[at]
        if line.blank:
            at += 1
            continue
        if title := _title(lines, at):
            style, words, after = title
            if style not in styles:
                styles.append(style)
            level = min(styles.index(style) + 1, 6)
            path = headings.enter(level, words)
            yield _element(text, lines[at:after], "heading", level, path)
            at, literal, indents = after, False, []
            continue
        path = headings.path
        kind: Kind = "paragraph"
        level, language = 0, None
        directive = _DIRECTIVE.match(line.text)
        if literal and line.indent > 0:
            after, kind = _indented(lines, at, line.indent), "code"
        elif _EXPLICIT.match(line.text):
            after = _indented(lines, at + 1, line.indent + 1)
            if directive and directive[1] in _CODE:
                kind, language = "code", directive[2].strip() or None
            elif directive and directive[1] in ("csv-table", "list-table", "table"):
                kind = "table"
            elif not directive:
                kind = "residual" if _is_comment(line.text) else "definition"
        elif _TABLE_RULE.match(line.text):
            after, kind = _table_end(lines, at), "table"
        elif _ITEM.match(line.text):
            after, kind = _block_end(lines, at, item=True), "list_item"
            while indents and indents[-1] >= line.indent:
                indents.pop()
            indents.append(line.indent)
            level = len(indents)
        else:
            after = _block_end(lines, at)
            if line.indent > 0 and not indents:
                kind = "quote"
            elif indents and line.indent > indents[0]:
                kind, level = "list_item", len(indents)
            elif _FIELD.match(line.text) or _is_definition(lines, at, after):
                kind = "definition"
            if kind != "list_item":
                indents = []
        literal = kind != "code" and lines[after - 1].text.rstrip().endswith("::") and not directive
        yield _element(text, lines[at:after], kind, level, path, language)
        at = after


def _element(
    text: str,
    lines: list[_Line],
    kind: Kind,
    level: int,
    path: tuple[str, ...],
    language: str | None = None,
) -> Element:
    start, end = inked_lines(text, lines[0].start, lines[-1].end) or (lines[0].start, lines[0].end)
    return Element(kind, start, end, level, path, language)


def _title(lines: list[_Line], at: int) -> tuple[str, str, int] | None:
    """Style, words and the line after a title that begins here: underlined, or also overlined."""
    above = _ADORNMENT.match(lines[at].text)
    if above and at + 2 < len(lines):
        words, under = lines[at + 1].text.strip(), _ADORNMENT.match(lines[at + 2].text)
        if words and under and under[1] == above[1] and not _ADORNMENT.match(lines[at + 1].text):
            return above[1] * 2, words, at + 3
    if above or at + 1 >= len(lines) or lines[at].indent:
        return None
    words, under = lines[at].text.strip(), _ADORNMENT.match(lines[at + 1].text)
    if under and not lines[at + 1].indent:
        long_enough = len(lines[at + 1].text.strip()) >= min(len(words), 4)
        return (under[1], words, at + 2) if long_enough else None
    return None


def _indented(lines: list[_Line], at: int, least: int) -> int:
    """The line after the block indented by at least so much, blank lines inside it included."""
    after = at
    while at < len(lines) and (lines[at].blank or lines[at].indent >= least):
        if not lines[at].blank:
            after = at + 1
        at += 1
    return max(after, 1)


def _block_end(lines: list[_Line], at: int, *, item: bool = False) -> int:
    """The line after a paragraph or the first paragraph of an item."""
    first = at
    at += 1
    while at < len(lines) and not lines[at].blank:
        indent = lines[at].indent
        if indent < lines[first].indent:
            break
        if _ITEM.match(lines[at].text) and (item or indent > lines[first].indent):
            break
        if not item and _title(lines, at):
            break
        at += 1
    return at


def _table_end(lines: list[_Line], at: int) -> int:
    """The line after a grid table, which ends at a blank line, or a simple one, which ends at a
    rule before a blank line."""
    grid = lines[at].text.lstrip().startswith("+")
    at += 1
    while at < len(lines):
        if lines[at].blank and (grid or _TABLE_RULE.match(lines[at - 1].text)):
            break
        at += 1
    while at > 1 and lines[at - 1].blank:
        at -= 1
    return at


def _is_definition(lines: list[_Line], at: int, after: int) -> bool:
    """A term on one line, what it means indented on the next."""
    return after > at + 1 and lines[at + 1].indent > lines[at].indent


def _is_comment(line: str) -> bool:
    """Explicit markup that is no directive, target, footnote or substitution."""
    return not re.match(r"[ \t]*\.\.[ \t]+(?:_|\[|\|)", line)
