import pytest

from chunking_assets.errors import CorpusError
from evals.retrieval_scores.build import CUTOFFS
from evals.retrieval_scores.cutoff import Cutoff


@pytest.mark.parametrize("text", CUTOFFS)
def test_a_cutoff_prints_as_it_parses(text: str) -> None:
    assert str(Cutoff.parse(text)) == text


@pytest.mark.parametrize("text", ["", "0", "05", "5k", "-1", "\u0665", "5@5", "t"])
def test_what_is_not_a_cutoff_is_an_error_with_an_example(text: str) -> None:
    with pytest.raises(CorpusError, match=r"is not a cutoff\. Write"):
        Cutoff.parse(text)


@pytest.mark.parametrize(
    ("text", "cutoff"),
    [("5", Cutoff(passages=5)), ("1000t", Cutoff(tokens=1000)), ("served", Cutoff())],
)
def test_a_cutoff_says_what_limits_it(text: str, cutoff: Cutoff) -> None:
    assert Cutoff.parse(text) == cutoff
