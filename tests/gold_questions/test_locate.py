import unicodedata

import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st

from evals.gold_questions.locate import FoldedText, locate


@pytest.mark.parametrize(
    ("quote", "text", "found"),
    [
        ("30 days", "Give 30\u00a0days.", ["30\u00a0days"]),
        ("paid leave", "25 days of paid\n   leave per year", ["paid\n   leave"]),
        ("Paid  Leave\n", "paid leave", ["paid leave"]),
        ("the 'owner'", "the ‘owner’ signs", ["the ‘owner’"]),
        ("l'eau", "de l´eau froide", ["l´eau"]),
        ('"owner"', "the “owner” signs", ["“owner”"]),
        ("2020-2024", "in 2020–2024.", ["2020–2024"]),
        ("-5 °C", "at \u22125 °C", ["\u22125 °C"]),
        ("cooperation", "co\u00adoper\u00adation ends", ["co\u00adoper\u00adation"]),
        ("and so on...", "and so on… then", ["and so on…"]),
        ("ﬁnal office", "the final oﬃce", ["final oﬃce"]),
        ("STRASSE", "die Straße hier", ["Straße"]),
        ("prazo é", unicodedata.normalize("NFD", "O prazo é de"), ["prazo e\u0301"]),
        (unicodedata.normalize("NFD", "prazo é"), "O prazo é de", ["prazo é"]),
        (unicodedata.normalize("NFD", "한국"), "한국 회사", ["한국"]),
        ("ＡＢＣ", "the abc of", ["abc"]),
        ("30天", "第30天以后", ["30天"]),
        ("维护水泵", "必须维护水泵。", ["维护水泵"]),
        ("😀 ok", "say 😀 OK now", ["😀 OK"]),
    ],
)
def test_typography_does_not_hide_a_quote(quote: str, text: str, found: list[str]) -> None:
    assert [text[start:end] for start, end in locate(quote, text)] == found


@pytest.mark.parametrize(
    ("quote", "text"),
    [
        ("30 days", "130 days"),
        ("300 euros", "1,300 euros"),
        ("it is 25", "it is 25.5"),
        ("disclosed", "undisclosed"),
        ("the pump", "the pumps"),
        ("cafe", "café"),
        ("cafe", "cafe\u0301"),
        ("x", "x\u0302"),
        ("of", "oﬃce"),
        ("", "text"),
        (" \n", "te xt"),
        ("\u00ad", "te\u00adxt"),
    ],
)
def test_part_of_a_word_or_number_is_not_the_quote(quote: str, text: str) -> None:
    assert locate(quote, text) == []


def test_every_occurrence_is_found_in_reading_order() -> None:
    assert locate("net 30", "Net 30, then net\t30; net 300") == [(0, 6), (13, 19)]


def test_a_quote_at_either_end_of_the_text_is_found() -> None:
    assert locate("a b", "a b c a b") == [(0, 3), (6, 9)]


def test_a_quote_longer_than_the_text_is_not_found() -> None:
    assert locate("a b c", "a b") == []


def test_one_folding_serves_many_quotes() -> None:
    folded = FoldedText("One. Two.")
    assert [folded.locate(quote) for quote in ("one", "two", "three")] == [[(0, 3)], [(5, 8)], []]


CHARACTERS = st.characters(categories=["L", "N", "P", "S"])
# A letter that belongs to the character before it, such as Lao sara am, begins no word.
WORD = st.text(CHARACTERS, min_size=1, max_size=6).filter(
    lambda word: regex.fullmatch(r"\X", f" {word[0]}") is None
)
WORDS = st.lists(WORD, min_size=1, max_size=8)


@given(WORDS, st.integers(0, 7), st.integers(1, 8))
def test_words_copied_from_a_text_are_found_where_they_stand(
    words: list[str], first: int, count: int
) -> None:
    first %= len(words)
    text, before = " ".join(words), " ".join([*words[:first], ""])
    quote = " ".join(words[first : first + count])
    assert (len(before), len(before) + len(quote)) in locate(quote, text)


@given(st.text(max_size=60), st.text(max_size=8))
def test_a_span_always_lies_in_the_text_and_folds_to_the_quote(text: str, quote: str) -> None:
    for start, end in locate(quote, text):
        assert 0 <= start < end <= len(text)
        assert FoldedText(text[start:end]).folded.strip() == FoldedText(quote).folded.strip()


@given(st.text(max_size=80))
def test_every_folded_character_knows_where_it_came_from(text: str) -> None:
    folded = FoldedText(text)
    starts, ends = folded._starts, folded._ends
    assert len(starts) == len(ends) == len(folded.folded)
    assert all(0 <= start < end <= len(text) for start, end in zip(starts, ends, strict=True))
    assert list(starts) == sorted(starts)


@given(st.text(max_size=80))
def test_composed_and_decomposed_texts_fold_alike(text: str) -> None:
    composed, decomposed = (unicodedata.normalize(form, text) for form in ("NFC", "NFD"))
    assert FoldedText(composed).folded == FoldedText(decomposed).folded
