"""What cannot or must not be read says so: a status, an error, a cure, and nothing else."""

import io
import zipfile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from written_files import column, docx, epub, odt, p, pdf, pptx, shape, tbl, xlsx, zipped

from chunking_assets.parsed_elements.limits import DEFAULTS, Limits
from chunking_assets.parsed_elements.parse import STATUSES, ParsedDocument, parse_document
from chunking_assets.parsed_elements.registry import BOUNDED
from chunking_assets.raw_documents.media_type import OLE2, media_type

PLAIN = {
    "a.pdf": pdf([column(["A page that says something."])]),
    "a.docx": docx(p("Hello") + tbl([["a", "b"]])),
    "a.pptx": pptx([shape(["Hello"], "title")]),
    "a.xlsx": xlsx({"Sheet": [["a", "b"], [1, 2]]}),
    "a.odt": odt("<text:p>Hello</text:p>"),
    "a.epub": epub({"a.xhtml": "<p>Hello"}),
    "a.rtf": rb"{\rtf1 Hello\par}",
}


def parse(data: bytes, name: str, limits: Limits = DEFAULTS) -> ParsedDocument:
    return parse_document(data, name, media_type(data[:8192], name), limits)


def refused(data: bytes, name: str, status: str, limits: Limits = DEFAULTS) -> str:
    result = parse(data, name, limits)
    assert (result.status, result.text, result.elements) == (status, "", ())
    assert result.cure
    return result.error or ""


@pytest.mark.parametrize("name", PLAIN)
def test_each_format_is_known_by_content_and_read(name: str):
    assert parse(PLAIN[name], name).status == "ok"
    assert media_type(PLAIN[name], "renamed.bin") in BOUNDED


def test_a_zip_bomb_is_not_unpacked():
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        archive.writestr("[Content_Types].xml", "<Types/>")
        with archive.open("word/document.xml", "w") as member:
            for _ in range(60):
                member.write(b"<w:p/>" * 170_000)
    bomb = buffer.getvalue()
    assert len(bomb) < 1_000_000
    assert "times as many" in refused(bomb, "a.docx", "suspicious")
    # However it is squeezed, there is an end.
    few = Limits(expansion=10_000, unpacked_mb=50)
    assert "unpacked_mb" in refused(bomb, "a.docx", "suspicious", few)


def test_many_members_and_archives_inside_are_suspicious():
    many = docx(p("a"), extra={f"word/{n}": "" for n in range(30)})
    assert "30" in refused(many, "a.docx", "suspicious", Limits(members=20)).replace("36", "30")
    inside = docx(p("a"), extra={"word/embeddings/inner.zip": zipped({"a": "b"})})
    assert "inner.zip" in refused(inside, "a.docx", "suspicious")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_entities_are_not_expanded(encoding: str):
    lol = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10 if n else "lol"}">' for n in range(9))
    page = f'<?xml version="1.0" encoding="{encoding}"?><!DOCTYPE x [{lol}]><x>&l8;</x>'
    data = docx("", extra={"word/document.xml": page.encode(encoding)})
    assert "entities" in refused(data, "a.docx", "suspicious")


def test_passwords_of_office_and_protected_books_are_named():
    sealed = OLE2 + bytes(600) + "EncryptedPackage".encode("utf-16-le") + bytes(600)
    assert "password" in refused(sealed, "a.docx", "encrypted")
    sealed_text = odt("", manifest="<file-entry><encryption-data/></file-entry>")
    assert "password" in refused(sealed_text, "a.odt", "encrypted")
    way = '<encryption><EncryptionMethod Algorithm="http://www.w3.org/2001/04/xmlenc#aes128-cbc"/>'
    book = epub({"a.xhtml": "x"}, encryption=f"{way}</encryption>")
    assert "copying" in refused(book, "a.epub", "encrypted")


def test_a_book_that_obscures_its_fonts_only_is_read():
    way = '<encryption><EncryptionMethod Algorithm="http://www.idpf.org/2008/embedding"/>'
    assert parse(epub({"a.xhtml": "<p>Hi"}, f"{way}</encryption>"), "a.epub").status == "ok"


def test_a_page_saved_as_doc_is_read_as_a_page():
    result = parse(b"<html><body><h1>Fees</h1><p>None.</p></body></html>", "fees.doc")
    assert (result.status, result.text) == ("ok", "# Fees\n\nNone.\n")


def test_the_old_formats_of_office_are_told_what_to_be_saved_as():
    assert "application/msword" in refused(OLE2 + bytes(900), "a.doc", "unsupported")
    assert "DOCX" in (parse(OLE2 + bytes(900), "a.doc").cure or "")


@pytest.mark.parametrize("name", PLAIN)
def test_garbage_under_any_name_fails(name: str):
    assert refused(b"just some words, and no such file", name, "failed")


@pytest.mark.parametrize("name", [n for n in PLAIN if n not in ("a.rtf", "a.pdf")])
def test_a_truncated_archive_fails(name: str):
    assert refused(PLAIN[name][:-60], name, "failed")


def test_a_chapter_and_a_slide_that_are_missing_are_named():
    book = zipfile.ZipFile(io.BytesIO(epub({"a.xhtml": "<p>Hi", "b.xhtml": "<p>Ho"})))
    kept = {n: book.read(n) for n in book.namelist() if not n.endswith("b.xhtml")}
    result = parse(zipped(kept, ["mimetype"]), "a.epub")
    assert (result.status, result.error) == (
        "partial", "a.epub: chapter 2: b.xhtml is not in the file",
    )  # fmt: skip
    deck = pptx([shape([f"Slide {n}"], "title") for n in range(3)])
    result = parse(deck, "a.pptx", Limits(pages=2))
    assert result.status == "partial"
    assert "2 of 3 slides" in (result.error or "")


@settings(deadline=None, max_examples=150)
@given(
    st.sampled_from(sorted(PLAIN)),
    st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 255)), max_size=8),
    st.one_of(st.none(), st.integers(0, 10**6)),
)
def test_any_damage_has_a_status(name: str, changes: list[tuple[int, int]], cut: int | None):
    data = bytearray(PLAIN[name])
    for at, byte in changes:
        data[at % len(data)] = byte
    result = parse(bytes(data[: None if cut is None else cut % len(data)]), name)
    assert result.status in STATUSES
    assert result.status not in ("timeout", "crashed")
    assert (result.status in ("ok", "partial")) == bool(result.elements)
    assert result.status == "ok" or (result.error and result.cure)
