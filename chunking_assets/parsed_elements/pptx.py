"""Presentations. Each slide is a section under its title: text, tables, charts, then its notes.

Shapes come in the order of the file, which is the one a screen reader follows. What a layout
repeats (date, footer, number) is furniture.
"""

from collections.abc import Iterator
from xml.etree.ElementTree import Element

from chunking_assets.errors import CorpusError
from chunking_assets.parsed_elements import drawing
from chunking_assets.parsed_elements.archive import Archive, children
from chunking_assets.parsed_elements.document import ParsedText
from chunking_assets.parsed_elements.limits import Limits
from chunking_assets.parsed_elements.markdown_writer import MarkdownWriter, folded

VERSION = 1
LIBRARIES = ("python",)

_SHAPES = ("sp", "pic", "graphicFrame", "cxnSp")
_TITLES = ("title", "ctrTitle")
_FURNITURE = ("dt", "ftr", "sldNum", "hdr")


def parse(data: bytes, limits: Limits) -> ParsedText:
    """
    Raises:
        CorpusError: it is no presentation, or a damaged one.
        Refused: suspicious.
    """
    archive = Archive(data, limits)
    main = archive.main_part("ppt/presentation.xml")
    related = archive.related(main)
    listed = archive.xml(main).find("sldIdLst")
    parts = [related.get(slide.get("id", ""), ("", ""))[1] for slide in children(listed, "sldId")]
    missing = [
        f"slide {n}: its part is missing" for n, p in enumerate(parts, 1) if p not in archive
    ]
    if parts and len(missing) == len(parts):
        raise CorpusError("its slides are missing: it is damaged. Save it anew.")
    if len(parts) > limits.pages:
        missing.append(f"only {limits.pages:,} of {len(parts):,} slides are read (parsing.pages)")
    writer = MarkdownWriter()
    for number, part in enumerate(parts[: limits.pages], 1):
        if part in archive:
            _Slide(archive, part, number, writer).write()
    return writer.parsed(missing="; ".join(missing) or None)


class _Slide:
    def __init__(self, archive: Archive, part: str, number: int, writer: MarkdownWriter) -> None:
        self.archive, self.number, self.writer = archive, number, writer
        self.related = archive.related(part)
        self.root = archive.xml(part)

    def write(self) -> None:
        shapes = list(_shapes(self.root.find("cSld/spTree")))
        titles = [s for s in shapes if _placeholder(s) in _TITLES and _text(s)]
        self.writer.headings.enter(1, "")
        for shape in titles[:1]:
            self.writer.heading(_text(shape), 1, slide=self.number)
        for shape in shapes:
            if shape not in titles[:1]:
                self.shape(shape)
        for kind, part in self.related.values():
            if kind == "notesSlide" and part in self.archive:
                self.notes(self.archive.xml(part))
            elif kind == "comments" and part in self.archive:
                self.comments(self.archive.xml(part))

    def shape(self, shape: Element) -> None:
        place = _placeholder(shape)
        if place in _FURNITURE:
            self.writer.paragraph(_text(shape), "furniture", slide=self.number)
        elif place in _TITLES or place == "subTitle":
            self.writer.paragraph(_text(shape), slide=self.number)
        elif (body := shape.find("txBody")) is not None:
            self.body(body, is_outline=place in ("body", "obj", ""))
        for table in shape.iter("tbl"):
            rows, header_rows = drawing.table(table)
            self.writer.table(rows, header_rows, slide=self.number)
        if shape.tag == "graphicFrame":
            for title, rows in drawing.graphics(self.archive, shape, self.related):
                if rows and len(rows[0]) == 1:
                    for (text,) in rows:
                        self.writer.list_item(text, 1, slide=self.number)
                else:
                    self.writer.paragraph(title, "caption", slide=self.number)
                    self.writer.table(rows, 1, slide=self.number)

    def body(self, body: Element, *, is_outline: bool) -> None:
        """`is_outline`: a placeholder, whose paragraphs have bullets unless they say otherwise."""
        found = list(drawing.paragraphs(body))
        for text, level, bullet in found:
            if bullet is None:
                bullet = "-" if is_outline and (len(found) > 1 or level) else ""
            if bullet:
                self.writer.list_item(text, level + 1, bullet, slide=self.number)
            else:
                self.writer.paragraph(text, slide=self.number)

    def notes(self, root: Element) -> None:
        for shape in _shapes(root.find("cSld/spTree")):
            if _placeholder(shape) == "body" and (body := shape.find("txBody")) is not None:
                for paragraph in drawing.paragraphs(body):
                    self.writer.paragraph(paragraph.text, slide=self.number, part="notes")

    def comments(self, root: Element) -> None:
        for comment in root.iter("cm"):
            text = "\n".join(t for t in ("".join(n.itertext()) for n in comment.iter("text")) if t)
            text = text or "\n".join(map(drawing.body_text, comment.iter("txBody")))
            self.writer.paragraph(text, slide=self.number, part="comment")


def _shapes(tree: Element | None) -> Iterator[Element]:
    """The shapes of a slide, also those that are grouped or wrapped for older programs."""
    for node in tree if tree is not None else ():
        if node.tag in _SHAPES:
            yield node
        elif node.tag == "AlternateContent":
            yield from _shapes(node.find("Choice"))
        elif node.tag == "grpSp":
            yield from _shapes(node)


def _placeholder(shape: Element) -> str | None:
    """What part of the layout a shape fills; None if none, "" for any content."""
    place = next(
        (p for t in ("nvSpPr", "nvGraphicFramePr") for p in shape.findall(f"{t}/nvPr/ph")), None
    )
    return None if place is None else place.get("type", "")


def _text(shape: Element) -> str:
    return folded(drawing.body_text(shape.find("txBody")))
