import pytest
from hypothesis import given
from hypothesis import strategies as st

from chunking_assets.errors import CorpusError
from evals.retrieval_scores.measure import Cutoff, Measure
from evals.retrieval_scores.spans import Passage


@pytest.mark.parametrize(
    "text", ["recall@5", "ndcg@10", "context_tokens@1000t", "hit@served", "faithfulness@served"]
)
def test_a_measure_prints_as_it_parses(text: str) -> None:
    assert str(Measure.parse(text)) == text


@pytest.mark.parametrize(
    "text",
    [
        *("recall", "recall@", "@5", "recall@5@5", "Recall@5", ""),
        *("recall@0", "recall@05", "recall@5k", "recall@-1", "recall@٥"),
    ],
)
def test_what_is_not_a_measure_is_an_error_with_an_example(text: str) -> None:
    with pytest.raises(CorpusError, match=r"is not a (measure|cutoff)\. Write"):
        Measure.parse(text)


def ranked(*tokens: int) -> list[Passage]:
    return [Passage("a", 10 * i, 10 * i + 10, n) for i, n in enumerate(tokens)]


@pytest.mark.parametrize(
    ("cutoff", "taken"),
    [("2", 2), ("9", 4), ("served", 4), ("100t", 1), ("99t", 0), ("150t", 2), ("149t", 1)],
)
def test_a_ranking_is_cut_in_order(cutoff: str, taken: int) -> None:
    passages = ranked(100, 50, 10, 10)
    assert Cutoff.parse(cutoff).take(passages) == passages[:taken]


def test_a_passage_that_does_not_fit_ends_the_budget_though_a_later_one_would() -> None:
    assert Cutoff.parse("100t").take(ranked(60, 90, 10)) == ranked(60)


@given(st.lists(st.integers(0, 300)), st.integers(1, 1000))
def test_a_token_budget_is_never_exceeded(tokens: list[int], budget: int) -> None:
    taken = Cutoff(tokens=budget).take(ranked(*tokens))
    assert sum(p.n_tokens for p in taken) <= budget
