"""CSV and TSV. The canonical text is the decoded file itself, one table.

A record may span lines inside quotes, so records are found by the csv module and not by line ends;
one that does is a table of its own, whose header stands in the first, so that nobody cuts inside.
What separates the cells is read off the first records: names and sniffers guess wrong.
"""

import csv
from collections.abc import Iterator
from itertools import islice, pairwise

from chunking_assets.parsed_elements.decoding import decode
from chunking_assets.parsed_elements.document import Element, ParsedText, Scalar, line_starts

VERSION = 1
LIBRARIES = ("charset-normalizer",)

DELIMITERS = (",", ";", "\t", "|")
_LOOKED_AT = 50
"""Records from which the delimiter is read."""
_LONGEST_CELL = 1 << 30


def parse(data: bytes) -> ParsedText:
    return parse_text(decode(data))


def parse_text(text: str) -> ParsedText:
    r"""
    >>> parsed = parse_text('name;note\nAna;"two\nlines"\nBo;one\n')
    >>> [(e.kind, parsed.text[e.start : e.end]) for e in parsed.elements][1]
    ('table', 'Ana;"two\nlines"')
    """
    starts = line_starts(text)
    lines = [text[a:b] for a, b in pairwise(starts)]
    records, unclosed = _records(lines, _delimiter(lines))
    spans = [
        (starts[first], starts[first] + len("".join(lines[first:after]).rstrip()), after - first)
        for first, after, _ in records
    ]
    inked = [n for n, (start, end, _) in enumerate(spans) if text[start:end].strip()]
    if not inked:
        return ParsedText(text, ())
    header = inked[0] if _is_header(records[inked[0]][2]) and len(inked) > 1 else None
    warning = f"a quote opened in line {unclosed} is never closed" if unclosed else None
    return ParsedText(text, tuple(_tables(spans, inked, header)), warning)


def _tables(
    spans: list[tuple[int, int, int]], inked: list[int], header: int | None
) -> Iterator[Element]:
    """Runs of records of one line each; between them those of several, and blank lines."""
    place: dict[str, Scalar] = {}
    if header is not None:
        following = next(n for n in inked if n > header)
        place = {"header_start": spans[header][0], "header_end": spans[following][0]}
    run: list[int] = []
    for n in inked:
        alone = spans[n][2] > 1 and n != header
        if run and alone:
            yield _table(spans, run, place)
            run = []
        run.append(n)
        if alone:
            yield _table(spans, run, place)
            run = []
    if run:
        yield _table(spans, run, place)


def _table(spans: list[tuple[int, int, int]], run: list[int], place: dict[str, Scalar]) -> Element:
    facts: dict[str, Scalar] = {**place, "row": run[0] + 1}
    end = spans[run[-1]][1]
    if isinstance(after := place.get("header_end"), int) and end < after:
        del facts["header_start"], facts["header_end"]  # the header alone has no body to lead
    return Element("table", spans[run[0]][0], end, attributes=tuple(facts.items()))


def _records(lines: list[str], delimiter: str) -> tuple[list[tuple[int, int, list[str]]], int]:
    """First line, line after the last, and cells of each record; and the line of a quote that is
    never closed, from 1: from there on every line is a record."""
    found, first = [], 0
    reader = csv.reader(lines, delimiter=delimiter)
    for cells in _rows(reader):
        found.append((first, reader.line_num, cells))
        first = reader.line_num
    if not found or not _is_unclosed(lines[found[-1][0] :], delimiter):
        return found, 0
    start = found.pop()[0]
    found += [(n, n + 1, [lines[n]]) for n in range(start, len(lines))]
    return found, start + 1


def _rows(reader: Iterator[list[str]]) -> Iterator[list[str]]:
    limit = csv.field_size_limit(_LONGEST_CELL)
    try:
        yield from reader
    finally:
        csv.field_size_limit(limit)


def _is_unclosed(lines: list[str], delimiter: str) -> bool:
    try:
        list(_rows(csv.reader(lines, delimiter=delimiter, strict=True)))
    except csv.Error as error:
        return "unexpected end" in str(error)
    return False


def _delimiter(lines: list[str]) -> str:
    """The one that gives most records the same number of cells, more than one."""

    def agreement(delimiter: str) -> tuple[int, int]:
        rows = islice(_rows(csv.reader(lines[: 4 * _LOOKED_AT], delimiter=delimiter)), _LOOKED_AT)
        widths = [len(cells) for cells in rows if cells]
        usual = max(set(widths), key=widths.count, default=1)
        return (widths.count(usual), usual) if usual > 1 else (0, 0)

    return max(DELIMITERS, key=agreement)


def _is_header(cells: list[str]) -> bool:
    """Names, each once: no cell empty or a number."""
    names = [cell.strip() for cell in cells]
    return (
        len(names) > 1
        and len(set(names)) == len(names)
        and all(name and not name[0].isdigit() and name[0] not in "+-." for name in names)
    )
