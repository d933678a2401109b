"""Slots with alternatives: any one is enough, and no score depends on which one was found."""

from math import log2

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evals.retrieval_scores.published import minimum_k, precision_omega
from evals.retrieval_scores.registry import LOWER_IS_BETTER
from evals.retrieval_scores.score import evidence_by_question, score_question
from evals.retrieval_scores.spans import AnyOf, Convention, Passage, Span, union

SHORT, LONG = Span("a", 0, 10), Span("b", 0, 100)
EITHER = AnyOf([[SHORT], [LONG]])
OTHER = [Span("c", 0, 30)]


def passage(span, tokens=5):
    return Passage(span.doc_id, span.start, span.end, tokens)


def scored(passages, *evidence, convention: Convention = "half-open"):
    found = score_question({"5": passages}, evidence, convention)
    return {name: value for (name, _), value in found.items()}


@pytest.mark.parametrize("found", [SHORT, LONG])
def test_one_alternative_in_full_is_everything(found):
    scores = scored([passage(found)], EITHER)
    assert all(scores[m] == 1 for m in ("recall", "precision", "iou", "hit", "mrr", "ndcg"))


def test_the_best_covered_alternative_is_the_share_recalled():
    half, fifth = Passage("a", 5, 10, 1), Passage("b", 0, 20, 1)
    assert scored([half, fifth], EITHER)["recall"] == 0.5
    assert scored([fifth], EITHER)["recall"] == 0.2


@pytest.mark.parametrize("found", [SHORT, LONG])
def test_a_slot_weighs_the_same_whichever_alternative_was_found(found):
    scores = scored([passage(found)], EITHER, OTHER)
    assert scores["recall"] == 10 / (10 + 30)
    assert scores["hit"] == 0


def test_finding_the_second_alternative_too_costs_no_precision():
    both = scored([passage(SHORT), passage(LONG)], EITHER)
    assert (both["recall"], both["precision"], both["iou"]) == (1, 1, 1)
    beside = scored([passage(SHORT), passage(LONG), Passage("d", 0, 110, 5)], EITHER)
    assert beside["precision"] == 0.5


def test_what_is_missing_weighs_in_iou_as_in_recall():
    scores = scored([Passage("b", 0, 50, 5)], EITHER, OTHER)
    assert scores["iou"] == 50 / (50 + 10 * 0.5 + 30)


def test_ranks_take_the_first_alternative_and_count_the_slot_once():
    waste = Passage("d", 0, 10, 5)
    scores = scored([waste, passage(LONG), passage(SHORT), passage(OTHER[0])], EITHER, OTHER)
    assert scores["mrr"] == 1 / 2
    assert scores["ndcg"] == pytest.approx((1 / log2(3) + 1 / log2(5)) / (1 + 1 / log2(3)))


def test_an_alternative_may_stand_in_several_places():
    slot = AnyOf([[Span("a", 0, 10), Span("a", 50, 60)], [LONG]])
    assert scored([Passage("a", 50, 60, 5)], slot)["recall"] == 1


def test_published_numbers_take_the_shortest_alternative():
    chunks = [passage(SHORT), Passage("b", 0, 50, 1), Passage("b", 50, 100, 1)]
    assert minimum_k(chunks, [EITHER]) == 1
    assert precision_omega(chunks, [EITHER]) == 1


@pytest.mark.parametrize("slot", [AnyOf([]), AnyOf([[SHORT], []])])
def test_a_slot_without_a_place_is_refused_rather_than_scored(slot):
    with pytest.raises(ValueError, match="evidence"):
        score_question({"5": []}, [slot])


def test_rows_of_one_slot_become_alternatives_and_lost_ones_are_left_out():
    import polars as pl

    rows = pl.DataFrame(
        [
            ("q", 1, 2, "b", 1, 0, 100),
            ("q", 1, 1, "a", 1, 0, 10),
            ("q", 2, 1, "c", 1, 0, 30),
            ("one-left", 1, 1, "a", 0, None, None),
            ("one-left", 1, 2, "b", 1, 0, 100),
            ("none-left", 1, 1, "a", 0, None, None),
            ("none-left", 1, 2, "a", 0, None, None),
        ],
        schema=["question_id", "evidence", "alternative", "doc_id", "occurrence", "start", "end"],
        orient="row",
    )
    assert evidence_by_question(rows) == {"q": [EITHER, OTHER], "one-left": [[LONG]]}


SPANS = st.builds(
    lambda doc, start, length: Span(doc, start, start + length),
    st.sampled_from("ab"),
    st.integers(0, 50),
    st.integers(1, 20),
)
PASSAGES = st.lists(SPANS.map(passage), max_size=6)
PLAIN = st.lists(SPANS, min_size=1, max_size=3)
ALTERNATIVES = st.lists(st.lists(SPANS, min_size=1, max_size=1), min_size=2, max_size=3).map(AnyOf)
SLOTS = st.lists(st.one_of(PLAIN, ALTERNATIVES), min_size=1, max_size=4)
CONVENTIONS = st.sampled_from(["half-open", "touching"])


@given(PASSAGES, SLOTS, CONVENTIONS)
def test_scores_are_shares(passages, evidence, convention):
    for metric, value in scored(passages, *evidence, convention=convention).items():
        assert value >= 0
        assert metric in LOWER_IS_BETTER or value <= 1


@given(PASSAGES, st.lists(ALTERNATIVES, min_size=1, max_size=3), SPANS)
def test_one_more_passage_never_recalls_less(passages, evidence, more):
    before = scored(passages, *evidence)
    after = scored([*passages, passage(more)], *evidence)
    for metric in ("recall", "hit", "mrr", "ndcg"):
        assert after[metric] >= before[metric]


@given(PASSAGES, st.lists(ALTERNATIVES, min_size=1, max_size=3), st.randoms())
def test_the_order_of_alternatives_does_not_matter(passages, evidence, shuffle):
    other = [AnyOf(shuffle.sample(slot.alternatives, len(slot.alternatives))) for slot in evidence]
    assert scored(passages, *evidence) == scored(passages, *other)


@given(PASSAGES, st.lists(PLAIN, min_size=1, max_size=4), CONVENTIONS)
def test_without_alternatives_the_numbers_are_those_of_whole_characters(
    passages, evidence, convention
):
    """The definitions before there were alternatives, written out: equal to the last bit."""

    def overlap(span):
        others = (o for o in union(passages) if o.doc_id == span.doc_id)
        return sum(max(0, min(span.end, o.end) - max(span.start, o.start)) for o in others)

    gold = [
        max(sorted(spans, key=lambda s: (s.doc_id, s.start, s.end)),
            key=lambda s: overlap(s) / len(s))
        for spans in evidence
    ]  # fmt: skip
    counted = gold if convention == "touching" else union(gold)
    covered, retrieved = sum(map(overlap, union(gold))), sum(map(len, passages))
    missing = sum(len(span) - overlap(span) for span in counted)
    scores = scored(passages, *evidence, convention=convention)
    assert scores["recall"] == covered / sum(map(len, counted))
    assert scores["precision"] == (covered / retrieved if retrieved else 0)
    assert scores["iou"] == covered / (retrieved + missing)
    assert scores["hit"] == all(overlap(span) / len(span) >= 0.9 for span in gold)
