from hypothesis import example, given
from hypothesis import strategies as st

from evals.gold_questions.drift import (
    CONTEXT_CHARS,
    MOST_WORDS,
    SHOWN_CHARS,
    Words,
    passage_around,
)

PROSE = "Refunds are possible for 120 days after capture. Later ones are refused by the bank."
ELSEWHERE = "Terminals restart when both keys are held. Payouts leave at eleven, on weekdays only. "


def test_the_passage_is_found_wherever_it_was_moved_to():
    text = ELSEWHERE * 50 + PROSE.replace("120", "90") + ELSEWHERE * 50
    assert Words(text).diff(PROSE) == (
        "Refunds are possible for [-120-]{+90+} days after capture. Later ones are refused by the "
        "bank."
    )


def test_a_text_that_says_nothing_alike_gives_no_diff():
    assert Words(ELSEWHERE * 5).diff(PROSE) is None
    assert Words("").diff(PROSE) is None
    assert Words(PROSE).diff("…") is None


def test_words_put_in_and_taken_out_at_either_end_are_seen():
    assert Words("Before. The fee is 3 now. After.").diff("The fee is 2 now") == (
        "The fee is [-2-]{+3+} now"
    )
    assert Words("Before. Our fee is 3 now. After.").diff("The fee is 3 now") == (
        "[-The-]{+Our+} fee is 3 now"
    )
    assert Words("Before. The fee is 3 then. After.").diff("The fee is 3 now") == (
        "The fee is 3 [-now-]{+then+}"
    )


def test_scripts_without_spaces_are_compared_by_letter():
    diff = Words("退款在九十天内可以申请。").diff("退款在六十天内可以申请。")
    assert diff == "退款在[-六-]{+九+}十天内可以申请。"


def test_what_is_far_from_a_change_is_left_out():
    old = " ".join(f"w{i}" for i in range(100))
    diff = Words(old.replace("w50 ", "x ")).diff(old)
    assert diff.startswith("… w42 ")
    assert "[-w50-]{+x+}" in diff
    assert diff.endswith(" w58 …")


def test_a_diff_is_bounded_however_much_changed():
    old = " ".join(f"w{i}" for i in range(3 * MOST_WORDS))
    new = " ".join(f"w{i}" if i % 3 else f"x{i}" for i in range(3 * MOST_WORDS))
    assert len(Words(new).diff(old)) <= SHOWN_CHARS


def test_the_text_around_a_quote_is_bounded_and_of_whole_words():
    text = "before " * 100 + "QUOTE" + " behind" * 100
    start = text.index("QUOTE")
    passage = passage_around(text, start, start + 5)
    assert len(passage) <= 2 * CONTEXT_CHARS + 5
    assert set(passage.split()) == {"before", "QUOTE", "behind"}


@example("\x1f", "\x1f")
@given(st.text(max_size=200), st.text(max_size=60))
def test_any_text_can_be_compared_with_any_passage(text, passage):
    diff = Words(text).diff(passage)
    assert diff is None or 0 < len(diff) <= SHOWN_CHARS


@given(st.text(min_size=1, max_size=600), st.data())
def test_a_passage_holds_its_quote(text, data):
    start = data.draw(st.integers(0, len(text) - 1))
    end = data.draw(st.integers(start + 1, len(text)))
    assert text[start:end].strip() in passage_around(text, start, end)
