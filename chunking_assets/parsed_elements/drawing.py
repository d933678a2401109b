"""DrawingML: the text, tables, charts and diagrams that Word, PowerPoint and Excel draw alike."""

from collections.abc import Iterator
from typing import NamedTuple
from xml.etree.ElementTree import Element

from chunking_assets.parsed_elements.archive import Archive, children

MAX_CELLS = 100_000
"""Most that the numbers of a chart become."""


class TextParagraph(NamedTuple):
    """`level` from 0; `bullet` is None where the paragraph does not say, "" for none."""

    text: str
    level: int
    bullet: str | None


def paragraphs(body: Element) -> Iterator[TextParagraph]:
    """The paragraphs of a text body."""
    number = 0
    for paragraph in children(body, "p"):
        settings = paragraph.find("pPr")
        level, bullet = 0, None
        if settings is not None:
            level = int(settings.get("lvl", "0")) if settings.get("lvl", "0").isdigit() else 0
            if settings.find("buNone") is not None:
                bullet = ""
            elif settings.find("buChar") is not None:
                bullet = "-"
            elif settings.find("buAutoNum") is not None:
                number += 1
                bullet = f"{number}."
        if bullet is None or not bullet[:1].isdigit():
            number = 0
        text = "".join(_inline(paragraph))
        if text.strip():
            yield TextParagraph(text, level, bullet)


def _inline(node: Element) -> Iterator[str]:
    for part in node:
        if part.tag == "t":
            yield part.text or ""
        elif part.tag == "br":
            yield "\n"
        elif part.tag == "tab":
            yield "\t"
        elif part.tag not in ("pPr", "rPr", "Fallback"):
            yield from _inline(part)


def body_text(body: Element | None) -> str:
    """A text body on one line."""
    return "" if body is None else " ".join(p.text for p in paragraphs(body))


def table(frame: Element) -> tuple[list[list[str]], int]:
    """The cells of a table by rows, merged ones repeated, and how many rows are its header."""
    rows: list[list[str]] = []
    for row in children(frame, "tr"):
        line: list[str] = []
        for cell in children(row, "tc"):
            text = body_text(cell.find("txBody"))
            if cell.get("hMerge") in ("1", "true") and line:
                text = line[-1]
            elif cell.get("vMerge") in ("1", "true") and rows and len(line) < len(rows[-1]):
                text = rows[-1][len(line)]
            line.append(text)
        rows.append(line)
    settings = frame.find("tblPr")
    is_header = settings is not None and settings.get("firstRow") in ("1", "true")
    return rows, int(is_header and len(rows) > 1)


def chart(root: Element) -> tuple[str, list[list[str]]]:
    """A chart's title, and its numbers: a row for each category, a column for each series."""
    title = root.find(".//chart/title")
    named = " ".join("".join(t.itertext()) for t in title.iter("t")) if title is not None else ""
    series = [
        s for s in root.iter("ser") if s.find("val") is not None or s.find("yVal") is not None
    ]
    names = [" ".join(_points(s.find("tx")).values()) for s in series]
    categories: dict[int, str] = {}
    columns = []
    for one in series:
        columns.append(_points(one.find("val")) or _points(one.find("yVal")))
        for index, name in (_points(one.find("cat")) or _points(one.find("xVal"))).items():
            categories.setdefault(index, name)
    indices = sorted({*categories, *(i for column in columns for i in column)})
    rows = [
        [categories.get(i, str(i + 1)), *(column.get(i, "") for column in columns)]
        for i in indices[: MAX_CELLS // (len(columns) + 1)]
    ]
    return named, [["", *names], *rows] if rows else []


def _points(values: Element | None) -> dict[int, str]:
    """What a chart last knew of its cells, by their number; of several levels the innermost."""
    if values is None:
        return {}
    points: dict[int, str] = {}
    for point in values.iter("pt"):
        index, value = point.get("idx", ""), point.find("v")
        if index.isdigit() and value is not None:
            points.setdefault(int(index), _number(value.text or ""))
    if not points and (direct := values.find("v")) is not None:
        points[0] = direct.text or ""
    return points


def _number(text: str) -> str:
    """A number without the digits that only a computer's fractions have."""
    try:
        return f"{float(text):.12g}" if "." in text or "E" in text else text
    except ValueError:
        return text


def diagram(root: Element) -> list[str]:
    """What stands in the shapes of a SmartArt diagram, in its order."""
    texts = (body_text(point.find("t")) for point in root.iter("pt"))
    return [text for text in texts if text.strip()]


def graphics(
    archive: Archive, frame: Element, related: dict[str, tuple[str, str]]
) -> Iterator[tuple[str, list[list[str]]]]:
    """The charts and diagrams a frame shows: a title and rows; a diagram has rows of one cell."""
    for node in frame.iter():
        if (
            node.tag == "chart"
            and (part := related.get(node.get("id", ""), ("", ""))[1]) in archive
        ):
            yield chart(archive.xml(part))
        elif node.tag == "relIds":
            part = related.get(node.get("dm", ""), ("", ""))[1]
            if part in archive:
                yield "", [[text] for text in diagram(archive.xml(part))]
