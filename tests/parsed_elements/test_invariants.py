from hypothesis import given, settings
from hypothesis import strategies as st

from chunking_assets.parsed_elements import html, markdown, plain_text, python_source
from chunking_assets.parsed_elements.document import check_spans
from chunking_assets.parsed_elements.parse import (
    elements_by_document,
    elements_frame,
    parse_document,
)
from chunking_assets.parsed_elements.registry import PARSERS
from chunking_assets.raw_documents.media_type import media_type

TEXT = st.text(alphabet=st.characters(exclude_categories=["Cs"], exclude_characters="\0"))


def pieces(*parts: str) -> st.SearchStrategy[str]:
    """Texts made of what means something in a format, and of anything in between."""
    return st.lists(st.one_of(st.sampled_from(parts), TEXT), max_size=40).map("".join)


NEWLINES = ("\n", "\n\n", "\r\n", "\r", "\u2028", " ", "    ", "\t", "\u00a0")
MARKDOWN = pieces(
    *NEWLINES, "# ", "## t", "===", "---", "- ", "1. ", "> ", ">", "```", "~~~~", "|a|b|", "|-|-|",
    "|", "<div>", "<!--", "-->", "[a]: b", "***", "+++", "key: v", "\\", "`", "é🙂",
    "<Tab>", "</Tab>", "<Tab\n", "<>", ">", "import a from 'b'", "export const a = ", "{", "}",
    "<!-- p -->## t",
)  # fmt: skip
PLAIN = pieces(*NEWLINES, "[09:14] Ana (customer): hi", "Bo: ok", "Ana:", "[", "]", ": ", "é🙂")
PYTHON = pieces(
    *NEWLINES, "import os\n", "def f():\n", "class A:\n", "    pass\n", "    def g(self): ...\n",
    "@d\n", "# é🙂\n", "x = 1; y = 2\n", '"""doc"""\n', "\\\n", "(", ")", "if x:\n",
)  # fmt: skip
_TAG_NAMES = (
    "div p ul ol li table tr td th thead caption h1 h2 blockquote pre code b a span dl dt dd "
    "section article main aside nav header footer figure figcaption details summary button br hr "
    "font form"
)
TAGS = _TAG_NAMES.split()
PAGES = pieces(
    *NEWLINES,
    *(f"<{tag}>" for tag in TAGS),
    *(f"</{tag}>" for tag in TAGS),
    '<td colspan="3">', '<th rowspan="2">', '<div class="sidebar">', "<p hidden>", "&amp;", "&#0;",
    "&#xD800;", "<!--", "-->", "<script>", "</script>", "|", "`", "é🙂", "<title>", "</title>",
)  # fmt: skip


@settings(deadline=None)
@given(MARKDOWN, st.booleans())
def test_markdown_elements_cover_the_text_itself(text: str, mdx: bool):
    parsed = markdown.parse_text(text, mdx=mdx)
    check_spans(parsed)
    assert parsed.text == text


@settings(deadline=None)
@given(PLAIN)
def test_plain_text_elements_cover_the_text_itself(text: str):
    parsed = plain_text.parse_text(text)
    check_spans(parsed)
    assert parsed.text == text


@settings(deadline=None)
@given(PYTHON)
def test_python_elements_cover_the_text_itself(text: str):
    parsed = python_source.parse_text(text)
    check_spans(parsed)
    assert parsed.text == text


@settings(deadline=None)
@given(PAGES)
def test_html_elements_cover_the_text_written_from_the_page(page: str):
    parsed = html.parse_text(page)
    check_spans(parsed)
    parsed.text.encode()


FURNITURE = {"nav", "aside", "header", "footer", "button"}


@settings(deadline=None)
@given(st.lists(st.sampled_from([t for t in TAGS if t not in FURNITURE] + [""]), max_size=30))
def test_no_word_of_a_page_without_furniture_is_lost(tags: list[str]):
    page = "".join(
        f"<{tag}> word{i}." if tag else f"</{tags[i - 1]}>" for i, tag in enumerate(tags)
    )
    text = html.parse_text(page).text
    assert [i for i, tag in enumerate(tags) if tag and f"word{i}." not in text] == []


@settings(deadline=None)
@given(st.binary(max_size=500), st.sampled_from(["a.md", "a.html", "a.txt", "a.py", "a.pdf", "a"]))
def test_any_bytes_have_a_status(data: bytes, name: str):
    result = parse_document(data, name, media_type(data, name))
    assert result.status in {"ok", "empty", "unsupported", "failed"}
    assert (result.status == "ok") == bool(result.elements)
    assert result.status == "ok" or (result.error and result.cure and not result.text)
    stored = elements_by_document(elements_frame("c/a", result.text, result.elements))
    assert stored.get("c/a", ()) == result.elements


@settings(deadline=None)
@given(st.binary(max_size=300), st.sampled_from(sorted(PARSERS)))
def test_any_bytes_under_any_type_have_a_status(data: bytes, kind: str):
    assert parse_document(data, "a", kind).status in {"ok", "empty", "failed"}
