import io
import zipfile

import pytest

from chunking_assets.raw_documents.media_type import media_type, unicode_encoding

WORD = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
EXCEL = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
OLE2 = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(64)


def zipped(*members: str, mimetype: str | None = None) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        if mimetype:
            archive.writestr("mimetype", mimetype)
        for member in members:
            archive.writestr(member, "x")
    return file.getvalue()


@pytest.mark.parametrize(
    ("head", "name", "expected"),
    [
        (b"%PDF-1.7\n", "renamed.md", "application/pdf"),
        (b"junk of a mail server\r\n%PDF-1.4", "a.pdf", "application/pdf"),
        (b"\x89PNG\r\n\x1a\n", "a.txt", "image/png"),
        (b"\x1f\x8b\x08", "a.txt", "application/gzip"),
        (b"{\\rtf1 hello}", "a.doc", "application/rtf"),
        (OLE2, "a.msg", "application/vnd.ms-outlook"),
        (OLE2, "encrypted.docx", "application/x-ole-storage"),
        (b"text\x00with NUL", "a.txt", "application/octet-stream"),
    ],
)
def test_the_first_bytes_win_over_the_name(head: bytes, name: str, expected: str):
    assert media_type(head, name) == expected


@pytest.mark.parametrize(
    ("head", "name", "expected"),
    [
        (zipped("[Content_Types].xml", "word/document.xml"), "a.bin", WORD),
        (zipped("[Content_Types].xml", "xl/workbook.xml"), "a.docx", EXCEL),
        (zipped("[Content_Types].xml"), "a.docx", WORD),
        (zipped("OEBPS/a.html", mimetype="application/epub+zip"), "a.zip", "application/epub+zip"),
        (zipped("a.md"), "a.md", "application/zip"),
    ],
)
def test_a_zip_is_what_its_members_say(head: bytes, name: str, expected: str):
    assert media_type(head, name) == expected


@pytest.mark.parametrize(
    "head",
    [
        b"<!DOCTYPE html><title>x</title>",
        b"\xef\xbb\xbf\n <HTML lang='pt'>",
        b'<?xml version="1.0"?>\n<!DOCTYPE html PUBLIC "x">',
        b"<!-- saved page -->\n<html>",
        "\ufeff<html>".encode("utf-16-le"),
    ],
)
def test_a_page_is_html_whatever_it_is_called(head: bytes):
    assert media_type(head, "page.txt") == "text/html"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("README.md", "text/markdown"),
        ("Guide.MDX", "text/mdx"),
        ("a.htm", "text/html"),
        ("app.log", "text/plain"),
        ("client.py", "text/x-python"),
        ("App.TSX", "text/typescript-jsx"),
        ("index.d.ts", "text/typescript"),
        ("lib.rs", "text/x-rust"),
        ("api.h", "text/x-c"),
        ("api.hpp", "text/x-c++"),
        ("schema.sql", "application/sql"),
        ("install.sh", "text/x-shellscript"),
        ("a.csv", "text/csv"),
        ("a.eml", "message/rfc822"),
        ("LICENSE", "text/plain"),
        ("settings.unheard-of", "text/plain"),
    ],
)
def test_plain_text_is_what_its_name_says(name: str, expected: str):
    assert media_type(b"plain words, <b>bold</b> words", name) == expected


def test_an_html_fragment_in_markdown_stays_markdown():
    assert media_type(b'<p align="center"><img src="logo.png"></p>\n\n# Tool', "a.md") == (
        "text/markdown"
    )


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (b"#!/bin/sh", "text/x-shellscript"),
        (b"#! /usr/bin/env bash", "text/x-shellscript"),
        (b"#!/usr/bin/env -S LANG=C node --harmony", "text/javascript"),
        (b"#!/usr/local/bin/python3.11", "text/x-python"),
        (b"#!ruby", "text/x-ruby"),
        (b"#!/usr/bin/perl", "text/plain"),
        (b"#!" + b"/" * 8000, "text/plain"),
    ],
)
def test_a_script_without_a_suffix_is_what_its_interpreter_reads(line: bytes, expected: str):
    assert media_type(line + b"\necho\n", "bin/tool") == expected


def test_a_suffix_wins_over_an_interpreter():
    assert media_type(b"#!/bin/sh\n", "transcript.txt") == "text/plain"


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (b"class Client {", "text/x-c++"),
        (b"  template<typename T>", "text/x-c++"),
        (b"#include <string>", "text/x-c++"),
        (b"#include <string.h>", "text/x-c"),
        (b"int template_count; /* class */", "text/x-c"),
    ],
)
def test_a_header_is_of_the_language_its_lines_are_in(line: bytes, expected: str):
    assert media_type(b"#pragma once\n" + line + b"\n", "api.h") == expected


def test_control_characters_without_a_known_name_are_binary():
    assert media_type(b"\x01\x02\x03abc", "blob") == "application/octet-stream"


POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:" + 64 * b"4" + b"\nsize 12345\n"


@pytest.mark.parametrize("name", ["a.md", "a.pdf", "a.docx", "a.html"])
def test_a_pointer_of_git_lfs_is_not_the_file_it_stands_for(name: str):
    assert media_type(POINTER, name) == "application/vnd.git-lfs.pointer"
    assert media_type(POINTER.replace(b"\n", b"\r\n"), name) == "application/vnd.git-lfs.pointer"


def test_a_text_that_quotes_a_pointer_is_a_text():
    assert media_type(POINTER + b"\nThat is what a pointer looks like.", "a.md") == "text/markdown"


def test_an_empty_file_is_what_its_name_says():
    assert media_type(b"", "a.md") == "text/markdown"
    assert media_type(b"", "a") == "text/plain"


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_western_utf_16_without_a_mark_is_text(encoding: str):
    head = "Save as Unicode, said the editor.".encode(encoding)
    assert unicode_encoding(head) == encoding
    assert media_type(head, "a.txt") == "text/plain"


def test_small_integers_are_not_taken_for_utf_16():
    assert unicode_encoding(bytes(64)) is None
