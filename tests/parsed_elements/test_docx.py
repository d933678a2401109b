"""Word documents, each written for one thing that readers of them get wrong."""

from hypothesis import given, settings
from hypothesis import strategies as st
from written_files import docx, p, relations, tbl

from chunking_assets.parsed_elements.document import ParsedText, check_spans
from chunking_assets.parsed_elements.docx import parse
from chunking_assets.parsed_elements.limits import Limits


def read(body: str, **kinds) -> ParsedText:
    parsed = parse(docx(body, **kinds), Limits())
    check_spans(parsed)
    return parsed


def shown(parsed: ParsedText) -> list[tuple[str, str]]:
    return [(e.kind, parsed.text[e.start : e.end]) for e in parsed.elements]


def test_headings_by_style_carry_their_path():
    parsed = read(
        p("Handbook", "Title")
        + p("Leave", "Heading1")
        + p("Sick leave", "Heading2")
        + p("Call us.")
    )
    assert [e.heading_path for e in parsed.elements][-1] == ("Leave", "Sick leave")
    assert parsed.text == "# Handbook\n\n# Leave\n\n## Sick leave\n\nCall us.\n"


def test_a_table_stays_where_it_stands_and_knows_its_header():
    parsed = read(
        p("Fees", "Heading1")
        + tbl([["Card", "Fee"], ["Visa", "1.2 %"]], 1)
        + p("Taxes", "Heading1")
    )
    assert [kind for kind, _ in shown(parsed)] == ["heading", "table", "heading"]
    table = parsed.elements[1]
    assert table.heading_path == ("Fees",)
    assert parsed.text[table.attribute("header_end") : table.end] == "| Visa | 1.2 % |"


def test_two_header_rows_are_both_the_header():
    parsed = read(tbl([["Fees", ""], ["Card", "Fee"], ["Visa", "1.2 %"]], 2))
    (table,) = parsed.elements
    assert parsed.text[table.attribute("header_end") : table.end] == "| Visa | 1.2 % |"


def test_merged_cells_are_repeated_in_what_they_reach_over():
    across = f'<w:tcPr><w:gridSpan w:val="2"/></w:tcPr>{p("Both")}'
    down = f'<w:tcPr><w:vMerge w:val="restart"/></w:tcPr>{p("Card")}'
    below = f"<w:tcPr><w:vMerge/></w:tcPr>{p('')}"
    parsed = read(tbl([["A", across], [down, "x", "y"], [below, "z", "w"]]))
    assert parsed.text.splitlines()[0] == "| A | Both | Both |"
    assert parsed.text.splitlines()[2:] == ["| Card | x | y |", "| Card | z | w |"]


def test_a_nested_list_items_own_text_is_kept_with_its_number():
    parsed = read(
        p("Open", numbered=(2, 0)) + p("the app", numbered=(2, 1)) + p("the page", numbered=(2, 1))
        + p("Pay", numbered=(2, 0)) + p("now", numbered=(2, 1)) + p("cash", numbered=(1, 0))
    )  # fmt: skip
    assert parsed.text.splitlines() == [
        "1. Open", "  a) the app", "  b) the page", "2. Pay", "  a) now", "- cash",
    ]  # fmt: skip
    assert [e.level for e in parsed.elements] == [1, 2, 2, 1, 2, 1]


def test_a_list_inside_a_table_cell_keeps_its_labels():
    steps = p("Open", numbered=(2, 0)) + p("Pay", numbered=(2, 0))
    assert "| Steps | 1. Open 2. Pay |" in read(tbl([["Kind", "What"], ["Steps", steps]])).text


def test_deleted_and_hidden_text_is_not_read_and_inserted_text_is():
    body = (
        "<w:p><w:r><w:t>Pay in </w:t></w:r>"
        "<w:del><w:r><w:delText>30</w:delText></w:r></w:del>"
        "<w:ins><w:r><w:t>14</w:t></w:r></w:ins>"
        "<w:r><w:rPr><w:vanish/></w:rPr><w:t>secret</w:t></w:r><w:r><w:t> days.</w:t></w:r></w:p>"
    )
    assert read(body).text == "Pay in 14 days.\n"


def test_text_boxes_are_read_once():
    box = f"<w:txbxContent>{p('In the box')}</w:txbxContent>"
    both = f"<mc:AlternateContent><mc:Choice>{box}</mc:Choice><mc:Fallback>{box}</mc:Fallback>"
    body = (
        '<w:p xmlns:mc="m"><w:r><w:t>Before</w:t></w:r><w:r>'
        f"{both}</mc:AlternateContent></w:r></w:p>"
    )
    assert [text for _, text in shown(read(body))] == ["Before", "In the box"]


def test_field_instructions_are_not_text_and_their_results_are():
    body = (
        '<w:p><w:r><w:t>See page </w:t></w:r><w:r><w:fldChar w:fldCharType="begin"/></w:r>'
        "<w:r><w:instrText>PAGEREF x</w:instrText></w:r><w:r><w:t>7</w:t></w:r></w:p>"
    )
    assert read(body).text == "See page 7\n"


def test_footnotes_comments_and_margins_have_their_part():
    body = '<w:p><w:r><w:t>Free</w:t></w:r><w:r><w:footnoteReference w:id="2"/></w:r></w:p>'
    note = f'<w:footnote w:id="2">{p("Within the EU.")}</w:footnote>'
    separator = f'<w:footnote w:id="0" w:type="separator">{p("---")}</w:footnote>'
    parts = {
        "footnotes": separator + note,
        "comments": f'<w:comment w:author="Ana">{p("Really?")}</w:comment>',
        "footer": p("Confidential"),
    }
    parsed = read(body, parts=parts)
    assert [
        (k, t, dict(e.attributes)) for (k, t), e in zip(shown(parsed), parsed.elements, strict=True)
    ] == [
        ("paragraph", "Free[^2]", {}),
        ("definition", "[^2]: Within the EU.", {"part": "footnote"}),
        ("paragraph", "Really?", {"part": "comment", "author": "Ana"}),
        ("furniture", "Confidential", {"part": "footer"}),
    ]


def test_code_quotes_and_captions_are_known_by_style():
    parsed = read(
        p("if a:", "SourceCode") + p("    b()", "SourceCode") + p("Wise words", "Quote")
        + p("Figure 1: A duck", "Caption")
    )  # fmt: skip
    assert shown(parsed) == [
        ("code", "```\nif a:\n    b()\n```"),
        ("quote", "> Wise words"),
        ("caption", "Figure 1: A duck"),
    ]


def test_short_bold_paragraphs_head_a_document_without_styles():
    parsed = read(p("Refunds", bold=True) + p("Five days.") * 3)
    assert [e.heading_path for e in parsed.elements] == [("Refunds",)] * 4


def test_a_table_of_one_cell_is_no_table():
    assert shown(read(tbl([[p("Note") + p("Well")]]))) == [
        ("paragraph", "Note"),
        ("paragraph", "Well"),
    ]


def test_a_chart_is_a_table_of_its_numbers():
    points = (
        "<c:ser><c:tx><c:v>Ducks</c:v></c:tx>"
        '<c:cat><c:pt idx="0"><c:v>2024</c:v></c:pt></c:cat>'
        '<c:val><c:pt idx="0"><c:v>1.2999999999999998</c:v></c:pt></c:val></c:ser>'
    )
    chart = f'<c:chartSpace xmlns:c="c"><c:chart>{points}</c:chart></c:chartSpace>'
    body = '<w:p><w:r><w:drawing><c:chart xmlns:c="c" r:id="c1"/></w:drawing></w:r></w:p>'
    extra = {
        "word/chart.xml": chart,
        "word/_rels/document.xml.rels": relations(c1=("chart", "chart.xml")),
    }
    assert read(body, extra=extra).text.splitlines()[::2] == ["|  | Ducks |", "| 2024 | 1.3 |"]


TEXTS = st.lists(
    st.text(
        st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="\ufffe\uffff"),
        max_size=20,
    ),
    max_size=12,
)


@settings(deadline=None, max_examples=50)
@given(TEXTS, st.lists(st.sampled_from(["", "Heading1", "SourceCode", "Quote"]), min_size=1))
def test_every_text_of_a_document_is_in_its_canonical_text(texts: list[str], styles: list[str]):
    body = "".join(p(text, styles[n % len(styles)]) for n, text in enumerate(texts))
    parsed = read(body + (tbl([texts[:3], texts[3:6]]) if texts else ""))
    parsed.text.encode()
    found = "".join(parsed.text.split())
    for text in texts:
        assert "".join(text.replace("\xad", "").split()) in found or "|" in text or _unseen(text)


def _unseen(text: str) -> bool:
    return any(0xFDD0 <= ord(char) <= 0xFDEF for char in text)
