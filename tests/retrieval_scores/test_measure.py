import pytest

from chunking_assets.errors import CorpusError
from evals.retrieval_scores.measure import Cutoff, Measure


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


@pytest.mark.parametrize(
    ("text", "cutoff"),
    [("5", Cutoff(passages=5)), ("1000t", Cutoff(tokens=1000)), ("served", Cutoff())],
)
def test_a_cutoff_says_what_limits_it(text: str, cutoff: Cutoff) -> None:
    assert Cutoff.parse(text) == cutoff
