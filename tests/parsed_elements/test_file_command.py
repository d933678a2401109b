"""`python -m chunking_assets.parsed_elements`: what the parser understood, for a person to see."""

import re
import subprocess
import sys
from html import unescape

import pytest

from chunking_assets.parsed_elements.document import Element
from chunking_assets.parsed_elements.page import elements_page


@pytest.fixture
def parsed(tmp_path):
    def run(*arguments):
        return subprocess.run(
            [sys.executable, "-m", "chunking_assets.parsed_elements", *map(str, arguments)],
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )

    return run


def test_the_text_and_a_row_for_each_element_are_printed(parsed, tmp_path):
    file = tmp_path / "fees.md"
    file.write_text("# Fees\n\n- card\n", encoding="utf-8")
    page = tmp_path / "out" / "fees.html"
    done = parsed(file, "--html", page)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("# Fees\n\n- card\n")
    assert re.search(r"2\s+list_item\s+8–14\s+- card\s+level 1 · Fees", done.stdout)
    assert "ok: text/markdown, 15 characters" in done.stdout
    assert "- card" in page.read_text(encoding="utf-8")


def test_the_text_alone_can_be_piped_on(parsed, tmp_path):
    (tmp_path / "a.txt").write_text("Words.", encoding="utf-8")
    assert parsed(tmp_path / "a.txt", "--text").stdout == "Words."


def test_a_file_that_is_not_read_says_why_and_fails(parsed, tmp_path):
    (tmp_path / "a.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    done = parsed(tmp_path / "a.png")
    assert done.returncode == 1
    assert "unsupported: image/png" in done.stdout
    missing = parsed(tmp_path / "none.md")
    assert (missing.returncode, missing.stdout) == (1, "")
    assert "cannot be read (No such file or directory)" in missing.stderr


def test_a_document_is_text_to_the_page_whatever_it_holds():
    text = "</section><script>alert(1)</script> $title ${x} &amp; \U0001f642"
    elements = [Element("code", 0, len(text), attributes=(("speaker", "<b>"),))]
    page = elements_page("<img src=x>.md", text, elements, "ok")
    assert "<script" not in page
    assert "<img" not in page
    assert "<b>" not in page.replace("<b>code</b>", "")
    (shown,) = re.findall(r'<div class="text code">(.*?)</div>', page, re.DOTALL)
    assert unescape(shown) == text


def test_a_huge_document_is_shown_to_where_a_browser_copes(monkeypatch):
    monkeypatch.setattr("chunking_assets.parsed_elements.page.MOST_CHARS", 10)
    page = elements_page("a", "0123456789abc", [Element("code", 0, 13)], "ok.")
    assert "0123456789<" in page
    assert "ok. The page shows the first 10 characters." in page
