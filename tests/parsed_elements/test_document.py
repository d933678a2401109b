import pytest

from chunking_assets.parsed_elements.document import (
    TITLE_CHARS,
    BrokenSpans,
    Element,
    HeadingStack,
    ParsedText,
    check_spans,
    line_starts,
    short_title,
)


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
