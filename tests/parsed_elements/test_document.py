import pytest

from chunking_assets.parsed_elements.document import (
    TITLE_CHARS,
    BrokenSpans,
    Element,
    HeadingStack,
    ParsedText,
    check_spans,
    line_starts,
    parents,
    short_title,
)
from chunking_assets.parsed_elements.markdown import parse_text as markdown
from chunking_assets.parsed_elements.python_source import parse_text as python


@pytest.mark.parametrize(
    "elements",
    [
        [(0, 0)],
        [(0, 4), (3, 8)],
        [(4, 8), (0, 4)],
        [(0, 9)],
        [(0, 3)],
    ],
    ids=["empty", "overlapping", "unsorted", "outside", "uncovered"],
)
def test_a_parser_that_breaks_its_promise_is_told(elements: list[tuple[int, int]]):
    spans = tuple(Element("paragraph", start, end) for start, end in elements)
    with pytest.raises(BrokenSpans):
        check_spans(ParsedText("abc defg", spans))


def test_white_space_may_belong_to_no_element():
    check_spans(ParsedText("\n abc \u00a0\n", (Element("paragraph", 2, 5),)))


def test_a_heading_keeps_the_levels_above_it_and_drops_those_below():
    stack = HeadingStack()
    stack.enter(1, "A")
    stack.enter(2, "B")
    assert stack.enter(4, "D") == ("A", "B", "D")
    assert stack.enter(3, "C") == ("A", "B", "C")
    assert stack.enter(2, "E") == ("A", "E")
    assert stack.path == ("A", "E")


def test_a_heading_without_words_leaves_no_gap_in_the_path():
    stack = HeadingStack()
    stack.enter(1, "A")
    assert stack.enter(2, " ") == ("A",)
    assert stack.enter(3, "C") == ("A", "C")


def test_a_title_in_a_path_is_one_bounded_line():
    assert short_title("two\n  lines") == "two lines"
    assert len(short_title("x" * 10_000)) == TITLE_CHARS


def test_unicode_separators_end_no_line():
    assert line_starts("a\u2028b\x0cc\x85d\n") == [0, 8, 8]


def above(parsed: ParsedText) -> list[tuple[str, str | None]]:
    """The first line of each element, and that of the one it stands under."""
    lines = [parsed.text[e.start : e.end].strip().split("\n")[0] for e in parsed.elements]
    return [
        (line, None if parent is None else lines[parent])
        for line, parent in zip(lines, parents(parsed.elements), strict=True)
    ]


def test_a_heading_stands_under_the_one_it_is_part_of_though_titles_repeat():
    text = "intro\n# A\n## FAQ\nx\n# B\n### FAQ\ny\n## FAQ\nz\n> # quoted\n\nend\n"
    assert above(markdown(text)) == [
        ("intro", None), ("# A", None), ("## FAQ", "# A"), ("x", "## FAQ"), ("# B", None),
        ("### FAQ", "# B"), ("y", "### FAQ"), ("## FAQ", "# B"), ("z", "## FAQ"),
        ("> # quoted", "## FAQ"), ("end", "## FAQ"),
    ]  # fmt: skip


def test_what_stands_in_a_list_item_is_under_it():
    text = "# A\n- a\n  - b\n\n    more b\n    ```\n    code\n    ```\n- c\n\nend\n\n- d\n"
    assert above(markdown(text)) == [
        ("# A", None), ("- a", "# A"), ("- b", "- a"), ("more b", "- a"), ("```", "more b"),
        ("- c", "# A"), ("end", "# A"), ("- d", "# A"),
    ]  # fmt: skip


def test_a_method_is_under_its_class():
    assert above(python("class A:\n    def f(self): ...\n\ndef g(): ...\n")) == [
        ("class A:", None), ("def f(self): ...", "class A:"), ("def g(): ...", None),
    ]  # fmt: skip
