import pytest

from evals.ragas_scores.lexical_support import lexical_support

PASSAGE = "The warranty covers the pump for 24 months. Filters are sold by Ada to members."


@pytest.mark.parametrize(
    ("said", "value"),
    [
        (["The warranty covers the pump for 24 months."], 1.0),
        (["The pump's warranty: 24 months."], 1.0),
        (["The warranty covers the pump for 36 months."], 0.0),
        (["The warranty covers water damage abroad."], 0.0),
        (["The warranty covers the pump for 24 months.", "Shipping costs extra."], 0.5),
    ],
)
def test_it_is_the_share_of_sentences_whose_words_stand_together(said, value):
    assert lexical_support(said, [PASSAGE]) == value


def test_words_scattered_over_a_passage_are_no_support():
    assert (
        lexical_support(["Filters, pump, months, members."], ["Filters. Red. Pump. Blue. Members."])
        == 0.0
    )


@pytest.mark.parametrize(
    ("said", "value", "truth"),
    [
        ("The guarantee on that machine lasts two years.", 0.0, 1.0),
        ("Filters are sold by members to Ada.", 1.0, 0.0),
        ("The warranty never covers the pump for 24 months.", 1.0, 0.0),
    ],
    ids=["paraphrase", "swapped roles", "negation"],
)
def test_what_it_gets_wrong_is_known(said, value, truth):
    assert lexical_support([said], [PASSAGE]) == value != truth


def test_nothing_said_has_no_value():
    assert lexical_support([], [PASSAGE]) is None
    assert lexical_support(["…"], [PASSAGE]) is None


def test_nothing_retrieved_supports_nothing():
    assert lexical_support(["The pump is blue."], []) == 0.0
