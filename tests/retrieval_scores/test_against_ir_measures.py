"""Ranks against trec_eval, where the definitions agree: each quote in a passage of its own."""

import random
from math import log2

import ir_measures
import pytest
from ir_measures import RR, Success, nDCG

from evals.retrieval_scores.score import score_question
from evals.retrieval_scores.spans import Passage, Span

WIDTH = 10


def test_a_few_hundred_rankings_score_as_trec_eval_scores_them() -> None:
    draw = random.Random(7)
    qrels, run, ours = [], [], {}
    for number in range(300):
        question = f"q{number}"
        slots = draw.sample(range(40), k=draw.randrange(1, 16))
        gold = draw.sample(range(40), k=draw.randrange(1, 5))
        passages = [Passage("d", WIDTH * s, WIDTH * (s + 1), 1) for s in slots]
        evidence = [[Span("d", WIDTH * g, WIDTH * (g + 1))] for g in gold]
        scores = score_question({"10": passages[:10], "5": passages[:5]}, evidence)
        ours[question] = (scores["ndcg", "10"], scores["mrr", "10"], scores["hit", "5"], len(gold))
        qrels += [ir_measures.Qrel(question, str(g), 1) for g in gold]
        # trec_eval breaks ties by id, so the rank itself is the score.
        run += [ir_measures.ScoredDoc(question, str(s), -float(r)) for r, s in enumerate(slots)]
    theirs = {
        (metric.query_id, str(metric.measure)): metric.value
        for metric in ir_measures.iter_calc([nDCG @ 10, RR @ 10, Success @ 5], qrels, run)
    }
    assert len(theirs) == 3 * len(ours)
    for question, (ndcg, mrr, hit, n_gold) in ours.items():
        assert ndcg == pytest.approx(theirs[question, "nDCG@10"], abs=1e-6)
        assert mrr == pytest.approx(theirs[question, "RR@10"], abs=1e-6)
        if n_gold == 1:  # a hit here needs every quote, a success there any
            assert hit == theirs[question, "Success@5"]
        else:
            assert hit <= theirs[question, "Success@5"]


def test_where_one_passage_holds_two_quotes_the_gain_is_bounded_by_the_ideal() -> None:
    evidence = [[Span("d", 0, 10)], [Span("d", 10, 20)]]
    both_third = [Passage("d", 50, 60, 1), Passage("d", 60, 70, 1), Passage("d", 0, 20, 1)]
    scores = score_question({"10": both_third}, evidence)
    assert scores["ndcg", "10"] == pytest.approx(2 * (1 / log2(4)) / (1 + 1 / log2(3)))
