"""Books. The chapters in reading order, each read as the web page that it is."""

import posixpath
from xml.etree.ElementTree import Element

from chunking_assets.errors import CorpusError
from chunking_assets.parsed_elements import html
from chunking_assets.parsed_elements.archive import Archive, resolve
from chunking_assets.parsed_elements.decoding import decode
from chunking_assets.parsed_elements.document import ParsedText, Refused
from chunking_assets.parsed_elements.limits import Limits
from chunking_assets.parsed_elements.markdown_writer import MarkdownWriter

VERSION = 100 + html.VERSION  # a chapter is a page
LIBRARIES = html.LIBRARIES

_CONTAINER, _ENCRYPTION = "META-INF/container.xml", "META-INF/encryption.xml"
_FONTS = ("http://www.idpf.org/2008/embedding", "http://ns.adobe.com/pdf/enc#RC")
"""Ways to obscure fonts, which leave the text readable."""


def parse(data: bytes, limits: Limits) -> ParsedText:
    """
    Raises:
        CorpusError: it is no book, or a damaged one.
        Refused: encrypted (protected against copying), or suspicious.
    """
    archive = Archive(data, limits)
    if _ENCRYPTION in archive:
        ways = {e.get("Algorithm") for e in archive.xml(_ENCRYPTION).iter("EncryptionMethod")}
        if ways - {*_FONTS}:
            raise Refused(
                "encrypted", "it is protected against copying", "Get it without protection."
            )
    package = _package(archive)
    root = archive.xml(package)
    items = {item.get("id", ""): item for item in root.iter("item")}
    writer, missing = MarkdownWriter(), []
    for number, reference in enumerate(root.iter("itemref"), 1):
        item = items.get(reference.get("idref", ""), Element("item"))
        part = resolve(package, item.get("href", ""))
        if "nav" in item.get("properties", "").split():
            continue  # the table of contents again, for programs
        if part not in archive:
            missing.append(f"chapter {number}: {posixpath.basename(part)} is not in the file")
            continue
        writer.add(html.parse_text(decode(archive.bytes(part))), chapter=number)
    return writer.parsed(missing="; ".join(missing) or None)


def _package(archive: Archive) -> str:
    if _CONTAINER in archive:
        for file in archive.xml(_CONTAINER).iter("rootfile"):
            return file.get("full-path", "")
    for name in archive.names():
        if name.endswith(".opf"):
            return name
    raise CorpusError("it has no list of its chapters: it is damaged, or no book. Save it anew.")
