from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chunking_assets.chunk_sets import sentences as module
from chunking_assets.chunk_sets.sentences import sentence_starts

LABELLED = Path(__file__).with_name("labelled_sentences.txt")
OPENS_LINES = ("1. ", "A. ", "iv. ")


def labelled_passages():
    """(language, its sentences) of each passage of the labelled set."""
    language, passage = "", []
    for line in [*LABELLED.read_text(encoding="utf-8").splitlines(), ""]:
        if line.startswith("[") and line.endswith("]") and len(line) == 4:
            language = line.strip("[]")
        elif line and not line.startswith("#"):
            passage.append(line)
        elif passage:
            yield language, passage
            passage = []


def sentences(text):
    cuts = [0, *sentence_starts(text), len(text)]
    return [text[a:b].strip() for a, b in pairwise(cuts)]


@pytest.mark.parametrize(
    ("language", "expected"),
    [
        pytest.param(language, passage, id=f"{language}-{number}")
        for number, (language, passage) in enumerate(labelled_passages())
    ],
)
def test_the_sentences_of_the_labelled_set_are_found_exactly(language, expected):
    lines = expected[0].startswith(OPENS_LINES)
    joint = "\n" if lines else "" if language in ("ja", "zh") else " "
    assert sentences(joint.join(expected)) == expected


def test_the_labelled_set_is_large_enough_to_mean_something():
    languages = [language for language, passage in labelled_passages() for _ in passage]
    assert len(set(languages)) >= 25
    assert min(languages.count(language) for language in set(languages)) >= 8


@pytest.mark.parametrize(
    "expected",
    [
        ["The first one.", "The second one!", "A third?", "Yes…", "End"],
        ['He said "go."', "She went.", "(Really.)", "**Bold.**", "Next."],
        ["É verdade?", "“Sim.”", "Então vá!", "À noite."],
        ["« Oui ! »", "Elle partit.", "Voilà."],
        ["¿Qué?", "¡No!", "Vale."],
        ["„Ja.“", "Gut.", "»Nein!«", "»Doch.«"],
        ["Это важно.", "Правда?", "Да!"],
        ["هل الشحن مجاني؟", "نعم، داخل المدينة.", "شكرا۔", "انتهى."],
        ["क्या यह ठीक है?", "हाँ।", "ठीक है॥", "अच्छा।"],
        ["ሰላም።", "እንዴት ናችሁ፧", "ደህና።"],
        ["Նա եկավ։", "Վերջ։"],
    ],
    ids=lambda s: s[0],
)
def test_sentences_end_at_the_terminators_of_their_script(expected):
    assert sentences(" ".join(expected)) == expected


@pytest.mark.parametrize(
    "expected",
    [
        ["返品できますか？", "はい、無料です！", "「本当に？」", "本当です。"],
        ["他说。", "“你好。”", "她走了！", "结束"],
        ["今天。", "明天｡", "后天．", "再见"],
    ],
)
def test_scripts_without_spaces_need_none_after_a_sentence(expected):
    assert sentences("".join(expected)) == expected


@pytest.mark.parametrize(
    "text",
    [
        "Dr. Smith and Mrs. Jones met Prof. Lee at St. Mary's vs. Rev. Green.",
        "O Sr. Araújo e a Dra. Inês moram na Av. Paulista.",
        "Mme. Lefèvre et M. Dupont (cf. Mlle. Rose).",
        "La Sra. Gómez vive en EE. UU. Ud. Pérez no",
        "Hr. Meier, bzw. Fr. Schulz, z.B. Anna und u.a. Otto",
        "Il Sig. Rossi e la Dott. Bianchi con l'Avv. Verdi",
        "J. R. R. Tolkien and U.S. Army, e.g. Tanks",
        "See fig. 3, no. 5, p. 12, Abb. 2, art. 7, núm. 9, cap. 4.",
        "It costs 3.14 or 1.234,50 and v2.0.1 at example.com/a.b?c=d today",
        "“Really?” he asked, “why!” and left… quietly",
        "1. First item",
        "Wait for etc. and so on",
    ],
)
def test_no_sentence_ends_inside(text):
    assert sentences(text) == [text]


@pytest.mark.parametrize(
    "expected",
    [
        ["No.", "It is not."],
        ["It happened in 1999.", "Then it stopped."],
        ["Modern art.", "Nothing else."],
        ["Ele foi ao mar.", "Depois voltou."],
    ],
)
def test_a_common_word_that_is_also_an_abbreviation_may_end_a_sentence(expected):
    assert sentences(" ".join(expected)) == expected


@pytest.mark.parametrize(
    "expected",
    [
        ["So we chose plan B.", "Peter agreed."],
        ["We chose option B.", "L'équipe est d'accord."],
        ["Il joua J. S. Bach.", "La suite fut longue."],
        ["It opens at 9 a.m.", "The café does not."],
        ["He lives in the U.S.", "But she moved."],
        ["It takes 10 h.", "Stir twice."],
        ["I hope you don't.", "I'm tired."],
    ],
)
def test_a_word_that_opens_sentences_ends_one_after_an_abbreviation_or_initial(expected):
    assert sentences(" ".join(expected)) == expected


@pytest.mark.parametrize(
    "text",
    ["P. Le Goff", "J. La Rue", "Mrs. O'Neil", "A. De Niro", "z. B. Das Haus", "vgl. Die Zeit"],
)
def test_a_part_of_a_name_or_an_example_opens_no_sentence(text):
    assert sentences(text) == [text]


def test_a_blank_line_ends_a_sentence_after_anything():
    assert sentences("Acme Inc.\n\nJohn Smith") == ["Acme Inc.", "John Smith"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("เปิดบัญชีของคุณ เราจะส่งให้", ["เปิดบัญชีของคุณ", "เราจะส่งให้"]),
        ("สถานะอื่น ๆ ทั้งสิ้น", ["สถานะอื่น ๆ ทั้งสิ้น"]),
        ("ภายใน 14 วันทำการ", ["ภายใน 14 วันทำการ"]),
        ("เกิดเมื่อ พ.ศ. 2500", ["เกิดเมื่อ พ.ศ. 2500"]),
        ("version 2 ใหม่ Google ไทย", ["version 2 ใหม่ Google ไทย"]),
    ],
)
def test_a_space_between_two_thai_characters_ends_a_clause(text, expected):
    assert sentences(text) == expected


@given(st.text(alphabet="aB.!? ;\n1VนᎠก。」\"'«»“-(กๆ*[]é", max_size=60))
def test_starts_increase_and_stand_at_text_behind_white_space(text):
    starts = list(sentence_starts(text))
    assert starts == sorted(set(starts))
    assert all(0 < start < len(text) and not text[start].isspace() for start in starts)


@given(st.sampled_from([p for _, p in labelled_passages()]), st.integers(1, 400))
def test_text_that_follows_moves_no_earlier_sentence(passage, cut):
    """Beyond the words that are looked at after a boundary."""
    whole = " ".join(passage)
    part = whole[:cut]
    within = cut - module._LOOK_BACK
    assert [s for s in sentence_starts(part) if s < within] == [
        s for s in sentence_starts(whole) if s < within
    ]


@pytest.mark.parametrize(
    "repeated",
    [
        "Dr. ",
        "a. ",
        "J. R. ",
        "z.B.",
        ".",
        "?!",
        ". ",
        "3. ",
        "\n",
        " .\n",
        "ก ",
        "。」",
        "[1]",
    ],
)
def test_the_work_around_a_terminator_is_bounded(repeated, monkeypatch):
    """However long the runs are, no pattern is given more than the window around the terminator."""
    widest = 0

    class Watched:
        def __init__(self, pattern):
            self.pattern = pattern

        def match(self, text, start, end):
            nonlocal widest
            widest = max(widest, end - start)
            return self.pattern.match(text, start, end)

    for name in ("_LAST_WORD", "_WORD_BEFORE", "_FIRST_WORDS"):
        monkeypatch.setattr(module, name, Watched(getattr(module, name)))
    list(sentence_starts(repeated * 5_000 + "End"))
    assert widest <= module._LOOK_BACK


def test_a_row_of_terminators_is_one_end():
    assert sentences("What?!... Really!!! Yes.") == ["What?!...", "Really!!!", "Yes."]


@pytest.mark.parametrize("text", ["", " ", ".", "...", "。。。", "a.", "a. "])
def test_nothing_follows_the_last_terminator(text):
    assert list(sentence_starts(text)) == []
