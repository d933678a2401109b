"""PDF: lines of text where they lie on the page, made into headings, paragraphs, lists and tables.

A PDF says where glyphs go and nothing about what they are for. pdfium gives the reading order and
the words; size, weight and place of each line say the rest. The order is only changed where two
columns come row by row. What pages repeat in their margins stays in the text as furniture.
"""

import ctypes
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import pairwise
from math import hypot
from statistics import median
from typing import Any, NamedTuple

from chunking_assets.errors import CorpusError
from chunking_assets.parsed_elements.document import ParsedText, Refused
from chunking_assets.parsed_elements.limits import Limits
from chunking_assets.parsed_elements.markdown_writer import MarkdownWriter
from chunking_assets.parsed_elements.ruled_lines import Grid, grids

VERSION = 3
LIBRARIES = ("pypdfium2",)

LEAST_CHARS = 20
"""A page with fewer is looked at for what it shows instead."""
SCAN_SHARE = 0.5
"""Of the page, covered by pictures: the text is in them."""
DRAWN_PATHS = 200
"""A page without text that draws as many shapes draws its letters."""
UNREADABLE_SHARE = 0.3
"""Of a page's characters without a known meaning: its fonts do not say what they show."""
LARGER = 1.12
"""Times the size of the body: a heading."""
MAX_HEADING_CHARS = 200
CELL_GAP = 1.0
"""Sizes of its letters between two words: they stand in different cells."""
LOOK_BACK = 50
"""Lines of a paragraph that the next one is compared with."""
FILLED_SHARE = 0.4
"""Of the cells between ruled lines, with text: a table; fewer are a drawing, or an empty form."""
APART_SHARE = 0.7
"""Of the places for cells, with lines on all sides: fewer, and the lines are those of a drawing."""
CUT_SHARE = 0.1
"""Of the words, that lines go through: more, and they are no cells."""
ROWS_IN_A_CELL = 4
"""As many lines of text between two ruled ones, of which there are only a few: rows of a table."""
MARGIN = 0.15
"""Of the page's height, above and below: where running headers and footers are looked for."""

_BULLETS = "•◦▪‣·●○■□➢➤✓✔*\u2013\u2014\u2043\uf0b7\uf0a7\uf0d8\uf0fc-"
_MARKER = re.compile(rf"(?:([{_BULLETS}])|(\(?\d{{1,3}}[.)]|\(?[a-zA-Z][.)]))(?=\s)\s*")
_CAPTION = re.compile(
    r"(?:fig(?:ure|ura|\.)?|table|tab(?:elle|la|ela|leau|\.)?|abb(?:ildung|\.)?|quadro)"
    r"\s*[\dIVX]+[\d.]*[.:\s–-]",
    re.IGNORECASE,
)
_ENDS = re.compile(r"[.!?:;。！？…][\"'”’»)\]]*\Z")
_LETTER = re.compile(r"[^\W\d_]")
_TITLE_WORD = re.compile(r"[^\W\d_]{3}|[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_NUMBER = re.compile(r"\d+")
_AMOUNT = re.compile(r"[^\w\s]?\s?\d[\d.,:/ ]*\s?[^\w\s]?")
_UNKNOWN = re.compile("[\x00-\x08\x0e-\x1f\ufffd\ue000-\uf8ff]")
_HALF = re.compile("[\ud800-\udfff]")
_WORD = re.compile(r"\S+")
_BOLD = re.compile(r"bold|black|heavy|demi|medi(?!um)|(?:cm|sf|ec)bx|[-,]bd", re.IGNORECASE)
_MONO = re.compile(r"mono|courier|consol|cmtt|typewriter|menlo", re.IGNORECASE)
_HYPHEN = "\ufffe"
"""What pdfium writes for a hyphen at the end of a line, with the next line right behind it."""


class _Word(NamedTuple):
    text: str
    left: float
    right: float


class _Style(NamedTuple):
    size: float
    bold: bool
    mono: bool


@dataclass(slots=True)
class _Row:
    """What stands on one baseline. `flat` text runs along the page's lines and has a place."""

    page: int
    words: list[_Word]
    y: float
    style: _Style
    flat: bool = True
    hyphen: bool = False
    furniture: bool = False
    grid: Grid | None = None
    """The ruled table that it stands in."""

    @property
    def text(self) -> str:
        return " ".join(word.text for word in self.words)

    @property
    def left(self) -> float:
        return min(word.left for word in self.words)

    @property
    def right(self) -> float:
        return max(word.right for word in self.words)

    def cells(self) -> list[list[_Word]]:
        """Its words, cut where more than a space lies between them."""
        cells = [[self.words[0]]]
        for word in self.words[1:]:
            if self.flat and word.left - cells[-1][-1].right > CELL_GAP * self.style.size:
                cells.append([])
            cells[-1].append(word)
        return cells


@dataclass(slots=True)
class _Page:
    number: int
    height: float
    rows: list[_Row] = field(default_factory=list)
    lack: str | None = None
    """Why it has no text, though it shows something."""


def parse(data: bytes, limits: Limits) -> ParsedText:
    """
    Raises:
        Refused: it asks for a password, or all its pages are pictures of text.
        CorpusError: it cannot be opened as PDF.
    """
    with opened(data) as document:
        n_pages = len(document)
        pages = [_read(document, i) for i in range(min(n_pages, limits.pages))]
        outline = _outline(document)
    lacks = {page.number: page.lack for page in pages if page.lack}
    has_text = any(page.rows for page in pages)
    return _written(pages, outline, missing(data, n_pages, limits, lacks, has_text))


@contextmanager
def opened(data: bytes) -> Iterator[Any]:
    """The document as pypdfium2 has it.

    Raises:
        Refused: it asks for a password.
        CorpusError: it cannot be opened as PDF.
    """
    import pypdfium2
    from pypdfium2 import raw

    try:
        document = pypdfium2.PdfDocument(data)
    except pypdfium2.PdfiumError as error:
        if getattr(error, "err_code", None) in (raw.FPDF_ERR_PASSWORD, raw.FPDF_ERR_SECURITY):
            raise Refused(
                "encrypted", "it asks for a password", "Save it without a password."
            ) from error
        raise CorpusError(
            "it cannot be opened as PDF: it is cut short, damaged, or something else under this "
            "name. Save it anew."
        ) from error
    try:
        yield document
    finally:
        document.close()


def missing(
    data: bytes, n_pages: int, limits: Limits, lacks: Mapping[int, str], has_text: bool
) -> str | None:
    """What of a document is not read; `lacks` says of pages, by number, why they have no text.

    Raises:
        Refused: needs_ocr, if nothing is read.
    """
    numbers = sorted(lacks)
    if lacks and not has_text:
        where = f"{len(lacks)} of its {n_pages} pages"
        if len(lacks) == n_pages:
            where = f"all of its {n_pages} pages" if n_pages > 1 else "its only page"
        raise Refused(
            "needs_ocr",
            f"{lacks[numbers[0]]}, on {where}",
            "Add a text layer with an OCR program (for example ocrmypdf), or exclude it.",
        )
    found = [f"page {_ranges(numbers)}: {lacks[numbers[0]]}"] if lacks else []
    if n_pages > limits.pages:
        found.append(f"only {limits.pages:,} of {n_pages:,} pages are read (parsing.pages)")
    if b"%%EOF" not in data[-2048:]:
        found.append("the file is cut short; what could be recovered is read")
    return "; ".join(found) or None


def _ranges(numbers: Sequence[int]) -> str:
    """
    >>> _ranges([1, 2, 3, 7])
    '1-3, 7'
    """
    spans: list[list[int]] = []
    for number in numbers:
        if spans and number == spans[-1][1] + 1:
            spans[-1][1] = number
        else:
            spans.append([number, number])
    return ", ".join(f"{a}-{b}" if b > a else f"{a}" for a, b in spans)


# Reading


def _read(document: Any, index: int) -> _Page:
    import pypdfium2

    try:
        page = document[index]
        text_page = page.get_textpage()
    except pypdfium2.PdfiumError:
        return _Page(index + 1, 0, lack="damaged")
    try:
        read = _Page(index + 1, page.get_height())
        glyphs = _Glyphs(text_page, page)
        n_ink = sum(map(len, glyphs.text.split()))
        if n_ink < LEAST_CHARS:
            read.lack = _shows(page)
        elif len(_UNKNOWN.findall(glyphs.text)) > UNREADABLE_SHARE * n_ink:
            read.lack = "fonts that do not say which letters they show"
        if n_ink and read.lack in (None, _PICTURE):
            read.rows = _merged(_rows(glyphs, read.number))
            for grid in grids(page) if read.rows and not page.get_rotation() else ():
                read.rows = _gridded(read.rows, grid)
        return read
    finally:
        text_page.close()
        page.close()


_PICTURE = "pictures of text"


def page_lacks(document: Any, number: int) -> str | None:
    """Why the page of this number has no text, though it shows something."""
    import pypdfium2

    try:
        page = document[number - 1]
    except pypdfium2.PdfiumError:
        return "damaged"
    try:
        return _shows(page)
    finally:
        page.close()


def _shows(page: Any) -> str | None:
    """What a page without text has instead."""
    from pypdfium2 import raw

    width, height = page.get_size()
    covered = 0.0
    paths = 0
    for thing in page.get_objects(max_depth=4):
        if thing.type == raw.FPDF_PAGEOBJ_IMAGE:
            left, bottom, right, top = thing.get_bounds()
            across = min(right, max(width, height)) - max(left, 0)
            up = min(top, max(width, height)) - max(bottom, 0)
            covered += max(across, 0) * max(up, 0)
        elif thing.type == raw.FPDF_PAGEOBJ_PATH:
            paths += 1
    if covered > SCAN_SHARE * width * height:
        return _PICTURE
    return "drawn shapes in place of text" if paths >= DRAWN_PATHS else None


class _Glyphs:
    """A page's characters by their index, which is that of `text`."""

    def __init__(self, text_page: Any, page: Any) -> None:
        from pypdfium2 import raw

        self._raw, self._page = raw, text_page.raw
        text = text_page.get_text_range() if text_page.count_chars() else ""
        count = text_page.count_chars()
        if len(text) != count:  # characters beyond 16 bits, which come as two, or left out
            codes = (raw.FPDFText_GetUnicode(self._page, i) for i in range(count))
            text = "".join(chr(code) if code < 0x110000 else "\ufffd" for code in codes)
        self.text = text
        self._turned = page.get_rotation() in (90, 270)
        self._edges = [ctypes.c_double() for _ in range(4)]
        self._out = [ctypes.byref(edge) for edge in self._edges]
        self._matrix = raw.FS_MATRIX()
        self._fonts: dict[bytes, tuple[bool, bool]] = {}

    def span(self, first: int, last: int) -> tuple[float, float]:
        """From where to where along the line the characters `first` to `last` reach."""
        left, right = self._box(first)
        if last != first:
            other_left, other_right = self._box(last)
            left, right = min(left, other_left), max(right, other_right)
        return left, right

    def _box(self, index: int) -> tuple[float, float]:
        left, right, bottom, top = self._edges
        self._raw.FPDFText_GetCharBox(self._page, index, *self._out)
        if self._turned:
            left, right = bottom, top
        return _finite(left.value), _finite(right.value)

    def baseline(self, index: int) -> float:
        x, y = self._edges[:2]
        self._raw.FPDFText_GetCharOrigin(self._page, index, *self._out[:2])
        return _finite(-x.value if self._turned else y.value)

    def is_flat(self, index: int) -> bool:
        if self._turned:
            return True
        angle = self._raw.FPDFText_GetCharAngle(self._page, index)
        return bool(angle < 0.05 or angle > 6.23)

    def style(self, index: int) -> _Style:
        size = self._raw.FPDFText_GetFontSize(self._page, index)
        if self._raw.FPDFText_GetMatrix(self._page, index, ctypes.byref(self._matrix)):
            size *= hypot(self._matrix.c, self._matrix.d) or 1
        bold, mono = self._font(index)
        return _Style(round(2 * _finite(size)) / 2, bold, mono)

    def _font(self, index: int) -> tuple[bool, bool]:
        name, flags = ctypes.create_string_buffer(128), ctypes.c_int()
        self._raw.FPDFText_GetFontInfo(self._page, index, name, 128, ctypes.byref(flags))
        if name.value not in self._fonts:
            called = name.value.decode("utf-8", "replace")
            heavy = self._raw.FPDFText_GetFontWeight(self._page, index) >= 600
            self._fonts[name.value] = (
                bool(_BOLD.search(called)) or heavy or bool(flags.value & 1 << 18),
                bool(_MONO.search(called)) or bool(flags.value & 1),
            )
        return self._fonts[name.value]


def _paired(text: str) -> str:
    r"""
    >>> _paired("\ud835\udc61 = 1")
    '𝑡 = 1'
    """
    if not _HALF.search(text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _finite(number: float) -> float:
    """Damaged files place glyphs nowhere, or far off."""
    return number if -1e6 < number < 1e6 else 0.0


def _rows(glyphs: _Glyphs, page: int) -> Iterator[_Row]:
    """One row for each line that pdfium sees, in its order."""
    start = 0
    for line in re.split(f"(\r\n|\n|\r|{_HYPHEN})", glyphs.text):
        words = []
        for match in _WORD.finditer(line.replace(_HYPHEN, " ")):
            first, last = start + match.start(), start + match.end() - 1
            words.append((_Word(_paired(match.group()), *glyphs.span(first, last)), first))
        if words:
            sampled = [words[i][1] for i in {0, len(words) // 2, len(words) - 1}]
            styles = [glyphs.style(index) for index in sampled]
            style = _Style(
                median(s.size for s in styles),
                all(s.bold for s in styles),
                all(s.mono for s in styles),
            )
            after = start + len(line)
            yield _Row(
                page,
                [word for word, _ in words],
                glyphs.baseline(words[0][1]),
                style,
                flat=glyphs.is_flat(words[0][1]),
                hyphen=glyphs.text[after : after + 1] == _HYPHEN,
            )
        start += len(line)


def _merged(rows: Iterator[_Row]) -> list[_Row]:
    """Rows on one baseline that follow each other to the right are one."""
    merged: list[_Row] = []
    for row in rows:
        last = merged[-1] if merged else None
        if (
            last
            and last.flat
            and row.flat
            and not last.hyphen
            and abs(last.y - row.y) < 0.25 * max(row.style.size, 4)
            and row.left >= last.right - 0.2 * row.style.size
        ):
            last.words += row.words
            last.hyphen = row.hyphen
            if row.style != last.style:
                size = max(row.style.size, last.style.size)
                both = row.style, last.style
                last.style = _Style(size, all(s.bold for s in both), all(s.mono for s in both))
        else:
            merged.append(row)
    return merged


def _gridded(rows: list[_Row], grid: Grid) -> list[_Row]:
    """The rows, those in a ruled table together where the first of them stands; as they are, if
    the lines are those of no table."""
    inside, around, position = list[_Row](), list[_Row](), 0
    for row in rows:
        is_in = [row.flat and row.grid is None and _cell_of(w, row, grid) for w in row.words]
        parts = [[w for w, i in zip(row.words, is_in, strict=True) if bool(i) == k] for k in (1, 0)]
        if parts[0]:
            position = position if inside else len(around)
            inside.append(replace(row, words=parts[0], grid=grid))
        if parts[1]:
            around.append(replace(row, words=parts[1]) if parts[0] else row)
    if not _is_table(inside, grid):
        return rows
    return [*around[:position], *inside, *around[position:]]


def _cell_of(word: _Word, row: _Row, grid: Grid) -> tuple[int, int] | None:
    return grid.place((word.left + word.right) / 2, row.y + 0.3 * row.style.size)


def _is_table(rows: Sequence[_Row], grid: Grid) -> bool:
    """Whether the text between these lines is that of cells."""
    cells = {cell for row in rows for w in row.words if (cell := _cell_of(w, row, grid))}
    if len({row for row, _ in cells}) < 2 or len({column for _, column in cells}) < 2:
        return False
    words = [(w, row) for row in rows for w in row.words]
    n_cut = sum(grid.cuts(w.left, w.right, row.y + 0.3 * row.style.size) for w, row in words)
    baselines = Counter(cell[0] for cell in {(_cell_of(r.words[0], r, grid), r.y) for r in rows})
    return (
        len(cells) >= FILLED_SHARE * grid.n_cells()
        and grid.n_cells() >= APART_SHARE * grid.n_rows * grid.n_columns
        and n_cut <= CUT_SHARE * len(words)
        # Lines around the header and the whole only say nothing of the rows between them.
        and (grid.n_rows > 2 or max(baselines.values()) < ROWS_IN_A_CELL)
    )


def _outline(document: Any) -> dict[tuple[int, str], int]:
    """The levels of the titles that the outline names: by page and title."""
    levels: dict[tuple[int, str], int] = {}
    try:
        for bookmark in document.get_toc(max_depth=6):
            target = bookmark.get_dest()
            index = target.get_index() if target else None
            if index is not None:
                title = _plain(bookmark.get_title())
                levels.setdefault((index + 1, title), bookmark.level + 1)
    except (ValueError, RuntimeError, UnicodeDecodeError):  # an outline is a help, no more
        return levels
    return levels


def _plain(title: str) -> str:
    """A title by its letters: outlines leave out the numbers, or add some."""
    return "".join(_LETTER.findall(title)).lower()


# Furniture


def _mark_furniture(pages: Sequence[_Page]) -> None:
    """Mark what stands at one height in the margins of several pages, numbers aside."""
    places: dict[tuple[str, int], list[tuple[int, _Row]]] = defaultdict(list)
    for page in pages:
        flat = sorted((r for r in page.rows if r.flat), key=lambda r: r.y)
        edge = MARGIN * page.height
        low = [r for r in _apart(flat) if r.y < edge]
        high = [r for r in _apart(flat[::-1]) if r.y > page.height - edge]
        for row in low + high:
            shown = _NUMBER.sub("#", row.text.lower())
            for shift in (0, 4):
                places[shown, int((row.y + shift) // 8)].append((page.number, row))
    least = 3 if len(pages) > 2 else 2
    for (shown, _), found in places.items():
        numbers = {number for number, _ in found}
        if len(numbers) < least or len(pages) < 2:
            continue
        if not _LETTER.search(shown):  # a number is that of the page only if it counts them
            steps = Counter(
                int(shown_number) - number
                for number, row in found
                for shown_number in _NUMBER.findall(row.text)[:1]
                if len(shown_number) < 7
            )
            if not steps or steps.most_common(1)[0][1] < least:
                continue
        for _, row in found:
            row.furniture = True


def _apart(rows: Sequence[_Row]) -> Sequence[_Row]:
    """The first of the rows, from an edge of the page inwards, as far as the next one keeps a
    distance; none if there is none soon."""
    for number in range(1, min(3, len(rows))):
        size = max(rows[number - 1].style.size, rows[number].style.size)
        if abs(rows[number].y - rows[number - 1].y) > 1.8 * size:
            return rows[:number]
    return rows if len(rows) < 2 else ()


# Writing


def _written(
    pages: Sequence[_Page], outline: dict[tuple[int, str], int], missing: str | None
) -> ParsedText:
    _mark_furniture(pages)
    rows = [row for page in pages for row in page.rows]
    writer = MarkdownWriter()
    _Layout(writer, rows, outline).write()
    return writer.parsed(missing=missing)


class _Layout:
    """Rows to blocks. What is usual in the document decides what stands out in it."""

    def __init__(
        self, writer: MarkdownWriter, rows: list[_Row], outline: dict[tuple[int, str], int]
    ) -> None:
        self.writer, self.rows, self.outline = writer, rows, outline
        chars: Counter[_Style] = Counter()
        for row in rows:
            if not row.furniture:
                chars[row.style] += len(
                    _LETTER.findall(row.text)
                )  # the labels of an axis do not count
        self.chars, self.total = chars, max(1, chars.total())
        sizes: Counter[float] = Counter()
        for style, count in chars.items():
            sizes[style.size] += count
        self.body = sizes.most_common(1)[0][0] if sizes else 0.0
        self.body_bold = 2 * sum(n for s, n in chars.items() if s.bold) > self.total
        self.body_mono = 2 * sum(n for s, n in chars.items() if s.mono) > self.total
        self.levels = self._levels()
        self.words = Counter(word.text for row in rows for word in row.words)
        self.leading = self._leading()
        self.list_lefts: list[float] = []

    def _levels(self) -> dict[_Style, int]:
        """Heading styles by size, largest first; bold text of the body's size comes last."""
        styles = [s for s, n in self.chars.items() if n <= 0.3 * self.total]
        sizes = sorted({s.size for s in styles if s.size >= LARGER * self.body}, reverse=True)
        ranks = {size: rank for rank, size in enumerate(sizes, 1)}
        levels = {s: min(ranks[s.size], 6) for s in styles if s.size in ranks}
        if not self.body_bold:
            last = min(len(sizes) + 1, 6)
            levels |= {
                s: last for s in styles if s.bold and s not in levels and s.size >= 0.95 * self.body
            }
        return levels

    def _leading(self) -> float:
        """The usual distance of two lines, in sizes of their letters."""
        steps = [
            (a.y - b.y) / a.style.size
            for a, b in zip(self.rows, self.rows[1:], strict=False)
            if a.page == b.page and a.style == b.style and a.style.size and a.flat and b.flat
        ]
        usual = [step for step in steps if 0.8 < step < 3]
        return median(usual) if usual else 1.2

    def write(self) -> None:
        position = 0
        while position < len(self.rows):
            row = self.rows[position]
            if row.furniture:
                self.writer.paragraph(row.text, "furniture", page=row.page)
                position += 1
            elif n_rows := self._ruled(position) or self._table(position) or self._code(position):
                position += n_rows
            else:
                block, furniture, position = self._gathered(position)
                self._block(block)
                for row in furniture:
                    self.writer.paragraph(row.text, "furniture", page=row.page)

    # Paragraphs, headings, list items

    def _gathered(self, position: int) -> tuple[list[_Row], list[_Row], int]:
        """The rows of the block that begins here, the furniture of the pages that it runs over,
        and the position after both."""
        block, passed = [self.rows[position]], list[_Row]()
        after = position + 1
        while after < len(self.rows):
            at = after
            while at < len(self.rows) and self.rows[at].furniture:
                at += 1
            if at == len(self.rows) or not self._continues(block, at):
                break
            passed += self.rows[after:at]
            block.append(self.rows[at])
            after = at + 1
        return block, passed, after

    def _continues(self, block: Sequence[_Row], at: int) -> bool:
        """Whether row `at` goes on with the block of these rows."""
        opening, before, row = block[0], block[-1], self.rows[at]
        if row.flat != before.flat or row.page > before.page + 1 or row.grid:
            return False
        is_over = row.page != before.page
        if before.hyphen:
            return not is_over or row.text[:1].islower()
        if row.style.bold != before.style.bold or not (
            0.9 <= row.style.size / (before.style.size or 1) <= 1.1
        ):
            return False
        if _MARKER.match(row.text) or _CAPTION.match(row.text) or _is_contents_entry(before.text):
            return False
        if len(row.cells()) > 1 and self._table(at, write=False):
            return False
        size = max(before.style.size, 1)
        recent = block[-LOOK_BACK:]
        step, ended = before.y - row.y, bool(_ENDS.search(before.text))
        if is_over:  # as into a new column, but of text that looks the same
            looks = row.style == before.style and row.flat
            return looks and not ended and row.text[:1].islower()
        if not row.flat:
            return abs(step) < 3 * size
        if not 0 < step <= 1.25 * self.leading * size:
            # A new column goes on with a sentence; anything else is apart.
            is_column = step < 0 and row.left > max(r.right for r in recent)
            return is_column and not ended and row.text[:1].islower()
        if row.right < before.left or row.left > before.right:
            return False
        marker = _MARKER.match(opening.text)
        if marker and row.left < opening.left - 0.5 * size:
            return False
        if marker and ended and len(block) > 1 and row.left < before.left - 0.5 * size:
            return False
        widest = max(r.right for r in recent)
        if ended and before.right < max(widest, row.right) - 0.12 * (widest - opening.left):
            return False
        left = min(r.left for r in recent)
        indented = not marker and 0.8 * size < row.left - left < 6 * size
        return not (ended and indented)

    def _block(self, rows: Sequence[_Row]) -> None:
        text, first = self._joined(rows), rows[0]
        level = self._heading_level(rows, text)
        if level:
            self.list_lefts = []
            self.writer.heading(text, level, page=first.page)
            return
        marker = _MARKER.match(text)
        if marker and len(text) > marker.end() and first.flat:
            while self.list_lefts and first.left < self.list_lefts[-1] - 2:
                self.list_lefts.pop()
            if not self.list_lefts or first.left > self.list_lefts[-1] + 2:
                self.list_lefts.append(first.left)
            depth = len(self.list_lefts)
            shown = "-" if marker[1] else marker[2]
            self.writer.list_item(text[marker.end() :], depth, shown, **_pages(rows))
            return
        self.list_lefts = []
        kind = "caption" if _CAPTION.match(text) else "paragraph"
        self.writer.paragraph(text, kind, **_pages(rows))  # type: ignore[arg-type]

    def _heading_level(self, rows: Sequence[_Row], text: str) -> int:
        """1 to 6, or 0 for no heading."""
        style = rows[0].style
        if (
            len(text) > MAX_HEADING_CHARS
            or len(rows) > 3
            or not _TITLE_WORD.search(text)
            or _is_contents_entry(text)
        ):
            return 0
        if named := self.outline.get((rows[0].page, _plain(text))):
            return named
        level = self.levels.get(style, 0)
        if not level or style.mono or _CAPTION.match(text) or not rows[0].flat:
            return 0
        if style.size < LARGER * self.body and text.rstrip()[-1:] in ".,;:":
            return 0
        return level

    def _joined(self, rows: Sequence[_Row]) -> str:
        text = ""
        for before, row in zip([None, *rows[:-1]], rows, strict=True):
            if before is None:
                text = row.text
            elif before.hyphen:
                text += self._hyphen(text, row.text) + row.text
            else:
                text += " " + row.text
        return text

    def _hyphen(self, text: str, after: str) -> str:
        """What stays of a hyphen at a line's end: nothing, unless the word is written with it."""
        head, tail = text.rpartition(" ")[2], after.partition(" ")[0]
        if not tail[:1].islower():
            return "-"
        return "-" if self.words[f"{head}-{tail}"] > self.words[head + tail] else ""

    # Code

    def _code(self, position: int) -> int:
        """Write the code that begins here, and say how many rows it takes; 0 for none."""
        if self.body_mono:
            return 0
        rows: list[_Row] = []
        for row in self.rows[position:]:
            if not row.style.mono or row.furniture or row.page != self.rows[position].page:
                break
            rows.append(row)
        if len(rows) < 2:
            return 0
        left, step = min(r.left for r in rows), 0.6 * rows[0].style.size or 1.0
        lines = [" " * min(round((r.left - left) / step), 80) + r.text for r in rows]
        self.writer.code("\n".join(lines), page=rows[0].page)
        return len(rows)

    # Tables and columns

    def _table(self, position: int, *, write: bool = True) -> int:
        """Write the table, or the columns, that begin here; how many rows they take, 0 for none."""
        first = self.rows[position]
        if len(first.cells()) < 2 or _is_contents_entry(first.text):
            return 0
        grid, columns, heads, n_rows = self._grid(position)
        full = [line for line in grid if sum(map(bool, line)) > 1]
        if len(full) < (3 if len(columns) == 2 else 2) or 2 * len(full) < len(grid):
            return 0
        if not write:
            return n_rows
        rows = self.rows[position : position + n_rows]
        texts = _texts(grid)
        if len(columns) == 2 and all(
            median(len(line[c]) for line in texts if line[c]) > 28 for c in (0, 1)
        ):
            self._columns(rows, columns)
            return n_rows
        grid, columns, heads, n_rows = self._grid(position, over_pages=True)
        self._write_table(_texts(grid), heads, self.rows[position : position + n_rows])
        return n_rows

    def _ruled(self, position: int) -> int:
        """Write the table between ruled lines that begins here, and say how many rows it takes."""
        grid = self.rows[position].grid
        if grid is None:
            return 0
        texts: list[list[str]] = []
        heads: list[_Row] = []
        after = at = position
        while grid is not None:
            after = at
            while after < len(self.rows) and self.rows[after].grid is grid:
                after += 1
            lines, begun = self._cells([r for r in self.rows[at:after] if not r.furniture], grid)
            texts, heads = texts + lines, heads + begun
            at = self._body(after)
            further = self.rows[at].grid if at < len(self.rows) else None
            is_over = further is not None and self.rows[at].page == self.rows[after - 1].page + 1
            grid = further if further and is_over and grid.is_aligned_with(further) else None
        self._write_table(texts, heads, self.rows[position:after])
        return after - position

    def _body(self, at: int) -> int:
        """The next row, from this one on, that is no furniture."""
        while at < len(self.rows) and self.rows[at].furniture:
            at += 1
        return at

    def _cells(self, rows: Sequence[_Row], grid: Grid) -> tuple[list[list[str]], list[_Row]]:
        """The text of each cell of the lines that have any, and the row that each begins with."""
        parts: dict[tuple[int, int], list[_Row]] = defaultdict(list)
        for row in rows:
            own: dict[tuple[int, int], list[_Word]] = defaultdict(list)
            for word in row.words:
                own[_cell_of(word, row, grid) or (0, 0)].append(word)
            for cell, words in own.items():
                is_last = words[-1] is row.words[-1]
                parts[cell].append(replace(row, words=words, hyphen=row.hyphen and is_last))
        texts = {cell: self._joined(found) for cell, found in parts.items()}
        lines, heads = [], []
        for number in range(grid.n_rows):
            cells = [grid.cell(number, column) for column in range(grid.n_columns)]
            if begun := next((parts[cell] for cell in cells if cell in parts), None):
                lines.append([texts.get(cell, "") for cell in cells])
                heads.append(begun[0])
        return lines, heads

    def _write_table(
        self, texts: Sequence[Sequence[str]], heads: Sequence[_Row], rows: Sequence[_Row]
    ) -> None:
        """`heads` is the row that each line begins with; a header that each page repeats is written
        once, and the furniture of the pages that the table runs over after it."""
        turns = [n for n, (a, b) in enumerate(pairwise(heads), 1) if a.page != b.page]
        n_header = self._header_rows(heads, texts)
        while 0 < n_header < len(texts) - 1 and any(
            above and above == below
            for above, below in zip(texts[n_header - 1], texts[n_header], strict=True)
            if heads[n_header].grid
        ):
            n_header += 1  # a cell of the header reaches down
        if not n_header and turns and all(texts[turn] == texts[0] for turn in turns):
            n_header = 1
        repeated = {
            turn + n
            for turn in turns
            if texts[turn : turn + n_header] == texts[:n_header]
            for n in range(n_header)
        }
        self.list_lefts = []
        body = [row for row in rows if not row.furniture]
        kept = [line for number, line in enumerate(texts) if number not in repeated]
        self.writer.table(kept, n_header, **_pages(body))
        for row in rows:
            if row.furniture:
                self.writer.paragraph(row.text, "furniture", page=row.page)

    def _grid(
        self, position: int, *, over_pages: bool = False
    ) -> tuple[list[list[list[_Word]]], list[tuple[float, float]], list[_Row], int]:
        """Cells by row and column, the columns' edges, the row of text that each row begins with,
        and how many rows that is, with the furniture of the pages that it runs over."""
        first = self.rows[position]
        columns = [_edges(cell) for cell in first.cells()]
        lines = [dict(enumerate(first.cells()))]
        heads = [first]
        n_rows, before, at = 1, first, position
        while (at := self._body(at + 1) if over_pages else at + 1) < len(self.rows):
            row = self.rows[at]
            step, size = before.y - row.y, max(row.style.size, 1)
            if row.furniture or row.grid or not row.flat:
                break
            if is_over := over_pages and row.page == before.page + 1:
                if row.style not in (before.style, first.style) or len(row.cells()) < 2:
                    break
            elif row.page != before.page or not 0 < step < 3 * size:
                break
            known = len(columns)
            placed = _placed(row.cells(), columns)
            if placed is None or (is_over and len(columns) > known):
                del columns[known:]
                break
            if len(placed) == 1:
                ((column, words),) = placed.items()
                is_wrapped = step < 1.5 * size and _is_narrow(words, columns[column])
                if column not in lines[-1] or not is_wrapped:
                    break
                lines[-1][column] += words
            elif (  # a bold header goes on below some of its cells
                len(lines) == 1
                and first.style.bold
                and row.style == first.style
                and step < 1.5 * size
                and placed.keys() < lines[0].keys()
            ):
                for column, words in placed.items():
                    lines[0][column] += words
            else:
                lines.append(placed)
                heads.append(row)
            for column, words in placed.items():
                left, right = _edges(words)
                columns[column] = min(columns[column][0], left), max(columns[column][1], right)
            n_rows, before = at - position + 1, row
        order = sorted(range(len(columns)), key=lambda column: columns[column])
        grid = [[line.get(column, []) for column in order] for line in lines]
        return grid, [columns[column] for column in order], heads, n_rows

    def _columns(self, rows: Sequence[_Row], columns: Sequence[tuple[float, float]]) -> None:
        """Two columns of text that come row by row: first the left one, then the right one."""
        for number in range(len(columns)):
            parts = []
            for row in rows:
                placed = _placed(row.cells(), [*columns]) or {}
                if words := placed.get(number):
                    parts.append(
                        _Row(row.page, words, row.y, row.style, hyphen=words[-1].text[-1:] == "-")
                    )
                    if parts[-1].hyphen:
                        parts[-1].words[-1] = words[-1]._replace(text=words[-1].text[:-1])
            layout = _Layout(self.writer, parts, self.outline)
            layout.body, layout.levels, layout.words = self.body, self.levels, self.words
            layout.leading = self.leading
            layout.write()

    def _header_rows(self, heads: Sequence[_Row], texts: Sequence[Sequence[str]]) -> int:
        if len(texts) < 2:
            return 0
        n_bold = next((n for n, row in enumerate(heads) if not row.style.bold), len(heads))
        if 0 < n_bold < len(heads):
            return n_bold
        below = [cell for line in texts[1:] for cell in line if cell]
        for is_number in (_NUMBER.search, _AMOUNT.fullmatch):
            if not any(map(is_number, texts[0])):
                return int(3 * sum(map(bool, map(is_number, below))) >= len(below))
        return 0


def _texts(grid: Sequence[Sequence[Sequence[_Word]]]) -> list[list[str]]:
    return [[" ".join(word.text for word in cell) for cell in line] for line in grid]


def _is_contents_entry(text: str) -> bool:
    """
    >>> _is_contents_entry("2.1 Fees . . . . . xiv"), _is_contents_entry("See 2.1 ... 14")
    (True, False)
    """
    title = text.rstrip().rstrip("0123456789ivxlc")
    leader = title.rstrip()[-8:].replace(" ", "")
    return title != text.rstrip() and leader.endswith("....")


def _pages(rows: Sequence[_Row]) -> dict[str, int]:
    """The page that a block begins on, and that on which it ends if that is another."""
    first, last = rows[0].page, rows[-1].page
    return {"page": first} if first == last else {"page": first, "page_end": last}


def _edges(words: Sequence[_Word]) -> tuple[float, float]:
    return min(word.left for word in words), max(word.right for word in words)


def _is_narrow(words: Sequence[_Word], column: tuple[float, float]) -> bool:
    left, right = _edges(words)
    return right - left <= 1.1 * (column[1] - column[0])


def _placed(
    cells: Sequence[list[_Word]], columns: list[tuple[float, float]]
) -> dict[int, list[_Word]] | None:
    """The column of each cell: the one it overlaps, or a new one between them; None if cells and
    columns do not fit. A short cell over several columns is cut into its words."""
    placed: dict[int, list[_Word]] = {}
    new = []
    parts = list(cells)
    while parts:
        cell = parts.pop(0)
        left, right = _edges(cell)
        over = [i for i, (a, b) in enumerate(columns) if left < b and right > a]
        if len(over) > 1 and 1 < len(cell) <= 4 and len(cells) > 1:
            parts = [[word] for word in cell] + parts
        elif not over and len(cells) > 1:
            new.append(cell)
        elif len(over) != 1:
            return None
        else:
            placed.setdefault(over[0], []).extend(cell)
    if len(placed) + len(new) < len(cells) or len(new) > len(placed):
        return None
    for cell in new:
        placed[len(columns)] = cell
        columns.append(_edges(cell))
    return placed
