"""The scorer against two implementations that share nothing with it but the definitions.

One counts characters in sets; the other follows the range algebra of the published tool
(intersection by <=, differences, unions), written from its description.
"""

import random
from collections.abc import Sequence
from itertools import pairwise
from math import log2

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evals.retrieval_scores.published import minimum_k, precision_omega
from evals.retrieval_scores.score import score_question
from evals.retrieval_scores.spans import Passage, Span

Ranges = list[tuple[int, int]]
LENGTH = 60


# --- characters in sets -----------------------------------------------------------------------


def characters(span: Span | Passage) -> set[tuple[str, int]]:
    return {(span.doc_id, at) for at in range(span.start, span.end)}


def brute_force(passages: list[Passage], evidence: list[list[Span]]) -> dict[str, float]:
    retrieved: set[tuple[str, int]] = set().union(*map(characters, passages))
    gold: set[tuple[str, int]] = set()
    shares = []
    for occurrences in evidence:
        share, _, best = min(
            (-len(characters(s) & retrieved) / len(characters(s)), (s.doc_id, s.start, s.end), s)
            for s in occurrences
        )
        shares.append(-share)
        gold |= characters(best)
    paid = sum(len(characters(p)) for p in passages)
    found = len(gold & retrieved)
    first = []
    for occurrences in evidence:
        for rank, passage in enumerate(passages, start=1):
            held = [
                len(characters(s) & characters(passage)) / len(characters(s)) for s in occurrences
            ]
            if max(held) >= 0.5:
                first.append(rank)
                break
    first.sort()
    gain = sum(1 / log2(2 + max(rank - 1, found_before)) for found_before, rank in enumerate(first))
    return {
        "recall": found / len(gold),
        "precision": found / paid if paid else 0.0,
        "iou": found / (paid + len(gold - retrieved)),
        "hit": float(min(shares) >= 0.9),
        "mrr": 1 / min(first) if first else 0.0,
        "ndcg": gain / sum(1 / log2(2 + i) for i in range(len(evidence))),
        "context_tokens": sum(p.n_tokens for p in passages),
    }


# --- the published tool's range algebra ---------------------------------------------------------


def meet(one: tuple[int, int], other: tuple[int, int]) -> tuple[int, int] | None:
    start, end = max(one[0], other[0]), min(one[1], other[1])
    return (start, end) if start <= end else None


def without(ranges: Ranges, hole: tuple[int, int]) -> Ranges:
    left: Ranges = []
    for start, end in ranges:
        if end < hole[0] or start > hole[1]:
            left.append((start, end))
            continue
        if start < hole[0]:
            left.append((start, hole[0]))
        if end > hole[1]:
            left.append((hole[1], end))
    return left


def joined(ranges: Ranges) -> Ranges:
    result: Ranges = []
    for start, end in sorted(ranges):
        if result and start <= result[-1][1]:
            result[-1] = (result[-1][0], max(result[-1][1], end))
        else:
            result.append((start, end))
    return result


def total(ranges: Ranges) -> int:
    return sum(end - start for start, end in ranges)


def published(passages: Sequence[Passage], gold: list[Span]) -> dict[str, float]:
    """At a fixed k recall, precision, IoU; over all chunks the number highlighted, and omega."""
    highlights = [(span.start, span.end) for span in gold]
    unused, met, chunks, highlighted = list(highlights), [], [], 0
    for passage in passages:
        if passage.doc_id != gold[0].doc_id:
            continue
        touched = False
        for highlight in highlights:
            common = meet((passage.start, passage.end), highlight)
            if common is not None:
                touched = True
                unused = without(unused, common)
                met = joined([common, *met])
                chunks = joined([(passage.start, passage.end), *chunks])
        highlighted += touched
    paid = total([(p.start, p.end) for p in passages])
    return {
        "recall": total(met) / total(highlights),
        "precision": total(met) / paid if paid else 0.0,
        "iou": total(met) / (paid + total(unused)),
        "highlighted": highlighted,
        "omega": total(met) / total(joined(chunks + unused)) if met else 0.0,
    }


# --- random cases --------------------------------------------------------------------------------


def spans_in(docs: str) -> st.SearchStrategy[Span]:
    return st.builds(
        lambda doc, start, length: Span(doc, start, start + length),
        st.sampled_from(docs),
        st.integers(0, LENGTH),
        st.integers(1, LENGTH // 2),
    )


def passages_in(docs: str) -> st.SearchStrategy[list[Passage]]:
    return st.lists(
        st.builds(
            lambda span, tokens: Passage(span.doc_id, span.start, span.end, tokens),
            spans_in(docs),
            st.integers(0, 50),
        ),
        max_size=8,
    )


EVIDENCE = st.lists(st.lists(spans_in("ab"), min_size=1, max_size=3), min_size=1, max_size=4)


def random_case(seed: int, docs: str = "ab") -> tuple[list[Passage], list[list[Span]]]:
    """Half of the cases are whole partitions, so that borders touch; half overlap freely."""
    draw = random.Random(seed)
    passages = []
    for doc in docs:
        cuts = sorted({0, LENGTH, *(draw.randrange(LENGTH) for _ in range(8))})
        borders = list(pairwise(cuts))
        if draw.random() < 0.5:
            borders = [(s, min(LENGTH, e + draw.randrange(10))) for s, e in borders]
        passages += [Passage(doc, s, e, draw.randrange(1, 90)) for s, e in borders]
    draw.shuffle(passages)
    edges = sorted({p.start for p in passages} | {LENGTH})

    def span() -> Span:
        start = draw.choice([draw.randrange(LENGTH), *edges[:-1]])
        end = min(LENGTH, start + draw.randrange(1, 25))
        return Span(draw.choice(docs), start, end)

    return passages, [
        [span() for _ in range(draw.choice([1, 1, 1, 2, 3]))] for _ in range(draw.randrange(1, 5))
    ]


def apart(evidence: list[list[Span]]) -> bool:
    gold = sorted((s.start, s.end) for (s,) in evidence)
    return all(end <= start for (_, end), (start, _) in pairwise(gold))


def scores(passages: list[Passage], evidence: list[list[Span]], **how) -> dict[str, float]:
    return {name: v for (name, _), v in score_question({"k": passages}, evidence, **how).items()}


def test_a_thousand_random_rankings_score_as_counted_by_characters() -> None:
    for seed in range(1000):
        passages, evidence = random_case(seed)
        top = passages[: seed % 12]
        assert scores(top, evidence) == pytest.approx(brute_force(top, evidence), abs=1e-9), seed


@given(passages_in("abc"), EVIDENCE)
def test_any_ranking_scores_as_counted_by_characters(
    passages: list[Passage], evidence: list[list[Span]]
) -> None:
    assert scores(passages, evidence) == pytest.approx(brute_force(passages, evidence), abs=1e-9)


def test_a_thousand_random_rankings_score_as_the_published_tool_when_touching_counts() -> None:
    for seed in range(1000):
        passages, evidence = random_case(seed)
        gold = [Span("a", s[0].start, s[0].end) for s in evidence]
        alone, top = [[span] for span in gold], passages[: seed % 12]
        expected = published(top, gold)
        got = scores(top, alone, convention="touching")
        for name in ("recall", "precision", "iou"):
            assert got[name] == pytest.approx(expected[name], abs=1e-9), (seed, name)
        whole = published(passages, gold)
        assert minimum_k(passages, alone, "touching") == whole["highlighted"], seed
        assert precision_omega(passages, alone, "touching") == pytest.approx(
            whole["omega"], abs=1e-9
        ), seed


def test_at_a_fixed_k_the_conventions_differ_only_where_evidence_overlaps_itself() -> None:
    differing = 0
    for seed in range(1000):
        passages, evidence = random_case(seed, docs="a")
        alone = [occurrences[:1] for occurrences in evidence]
        one, other = (scores(passages[:5], alone, convention=c) for c in ("half-open", "touching"))
        if apart(alone):
            assert one == other, seed
        differing += one != other
    assert differing, "the cases never reach the difference"


def test_over_all_chunks_touching_only_ever_adds_chunks_and_lowers_omega() -> None:
    added = 0
    for seed in range(1000):
        chunks, evidence = random_case(seed)
        alone = [occurrences[:1] for occurrences in evidence]
        exact, touching = (minimum_k(chunks, alone, c) for c in ("half-open", "touching"))
        assert exact <= touching
        assert precision_omega(chunks, alone) >= precision_omega(chunks, alone, "touching")
        added += touching > exact
    assert added > 100, "the cases hardly touch"
