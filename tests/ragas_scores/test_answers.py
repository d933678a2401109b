import pytest
from hypothesis import given
from hypothesis import strategies as st

from evals.ragas_scores.answers import (
    GroundedAnswer,
    Sentence,
    answer_key,
    check_complete,
    issues,
    messages,
)

CONTEXTS = ["Either party may end it with 30 days’ written\xa0notice.", "Fees are due monthly."]


def answer(text="It can be ended.", sources=("p1",), quote="30 days", found=True):
    sentence = Sentence(text=text, sources=list(sources), quote=quote)
    return GroundedAnswer(found=found, sentences=[sentence])


def test_a_quote_may_differ_in_case_white_space_and_typographic_marks():
    assert issues(answer(quote="30 Days' written\nnotice"), CONTEXTS) == []


def test_a_quote_of_another_passage_than_the_cited_is_an_issue():
    assert issues(answer(sources=["p2"]), CONTEXTS) == ["quote_not_in_source: 30 days"]


def test_an_unknown_passage_is_an_issue():
    assert "unknown_source: p3" in issues(answer(sources=["p1", "p3"]), CONTEXTS)


def test_a_sentence_without_a_source_is_an_issue():
    found = issues(answer(sources=[]), CONTEXTS)
    assert found == ["uncited: It can be ended.", "quote_not_in_source: 30 days"]


def test_an_empty_quote_proves_nothing():
    assert issues(answer(quote=" "), CONTEXTS) == ["quote_not_in_source:  "]


def test_an_abstention_with_text_is_an_issue():
    assert issues(answer(found=False), CONTEXTS) == ["abstained_with_text: It can be ended."]


def test_an_abstention_is_complete():
    check_complete(GroundedAnswer(found=False, sentences=[]))
    assert issues(GroundedAnswer(found=False, sentences=[]), CONTEXTS) == []


@pytest.mark.parametrize("sentences", [[], [Sentence(text="  ", sources=["p1"], quote="30")]])
def test_an_answer_found_but_empty_is_refused(sentences):
    with pytest.raises(ValueError, match="no sentences"):
        check_complete(GroundedAnswer(found=True, sentences=sentences))


def test_the_judged_text_holds_no_citations():
    two = GroundedAnswer(
        found=True,
        sentences=[
            Sentence(text="One. ", sources=["p1"], quote="x"),
            Sentence(text=" Two.", sources=["p2"], quote="y"),
        ],
    )
    assert two.text == "One. Two."


def test_the_prompt_names_every_passage_and_ends_with_the_question():
    system, user = messages("When are fees due?", CONTEXTS)
    assert system["role"] == "system"
    assert '<passage id="p2">\nFees are due monthly.\n</passage>' in user["content"]
    assert user["content"].endswith("Question: When are fees due?")


@given(st.lists(st.text(max_size=8), max_size=4), st.lists(st.text(max_size=8), max_size=4))
def test_the_key_is_equal_exactly_for_equal_contexts(left, right):
    keys = [answer_key("q", contexts, "m@h", {"seed": 7}) for contexts in (left, right)]
    assert (keys[0] == keys[1]) == (left == right)


@pytest.mark.parametrize(
    "other", [("Q", ["c"], "m@h", {"seed": 7}), ("q", ["c"], "n@h", {"seed": 7}),
              ("q", ["c"], "m@h", {"seed": 8})]
)  # fmt: skip
def test_the_key_covers_question_model_and_parameters(other):
    assert answer_key("q", ["c"], "m@h", {"seed": 7}) != answer_key(*other)


@given(st.text(min_size=1).filter(str.strip), st.text(), st.text())
def test_every_exact_quote_is_found_in_its_passage(quote, before, after):
    # Surrounded by spaces: next to other letters a case or a compatibility form may fold apart.
    passage = f"{before} {quote} {after}"
    found = issues(answer(quote=quote), [passage])
    assert not [issue for issue in found if issue.startswith("quote_not_in_source")]
