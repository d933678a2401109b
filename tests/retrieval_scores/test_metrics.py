import pytest
from hypothesis import given
from hypothesis import strategies as st

from evals.retrieval_scores.published import minimum_k, precision_omega
from evals.retrieval_scores.registry import LOWER_IS_BETTER, METRICS
from evals.retrieval_scores.score import evidence_by_question, score_question
from evals.retrieval_scores.spans import Passage, Retrieval, Span, union


def passage(start: int, end: int, doc: str = "a", tokens: int = 10) -> Passage:
    return Passage(doc, start, end, tokens)


def scored(passages: list[Passage], *evidence: list[Span]) -> dict[str, float]:
    return {name: value for (name, _), value in score_question({"5": passages}, evidence).items()}


GOLD = [Span("a", 100, 200)]


def test_touching_is_not_overlap() -> None:
    scores = scored([passage(0, 100), passage(200, 300)], GOLD)
    assert scores["recall"] == scores["precision"] == scores["iou"] == scores["mrr"] == 0


def test_evidence_cut_by_a_chunk_border_is_recalled_by_both_halves_together() -> None:
    scores = scored([passage(0, 150), passage(150, 300)], GOLD)
    assert scores["recall"] == scores["hit"] == 1
    assert scores["precision"] == pytest.approx(1 / 3)


def test_text_retrieved_twice_is_paid_for_twice_and_counted_once() -> None:
    once, twice = scored([passage(100, 200)], GOLD), scored([passage(100, 200)] * 2, GOLD)
    assert (once["recall"], once["precision"], once["iou"]) == (1, 1, 1)
    assert (twice["recall"], twice["precision"], twice["iou"]) == (1, 0.5, 0.5)
    assert (once["context_tokens"], twice["context_tokens"]) == (10, 20)


def test_the_same_offsets_in_another_document_are_no_evidence() -> None:
    scores = scored([passage(100, 200, doc="b")], GOLD)
    assert (scores["recall"], scores["precision"], scores["mrr"], scores["ndcg"]) == (0, 0, 0, 0)
    assert scores["iou"] == 0


def test_any_occurrence_of_a_quote_counts_and_the_best_covered_one_is_used() -> None:
    quote = [Span("a", 0, 10), Span("a", 100, 110), Span("b", 0, 10)]
    scores = scored([passage(0, 5), passage(100, 110)], quote)
    assert (scores["recall"], scores["hit"]) == (1, 1)
    assert scores["precision"] == pytest.approx(10 / 15)
    assert scores["mrr"] == 1  # the first passage holds half of the first occurrence


def test_evidence_that_overlaps_itself_can_still_be_recalled_in_full() -> None:
    scores = scored([passage(0, 30)], [Span("a", 0, 20)], [Span("a", 10, 30)])
    assert (scores["recall"], scores["precision"], scores["iou"]) == (1, 1, 1)


def test_every_quote_must_be_covered_for_a_hit() -> None:
    one, other = [Span("a", 0, 10)], [Span("a", 50, 60)]
    assert scored([passage(0, 10)], one, other)["hit"] == 0
    assert scored([passage(0, 10), passage(50, 60)], one, other)["hit"] == 1


@pytest.mark.parametrize(("covered", "hit"), [(89, 0), (90, 1), (91, 1)])
def test_nine_tenths_of_a_quote_is_a_hit(covered: int, hit: int) -> None:
    assert scored([passage(100, 100 + covered)], GOLD)["hit"] == hit


@pytest.mark.parametrize(("held", "relevant"), [(49, 0), (50, 1)])
def test_a_passage_is_relevant_from_half_a_quote_on(held: int, relevant: int) -> None:
    assert scored([passage(200 - held, 300)], GOLD)["mrr"] == relevant


def test_reciprocal_rank_is_that_of_the_first_relevant_passage() -> None:
    assert scored([passage(0, 9), passage(0, 9), passage(90, 210)], GOLD)["mrr"] == 1 / 3


def test_ndcg_is_one_when_all_evidence_is_there_as_early_as_can_be() -> None:
    one, other = [Span("a", 0, 10)], [Span("a", 50, 60)]
    assert scored([passage(0, 10), passage(50, 60)], one, other)["ndcg"] == 1
    assert scored([passage(0, 60)], one, other)["ndcg"] == 1


def test_ndcg_gains_nothing_from_a_second_passage_with_the_same_quote() -> None:
    once = scored([passage(0, 9), passage(100, 200)], GOLD)["ndcg"]
    again = scored([passage(0, 9), passage(100, 200), passage(90, 210)], GOLD)["ndcg"]
    assert once == again < 1


def test_nothing_retrieved_scores_nothing() -> None:
    assert set(scored([], GOLD).values()) == {0.0}


@pytest.mark.parametrize("evidence", [[], [[]], [[Span("a", 5, 5)]]])
def test_a_question_without_evidence_is_refused_rather_than_scored(evidence: list) -> None:
    with pytest.raises(ValueError, match="evidence"):
        score_question({"5": []}, evidence)


def test_every_metric_is_scored_at_every_cutoff() -> None:
    keys = score_question({"5": [], "1000t": [passage(0, 1)]}, [GOLD]).keys()
    assert set(keys) == {(metric, cutoff) for metric in METRICS for cutoff in ("5", "1000t")}


SPANS = st.builds(
    lambda doc, start, length: Span(doc, start, start + length),
    st.sampled_from("ab"),
    st.integers(0, 50),
    st.integers(1, 20),
)
RANKING = st.lists(SPANS.map(lambda s: Passage(s.doc_id, s.start, s.end, 3)), max_size=8)
EVIDENCE = st.lists(st.lists(SPANS, min_size=1, max_size=3), min_size=1, max_size=4)


@given(RANKING, EVIDENCE)
def test_scores_are_shares(passages: list[Passage], evidence: list[list[Span]]) -> None:
    for (metric, _), value in score_question({"5": passages}, evidence).items():
        assert value >= 0
        assert metric in LOWER_IS_BETTER or value <= 1


@given(RANKING, EVIDENCE, SPANS)
def test_one_more_passage_never_lowers_what_only_adds_up(
    passages: list[Passage], evidence: list[list[Span]], more: Span
) -> None:
    longer = [*passages, Passage(more.doc_id, more.start, more.end, 3)]
    before, after = scored(passages, *evidence), scored(longer, *evidence)
    for metric in ("hit", "mrr", "ndcg", "context_tokens"):
        assert after[metric] >= before[metric]
    if all(len(occurrences) == 1 for occurrences in evidence):
        assert after["recall"] >= before["recall"]


@given(RANKING, EVIDENCE, st.randoms())
def test_order_matters_only_to_ranks(
    passages: list[Passage], evidence: list[list[Span]], shuffle
) -> None:
    other = list(passages)
    shuffle.shuffle(other)
    before, after = scored(passages, *evidence), scored(other, *evidence)
    for metric in ("recall", "precision", "iou", "hit", "context_tokens"):
        assert before[metric] == after[metric]


@given(EVIDENCE, st.randoms())
def test_the_order_of_occurrences_does_not_matter(evidence: list[list[Span]], shuffle) -> None:
    other = [shuffle.sample(spans, len(spans)) for spans in evidence]
    passages = [passage(0, 20)]
    assert scored(passages, *evidence) == scored(passages, *other)


@given(st.lists(SPANS, max_size=10))
def test_a_union_holds_the_same_characters_in_disjoint_spans(spans: list[Span]) -> None:
    merged = union(spans)
    expected = {(s.doc_id, at) for s in spans for at in range(s.start, s.end)}
    assert sum(map(len, merged)) == len(expected)
    assert {(s.doc_id, at) for s in merged for at in range(s.start, s.end)} == expected


def test_three_chunks_of_which_one_is_the_gold_touch_two_more() -> None:
    chunks = [passage(0, 100), passage(100, 200), passage(200, 300)]
    assert minimum_k(chunks, [GOLD]) == 1
    assert minimum_k(chunks, [GOLD], "touching") == 3
    assert precision_omega(chunks, [GOLD]) == 1
    assert precision_omega(chunks, [GOLD], "touching") == pytest.approx(1 / 3)


def test_evidence_rows_become_spans_and_stale_questions_are_left_out() -> None:
    import polars as pl

    rows = pl.DataFrame(
        [
            ("q", 2, 1, "a", 2, 30, 40),
            ("q", 1, 1, "b", 1, 5, 9),
            ("q", 2, 1, "a", 1, 10, 20),
            ("stale", 1, 1, "a", 1, 0, 5),
            ("stale", 2, 1, "a", 0, None, None),
        ],
        schema=["question_id", "evidence", "alternative", "doc_id", "occurrence", "start", "end"],
        orient="row",
    )
    assert evidence_by_question(rows) == {
        "q": [[Span("b", 5, 9)], [Span("a", 10, 20), Span("a", 30, 40)]]
    }


def test_coverage_is_of_all_passages_together() -> None:
    retrieval = Retrieval([passage(0, 120), passage(110, 150)], [GOLD])
    assert retrieval.coverage(GOLD[0]) == 0.5
