"""Workbooks (xlsx, xls, ods). Each sheet is a section; what empty rows and columns part is a table.

Values are read as the program last computed them. Which rows are a header is not said in a sheet;
it is a first row of nothing but text over rows that look otherwise, or one that columns share.
"""

import io
from collections.abc import Iterator, Sequence
from datetime import date, datetime, time, timedelta
from typing import Any

from chunking_assets.errors import CorpusError
from chunking_assets.parsed_elements import drawing
from chunking_assets.parsed_elements.archive import Archive
from chunking_assets.parsed_elements.document import ParsedText, Refused
from chunking_assets.parsed_elements.limits import Limits
from chunking_assets.parsed_elements.markdown_writer import MarkdownWriter, folded

VERSION = 1
LIBRARIES = ("python-calamine",)

MAX_MERGED = 10_000
"""Most cells over which the value of merged ones is repeated, in all of a sheet."""


Cell = str | int | float | bool | datetime | date | time | timedelta | None
Grid = list[list[Cell]]


def parse(data: bytes, limits: Limits) -> ParsedText:
    """
    Raises:
        CorpusError: it is no workbook, or a damaged one.
        Refused: encrypted, or suspicious.
    """
    from python_calamine import CalamineError, CalamineWorkbook, PasswordError

    archive = Archive(data, limits) if data.startswith(b"PK") else None
    try:
        workbook = CalamineWorkbook.from_filelike(io.BytesIO(data))
    except PasswordError as error:
        raise Refused(
            "encrypted", "it asks for a password", "Save it without a password."
        ) from error
    except CalamineError as error:
        raise CorpusError(f"it cannot be opened as a workbook: {error}. Save it anew.") from error
    beside = dict(_beside(archive)) if archive else {}
    writer, missing = MarkdownWriter(), []
    names = workbook.sheet_names
    for name in names[: limits.pages]:
        n_before = len(writer.elements)
        writer.heading(name, 1, sheet=name)
        try:
            sheet = workbook.get_sheet_by_name(name)
            _write_sheet(writer, name, sheet)
        except (CalamineError, IndexError, ValueError) as error:
            if name not in beside:
                missing.append(f"sheet {name}: {error}")
        for what, text in beside.get(name, ()):
            if what:
                writer.paragraph(text, sheet=name, part="comment", cell=what)
            else:
                writer.paragraph(text, sheet=name, part="drawing")
        if len(writer.elements) == n_before + 1 and len(names) == 1:
            return ParsedText("", ())  # a sheet's name alone says nothing
    if len(names) > limits.pages:
        missing.append(f"only {limits.pages:,} of {len(names):,} sheets are read (parsing.pages)")
    if all(element.kind == "heading" for element in writer.elements):
        return ParsedText("", (), missing="; ".join(missing) or None)
    return writer.parsed(missing="; ".join(missing) or None)


def _write_sheet(writer: MarkdownWriter, name: str, sheet: Any) -> None:
    grid: Grid = sheet.to_python(skip_empty_area=True)
    if not grid or sheet.start is None:
        return
    top, left = sheet.start
    merged = [
        ((a - top, b - left), (c - top, d - left))
        for (a, b), (c, d) in sheet.merged_cell_ranges or ()
    ]
    _repeat(grid, merged)
    wide = {(a, b) for (a, b), (c, d) in merged if d > b}
    for first_row, first_column, region in _regions(grid):
        texts = [[_shown(value) for value in row] for row in region]
        row = top + first_row + 1
        if max(map(len, region)) == 1:
            for number, line in enumerate(texts):
                writer.paragraph("".join(line), sheet=name, row=row + number)
        elif len({text for text in texts[0] if text}) == 1 and len(region) > 1:
            # One value over all columns is the table's title.
            title = next(filter(None, texts[0]))
            writer.paragraph(title, "caption", sheet=name, row=row)
            header = _header_rows(region[1:], False)
            writer.table(texts[1:], header, sheet=name, row=row + 1)
        else:
            spans = any(
                (first_row, column) in wide
                for column in range(first_column, first_column + len(region[0]))
            )
            writer.table(texts, _header_rows(region, spans), sheet=name, row=row)


def _repeat(grid: Grid, merged: Sequence[tuple[tuple[int, int], tuple[int, int]]]) -> None:
    allowance = MAX_MERGED
    for (top, left), (bottom, right) in merged:
        allowance -= (bottom - top + 1) * (right - left + 1)
        if allowance < 0 or not (0 <= top < len(grid) and 0 <= left < len(grid[top])):
            continue
        for row in grid[top : bottom + 1]:
            for column in range(left, min(right + 1, len(row))):
                row[column] = grid[top][left]


def _regions(grid: Grid) -> Iterator[tuple[int, int, Grid]]:
    """Rows and columns that belong together, with the place of their first cell; tables side by
    side have an empty column between them."""
    start = 0
    filled = [any(not _is_empty(value) for value in row) for row in grid]
    while start < len(grid):
        if not filled[start]:
            start += 1
            continue
        end = start
        while end < len(grid) and filled[end]:
            end += 1
        block = grid[start:end]
        width = max(map(len, block))
        used = [any(c < len(row) and not _is_empty(row[c]) for row in block) for c in range(width)]
        column = 0
        while column < width:
            if not used[column]:
                column += 1
                continue
            last = column
            while last < width and used[last]:
                last += 1
            part = [row[column:last] for row in block]
            above = 0
            while part and all(map(_is_empty, part[0])):
                part, above = part[1:], above + 1
            yield start + above, column, part
            column = last
        start = end


def _header_rows(region: Grid, spans: bool) -> int:
    """`spans`: cells of the first row reach over several columns, which the next row names."""
    if len(region) < 2:
        return 0
    first, below = region[0], region[1:]
    named = first[1:] if _is_empty(first[0]) else first  # a corner, over the names of the rows
    if not named or not all(isinstance(value, str) and value.strip() for value in named):
        return 0
    if spans and len(below) > 1 and all(isinstance(v, str) or _is_empty(v) for v in below[0]):
        return 2
    if any(not isinstance(v, str) and not _is_empty(v) for row in below for v in row):
        return 1
    shown = [folded(str(value)) for value in first]
    # Of nothing but text: a header names each column once, in fewer words than the rows.
    distinct = len(set(shown)) == len(shown) and len(shown) > 1
    lengths = [len(str(v)) for row in below for v in row if not _is_empty(v)]
    return int(distinct and bool(lengths) and max(map(len, shown)) <= max(lengths))


def _is_empty(value: Cell) -> bool:
    return value is None or (isinstance(value, str) and not value.strip())


def _shown(value: Cell) -> str:
    """
    >>> _shown(3.0), _shown(0.1 + 0.2), _shown(True), _shown(datetime(2025, 1, 2))
    ('3', '0.3', 'TRUE', '2025-01-02')
    """
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, float):
        return f"{value:.15g}"
    if isinstance(value, datetime):
        return value.date().isoformat() if value.time() == time() else value.isoformat(" ")
    return str(value)


def _beside(archive: Archive) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """What lies over the cells of an Open XML workbook: by sheet, comments with their cell's name,
    and the text of drawings and charts with none."""
    main = archive.main_part("xl/workbook.xml")
    if main not in archive or not main.endswith(".xml"):
        return
    sheets = archive.related(main)
    for sheet in archive.xml(main).iter("sheet"):
        part = sheets.get(sheet.get("id", ""), ("", ""))[1]
        found = [
            item
            for kind, other in archive.related(part).values()
            if other in archive
            for item in _lying_over(archive, kind, other)
        ]
        if found:
            yield sheet.get("name", ""), found


def _lying_over(archive: Archive, kind: str, part: str) -> Iterator[tuple[str, str]]:
    if kind == "comments":
        for comment in archive.xml(part).iter("comment"):
            text = "".join(t.text or "" for t in comment.iter("t"))
            if text.strip() and not text.startswith("[Threaded comment]"):  # told below, whole
                yield comment.get("ref", "") or "A1", text
    elif kind == "threadedComment":
        for comment in archive.xml(part).iter("threadedComment"):
            text = "".join(t.text or "" for t in comment.iter("text"))
            if text.strip():
                yield comment.get("ref", "") or "A1", text
    elif kind == "drawing":
        root, related = archive.xml(part), archive.related(part)
        for body in root.iter("txBody"):
            if text := drawing.body_text(body):
                yield "", text
        for title, rows in drawing.graphics(archive, root, related):
            # The numbers of a chart are cells of some sheet.
            names = "; ".join(filter(None, rows[0])) if rows and len(rows[0]) > 1 else ""
            if shown := "\n".join(
                filter(None, (title, names, *(r[0] for r in rows if len(r) == 1)))
            ):
                yield "", shown
