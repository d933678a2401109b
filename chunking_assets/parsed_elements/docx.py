"""Word documents. The canonical text is Markdown written from what a reader of the document sees.

Read straight from the XML: that keeps the numbers that lists and headings are given, text boxes,
notes and merged cells, and reads the strict variant too. Deleted and hidden text is not read.
"""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from xml.etree.ElementTree import Element

from chunking_assets.errors import CorpusError
from chunking_assets.parsed_elements import drawing
from chunking_assets.parsed_elements.archive import Archive, children, tags
from chunking_assets.parsed_elements.document import Kind, ParsedText
from chunking_assets.parsed_elements.limits import Limits
from chunking_assets.parsed_elements.markdown_writer import MarkdownWriter

VERSION = 1
LIBRARIES = ("python",)

MAX_SPAN = 100
MAX_TITLE_CHARS = 120
"""Longer bold paragraphs are no headings, where a document has no headings by style."""

_SKIPPED = tags(
    "pPr rPr del moveFrom instrText delText rt delInstrText tblPr tblGrid trPr tcPr sectPr "
    "sdtPr sdtEndPr Fallback fldData"
)
_OFF = ("0", "false", "off", "none")
_HEADING = re.compile(r"heading (\d)")
_LIST_STYLE = re.compile(r"list (bullet|number)(?: (\d))?")
_CODE_STYLE = re.compile(r"\b(?:source ?)?(?:code|preformatted|macro|verbatim)\b")
_MONO = re.compile(r"courier|consolas|mono|menlo|lucida console", re.IGNORECASE)
_CODE_MARKS = re.compile(r"[{}()\[\];=<>$#\\|]")
"""Without any, text in a typewriter's type is a letter."""
_ENDS = ".,;:"
_ROMAN = (
    (1000, "m"), (900, "cm"), (500, "d"), (400, "cd"), (100, "c"), (90, "xc"), (50, "l"),
    (40, "xl"), (10, "x"), (9, "ix"), (5, "v"), (4, "iv"), (1, "i"),
)  # fmt: skip


def parse(data: bytes, limits: Limits) -> ParsedText:
    """
    Raises:
        CorpusError: it is no Word document, or a damaged one.
        Refused: suspicious.
    """
    archive = Archive(data, limits)
    main = archive.main_part("word/document.xml")
    body = archive.xml(main).find("body")
    if body is None:
        raise CorpusError("it has no body: it is damaged, or no Word document. Save it anew.")
    document = _Document(archive, main)
    every = list(body.iter("p"))
    bold = sum(1 for p in every if document.is_bold(p))
    document.has_headings = 3 * bold > len(every) or any(map(document.styled_level, every))
    document.blocks(body)
    document.notes()
    document.margins()
    return document.writer.parsed()


@dataclass(frozen=True)
class _Style:
    name: str
    parent: str
    level: int | None
    """The outline level from 0; 9 is text."""
    numbered: tuple[str, int] | None
    bold: bool


@dataclass(frozen=True)
class _Level:
    """How a level of a numbered list is shown: `%1.%2` with its numbers as `shown`."""

    shown: str
    pattern: str
    start: int


class _Document:
    def __init__(self, archive: Archive, main: str) -> None:
        self.archive, self.writer = archive, MarkdownWriter()
        self.related = archive.related(main)
        self.parts = dict(self.related.values())
        self.styles = dict(self._styles())
        self.lists = _Lists(self._part("numbering"))
        self.has_headings = True
        self.page: int | None = None
        self.boxes: list[Element] = []
        self.code: list[str] = []
        self.styled_code = False
        self.sizes: list[int] = []

    def _part(self, kind: str) -> Element | None:
        part = self.parts.get(kind, "")
        return self.archive.xml(part) if part in self.archive else None

    def _styles(self) -> Iterator[tuple[str, _Style]]:
        for style in children(self._part("styles"), "style"):
            settings = style.find("pPr")
            yield (
                style.get("styleId", ""),
                _Style(
                    _value(style, "name").lower(),
                    _value(style, "basedOn"),
                    _outline(settings),
                    _numbered(settings),
                    _is_on(style.find("rPr"), "b"),
                ),
            )

    # What a paragraph is

    def lineage(self, paragraph: Element) -> list[_Style]:
        """The paragraph's style and those it is based on."""
        found: list[_Style] = []
        name = _value(paragraph.find("pPr"), "pStyle")
        while name in self.styles and len(found) < 20:
            found.append(self.styles[name])
            name = found[-1].parent
        return found

    def styled_level(self, paragraph: Element) -> int:
        """1-6 for a heading by its style or outline level, else 0."""
        own = _outline(paragraph.find("pPr"))
        styles = self.lineage(paragraph)
        level = (
            own if own is not None else next((s.level for s in styles if s.level is not None), 9)
        )
        if level < 9:
            return min(level + 1, 6)
        for style in styles[:2] if own is None else ():
            if named := _HEADING.fullmatch(style.name):
                return min(max(int(named[1]), 1), 6)
            if style.name in ("title", "subtitle"):
                return 1 if style.name == "title" else 2
        return 0

    def looks_like_heading(self, paragraph: Element, text: str) -> int:
        """The level of a short bold paragraph, by its size, in a document without styles."""
        if self.has_headings or len(text) > MAX_TITLE_CHARS or text[-1:] in _ENDS:
            return 0
        if not self.is_bold(paragraph) or not any(char.isalpha() for char in text):
            return 0
        size = next((v for r in paragraph.iter("r") if (v := _value(r.find("rPr"), "sz"))), "")
        points = int(size) if size.isdigit() else 0
        if points not in self.sizes:
            self.sizes.append(points)
        return min(1 + sum(1 for known in self.sizes if known > points), 6)

    def is_bold(self, paragraph: Element) -> bool:
        """Whether all of its text is."""
        runs = [run for run in paragraph.iter("r") if run.find("t") is not None]
        bold = any(s.bold for s in self.lineage(paragraph))
        return bool(runs) and all(_is_on(r.find("rPr"), "b", default=bold) for r in runs)

    # Blocks

    def blocks(self, parent: Element, **facts: str) -> None:
        for block in parent:
            if block.tag == "p":
                self.paragraph(block, **facts)
            elif block.tag == "tbl":
                self.flush_code()
                self.table(block, **facts)
            elif block.tag == "AlternateContent":
                self.blocks(_alternative(block), **facts)
            elif block.tag not in _SKIPPED:
                self.blocks(block, **facts)  # content controls, insertions, custom markup
        self.flush_code()

    def paragraph(self, paragraph: Element, **facts: str) -> None:
        page = self.page
        text = self.text(paragraph).rstrip()
        boxes, self.boxes = self.boxes, []
        if text:
            where = {"page": page or self.page, **facts}
            self._text_block(paragraph, text, where)
        for box in boxes:
            if box.tag == "txbxContent":
                self.blocks(box, **facts)
            else:
                self._graphics(box)

    def _text_block(
        self, paragraph: Element, text: str, where: "dict[str, int | str | None]"
    ) -> None:
        names = [style.name for style in self.lineage(paragraph)]
        level = self.styled_level(paragraph)
        if not level and self._is_code(paragraph, names):
            self.code.append(text)
            return
        self.flush_code()
        text = text.strip()
        numbered = self._numbering(paragraph)
        label = self.lists.label(*numbered) if numbered else None
        if level or (not numbered and (level := self.looks_like_heading(paragraph, text))):
            self.writer.heading(
                f"{label} {text}" if label and label != "-" else text, level, **where
            )
        elif label:
            self.writer.list_item(text, numbered[1] + 1 if numbered else 1, label, **where)
        elif names and (listed := _LIST_STYLE.fullmatch(names[0])):
            self.writer.list_item(text, int(listed[2] or 1), "-", **where)
        else:
            kind: Kind = "paragraph"
            if "caption" in names:
                kind = "caption"
            elif any(name in ("quote", "intense quote", "block text") for name in names):
                kind = "quote"
            self.writer.paragraph(text, kind, prefix="> " if kind == "quote" else "", **where)

    def _numbering(self, paragraph: Element) -> tuple[str, int] | None:
        settings = paragraph.find("pPr")
        own = _numbered(settings)
        if own is None:
            own = next((s.numbered for s in self.lineage(paragraph) if s.numbered), None)
        return None if own is None or own[0] in ("", "0") else own

    def _is_code(self, paragraph: Element, names: list[str]) -> bool:
        if any(_CODE_STYLE.search(name) for name in names[:2]):
            self.styled_code = True
            return True
        fonts = [_font(run) for run in paragraph.iter("r") if run.find("t") is not None]
        return bool(fonts) and all(map(_MONO.search, fonts))

    def flush_code(self) -> None:
        code, self.code = self.code, []
        if self.styled_code or any(map(_CODE_MARKS.search, code)):
            self.writer.code("\n".join(code), page=self.page)
        else:
            for line in code:
                self.writer.paragraph(line, page=self.page)
        self.styled_code = False

    def _graphics(self, frame: Element) -> None:
        for title, rows in drawing.graphics(self.archive, frame, self.related):
            if rows and len(rows[0]) == 1:
                for (text,) in rows:
                    self.writer.list_item(text, 1, page=self.page)
            else:
                self.writer.paragraph(title, "caption", page=self.page)
                self.writer.table(rows, 1, page=self.page)

    def table(self, table: Element, **facts: str) -> None:
        rows = list(_nested(table, "tr"))
        cells = [list(_nested(row, "tc")) for row in rows]
        every = [cell for row in cells for cell in row]
        # One cell, or headings inside: it arranges blocks on the page.
        if len(every) == 1 or any(
            self.styled_level(p) for cell in every for p in children(cell, "p") if _has_text(p)
        ):
            for cell in every:
                self.blocks(cell, **facts)
            return
        page, grid, above = self.page, [], list[str]()
        for row, of_row in zip(rows, cells, strict=True):
            before = _value(row.find("trPr"), "gridBefore")
            line = [""] * min(int(before) if before.isdigit() else 0, MAX_SPAN)
            for cell in of_row:
                settings = cell.find("tcPr")
                span = _value(settings, "gridSpan")
                merge = settings.find("vMerge") if settings is not None else None
                if merge is not None and merge.get("val", "continue") == "continue":
                    text = above[len(line)] if len(line) < len(above) else ""
                else:
                    text = self.cell(cell)
                line += [text] * min(max(int(span) if span.isdigit() else 1, 1), MAX_SPAN)
            grid.append(line)
            above = line
        self.writer.table(grid, _header_rows(table, rows, cells), page=page or self.page, **facts)

    def cell(self, cell: Element) -> str:
        """What stands in a cell, on one line."""
        parts = []
        for block in cell.iter():
            if block.tag == "p":
                text = self.text(block).strip()
                numbered = self._numbering(block) if text else None
                label = self.lists.label(*numbered) if numbered else None
                parts.append(f"{label} {text}" if label and label != "-" else text)
        boxes, self.boxes = self.boxes, []
        parts += [
            self.text(p).strip() for b in boxes if b.tag == "txbxContent" for p in b.iter("p")
        ]
        return " ".join(filter(None, parts))

    # Text

    def text(self, node: Element) -> str:
        return "".join(self._inline(node))

    def _inline(self, node: Element) -> Iterator[str]:
        for part in node:
            tag = part.tag
            if tag == "t":
                yield part.text or ""
            elif tag in ("tab", "ptab"):
                yield "\t"
            elif tag in ("br", "cr"):
                yield "" if part.get("type") in ("page", "column") else "\n"
            elif tag == "noBreakHyphen":
                yield "\u2011"
            elif tag == "sym":
                yield _symbol(part)
            elif tag == "lastRenderedPageBreak":
                self.page = (self.page or 1) + 1
            elif tag in ("footnoteReference", "endnoteReference"):
                yield f"[^{tag[0] if tag[0] == 'e' else ''}{part.get('id', '')}]"
            elif tag == "txbxContent":
                self.boxes.append(part)
            elif tag in ("chart", "relIds"):
                holder = Element("frame")
                holder.append(part)
                self.boxes.append(holder)
            elif tag == "AlternateContent":
                yield from self._inline(_alternative(part))
            elif tag == "r" and _is_on(part.find("rPr"), "vanish"):
                continue  # hidden
            elif tag not in ("p", "tbl") and tag not in _SKIPPED:
                yield from self._inline(part)

    # What stands outside the body

    def notes(self) -> None:
        for kind, tag, mark in (("footnotes", "footnote", ""), ("endnotes", "endnote", "e")):
            for note in children(self._part(kind), tag):
                if note.get("type", "normal") == "normal":
                    text = " ".join(filter(None, (self.text(p).strip() for p in note.iter("p"))))
                    if text:
                        label = f"[^{mark}{note.get('id', '')}]: {text}"
                        self.writer.paragraph(label, "definition", part=tag)
        for comment in children(self._part("comments"), "comment"):
            text = " ".join(filter(None, (self.text(p).strip() for p in comment.iter("p"))))
            if text:
                author = comment.get("author") or None
                self.writer.paragraph(text, part="comment", author=author)

    def margins(self) -> None:
        """Headers and footers, each once."""
        seen = set()
        for kind, part in self.related.values():
            if kind in ("header", "footer") and part in self.archive:
                lines = (self.text(p).strip() for p in self.archive.xml(part).iter("p"))
                text = "\n".join(filter(None, lines))
                if text and text not in seen:
                    seen.add(text)
                    self.writer.paragraph(text, "furniture", part=kind)


class _Lists:
    """The numbers that lists and numbered headings show."""

    def __init__(self, numbering: Element | None) -> None:
        kinds = {
            kind.get("abstractNumId", ""): _levels(kind)
            for kind in children(numbering, "abstractNum")
        }
        self.kinds: dict[str, tuple[str, dict[int, _Level]]] = {}
        self.restarts: dict[str, dict[int, int]] = {}
        for number in children(numbering, "num"):
            name, kind = number.get("numId", ""), _value(number, "abstractNumId")
            own = dict(kinds.get(kind, {}))
            for override in children(number, "lvlOverride"):
                level, start = override.get("ilvl", ""), _value(override, "startOverride")
                if level.isdigit() and start.isdigit():
                    self.restarts.setdefault(name, {})[int(level)] = int(start)
                own |= _levels(override)
            self.kinds[name] = (kind, own)
        self.counts: dict[str, Counter[int]] = {}

    def label(self, name: str, level: int) -> str | None:
        """The label of the next item: "-" for a bullet, None where it shows none."""
        if name not in self.kinds:
            return "-"
        kind, levels = self.kinds[name]
        if level not in levels:
            return "-"
        counts = self.counts.setdefault(kind, Counter())
        for restarted, start in self.restarts.pop(name, {}).items():
            counts[restarted] = start - 1
            for deeper in [d for d in counts if d > restarted]:
                del counts[deeper]
        if level not in counts:
            counts[level] = levels[level].start - 1
        counts[level] += 1
        for deeper in [d for d in counts if d > level]:
            del counts[deeper]
        if levels[level].shown == "bullet":
            return "-"

        def shown(place: "re.Match[str]") -> str:
            other = int(place[1]) - 1
            if other not in levels:
                return ""
            count = counts[other] if other in counts else levels[other].start
            return _counted(count, levels[other].shown)

        return re.sub(r"%(\d)", shown, levels[level].pattern).strip() or None


def _levels(parent: Element) -> dict[int, _Level]:
    found = {}
    for level in children(parent, "lvl"):
        if (at := level.get("ilvl", "")).isdigit():
            start = _value(level, "start")
            found[int(at)] = _Level(
                _value(level, "numFmt"),
                _value(level, "lvlText"),
                int(start) if start.isdigit() else 1,
            )
    return found


def _counted(number: int, form: str) -> str:
    """
    >>> _counted(4, "lowerRoman"), _counted(28, "upperLetter"), _counted(7, "decimalZero")
    ('iv', 'BB', '07')
    """
    if form.endswith("Letter") and 0 < number < 1000:
        letters = chr(97 + (number - 1) % 26) * ((number - 1) // 26 + 1)
        return letters.upper() if form == "upperLetter" else letters
    if form.endswith("Roman") and 0 < number < 4000:
        letters = ""
        for value, letter in _ROMAN:
            letters += letter * (number // value)
            number %= value
        return letters.upper() if form == "upperRoman" else letters
    if form == "none":
        return ""
    return f"{number:02d}" if form == "decimalZero" else str(number)


def _header_rows(table: Element, rows: list[Element], cells: list[list[Element]]) -> int:
    """Rows marked to repeat on each page; else the first, if its style or bold type sets it off."""
    marked = 0
    for row in rows:
        if not _is_on(row.find("trPr"), "tblHeader"):
            break
        marked += 1
    if marked or len(rows) < 2:
        return marked
    settings = table.find("tblPr")
    look = settings.find("tblLook") if settings is not None else None
    if look is not None:
        first = look.get("firstRow") == "1" or int(_hex(look.get("val", "")), 16) & 0x20
        plain = _value(settings, "tblStyle").lower() in ("", "tablegrid", "tablenormal")
        if first and not plain:
            return 1
    runs = [r for cell in cells[0] for r in cell.iter("r") if r.find("t") is not None]
    return int(bool(runs) and all(_is_on(run.find("rPr"), "b") for run in runs))


def _hex(text: str) -> str:
    return text if re.fullmatch(r"[0-9A-Fa-f]{1,8}", text) else "0"


def _nested(parent: Element, tag: str) -> Iterator[Element]:
    """The rows of a table or cells of a row, out of what may be wrapped around them."""
    for child in parent:
        if child.tag == tag:
            settings = child.find("trPr")
            if settings is None or settings.find("del") is None:
                yield child
        elif child.tag in ("sdt", "sdtContent", "ins", "customXml", "smartTag"):
            yield from _nested(child, tag)


def _alternative(choices: Element) -> Element:
    """What a newer program shows, or else what an older one would."""
    choice = choices.find("Choice")
    if choice is None or not any(True for _ in choice.iter("t")):
        fallback = choices.find("Fallback")
        if fallback is not None and any(True for _ in fallback.iter("t")):
            return fallback
    return choice if choice is not None else Element("nothing")


def _has_text(node: Element) -> bool:
    return any(t.text and t.text.strip() for t in node.iter("t"))


def _value(parent: Element | None, tag: str) -> str:
    child = parent.find(tag) if parent is not None else None
    return "" if child is None else child.get("val", "")


def _is_on(parent: Element | None, tag: str, *, default: bool = False) -> bool:
    child = parent.find(tag) if parent is not None else None
    return default if child is None else child.get("val", "1").lower() not in _OFF


def _outline(settings: Element | None) -> int | None:
    level = _value(settings, "outlineLvl")
    return int(level) if level.isdigit() else None


def _numbered(settings: Element | None) -> tuple[str, int] | None:
    found = settings.find("numPr") if settings is not None else None
    if found is None:
        return None
    level = _value(found, "ilvl")
    return _value(found, "numId"), min(int(level) if level.isdigit() else 0, 8)


def _font(run: Element) -> str:
    settings = run.find("rPr")
    fonts = settings.find("rFonts") if settings is not None else None
    return "" if fonts is None else fonts.get("ascii", "")


def _symbol(part: Element) -> str:
    code = int(_hex(part.get("char", "")), 16)
    return "•" if 0xF000 <= code < 0xF100 else chr(code) if 0 < code < 0x110000 else ""
