import pytest

from chunking_assets.retrieval.fuse import ScoreFusion, reciprocal_rank
from chunking_assets.retrieval.hit import Hit
from chunking_assets.retrieval.search import best_of
from chunking_assets.retrieval.select import cut, merge, select


def hit(name, score=1.0, *, doc="d", ordinal=0, start=0, text="text", tokens=10, **scores):
    return Hit(name, doc, ordinal, start, start + len(text), "", text, (), tokens, score, **scores)


def ids(hits):
    return [h.chunk_id for h in hits]


def fused(candidates, attainable, weight):
    return sorted(
        map(ScoreFusion.over(candidates, attainable, weight), candidates),
        key=lambda h: h.rank_key,
    )


def test_select_keeps_the_first_k_and_says_why_not_the_others():
    selection = select([hit("a", 3), hit("b", 2), hit("c", 1)], k=2)
    assert ids(selection.hits) == ["a", "b"]
    assert selection.dropped == {"c": "k: 2 better hits were handed on"}


def test_the_cut_is_relative_to_the_best_hit():
    hits = [hit("a", 1.0), hit("b", 0.7), hit("c", 0.69)]
    assert ids(cut(hits, 0.7)) == ["a", "b"]


def test_a_token_budget_ends_before_the_hit_that_would_exceed_it():
    hits = [hit("a", tokens=40), hit("b", tokens=60), hit("c", tokens=1)]
    assert ids(select(hits, token_budget=100).hits) == ["a", "b"]
    assert ids(select(hits, token_budget=99).hits) == ["a"]
    assert ids(select(hits, token_budget=39).hits) == []


def test_neighbouring_chunks_become_one_passage_in_text_order():
    first = hit("a", 0.5, ordinal=1, start=0, text="one")
    second = hit("b", 0.9, ordinal=2, start=5, text="two")
    other = hit("c", 0.7, doc="e", ordinal=3, start=9, text="far")
    passages = merge([second, other, first])
    assert [p.doc_id for p in passages] == ["d", "e"]
    assert passages[0].spans == ((0, 3), (5, 8))
    assert passages[0].text == "one\n\ntwo"
    assert passages[0].score == 0.9
    assert passages[0].chunk_ids == ("a", "b")
    assert passages[0].n_tokens == 20


def test_overlapping_chunks_share_their_common_text():
    passages = merge(
        [hit("a", ordinal=0, text="abcdef"), hit("b", ordinal=1, start=4, text="efgh")]
    )
    assert passages[0].spans == ((0, 8),)
    assert passages[0].text == "abcdefgh"


def test_a_chunk_between_two_joins_them():
    hits = [hit(n, ordinal=o, start=o * 4) for n, o in (("a", 1), ("c", 3), ("b", 2))]
    assert len(merge(hits[:2])) == 2
    assert merge(hits)[0].chunk_ids == ("a", "b", "c")


def test_merging_can_be_left_out():
    hits = [hit("a", ordinal=0), hit("b", ordinal=1, start=4)]
    assert len(merge(hits, adjacent=False)) == 2


def test_fusion_weighs_both_scores():
    hits = [
        hit("a", vector_score=0.9, bm25_score=5.0),
        hit("b", vector_score=0.5, bm25_score=0.0),
        hit("c", vector_score=0.7, bm25_score=10.0),
    ]
    found = fused(hits, 10.0, 0.5)
    assert ids(found) == ["a", "c", "b"]
    assert [h.score for h in found] == pytest.approx([0.5 + 0.25, 0.25 + 0.5, 0.0])
    assert [h.fused_score for h in found] == [h.score for h in found]


def test_words_that_match_little_leave_the_decision_to_the_vectors():
    hits = [
        hit("near", vector_score=0.9, bm25_score=0.0),
        hit("far", vector_score=0.1, bm25_score=1.0),
    ]
    assert ids(fused(hits, 20.0, 0.5)) == ["near", "far"]


def test_fusion_of_one_candidate_is_not_a_division_by_zero():
    assert ids(fused([hit("a", vector_score=0.9, bm25_score=0.0)], 0.0, 0.5)) == ["a"]


def test_equal_scores_keep_one_order():
    hits = [hit(n, vector_score=0.5, bm25_score=0.0) for n in "cab"]
    assert ids(fused(hits, 1.0, 0.5)) == ids(fused(hits[::-1], 1.0, 0.5)) == ["a", "b", "c"]


def test_a_chunk_beyond_the_candidates_scores_no_more_than_the_best_of_them():
    hits = [hit("a", vector_score=0.9, bm25_score=0.0), hit("b", vector_score=0.1, bm25_score=0.0)]
    fusion = ScoreFusion.over(hits, 1.0, 1.0)
    assert fusion(hit("c", vector_score=1.0)).score == 1.0
    assert fusion(hit("d", vector_score=-1.0)).score == 0.0


def test_reciprocal_rank_looks_at_places_only():
    vector = [hit("a", vector_score=0.9), hit("b", vector_score=0.1)]
    bm25 = [hit("b", bm25_score=100.0), hit("c", bm25_score=99.0)]
    found = reciprocal_rank(vector, bm25, 60, 0.5)
    assert ids(found) == ["b", "a", "c"]
    assert found[0].score == pytest.approx(0.5 / 62 + 0.5 / 61)


def test_hits_of_equal_score_are_in_text_order():
    hits = [hit("a", doc="e"), hit("b", start=9), hit("c", start=1), hit("d", 2.0, doc="z")]
    assert ids(best_of(hits, 4)) == ["d", "c", "b", "a"]


def test_a_tie_across_the_limit_is_left_out_whichever_of_it_was_returned():
    best = [hit("a", 3.0), hit("b", 2.0)]
    assert ids(best_of([*best, hit("c"), hit("d")], 3)) == ["a", "b"]
    assert ids(best_of([*best, hit("e"), hit("f")], 3)) == ["a", "b"]
    assert ids(best_of([*best, hit("e"), hit("f", 0.5)], 3)) == ["a", "b", "e"]
    assert ids(best_of([hit("b"), hit("a"), hit("c")], 2)) == ["a", "b"]
