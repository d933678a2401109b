from hypothesis import given
from hypothesis import strategies as st

from evals.ragas_scores.answers import issues
from evals.ragas_scores.extractive import extractive_answer

PASSAGES = [
    "The pump is serviced every 6 months. Only Ada may do it.",
    "A filter costs 40 EUR. Members pay 30 EUR for a filter.",
]
TEXT = st.text(alphabet="ab .?\n一二。", max_size=30)


def test_the_sentence_most_like_the_question_is_the_answer():
    found = extractive_answer("How often is the pump serviced?", PASSAGES)
    assert found.text == "The pump is serviced every 6 months."
    assert found.sentences[0].sources == ["p1"]


def test_a_second_sentence_is_taken_for_what_the_first_does_not_hold():
    found = extractive_answer("Is the pump serviced every month and are filters 40 EUR?", PASSAGES)
    assert [s.sources for s in found.sentences] == [["p1"], ["p2"]]


def test_passages_about_something_else_give_no_answer():
    assert not extractive_answer("Who owns the moon?", ["Filters are green."]).found


def test_without_passages_there_is_no_answer():
    assert not extractive_answer("Who?", []).found


def test_scripts_without_spaces_are_matched_too():
    found = extractive_answer("保証期間は何年ですか？", ["色は青です。保証期間は二年です。"])
    assert found.text == "保証期間は二年です。"


@given(TEXT, st.lists(TEXT, max_size=4))
def test_every_answer_is_cited_and_quoted_and_the_same_again(question, passages):
    found = extractive_answer(question, passages)
    assert issues(found, passages) == []
    assert found.found == bool(found.text)
    assert extractive_answer(question, passages) == found
