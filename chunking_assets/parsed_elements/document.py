"""What parsing gives: one canonical text and flat spans of it, the elements.

Offsets are code points into the canonical text, half-open, so that `text[start:end]` is what a
reader sees. Elements are sorted, never overlap, and together hold every character that is not
white space: `check_spans` says so for any parser, ours or a third party's.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from chunking_assets.errors import CorpusError

Kind = Literal[
    "heading",
    "paragraph",
    "list_item",
    "table",
    "code",
    "quote",
    "caption",
    "definition",
    "html",
    "front_matter",
    "turn",
    "docstring",
    "import",
    "class",
    "function",
    "method",
    "furniture",
    "residual",
]
"""`definition` is a term with its definition, or a link definition; `turn` one message of a
conversation; `furniture` what a page repeats, such as its running header and number, which no chunk
holds; `residual` text that no block claims, such as a thematic break."""

Scalar = str | int | bool | None

TITLE_CHARS = 200
"""Longest title kept in a heading path: a paragraph above `---` is a heading to Markdown."""

_LINE_END = re.compile(r"\r\n|\n|\r")
_INK = re.compile(r"\S")


class BrokenSpans(CorpusError):
    """A parser returned elements that do not fit its text."""


class Refused(CorpusError):
    """A document that is not read, for a reason its parser knows.

    `status` is one of those in `parse.STATUSES` that go without text; `cure` says what to do.
    """

    def __init__(self, status: str, error: str, cure: str) -> None:
        super().__init__(f"{error}. {cure}")
        self.status, self.error, self.cure = status, error, cure


@dataclass(frozen=True, slots=True)
class Element:
    """A typed span of the canonical text.

    `level` is 1-6 for a heading, the nesting depth for list items and Python definitions, else 0.
    `heading_path` holds the titles of the headings above the element, outermost first and without
    markup; a heading's, class's or function's own path ends with itself. `language` is that of
    code as its author named it. `attributes` are further facts by name: a table's or definition's
    `header_end` (the offset at which its header rows, or its signature, end and its body begins);
    a turn's `speaker`, `role` and `time`; what front matter says (`metadata.title`); where it
    stands in its source: `page` (to `page_end`, if it runs over), `slide`, `chapter`, `sheet` with
    `row`, `cell`, `line`, counted from 1; which `part` of its source it is, if not the body (notes,
    footnote, comment, header, footer, drawing).
    """

    kind: Kind
    start: int
    end: int
    level: int = 0
    heading_path: tuple[str, ...] = ()
    language: str | None = None
    attributes: tuple[tuple[str, Scalar], ...] = ()

    def attribute(self, name: str) -> Scalar:
        return dict(self.attributes).get(name)


@dataclass(frozen=True, slots=True)
class ParsedText:
    """A canonical text and its elements.

    `warning` says what was read otherwise than hoped, `missing` what of the document is not in the
    text: such a document is partial.
    """

    text: str
    elements: tuple[Element, ...]
    warning: str | None = None
    missing: str | None = None


class HeadingStack:
    """The headings above a place: a heading closes those of its own level and deeper.

    >>> stack = HeadingStack()
    >>> stack.enter(1, "Guide"), stack.enter(3, "Install"), stack.enter(2, "Use")
    (('Guide',), ('Guide', 'Install'), ('Guide', 'Use'))
    """

    def __init__(self) -> None:
        self._open: list[tuple[int, str]] = []

    @property
    def path(self) -> tuple[str, ...]:
        return tuple(title for _, title in self._open if title)

    def enter(self, level: int, title: str) -> tuple[str, ...]:
        """The path that ends with this heading, from here on the path of what follows."""
        while self._open and self._open[-1][0] >= level:
            self._open.pop()
        self._open.append((level, short_title(title)))
        return self.path


def short_title(title: str) -> str:
    """A title on one line and within `TITLE_CHARS`."""
    title = " ".join(title[: 2 * TITLE_CHARS].split())
    return title if len(title) <= TITLE_CHARS else title[: TITLE_CHARS - 1].rstrip() + "…"


def line_starts(text: str) -> list[int]:
    r"""The offset at which each line starts, then the text's length.

    A line ends with \n, \r\n or a lone \r, as in Markdown and Python; not with U+2028 and the
    other separators of `str.splitlines`.

    >>> line_starts("a\r\nb\rc")
    [0, 3, 5, 6]
    """
    return [0, *(end.end() for end in _LINE_END.finditer(text)), len(text)]


def gaps(elements: Iterable[Element], length: int) -> Iterator[tuple[int, int]]:
    """The spans of a text of `length` that no element covers."""
    position = 0
    for element in elements:
        if element.start > position:
            yield position, element.start
        position = element.end
    if length > position:
        yield position, length


def parents(elements: Iterable[Element]) -> list[int | None]:
    """For each element the position of the one it stands under, which comes before it.

    For what stands in a list item, a deeper item included, that item; for a method its class; for
    anything else the innermost heading above it. None for what stands under nothing, and where
    `heading_path` is of names rather than of elements, as in JSON.

    >>> parents([
    ...     Element("heading", 0, 3, 1, ("A",)),
    ...     Element("list_item", 4, 7, 1, ("A",)),
    ...     Element("list_item", 8, 12, 2, ("A",)),
    ...     Element("heading", 13, 17, 2, ("A", "B")),
    ... ])
    [None, 0, 1, 0]
    """
    found: list[int | None] = []
    openings: dict[tuple[str, ...], int] = {}
    items: list[int] = []
    for position, element in enumerate(elements):
        path, level = element.heading_path, element.level
        parent = openings.get(path[:-1] if element.kind in _OPENINGS else path)
        if element.kind in _OPENINGS:
            openings[path] = position
            items = []
        elif level == 0:
            items = []
        else:
            above = level - 1 if element.kind == "list_item" else level
            parent = items[min(above, len(items)) - 1] if above and items else parent
        if element.kind == "list_item":
            items[level - 1 :] = [position]
        found.append(parent)
    return found


_OPENINGS = {"heading", "class", "function", "method"}
"""What ends its own heading path."""


def inked_lines(text: str, start: int, end: int) -> tuple[int, int] | None:
    """`text[start:end]` without blank lines around it and white space after it; None if blank.

    >>> inked_lines("\\n  a \\n", 0, 6)
    (1, 4)
    """
    ink = _INK.search(text, start, end)
    if ink is None:
        return None
    line = max(text.rfind("\n", start, ink.start()), text.rfind("\r", start, ink.start())) + 1
    return max(start, line), start + len(text[start:end].rstrip())


def check_spans(parsed: ParsedText) -> None:
    """Hold a parser to its promise.

    Raises:
        BrokenSpans: an element is empty, out of order or outside the text, or a character that is
            not white space belongs to none.
    """
    position = 0
    for element in parsed.elements:
        if not position <= element.start < element.end <= len(parsed.text):
            raise BrokenSpans(
                f"{element.kind} element [{element.start}, {element.end}) does not fit after "
                f"{position} in a text of {len(parsed.text)} characters. Correct the parser."
            )
        position = element.end
    for start, end in gaps(parsed.elements, len(parsed.text)):
        if ink := _INK.search(parsed.text, start, end):
            raise BrokenSpans(
                f"no element covers {ink.group()!r} at {ink.start()}. Correct the parser."
            )
