"""What pages of glyphs are made into, on pages written for each case."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from written_files import Line, Rule, column, grid, pdf

from chunking_assets.parsed_elements.document import ParsedText, check_spans
from chunking_assets.parsed_elements.limits import Limits
from chunking_assets.parsed_elements.parse import ParsedDocument, parse_document
from chunking_assets.parsed_elements.pdf import parse

PDF = "application/pdf"
LOREM = [
    "A refund is paid to the card that was charged, within five working",
    "days of the day on which the parcel reached our warehouse in Lyon.",
]


def shown(parsed: ParsedText | ParsedDocument) -> list[tuple[str, str]]:
    return [(e.kind, parsed.text[e.start : e.end]) for e in parsed.elements]


def read(pages: list[list[Line]], ruled: dict[int, list[Rule]] | None = None) -> ParsedText:
    parsed = parse(pdf(pages, ruled=ruled), Limits())
    check_spans(parsed)
    return parsed


def document(data: bytes, limits: Limits | None = None) -> ParsedDocument:
    return parse_document(data, "a.pdf", PDF, limits or Limits())


def test_lines_are_joined_to_paragraphs_with_their_page():
    parsed = read([column(LOREM), column(["Ask us anything."])])
    assert shown(parsed) == [("paragraph", " ".join(LOREM)), ("paragraph", "Ask us anything.")]
    assert [e.attribute("page") for e in parsed.elements] == [1, 2]


def test_headings_are_found_by_size_and_weight():
    parsed = read(
        [
            [
                *column(["Refund policy"], size=20, top=740),
                *column(["Deadlines"], size=14, top=710),
                *column(LOREM, top=690),
                *column(["Exceptions"], font="F2", top=650),
                *column(LOREM, top=635),
            ]
        ]
    )
    headings = [(e.level, e.heading_path) for e in parsed.elements if e.kind == "heading"]
    assert headings == [
        (1, ("Refund policy",)),
        (2, ("Refund policy", "Deadlines")),
        (3, ("Refund policy", "Deadlines", "Exceptions")),
    ]
    assert parsed.text.startswith("# Refund policy\n\n## Deadlines\n\n")


def test_the_first_heading_of_a_page_is_not_hidden_by_what_ends_the_page_before():
    pages = [
        [*column(["Shipping"], size=16, top=720), *column(LOREM), (300, 30, 9, "F1", "Page 1")],
        [*column(["Returns"], size=16, top=720), *column(LOREM), (300, 30, 9, "F1", "Page 2")],
    ]
    headings = [e.heading_path for e in read(pages).elements if e.kind == "heading"]
    assert headings == [("Shipping",), ("Returns",)]


def test_lists_keep_their_markers_levels_and_continued_lines():
    lines = [
        (72, 700, 10, "F1", "\u2022 Pack the parcel as it came and close it with tape on all of"),
        (82, 688, 10, "F1", "its sides."),
        (92, 676, 10, "F1", "\u2022 Leave the label visible."),
        (72, 664, 10, "F1", "1. Take it to a shop."),
    ]
    encoded = [(x, y, s, f, t.replace("\u2022", "\x95")) for x, y, s, f, t in lines]
    parsed = read([[*encoded, *column(LOREM, top=600)]])
    assert [s for s in shown(parsed) if s[0] == "list_item"] == [
        ("list_item", "- Pack the parcel as it came and close it with tape on all of its sides."),
        ("list_item", "  - Leave the label visible."),
        ("list_item", "1. Take it to a shop."),
    ]
    assert [e.level for e in parsed.elements if e.kind == "list_item"] == [1, 2, 1]


def test_a_table_has_rows_columns_and_a_header():
    rows = [("Country", "Fee", "Days"), ("France", "4.90", "2"), ("Brazil", "19.00", "9")]
    cells = [
        (72 + 120 * x, 650 - 14 * y, 10.0, "F1", text)
        for y, row in enumerate(rows)
        for x, text in enumerate(row)
    ]
    parsed = read([[*column(LOREM), *cells, *column(LOREM, top=590)]])
    (table,) = [e for e in parsed.elements if e.kind == "table"]
    assert parsed.text[table.start : table.end].splitlines() == [
        "| Country | Fee | Days |",
        "| --- | --- | --- |",
        "| France | 4.90 | 2 |",
        "| Brazil | 19.00 | 9 |",
    ]
    header_end = table.attribute("header_end")
    assert isinstance(header_end, int)
    assert parsed.text[header_end:].startswith("| France")
    assert [e.kind for e in parsed.elements] == ["paragraph", "table", "paragraph"]


def placed(rows: list[list[str]], top: float = 650, leading: float = 20) -> list[Line]:
    """Cells 100 apart from 76, below `top`; `first/second` is on two lines."""
    return [
        (76 + 100 * x, top - leading * y - 12 * n, 9, "F1", line)
        for y, row in enumerate(rows)
        for x, cell in enumerate(row)
        for n, line in enumerate(cell.split("/"))
        if line
    ]


def tables(parsed: ParsedText) -> list[list[str]]:
    return [text.splitlines() for kind, text in shown(parsed) if kind == "table"]


XS = [72, 172, 272, 372]


def test_cells_are_those_between_ruled_lines_where_words_do_not_show_them():
    """Two cells close to each other, a cell of two lines, an empty one."""
    rows = [
        ["Kind of card you hold", "Fee", "Note"],
        ["Visa", "", "none/at all"],
        ["", "2", ""],
    ]
    lines = placed(rows, leading=40)
    parsed = read([[*column(LOREM), *lines]], {1: grid(XS, [665, 625, 585, 545])})
    assert tables(parsed) == [
        ["| Kind of card you hold | Fee | Note |", "| --- | --- | --- |",
         "| Visa |  | none at all |", "|  | 2 |"],
    ]  # fmt: skip
    assert [e.kind for e in parsed.elements] == ["paragraph", "table"]


def test_cells_without_a_line_between_them_are_one_and_its_text_stands_in_each_place():
    rows = [["Country", "Fee", ""], ["", "low", "high"], ["France", "2", "9"], ["Italy", "3", "8"]]
    ys = [665, 645, 625, 605, 585]
    lines = [
        line for line in grid(XS, ys) if line not in ((272, 585, 272, 665), (72, 645, 372, 645))
    ]
    lines += [(272, 585, 272, 645), (172, 645, 372, 645)]
    parsed = read([placed(rows)], {1: lines})
    assert tables(parsed) == [
        ["| Country | Fee | Fee |", "| Country | low | high |", "| --- | --- | --- |",
         "| France | 2 | 9 |", "| Italy | 3 | 8 |"],
    ]  # fmt: skip


def test_boxes_of_a_drawing_and_the_grid_of_a_chart_are_no_table():
    for rows in ([["Start", "", ""], ["", "", "End"]], [["", "", ""], ["", "", ""]]):
        page = [*placed(rows), *column(["Figure 1: How a refund is paid"], top=560)]
        parsed = read([page], {1: grid(XS, [665, 645, 625])})
        assert tables(parsed) == []


def test_lines_around_whole_rows_leave_the_rows_to_their_words():
    rows = [["Country", "Fee", "Days"], *([f"Land {n}", f"{n}.50", f"{n}"] for n in range(1, 6))]
    parsed = read([placed(rows, leading=14)], {1: grid(XS, [665, 645, 570])})
    assert len(tables(parsed)[0]) == 7
    assert "| Land 5 | 5.50 | 5 |" in tables(parsed)[0]


@pytest.mark.parametrize("is_ruled", [True, False])
def test_a_table_that_runs_over_a_page_is_one_with_its_header_once(is_ruled: bool):
    header = ["Country", "Fee", "Days"]
    parts = [
        [header, ["France", "4.90", "2"], ["Italy", "5.90", "3"]],
        [header, ["Brazil", "19.00", "9"], ["Chile", "21.00", "8"]],
    ]
    pages = [
        [(72, 770, 9, "F1", "Terms of service"), *placed(rows), (300, 30, 9, "F1", f"{n} of 3")]
        for n, rows in enumerate(parts, 1)
    ]
    pages.append(
        [(72, 770, 9, "F1", "Terms of service"), *column(LOREM), (300, 30, 9, "F1", "3 of 3")]
    )
    lines = grid(XS, [665, 645, 625, 605])
    parsed = read(pages, {1: lines, 2: lines} if is_ruled else None)
    (table,) = [e for e in parsed.elements if e.kind == "table"]
    assert parsed.text[table.start : table.end].splitlines() == [
        "| Country | Fee | Days |", "| --- | --- | --- |", "| France | 4.90 | 2 |",
        "| Italy | 5.90 | 3 |", "| Brazil | 19.00 | 9 |", "| Chile | 21.00 | 8 |",
    ]  # fmt: skip
    header_end = table.attribute("header_end")
    assert isinstance(header_end, int)
    assert parsed.text[header_end:].startswith("| France")
    assert (table.attribute("page"), table.attribute("page_end")) == (1, 2)
    furniture = [e for e in parsed.elements if e.kind == "furniture"]
    assert [e.attribute("page") for e in furniture] == [1, 1, 2, 2, 3, 3]


def test_other_columns_on_the_next_page_are_another_table():
    pages = [
        placed([["Country", "Fee", "Days"], ["France", "4.90", "2"]]),
        placed([["Card", "Limit"], ["Visa", "900"]]),
    ]
    lines = {1: grid(XS, [665, 645, 625]), 2: grid(XS[:3], [665, 645, 625])}
    assert [len(table) for table in tables(read(pages, lines))] == [3, 3]


def test_columns_that_come_row_by_row_are_not_spliced():
    left = [f"The left column says thing number {n} in words" for n in range(6)]
    right = [f"while the right one tells of matter {n} at length" for n in range(6)]
    rows = [
        line
        for n in range(6)
        for line in ((60, 700 - 12 * n, 10, "F1", left[n]), (330, 700 - 12 * n, 10, "F1", right[n]))
    ]
    text = read([rows]).text
    assert " ".join(left) in text
    assert " ".join(right) in text


def test_columns_that_come_one_after_the_other_stay_so():
    page = [*column(["A refund is paid", "unless it"]), *column(["was lost.", *LOREM], x=330)]
    assert "unless it was lost." in read([page]).text


def test_running_headers_footers_and_page_numbers_are_furniture():
    pages = [
        [
            (72, 760, 9, "F1", "Terms of service"),
            *column([f"Clause {n} is about something else than all others."]),
            (300, 30, 9, "F1", f"{n} of 4"),
            (500, 30, 9, "F1", "Confidential"),
        ]
        for n in range(1, 5)
    ]
    parsed = read(pages)
    furniture = [text for kind, text in shown(parsed) if kind == "furniture"]
    assert furniture.count("Terms of service") == 4
    assert sum("of 4" in text for text in furniture) == 4
    assert [text for kind, text in shown(parsed) if kind == "paragraph"] == [
        f"Clause {n} is about something else than all others." for n in range(1, 5)
    ]


def test_a_number_at_the_same_place_of_each_page_is_furniture_only_if_it_counts_pages():
    def body(numbers: list[int]) -> list[str]:
        pages = [[*column([*LOREM, f"No {n}."]), (300, 30, 9.0, "F1", str(n))] for n in numbers]
        return [text for kind, text in shown(read(pages)) if kind == "furniture"]

    assert body([7, 8, 9]) == ["7", "8", "9"]
    assert body([120, 87, 455]) == []


def test_hyphens_at_line_ends_are_joined_and_those_of_names_kept():
    page = column(["The reimburse-", "ment of Jean-", "Luc was late again this year."])
    assert "The reimbursement of Jean-Luc was late" in read([page]).text


def test_typewriter_lines_are_code_with_their_indentation():
    code = [(72, 640, 10, "F3", "def pay(card):"), (96, 628, 10, "F3", "return card.charge()")]
    parsed = read([[*column(LOREM), *code, *column(LOREM, top=600)]])
    assert ("code", "```\ndef pay(card):\n    return card.charge()\n```") in shown(parsed)


def test_a_caption_is_one():
    page = [*column(LOREM), *column(["Table 3: Fees by country, in euros"], top=640)]
    assert shown(read([page]))[-1] == ("caption", "Table 3: Fees by country, in euros")


def test_a_password_is_asked_for_and_no_empty_text_returned():
    result = document(pdf([column(LOREM)], password="secret"))
    assert (result.status, result.text) == ("encrypted", "")
    assert "password" in (result.error or "")


def test_pages_that_are_pictures_need_ocr():
    result = document(pdf([[], []], scanned=[1, 2]))
    assert result.status == "needs_ocr"
    assert "all of its 2 pages" in (result.error or "")


def test_some_pages_that_are_pictures_are_named_as_missing():
    result = document(pdf([column(LOREM), [], [], column(LOREM)], scanned=[2, 3]))
    assert (result.status, result.error) == ("partial", "a.pdf: page 2-3: pictures of text")
    assert [e.attribute("page") for e in result.elements] == [1, 4]


def test_text_over_a_scan_is_read():
    assert document(pdf([column(LOREM)], scanned=[1])).status == "ok"


def test_empty_pages_are_empty():
    assert document(pdf([[]])).status == "empty"


def test_a_truncated_file_is_never_simply_ok():
    whole = pdf([column(LOREM) for _ in range(20)])
    for share in (0.2, 0.5, 0.9):
        result = document(whole[: int(len(whole) * share)])
        assert result.status in {"partial", "failed"}
        assert "cut short" in (result.error or "")


@pytest.mark.parametrize("data", [b"not a pdf at all\xff\xfe", b"%PDF-1.7\n" + bytes(99)])
def test_garbage_under_the_name_fails_with_a_cure(data: bytes):
    result = document(data)
    assert result.status == "failed"
    assert "cannot be opened as PDF" in (result.error or "")
    assert result.cure


def test_pages_beyond_the_limit_are_named():
    result = document(pdf([column(LOREM)] * 3), Limits(pages=2))
    assert result.status == "partial"
    assert "2 of 3 pages" in (result.error or "")


WORDS = ["word", "two words", "- item", "1. a", "|", "3", "# x", "Table 1: a", "re-", "\xe9t\xe9."]
ROWS = st.lists(
    st.tuples(
        st.integers(0, 400),
        st.sampled_from([6, 10, 10, 10, 14, 20]),
        st.sampled_from(["F1", "F2", "F3"]),
        st.sampled_from(WORDS),
    ),
    max_size=25,
)


@settings(deadline=None, max_examples=40)
@given(
    st.lists(ROWS, min_size=1, max_size=4),
    st.sampled_from([9, 14, 30]),
    st.lists(st.integers(0, 500), max_size=5),
    st.lists(st.integers(400, 800), max_size=6),
)
def test_no_word_of_any_page_is_lost(
    pages: list[list[tuple[int, int, str, str]]], leading: int, xs: list[int], ys: list[int]
):
    placed = [
        [(x, 780 - leading * n, size, font, text) for n, (x, size, font, text) in enumerate(rows)]
        for rows in pages
    ]
    lines = {1: grid(xs, ys), 2: grid(xs, ys)} if xs and ys else None
    found = read(placed, lines).text.replace("-", "").replace("\\|", "|")
    for *_, text in (line for page in placed for line in page):
        for word in text.replace("-", "").split():
            assert word in found
