import pytest
from hypothesis import given
from hypothesis import strategies as st

from evals.ragas_scores.flags import Flags, flags

NONE = Flags([], [], [])


@pytest.mark.parametrize(
    ("answer", "context"),
    [
        ("It costs 1,000 EUR.", "Price: 1000"),
        ("It costs 1.000 EUR.", "Price: 1,000"),
        ("It costs 1 000,50 EUR.", "Price: 1000.5"),
        ("It takes 30.", "It takes 30 days"),
        ("السعر ٤٠ يورو", "40 EUR"),
        ("価格は４０です。", "40 EUR"),
        ("It is 7.", "case 007"),
    ],
)
def test_a_number_written_otherwise_is_the_same_number(answer, context):
    assert flags(answer, [context]).numbers == []


@pytest.mark.parametrize(
    ("answer", "context", "flagged"),
    [
        ("It costs 45 EUR.", "It costs 40 EUR.", ["45"]),
        ("It is 1.5 m.", "It is 15 m.", ["1.5"]),
        ("Since 2021, 2021 and 3.", "Since 2020: 3", ["2021"]),
        ("It is 400.", "It is 40 and 00.", ["400"]),
        ("٤٥ يورو", "٤٠ يورو", ["45"]),
    ],
)
def test_a_number_that_is_nowhere_is_flagged_once(answer, context, flagged):
    assert flags(answer, [context]).numbers == flagged


@pytest.mark.parametrize(
    ("answer", "flagged"),
    [
        ("The motor is made by Bosch.", ["Bosch"]),
        ("Bosch makes it.", []),  # any word has a capital there
        ("It is Ada's pump.", []),
        ("The API is closed, the iPhone and SLA too.", ["API", "iPhone", "SLA"]),
        ("He said: “The pump.”", []),
        ("It works. Others do not.", []),
        ("I think so, and I am right.", []),
        ("Это делает Сименс.", ["Сименс"]),
    ],
)
def test_a_name_that_is_nowhere_is_flagged(answer, flagged):
    assert flags(answer, ["Only ADA may service the pump."]).names == flagged


def test_where_common_nouns_have_capitals_they_are_no_names():
    answer = "Der Motor ist von der BMW Werkstatt."
    assert flags(answer, ["Nichts."], "de-AT").names == ["BMW"]
    assert flags(answer, ["Nichts."], "en").names == ["Motor", "BMW", "Werkstatt"]


@pytest.mark.parametrize(
    ("answer", "flagged"),
    [
        ('It says "all taxes included".', ["all taxes included"]),
        ("It says “taxes  EXCLUDED,”", []),
        ("It is «hors taxes»", ["hors taxes"]),
        ("それは「税込価格です」", ["税込価格です"]),
        ('The "pump" is old.', []),  # one word is emphasis more often than quotation
    ],
)
def test_a_quotation_that_is_nowhere_is_flagged(answer, flagged):
    assert flags(answer, ["Prices are “taxes excluded”."]).quotes == flagged


@given(st.text(max_size=60), st.text(max_size=20))
def test_what_is_copied_is_never_flagged(copied, around):
    assert flags(copied, [f"{around} {copied} {around}"]).numbers == []
    assert flags(copied, [f"{around} {copied} {around}"]).names == []


def test_an_answer_without_contexts_to_compare_is_flagged_whole():
    assert flags("It is 5.", []) == Flags(["5"], [], [])
    assert flags("", ["anything"]) == NONE
