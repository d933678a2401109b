from itertools import pairwise

import pytest

from chunking_assets.chunk_sets.sentences import sentence_starts


def sentences(text):
    cuts = [0, *sentence_starts(text), len(text)]
    return [text[a:b].strip() for a, b in pairwise(cuts)]


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
        "La Sra. Gómez vive en EE. UU. Además Ud. Pérez",
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


def test_a_row_of_terminators_is_one_end():
    assert sentences("What?!... Really!!! Yes.") == ["What?!...", "Really!!!", "Yes."]


@pytest.mark.parametrize("text", ["", " ", ".", "...", "。。。", "a.", "a. "])
def test_nothing_follows_the_last_terminator(text):
    assert list(sentence_starts(text)) == []
