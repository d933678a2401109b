"""Office files and PDFs written in a few lines, so that a test shows what is in its document."""

import hashlib
import io
import zipfile
from collections.abc import Mapping, Sequence
from xml.sax.saxutils import escape

REL = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
_R = f'xmlns:r="{REL}"'
_RELS = 'xmlns="http://schemas.openxmlformats.org/package/2006/relationships"'
_A = 'xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main"'
_P = 'xmlns:p="http://schemas.openxmlformats.org/presentationml/2006/main"'
_S = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
_O = "urn:oasis:names:tc:opendocument:xmlns"


def zipped(members: Mapping[str, str | bytes], stored: Sequence[str] = ()) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            kind = zipfile.ZIP_STORED if name in stored else zipfile.ZIP_DEFLATED
            archive.writestr(name, content, kind)
    return buffer.getvalue()


def relations(**targets: tuple[str, str]) -> str:
    """A part's relations: id to (kind, target)."""
    found = "".join(
        f'<Relationship Id="{key}" Type="{REL}/{kind}" Target="{target}"/>'
        for key, (kind, target) in targets.items()
    )
    return f"<Relationships {_RELS}>{found}</Relationships>"


# Word


def p(text: str, style: str = "", *, bold: bool = False, numbered: tuple[int, int] | None = None):
    """A paragraph; `numbered` is the list and the level from 0."""
    properties = f'<w:pStyle w:val="{style}"/>' if style else ""
    if numbered:
        number, level = numbered
        properties += f'<w:numPr><w:ilvl w:val="{level}"/><w:numId w:val="{number}"/></w:numPr>'
    run = "<w:rPr><w:b/></w:rPr>" if bold else ""
    shown = f'<w:r>{run}<w:t xml:space="preserve">{escape(text)}</w:t></w:r>'
    return f"<w:p><w:pPr>{properties}</w:pPr>{shown}</w:p>"


def tbl(rows: Sequence[Sequence[str]], header_rows: int = 0) -> str:
    """A table; cells are XML, or text."""
    lines = []
    for number, row in enumerate(rows):
        marked = "<w:trPr><w:tblHeader/></w:trPr>" if number < header_rows else ""
        cells = "".join(f"<w:tc>{c if c.startswith('<w:') else p(c)}</w:tc>" for c in row)
        lines.append(f"<w:tr>{marked}{cells}</w:tr>")
    return f"<w:tbl><w:tblPr/>{''.join(lines)}</w:tbl>"


STYLES = "".join(
    f'<w:style w:styleId="{key}"><w:name w:val="{name}"/></w:style>'
    for key, name in {
        "Title": "Title", "Heading1": "heading 1", "Heading2": "heading 2", "Caption": "caption",
        "Quote": "Quote", "SourceCode": "Source Code",
    }.items()
)  # fmt: skip


def level(number: int, shown: str, pattern: str) -> str:
    return (
        f'<w:lvl w:ilvl="{number}"><w:start w:val="1"/><w:numFmt w:val="{shown}"/>'
        f'<w:lvlText w:val="{pattern}"/></w:lvl>'
    )


NUMBERING = (
    f'<w:abstractNum w:abstractNumId="0">{level(0, "bullet", "•")}{level(1, "bullet", "o")}'
    f'</w:abstractNum><w:abstractNum w:abstractNumId="1">{level(0, "decimal", "%1.")}'
    f"{level(1, 'lowerLetter', '%2)')}{level(2, 'decimal', '%1.%2.%3')}</w:abstractNum>"
    '<w:num w:numId="1"><w:abstractNumId w:val="0"/></w:num>'
    '<w:num w:numId="2"><w:abstractNumId w:val="1"/></w:num>'
)


def docx(
    body: str,
    parts: Mapping[str, str] | None = None,
    extra: Mapping[str, str | bytes] | None = None,
) -> bytes:
    """`parts` are further parts by kind (footnotes, header …), `extra` any members."""
    parts = {"styles": STYLES, "numbering": NUMBERING, **(parts or {})}
    members: dict[str, str | bytes] = {
        "[Content_Types].xml": "<Types/>",
        "_rels/.rels": relations(a=("officeDocument", "word/document.xml")),
        "word/document.xml": f"<w:document {_W} {_R}><w:body>{body}</w:body></w:document>",
        "word/_rels/document.xml.rels": relations(
            **{f"r{i}": (kind, f"{kind}.xml") for i, kind in enumerate(parts)}
        ),
    }
    members |= {f"word/{kind}.xml": f"<w:x {_W} {_R}>{xml}</w:x>" for kind, xml in parts.items()}
    return zipped(members | dict(extra or {}))


# PowerPoint


def shape(paragraphs: Sequence[str], placeholder: str | None = None) -> str:
    """`placeholder` is its type, "" for any content, None for a text box; `level|text` indents."""
    place = "" if placeholder is None else f'<p:ph type="{placeholder}"/>'
    lines = []
    for paragraph in paragraphs:
        depth, _, text = paragraph.rpartition("|")
        lines.append(f'<a:p><a:pPr lvl="{depth or 0}"/><a:r><a:t>{escape(text)}</a:t></a:r></a:p>')
    return (
        f"<p:sp><p:nvSpPr><p:cNvPr/><p:nvPr>{place}</p:nvPr></p:nvSpPr>"
        f"<p:txBody>{''.join(lines)}</p:txBody></p:sp>"
    )


def slide_table(rows: Sequence[Sequence[str]]) -> str:
    lines = "".join(
        "<a:tr>"
        + "".join(
            f"<a:tc><a:txBody><a:p><a:r><a:t>{escape(c)}</a:t></a:r></a:p></a:txBody></a:tc>"
            for c in row
        )
        + "</a:tr>"
        for row in rows
    )
    return (
        '<p:graphicFrame><a:graphic><a:graphicData><a:tbl><a:tblPr firstRow="1"/>'
        f"{lines}</a:tbl></a:graphicData></a:graphic></p:graphicFrame>"
    )


def pptx(slides: Sequence[str], notes: Mapping[int, str] | None = None) -> bytes:
    """Slides in order, and the notes of some by their number from 1."""
    members: dict[str, str | bytes] = {
        "[Content_Types].xml": "<Types/>",
        "_rels/.rels": relations(a=("officeDocument", "ppt/presentation.xml")),
        "ppt/presentation.xml": f"<p:presentation {_P} {_R}><p:sldIdLst>"
        + "".join(f'<p:sldId id="{255 + n}" r:id="s{n}"/>' for n in range(len(slides), 0, -1))
        + "</p:sldIdLst></p:presentation>",
        "ppt/_rels/presentation.xml.rels": relations(
            **{f"s{len(slides) + 1 - n}": ("slide", f"slides/slide{n}.xml")
               for n in range(1, len(slides) + 1)}
        ),
    }  # fmt: skip
    for number, shapes in enumerate(slides, 1):
        tree = f"<p:cSld><p:spTree>{shapes}</p:spTree></p:cSld>"
        members[f"ppt/slides/slide{number}.xml"] = f"<p:sld {_P} {_A} {_R}>{tree}</p:sld>"
        if notes and number in notes:
            members[f"ppt/slides/_rels/slide{number}.xml.rels"] = relations(
                n=("notesSlide", f"../notesSlides/n{number}.xml")
            )
            tree = f"<p:cSld><p:spTree>{shape([notes[number]], 'body')}</p:spTree></p:cSld>"
            members[f"ppt/notesSlides/n{number}.xml"] = f"<p:notes {_P} {_A}>{tree}</p:notes>"
    return zipped(members)


# Excel


def _cell(column: int, row: int, value: str | float | None) -> str:
    name = f"{chr(65 + column)}{row}"
    if value is None:
        return ""
    if isinstance(value, str):
        return f'<c r="{name}" t="inlineStr"><is><t>{escape(value)}</t></is></c>'
    return f'<c r="{name}"><v>{value}</v></c>'


def xlsx(
    sheets: Mapping[str, Sequence[Sequence[str | float | None]]], merged: Sequence[str] = ()
) -> bytes:
    """Sheets by name, rows from A1; `merged` ranges of the first one."""
    members: dict[str, str | bytes] = {
        "[Content_Types].xml": '<Types xmlns="http://schemas.openxmlformats.org/package/2006/'
        'content-types"><Default Extension="xml" ContentType="application/xml"/></Types>',
        "_rels/.rels": relations(a=("officeDocument", "xl/workbook.xml")),
        "xl/workbook.xml": f"<workbook {_S} {_R}><sheets>"
        + "".join(
            f'<sheet name="{escape(name)}" sheetId="{n}" r:id="r{n}"/>'
            for n, name in enumerate(sheets, 1)
        )
        + "</sheets></workbook>",
        "xl/_rels/workbook.xml.rels": relations(
            **{f"r{n}": ("worksheet", f"worksheets/s{n}.xml") for n in range(1, len(sheets) + 1)}
        ),
    }
    for number, rows in enumerate(sheets.values(), 1):
        data = "".join(
            f'<row r="{y}">{"".join(_cell(x, y, value) for x, value in enumerate(row))}</row>'
            for y, row in enumerate(rows, 1)
        )
        ranges = "".join(f'<mergeCell ref="{one}"/>' for one in merged if number == 1)
        ranges = f"<mergeCells>{ranges}</mergeCells>" if ranges else ""
        members[f"xl/worksheets/s{number}.xml"] = (
            f"<worksheet {_S}><sheetData>{data}</sheetData>{ranges}</worksheet>"
        )
    return zipped(members)


# OpenDocument and EPUB


def odt(body: str, styles: str = "", manifest: str = "") -> bytes:
    spaces = " ".join(f'xmlns:{n}="{_O}:{n}:1.0"' for n in ("office", "text", "table", "style"))
    return zipped(
        {
            "mimetype": "application/vnd.oasis.opendocument.text",
            "content.xml": f"<office:document-content {spaces}>"
            f"<office:automatic-styles>{styles}</office:automatic-styles>"
            f"<office:body><office:text>{body}</office:text></office:body>"
            "</office:document-content>",
            "META-INF/manifest.xml": f"<manifest>{manifest}</manifest>",
        },
        stored=["mimetype"],
    )


def epub(chapters: Mapping[str, str], encryption: str = "") -> bytes:
    """Chapters by file name, in the order of the spine."""
    items = "".join(f'<item id="{n}" href="{n}"/>' for n in chapters)
    spine = "".join(f'<itemref idref="{n}"/>' for n in chapters)
    members: dict[str, str | bytes] = {
        "mimetype": "application/epub+zip",
        "META-INF/container.xml": '<container><rootfiles><rootfile full-path="OPS/book.opf"/>'
        "</rootfiles></container>",
        "OPS/book.opf": f"<package><manifest>{items}</manifest><spine>{spine}</spine></package>",
        **{f"OPS/{name}": page for name, page in reversed(chapters.items())},
    }
    if encryption:
        members["META-INF/encryption.xml"] = encryption
    return zipped(members, stored=["mimetype"])


# PDF

Line = tuple[float, float, float, str, str]
"""x, y from below, size, font (F1 roman, F2 bold, F3 typewriter) and text in Latin-1."""

_FONTS = ("Helvetica", "Helvetica-Bold", "Courier")
_PAD = bytes.fromhex("28BF4E5E4E758A4164004E56FFFA01082E2E00B6D0683E802F0CA9FE6453697A")


def column(
    lines: Sequence[str], x: float = 72, top: float = 700, size: float = 10, font: str = "F1",
    leading: float = 12,
) -> list[Line]:  # fmt: skip
    return [(x, top - n * leading, size, font, line) for n, line in enumerate(lines)]


Rule = tuple[float, float, float, float]
"""A straight line from x, y to x, y."""


def grid(xs: Sequence[float], ys: Sequence[float]) -> list[Rule]:
    """The lines of a table whose columns and rows end at these places."""
    across = [(min(xs), y, max(xs), y) for y in ys]
    return across + [(x, min(ys), x, max(ys)) for x in xs]


def pdf(
    pages: Sequence[Sequence[Line]],
    *,
    scanned: Sequence[int] = (),
    password: str = "",
    ruled: Mapping[int, Sequence[Rule]] | None = None,
) -> bytes:
    """Letter pages; those in `scanned` (by number from 1) show a picture over the whole page, and
    `ruled` are the lines drawn on some."""
    objects: list[bytes] = [b"<< /Type /Catalog /Pages 2 0 R >>", b""]
    fonts = []
    for name in _FONTS:
        fonts.append(len(objects) + 1)
        encoding = "/Encoding /WinAnsiEncoding"
        objects.append(f"<< /Type /Font /Subtype /Type1 /BaseFont /{name} {encoding} >>".encode())
    objects.append(
        b"<< /Type /XObject /Subtype /Image /Width 1 /Height 1 /ColorSpace /DeviceGray "
        b"/BitsPerComponent 8 /Length 1 >>\nstream\n\x80\nendstream"
    )
    picture = len(objects)
    resources = " ".join(f"/F{n} {number} 0 R" for n, number in enumerate(fonts, 1))
    kids = []
    for number, lines in enumerate(pages, 1):
        stream = "q 612 0 0 792 0 0 cm /Im Do Q\n" if number in scanned else ""
        for x0, y0, x1, y1 in (ruled or {}).get(number, ()):
            stream += f"{x0} {y0} m {x1} {y1} l S\n"
        for x, y, size, font, text in lines:
            shown = text.replace("\\", "\\\\").replace("(", "\\(").replace(")", "\\)")
            stream += f"BT /{font} {size} Tf {x} {y} Td ({shown}) Tj ET\n"
        content = stream.encode("latin-1")
        objects.append(f"<< /Length {len(content)} >>\nstream\n".encode() + content + b"endstream")
        kids.append(len(objects) + 1)
        objects.append(
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents {len(objects)} 0 R "
            f"/Resources << /Font << {resources} >> /XObject << /Im {picture} 0 R >> >> >>".encode()
        )
    listed = " ".join(f"{kid} 0 R" for kid in kids)
    objects[1] = f"<< /Type /Pages /Kids [{listed}] /Count {len(kids)} >>".encode()
    trailer = ""
    if password:
        objects.append(_encryption(password))
        trailer = f"/Encrypt {len(objects)} 0 R /ID [<{'00' * 16}> <{'00' * 16}>]"
    return _assembled(objects, trailer)


def _assembled(objects: Sequence[bytes], trailer: str) -> bytes:
    out, offsets = bytearray(b"%PDF-1.4\n"), []
    for number, content in enumerate(objects, 1):
        offsets.append(len(out))
        out += f"{number} 0 obj\n".encode() + content + b"\nendobj\n"
    start = len(out)
    out += f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n".encode()
    out += b"".join(f"{offset:010d} 00000 n \n".encode() for offset in offsets)
    out += f"trailer\n<< /Size {len(objects) + 1} /Root 1 0 R {trailer} >>\n".encode()
    return bytes(out + f"startxref\n{start}\n%%EOF\n".encode())


def _encryption(password: str) -> bytes:
    """The dictionary of a document that only a password opens (PDF 1.7, 7.6.3, revision 2)."""
    padded = (password.encode() + _PAD)[:32]
    owner = _rc4(hashlib.md5(padded).digest()[:5], padded)
    key = hashlib.md5(padded + owner + (-4 & 0xFFFFFFFF).to_bytes(4, "little") + bytes(16))
    user = _rc4(key.digest()[:5], _PAD)
    return f"<< /Filter /Standard /V 1 /R 2 /P -4 /O <{owner.hex()}> /U <{user.hex()}> >>".encode()


def _rc4(key: bytes, data: bytes) -> bytes:
    state, j = list(range(256)), 0
    for i in range(256):
        j = (j + state[i] + key[i % len(key)]) % 256
        state[i], state[j] = state[j], state[i]
    out, i, j = bytearray(), 0, 0
    for byte in data:
        i = (i + 1) % 256
        j = (j + state[i]) % 256
        state[i], state[j] = state[j], state[i]
        out.append(byte ^ state[(state[i] + state[j]) % 256])
    return bytes(out)
