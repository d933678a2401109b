"""Presentations, workbooks, OpenDocument texts, books and rich text."""

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from written_files import epub, odt, pptx, shape, slide_table, xlsx

from chunking_assets.parsed_elements import epub as epub_parser
from chunking_assets.parsed_elements import odt as odt_parser
from chunking_assets.parsed_elements import pptx as pptx_parser
from chunking_assets.parsed_elements import rtf as rtf_parser
from chunking_assets.parsed_elements import xlsx as xlsx_parser
from chunking_assets.parsed_elements.document import ParsedText, check_spans
from chunking_assets.parsed_elements.limits import Limits


def checked(parse: Callable[[bytes, Limits], ParsedText], data: bytes) -> ParsedText:
    parsed = parse(data, Limits())
    check_spans(parsed)
    parsed.text.encode()
    return parsed


def shown(parsed: ParsedText) -> list[tuple[str, str]]:
    return [(e.kind, parsed.text[e.start : e.end]) for e in parsed.elements]


# Presentations


def test_slides_come_in_their_order_under_their_titles():
    first = shape(["Welcome"], "ctrTitle") + shape(["Free", "1|in Europe", "Fast"], "body")
    second = shape(["A box that floats"]) + shape(["Prices"], "title")
    parsed = checked(pptx_parser.parse, pptx([first, second], {1: "Smile."}))
    assert parsed.text.splitlines() == [
        "# Welcome", "", "- Free", "  - in Europe", "- Fast", "", "Smile.", "", "# Prices", "",
        "A box that floats",
    ]  # fmt: skip
    assert [e.attribute("slide") for e in parsed.elements] == [1] * 5 + [2] * 2
    assert parsed.elements[4].attribute("part") == "notes"
    assert parsed.elements[6].heading_path == ("Prices",)


def test_a_slide_without_title_is_not_under_the_title_before():
    parsed = checked(pptx_parser.parse, pptx([shape(["One"], "title"), shape(["Two"])]))
    assert parsed.elements[1].heading_path == ()


def test_slide_numbers_and_footers_are_furniture():
    parsed = checked(pptx_parser.parse, pptx([shape(["Hello"]) + shape(["7"], "sldNum")]))
    assert shown(parsed) == [("paragraph", "Hello"), ("furniture", "7")]


def test_a_table_on_a_slide_has_its_header():
    parsed = checked(pptx_parser.parse, pptx([slide_table([["Card", "Fee"], ["Visa", "1 | 2"]])]))
    (table,) = parsed.elements
    assert parsed.text[table.attribute("header_end") : table.end] == "| Visa | 1 \\| 2 |"


# Workbooks


def test_each_sheet_is_a_section_and_its_tables_know_sheet_row_and_header():
    parsed = checked(
        xlsx_parser.parse,
        xlsx({
            "Fees": [["Card", "Fee"], ["Visa", 1.5], [], ["Country", "Days"], ["France", 2]],
            "Notes": [["Ask Ana."]],
        }),
    )  # fmt: skip
    assert parsed.text.splitlines() == [
        "# Fees", "", "| Card | Fee |", "| --- | --- |", "| Visa | 1.5 |", "",
        "| Country | Days |", "| --- | --- |", "| France | 2 |", "", "# Notes", "", "Ask Ana.",
    ]  # fmt: skip
    tables = [e for e in parsed.elements if e.kind == "table"]
    assert [(e.attribute("sheet"), e.attribute("row")) for e in tables] == [
        ("Fees", 1),
        ("Fees", 4),
    ]
    assert [parsed.text[e.attribute("header_end") : e.end] for e in tables] == [
        "| Visa | 1.5 |", "| France | 2 |",
    ]  # fmt: skip


def test_tables_side_by_side_are_two():
    rows = [["a", "b", None, "c", "d"], [1, 2, None, 3, 4]]
    parsed = checked(xlsx_parser.parse, xlsx({"S": rows}))
    assert [t for k, t in shown(parsed) if k == "table"] == [
        "| a | b |\n| --- | --- |\n| 1 | 2 |",
        "| c | d |\n| --- | --- |\n| 3 | 4 |",
    ]


def test_merged_cells_make_two_header_rows():
    rows = [["Plan", "Price", None], ["Name", "Month", "Year"], ["Basic", 5, 50]]
    parsed = checked(xlsx_parser.parse, xlsx({"S": rows}, ["B1:C1"]))
    table = parsed.elements[1]
    assert parsed.text[table.start :].splitlines()[0] == "| Plan | Price | Price |"
    assert parsed.text[table.attribute("header_end") : table.end] == "| Basic | 5 | 50 |"


def test_numbers_alone_have_no_header():
    parsed = checked(xlsx_parser.parse, xlsx({"S": [[1, 2], [3, 4]]}))
    table = parsed.elements[1]
    assert table.attribute("header_end") == table.start


def test_a_workbook_without_values_is_empty():
    assert checked(xlsx_parser.parse, xlsx({"Sheet1": [], "Sheet2": []})).elements == ()


# OpenDocument

NUMBERS = (
    '<text:list-style style:name="L"><text:list-level-style-number text:level="1" '
    'style:num-format="1"/><text:list-level-style-bullet text:level="2"/></text:list-style>'
)


def test_an_opendocument_text_has_headings_nested_lists_and_spaces():
    body = (
        '<text:h text:outline-level="2">Steps</text:h><text:list text:style-name="L">'
        "<text:list-item><text:p>Open</text:p><text:list><text:list-item><text:p>the app</text:p>"
        "</text:list-item></text:list></text:list-item><text:list-item><text:p>Pay</text:p>"
        '</text:list-item></text:list><text:p>a<text:s text:c="3"/>b<text:tab/>c'
        "<text:line-break/>d</text:p>"
    )
    parsed = checked(odt_parser.parse, odt(body, NUMBERS))
    assert parsed.text == "## Steps\n\n1. Open\n  - the app\n2. Pay\n\na b c\nd\n"


def test_an_opendocument_table_repeats_spanned_cells_and_knows_its_header():
    body = (
        "<table:table><table:table-header-rows><table:table-row>"
        '<table:table-cell table:number-columns-spanned="2"><text:p>Both</text:p></table:table-cell>'
        "<table:covered-table-cell/></table:table-row></table:table-header-rows><table:table-row>"
        '<table:table-cell table:number-rows-spanned="2"><text:p>x</text:p></table:table-cell>'
        "<table:table-cell><text:p>y</text:p></table:table-cell></table:table-row><table:table-row>"
        "<table:covered-table-cell/><table:table-cell><text:p>z</text:p></table:table-cell>"
        "</table:table-row></table:table>"
    )
    parsed = checked(odt_parser.parse, odt(body))
    (table,) = parsed.elements
    assert parsed.text.splitlines()[0] == "| Both | Both |"
    rows = parsed.text[table.attribute("header_end") : table.end]
    assert rows.splitlines() == ["| x | y |", "| x | z |"]


def test_opendocument_notes_follow_and_tracked_deletions_are_not_read():
    body = (
        "<text:tracked-changes><text:p>old</text:p></text:tracked-changes><text:p>Free"
        "<text:note><text:note-citation>1</text:note-citation><text:note-body><text:p>In Europe."
        "</text:p></text:note-body></text:note>.</text:p>"
    )
    assert checked(odt_parser.parse, odt(body)).text == "Free[^1].\n\n[^1]: In Europe.\n"


def test_slides_of_opendocument_are_sections_under_their_titles():
    slide = (
        '<page><frame class="title"><text-box><text:p>{0}</text:p></text-box></frame>'
        "<frame><text-box><text:list><text:list-item><text:p>{1}</text:p></text:list-item>"
        "</text:list></text-box></frame></page>"
    )
    data = odt(slide.format("Fees", "None.") + slide.format("Days", "Five."))
    parsed = checked(odt_parser.parse, data)
    assert parsed.text == "# Fees\n\n- None.\n\n# Days\n\n- Five.\n"
    assert [e.attribute("slide") for e in parsed.elements] == [1, 1, 2, 2]


# Books


def test_chapters_come_in_the_order_of_the_spine_with_their_number():
    parsed = checked(
        epub_parser.parse,
        epub(
            {"b.xhtml": "<html><h1>One</h1><p>First.</p></html>", "a.xhtml": "<h1>Two</h1><p>Next."}
        ),
    )
    assert parsed.text == "# One\n\nFirst.\n\n# Two\n\nNext.\n"
    assert [e.attribute("chapter") for e in parsed.elements] == [1, 1, 2, 2]
    assert parsed.elements[3].heading_path == ("Two",)


def test_a_table_in_a_book_has_its_header_where_it_lies_in_the_book():
    page = "<table><tr><th>a<th>b<tr><td>1<td>2</table>"
    parsed = checked(epub_parser.parse, epub({"a.xhtml": "<p>Before.", "b.xhtml": page}))
    table = parsed.elements[1]
    assert parsed.text[table.attribute("header_end") : table.end] == "| 1 | 2 |"


# Rich text


@pytest.mark.parametrize(
    ("source", "text"),
    [
        (r"{\rtf1\ansi\ansicpg1252 caf\'e9\par}", "café\n"),
        (r"{\rtf1\ansi\uc1 \u8364?5 \u-10179?\u-8704? ok\par}", "€5 😀 ok\n"),
        (r"{\rtf1{\fonttbl{\f0\fcharset204 Arial;}}\f0\'cf\'f0\par}", "Пр\n"),
        (r"{\rtf1{\*\generator Word}{\info{\title T}}{\pict 00ff}Text\par}", "Text\n"),
        (r"{\rtf1{\stylesheet{\s1 heading 1;}}\pard\s1 Fees\par\pard Two.\par}", "# Fees\n\nTwo.\n"),
        (r"{\rtf1{\pntext 1.\tab}\ilvl0 Open\par\pard{\pntext 2.\tab}Pay\par}", "1. Open\n2. Pay\n"),
        (r"{\rtf1 a{\footnote Only here.}b\par}", "a[^1]b\n\n[^1]: Only here.\n"),
        (r"{\rtf1{\v hidden}shown\par}", "shown\n"),
        (r"{\rtf1{\field{\*\fldinst HYPERLINK x}{\fldrslt a link}}\par}", "a link\n"),
        ("{\\rtf1 a\\\nb\\par}", "a\n\nb\n"),
    ],
)  # fmt: skip
def test_rich_text_is_read_as_it_is_shown(source: str, text: str):
    assert checked(rtf_parser.parse, source.encode()).text == text


def test_a_row_that_repeats_on_each_page_is_the_header_of_a_rich_text_table():
    source = rb"{\rtf1\trowd\trhdr\intbl Card\cell Fee\cell\row\trowd\intbl Visa\cell 1\cell\row}"
    (table,) = checked(rtf_parser.parse, source).elements
    assert table.attribute("header_end") == len("| Card | Fee |\n| --- | --- |\n")


def test_rich_text_that_is_cut_short_is_partial():
    assert checked(rtf_parser.parse, rb"{\rtf1 Hello {\b wor").missing


TOKENS = st.lists(
    st.one_of(
        st.sampled_from(
            ["{", "}", "\\par ", "\\cell ", "\\row", "\\intbl ", "{\\*\\x ", "\\'e9", "\\u300?", "\\bin3 ",
             "{\\footnote ", "{\\stylesheet", "\\s1 ", "{\\pntext ", "\\v ", "\\\\", "\\~", "é"]
        ),
        st.text(max_size=5),
    ),
    max_size=30,
).map("".join)  # fmt: skip


@settings(deadline=None)
@given(TOKENS)
def test_any_rich_text_is_covered(source: str):
    checked(rtf_parser.parse, b"{\\rtf1 " + source.encode("utf-8", "replace"))


CELLS = st.one_of(st.none(), st.text("ab|# \n", max_size=4), st.integers(-9, 9), st.floats(0, 9))


@settings(deadline=None, max_examples=50)
@given(st.lists(st.lists(CELLS, max_size=6), max_size=8))
def test_any_sheet_is_covered_and_no_number_lost(rows: list[list[str | float | None]]):
    parsed = checked(xlsx_parser.parse, xlsx({"S": rows}))
    for row in rows:
        for value in row:
            assert not isinstance(value, int) or str(value) in parsed.text
