"""OpenDocument texts and presentations.

The canonical text is Markdown written from what a reader sees; the slides of a presentation are
its sections.
"""

import re
from collections.abc import Iterator
from xml.etree.ElementTree import Element

from chunking_assets.errors import CorpusError
from chunking_assets.parsed_elements.archive import Archive, tags
from chunking_assets.parsed_elements.document import Kind, ParsedText, Refused
from chunking_assets.parsed_elements.limits import Limits
from chunking_assets.parsed_elements.markdown_writer import MarkdownWriter

VERSION = 1
LIBRARIES = ("python",)

MAX_REPEATED = 1000
"""Most cells or spaces that a document may say it repeats in one place."""

_SKIPPED = tags(
    "tracked-changes sequence-decls variable-decls user-field-decls forms desc title "
    "alphabetical-index-source table-of-content-source annotation-end settings event-listeners "
    "thumbnail style"
)
_ESCAPED = re.compile(r"_([0-9a-f]{2})_")
_MANIFEST = "META-INF/manifest.xml"


def parse(data: bytes, limits: Limits) -> ParsedText:
    """
    Raises:
        CorpusError: it is no OpenDocument file, or a damaged one.
        Refused: encrypted, or suspicious.
    """
    archive = Archive(data, limits)
    if _MANIFEST in archive and any(True for _ in archive.xml(_MANIFEST).iter("encryption-data")):
        raise Refused("encrypted", "it asks for a password", "Save it without a password.")
    root = archive.xml("content.xml")
    body = root.find("body")
    if body is None:
        raise CorpusError("it has no body: it is damaged. Save it anew.")
    roots = [root, *([archive.xml("styles.xml")] if "styles.xml" in archive else [])]
    document = _Document(roots)
    document.blocks(body)
    document.notes()
    for styles in roots[1:]:
        for page in styles.iter("master-page"):
            for part in page:
                if part.tag.startswith(("header", "footer")):
                    document.margin(part)
    return document.writer.parsed()


class _Document:
    def __init__(self, roots: list[Element]) -> None:
        self.writer = MarkdownWriter()
        self.parents: dict[str, str] = {}
        self.ordered: dict[str, dict[int, bool]] = {}
        self.numbers: dict[tuple[str, int], int] = {}
        for style in (s for root in roots for s in root.iter("style")):
            self.parents[style.get("name", "")] = style.get("parent-style-name", "")
        for style in (s for root in roots for s in root.iter("list-style")):
            self.ordered[style.get("name", "")] = {
                int(level.get("level", "1")): level.tag == "list-level-style-number"
                and bool(level.get("num-format"))
                for level in style
                if level.get("level", "1").isdigit()
            }
        self.found: list[tuple[str, str]] = []
        self.boxes: list[Element] = []
        self.code: list[str] = []
        self.slide: int | None = None
        self.margins: set[str] = set()

    def blocks(self, parent: Element) -> None:
        for block in parent:
            if block.tag not in ("p", "h"):
                self.flush_code()
            if block.tag in ("p", "h"):
                self.paragraph(block)
            elif block.tag == "list":
                self.list(block, 1, "")
            elif block.tag == "table":
                self.table(block)
            elif block.tag == "page":
                self.slide = (self.slide or 0) + 1
                self.writer.headings.enter(1, "")
                self.blocks(block)
            elif block.tag == "frame" and block.get("class") == "title":
                text = " ".join(self.text(p) for p in block.iter("p"))
                self.writer.heading(text, 1, slide=self.slide)
            elif block.tag not in _SKIPPED:
                self.blocks(block)  # sections, indexes, frames, the body itself
        self.flush_code()

    def paragraph(self, paragraph: Element) -> None:
        text = self.text(paragraph).rstrip()
        boxes, self.boxes = self.boxes, []
        names = self.lineage(paragraph)
        level = paragraph.get("outline-level", "1")
        if any("preformatted" in name for name in names) and text:
            self.code.append(text)
        elif text.strip():
            self.flush_code()
            kind: Kind = "paragraph"
            if any(name == "caption" or name in ("illustration", "figure") for name in names):
                kind = "caption"
            elif any(name.startswith("quotation") for name in names):
                kind = "quote"
            if paragraph.tag == "h" or "title" in names or "subtitle" in names:
                level = "2" if "subtitle" in names else level
                self.writer.heading(text, int(level) if level.isdigit() else 1, slide=self.slide)
            else:
                prefix = "> " if kind == "quote" else ""
                self.writer.paragraph(text, kind, prefix=prefix, slide=self.slide)
        for box in boxes:
            self.blocks(box)

    def lineage(self, paragraph: Element) -> list[str]:
        names: list[str] = []
        name = paragraph.get("style-name", "")
        while name and len(names) < 20:
            names.append(_ESCAPED.sub(lambda m: chr(int(m[1], 16)), name).lower())
            name = self.parents.get(name, "")
        return names

    def flush_code(self) -> None:
        code, self.code = self.code, []
        self.writer.code("\n".join(code))

    def list(self, block: Element, depth: int, style: str) -> None:
        style = block.get("style-name", "") or style
        is_ordered = self.ordered.get(style, {}).get(depth, False)
        resumes = block.get("continue-numbering") == "true" or block.get("continue-list")
        number = self.numbers.get((style, depth), 0) if resumes else 0
        for item in block:
            if item.tag not in ("list-item", "list-header"):
                continue
            start = item.get("start-value", "")
            number = int(start) if start.isdigit() else number + 1
            self.numbers[style, depth] = number
            is_first = item.tag == "list-item"
            for part in item:
                if part.tag == "list":
                    self.list(part, depth + 1, style)
                elif part.tag == "h":
                    self.paragraph(part)  # a numbered heading is written as a list
                elif part.tag == "p":
                    text = self.text(part)
                    boxes, self.boxes = self.boxes, []
                    if is_first and text.strip():
                        marker = f"{number}." if is_ordered else "-"
                        self.writer.list_item(text, depth, marker, slide=self.slide)
                        is_first = False
                    else:
                        self.writer.paragraph(text, "list_item", prefix="  " * depth)
                    for box in boxes:
                        self.blocks(box)
                else:
                    self.blocks(part)

    def table(self, table: Element) -> None:
        rows: list[list[str]] = []
        covered: dict[int, tuple[int, str]] = {}
        n_header = 0
        for row, is_header in _rows(table, False):
            line: list[str] = []
            for cell in row:
                if cell.tag == "covered-table-cell":
                    for _ in range(_count(cell, "number-columns-repeated")):
                        left, text = covered.get(len(line), (0, line[-1] if line else ""))
                        if left:
                            covered[len(line)] = left - 1, text
                        line.append(text)
                elif cell.tag == "table-cell":
                    text = self.cell(cell)
                    times = _count(cell, "number-columns-repeated") if text else 1
                    for _ in range(times):
                        for column in range(_count(cell, "number-columns-spanned")):
                            covered[len(line) + column] = (
                                _count(cell, "number-rows-spanned") - 1,
                                text,
                            )
                        line.append(text)
            if any(line):
                n_header += is_header
                rows.append(line)
        if len(rows) == 1 and len(rows[0]) == 1:
            self.writer.paragraph(rows[0][0], slide=self.slide)
        else:
            self.writer.table(rows, n_header or self._bold_header(table), slide=self.slide)

    def _bold_header(self, table: Element) -> int:
        """Whether the first row has the style that LibreOffice gives to headings of a table."""
        row = next((row for row, _ in _rows(table, False)), None)
        paragraphs = list(row.iter("p")) if row is not None else []
        return int(bool(paragraphs) and all("table heading" in self.lineage(p) for p in paragraphs))

    def cell(self, cell: Element) -> str:
        parts = [self.text(p).strip() for p in cell.iter() if p.tag in ("p", "h")]
        self.boxes = []
        return " ".join(filter(None, parts))

    def text(self, node: Element) -> str:
        return "".join(self._inline(node))

    def _inline(self, node: Element) -> Iterator[str]:
        yield _folded(node.text)
        for part in node:
            if part.tag == "s":
                yield " " * _count(part, "c")
            elif part.tag == "tab":
                yield "\t"
            elif part.tag == "line-break":
                yield "\n"
            elif part.tag == "note":
                yield self._note(part)
            elif part.tag == "annotation":
                self.found.append(("", " ".join(self.text(p) for p in part.iter("p"))))
            elif part.tag in ("text-box", "object-ole"):
                self.boxes.append(part)
            elif part.tag == "ruby":
                yield "".join(self.text(p) for p in part if p.tag == "ruby-base")
            elif part.tag not in _SKIPPED and part.tag not in ("p", "h", "list", "table"):
                yield from self._inline(part)
            yield _folded(part.tail)

    def _note(self, note: Element) -> str:
        body = note.find("note-body")
        text = " ".join(self.text(p) for p in body.iter("p")) if body is not None else ""
        number = sum(1 for mark, _ in self.found if mark) + 1
        self.found.append((f"[^{number}]", text))
        return f"[^{number}]"

    def notes(self) -> None:
        for mark, text in self.found:
            if mark:
                self.writer.paragraph(f"{mark}: {text}", "definition", part="footnote")
            else:
                self.writer.paragraph(text, part="comment")

    def margin(self, part: Element) -> None:
        text = "\n".join(filter(None, (self.text(p).strip() for p in part.iter("p"))))
        if text and text not in self.margins:
            self.margins.add(text)
            self.writer.paragraph(text, "furniture", part=part.tag.partition("-")[0])


def _rows(table: Element, is_header: bool) -> Iterator[tuple[Element, bool]]:
    for part in table:
        if part.tag == "table-row":
            yield part, is_header
        elif part.tag in ("table-header-rows", "table-rows", "table-row-group"):
            yield from _rows(part, is_header or part.tag == "table-header-rows")


def _count(node: Element, name: str) -> int:
    value = node.get(name, "1")
    return min(max(int(value), 1), MAX_REPEATED) if value.isdigit() and len(value) < 10 else 1


def _folded(text: str | None) -> str:
    """White space in the source is one space; more is written as elements."""
    return re.sub(r"[ \t\r\n]+", " ", text or "")
