from pathlib import Path

import polars as pl
import pytest

from chunking_assets.parsed_elements import markdown, parse
from chunking_assets.parsed_elements.document import Element, ParsedText
from chunking_assets.parsed_elements.parse import (
    ELEMENTS_SCHEMA,
    elements_by_document,
    elements_frame,
    elements_sha,
    parse_document,
    parse_key,
)
from chunking_assets.parsed_elements.registry import PARSERS
from chunking_assets.raw_documents.media_type import media_type


class Broken:
    """A parser that does what third-party parsers do."""

    __name__ = "plugins.broken"
    VERSION = 1
    LIBRARIES = ()

    def __init__(self, outcome: ParsedText | Exception) -> None:
        self.outcome = outcome

    def parse(self, data: bytes) -> ParsedText:
        if isinstance(self.outcome, Exception):
            raise self.outcome
        return self.outcome


def test_a_document_that_parses_is_ok_and_carries_its_shas():
    first = parse_document(b"# A\n\ntext", "a.md", "text/markdown")
    again = parse_document(b"\xef\xbb\xbf# A\n\ntext", "b.md", "text/markdown")
    other = parse_document(b"A\n\ntext", "a.md", "text/markdown")
    assert (first.status, first.error, first.cure) == ("ok", None, None)
    assert (first.text_sha, first.elements_sha) == (again.text_sha, again.elements_sha)
    assert first.text_sha != other.text_sha
    assert first.elements_sha != other.elements_sha


@pytest.mark.parametrize("data", [b"", b" \n\t", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("media_type", sorted(PARSERS))
def test_a_document_without_text_is_empty(media_type: str, data: bytes):
    result = parse_document(data, "a", media_type)
    assert (result.status, result.text, result.elements) == ("empty", "", ())
    assert result.error
    assert result.cure


def test_a_format_without_a_parser_is_named_with_what_to_do():
    result = parse_document(b"\x89PNG", "terms.png", "image/png")
    assert result.status == "unsupported"
    assert "terms.png" in (result.error or "")
    assert "image/png" in (result.error or "")
    assert "OCR" in (result.cure or "")
    tar = parse_document(b"\x1f\x8b", "a.gz", "application/gzip")
    assert "Markdown" in (tar.cure or "")


def test_a_pointer_of_git_lfs_says_how_the_file_is_fetched():
    pointer = f"version https://git-lfs.github.com/spec/v1\noid sha256:{64 * '4'}\nsize 9\n"
    kind = media_type(pointer.encode(), "a.md")
    result = parse_document(pointer.encode(), "a.md", kind)
    assert result.status == "unsupported"
    assert "git lfs pull" in (result.cure or "")


def test_binary_content_is_called_binary():
    result = parse_document(bytes(9), "a.txt", "application/octet-stream")
    assert result.status == "unsupported"
    assert "binary" in (result.error or "")


def test_bytes_in_no_encoding_fail_with_a_cure():
    result = parse_document(bytes(range(128, 256)) * 9, "a.txt", "text/plain")
    assert result.status == "failed"
    assert "UTF-8" in (result.error or "")


def test_source_read_as_text_is_ok_with_a_warning():
    result = parse_document(b"def f(:", "a.py", "text/x-python")
    assert result.status == "ok"
    assert result.error == "a.py: not valid Python at line 1 (invalid syntax); read as plain text"


@pytest.mark.parametrize(
    "outcome",
    [
        ParsedText("abc", (Element("paragraph", 0, 9),)),
        ParsedText("abc", ()),
        RecursionError("maximum recursion depth exceeded"),
        ValueError("\ud800"),
    ],
    ids=["outside", "uncovered", "recursion", "unprintable"],
)
def test_a_broken_parser_fails_its_document_and_nothing_else(
    outcome: ParsedText | Exception, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setitem(PARSERS, "text/broken", Broken(outcome))
    result = parse_document(b"abc", "a.brk", "text/broken")
    assert (result.status, result.parser, result.text) == ("failed", "broken", "")
    (result.error or "").encode()


def test_a_key_changes_with_bytes_format_and_parser_version(monkeypatch: pytest.MonkeyPatch):
    key = parse_key("rev", "text/markdown")
    assert key == parse_key("rev", "text/markdown")
    assert key != parse_key("other", "text/markdown")
    assert key != parse_key("rev", "text/html")
    monkeypatch.setattr(markdown, "VERSION", markdown.VERSION + 1)
    assert key != parse_key("rev", "text/markdown")


def test_a_key_changes_when_a_format_gets_a_parser(monkeypatch: pytest.MonkeyPatch):
    before = parse_key("rev", "application/x-new")
    monkeypatch.setitem(PARSERS, "application/x-new", markdown)
    assert before != parse_key("rev", "application/x-new")


def test_elements_survive_their_table(tmp_path: Path):
    parsed = parse_document(b"# A\n\n|a|b|\n|-|-|\n|1|2|\n\n```py\nx\n```", "a.md", "text/markdown")
    elements = parsed.elements
    elements_frame("c/a.md", parsed.text, elements).write_parquet(tmp_path / "e.parquet")
    frame = pl.read_parquet(tmp_path / "e.parquet")
    assert frame.schema == ELEMENTS_SCHEMA
    assert frame["ordinal"].to_list() == [0, 1, 2]
    assert frame["parent"].to_list() == [None, 0, 0]
    assert frame["line"].to_list() == [1, 3, 7]
    assert elements_by_document(frame) == {"c/a.md": elements}
    assert elements_sha(elements_by_document(frame)["c/a.md"]) == elements_sha(elements)


def test_no_elements_are_an_empty_frame():
    assert elements_frame("c/a.md", "", ()).schema == ELEMENTS_SCHEMA
    assert elements_by_document(elements_frame("c/a.md", "", ())) == {}


def test_reading_needs_no_parser_library_until_it_is_used():
    heavy = {"markdown_it", "selectolax", "charset_normalizer", "pypdfium2", "python_calamine"}
    source = Path(parse.__file__).parent
    for file in source.glob("*.py"):
        top = [
            line for line in file.read_text().splitlines() if line.startswith(("import", "from"))
        ]
        assert not [line for line in top if heavy & set(line.replace(".", " ").split())]
