"""Writes the canonical text of formats that cannot be quoted: Markdown, block after block.

The span of each block is recorded as it is written. Characters that mean something in Markdown
are not escaped (pipes in tables excepted): the spans carry the structure.
"""

import re
from collections.abc import Sequence

from chunking_assets.parsed_elements.decoding import storable
from chunking_assets.parsed_elements.document import (
    Element,
    HeadingStack,
    Kind,
    ParsedText,
    Scalar,
)

MAX_INDENT = 24
"""Lists nested deeper are no longer indented: indentation would outgrow the text."""

# Control characters with which a format says something nobody sees.
_UNSEEN = re.compile("[\x01-\x08\x0e-\x1f\x7f\ufdd0-\ufdef\ufffe\uffff\xad]")
_BACKTICKS = re.compile(r"`+")


class MarkdownWriter:
    """
    >>> writer = MarkdownWriter()
    >>> writer.heading("Fees", 2)
    >>> writer.list_item("card", 1)
    >>> writer.table([["a", "b"], ["1", "2|3"]], header_rows=1, row=4)
    >>> print(writer.parsed().text, end="")
    ## Fees
    <BLANKLINE>
    - card
    <BLANKLINE>
    | a | b |
    | --- | --- |
    | 1 | 2\\|3 |
    """

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._length = 0
        self.elements: list[Element] = []
        self.headings = HeadingStack()

    def parsed(self, *, warning: str | None = None, missing: str | None = None) -> ParsedText:
        if not self.elements:
            return ParsedText("", (), warning, missing)
        return ParsedText("".join([*self._parts, "\n"]), tuple(self.elements), warning, missing)

    def heading(self, title: str, level: int, **facts: Scalar) -> None:
        title = folded(title)
        if title:
            level = min(max(level, 1), 6)
            self.headings.enter(level, title)
            self._block(f"{'#' * level} {title}", "heading", level, facts)

    def paragraph(
        self, text: str, kind: Kind = "paragraph", *, prefix: str = "", **facts: Scalar
    ) -> None:
        """Lines of `text` stay lines; each begins with `prefix`."""
        lines = [line for line in map(folded, text.split("\n")) if line]
        self._block("\n".join(prefix + line for line in lines), kind, 0, facts)

    def list_item(self, text: str, level: int, marker: str = "-", **facts: Scalar) -> None:
        """`level` is 1 for the outermost; lines below the first are indented to it."""
        lines = [line for line in map(folded, text.split("\n")) if line]
        if lines:
            indent = " " * min(2 * (max(level, 1) - 1), MAX_INDENT)
            below = f"\n{indent}{' ' * (len(marker) + 1)}"
            self._block(f"{indent}{marker} {below.join(lines)}", "list_item", level, facts, True)

    def code(self, text: str, language: str | None = None, **facts: Scalar) -> None:
        text = cleaned(text).strip("\n").rstrip()
        if text:
            longest = max(map(len, _BACKTICKS.findall(text)), default=0)
            fence = "`" * max(3, longest + 1)
            block = f"{fence}{language or ''}\n{text}\n{fence}"
            self._block(block, "code", 0, facts, language=language)

    def table(self, rows: Sequence[Sequence[str]], header_rows: int, **facts: Scalar) -> None:
        """Cells as text; rows without any are left out. Markdown wants a first row above the line;
        it is called a header only if `header_rows` says so."""
        lines, widths, n_header = [], [1], 0
        for number, row in enumerate(rows):
            cells = [folded(cell).replace("|", "\\|") for cell in row]
            while cells and not cells[-1] and len(cells) > widths[0]:
                cells.pop()
            if any(cells):
                widths.append(len(cells))
                lines.append(f"| {' | '.join(cells)} |")
                n_header += number < header_rows
        if not lines:
            return
        if n_header == len(lines) > 1:
            n_header = 1  # a table is more than its header
        lines.insert(max(1, n_header), f"|{' --- |' * max(widths)}")
        header = sum(len(line) + 1 for line in lines[: n_header + 1]) if n_header else 0
        self._block("\n".join(lines), "table", 0, facts, header=header)

    def add(self, parsed: ParsedText, **facts: Scalar) -> None:
        """Another document as a part of this one, under the headings that are open."""
        if not parsed.elements:
            return
        shift = self._begin(False)
        text = parsed.text.rstrip()
        self._parts.append(text)
        self._length += len(text)
        above = self.headings.path
        self.elements += [
            Element(
                e.kind,
                e.start + shift,
                e.end + shift,
                e.level,
                (*above, *e.heading_path),
                e.language,
                (*_shifted(e, shift), *facts.items()),
            )
            for e in parsed.elements
        ]

    def _begin(self, tight: bool) -> int:
        separator = ("\n" if tight else "\n\n") if self.elements else ""
        self._parts.append(separator)
        self._length += len(separator)
        return self._length

    def _block(
        self,
        text: str,
        kind: Kind,
        level: int,
        facts: dict[str, Scalar],
        tight: bool = False,
        *,
        language: str | None = None,
        header: int | None = None,
    ) -> None:
        if not text.strip():
            return
        start = self._begin(tight and bool(self.elements) and self.elements[-1].kind == kind)
        self._parts.append(text)
        self._length += len(text)
        attributes: list[tuple[str, Scalar]] = []
        if header is not None:
            attributes.append(("header_end", min(start + header, self._length)))
        attributes += [(name, fact) for name, fact in facts.items() if fact is not None]
        path = self.headings.path
        self.elements.append(
            Element(kind, start, self._length, level, path, language, tuple(attributes))
        )


def cleaned(text: str) -> str:
    """Without what nobody sees, and with a mark for what cannot be stored."""
    return storable(_UNSEEN.sub("", text))


def folded(text: str) -> str:
    """One line, a space for each run of white space."""
    return " ".join(cleaned(text).split())


def _shifted(element: Element, shift: int) -> list[tuple[str, Scalar]]:
    return [
        (name, value + shift if name == "header_end" and isinstance(value, int) else value)
        for name, value in element.attributes
    ]
