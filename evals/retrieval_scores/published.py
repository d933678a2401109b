"""The two published numbers that need every chunk of the index, not what was retrieved.

They are properties of a chunk set, not of a strategy; they are here so that its numbers can be
set beside those of the published tool, with its convention for ranges that touch or without.
"""

from collections.abc import Sequence

from evals.retrieval_scores.spans import (
    Convention,
    Evidence,
    Passage,
    Retrieval,
    Span,
    union,
)


def minimum_k(
    chunks: Sequence[Passage], evidence: Evidence, convention: Convention = "half-open"
) -> int:
    """How many chunks hold some of the evidence: the least k at which recall can be full.

    The published tool retrieves this many per question when told `retrieve=-1` (never more than
    20 can be had, there), and counts chunks that merely touch the evidence (`touching`).

    >>> chunks = [Passage("a", 0, 5, 1), Passage("a", 5, 9, 1)]
    >>> [minimum_k(chunks, [[Span("a", 5, 9)]], c) for c in ("half-open", "touching")]
    [1, 2]
    """
    return len(_holding(chunks, Retrieval(chunks, evidence).gold, convention))


def precision_omega(
    chunks: Sequence[Passage], evidence: Evidence, convention: Convention = "half-open"
) -> float:
    """The best precision a perfect retriever could reach with these chunks, 0 to 1.

    Covered gold characters / the union of the chunks that hold evidence and the gold that no chunk
    holds. 0 if no chunk holds any.

    Source: Smith & Troynikov, Evaluating Chunking Strategies for Retrieval, Chroma 2024,
    https://research.trychroma.com/evaluating-chunking
    """
    everything = Retrieval(chunks, evidence, convention)
    holding = _holding(chunks, everything.gold, convention)
    if not holding:
        return 0.0
    paid = sum(map(len, union([*holding, *everything.gold])))
    return everything.covered(everything.gold) / paid


def _holding(
    chunks: Sequence[Passage], gold: Sequence[Span], convention: Convention
) -> list[Passage]:
    contact = 0 if convention == "touching" else 1
    return [
        chunk
        for chunk in chunks
        if any(
            chunk.doc_id == span.doc_id
            and min(chunk.end, span.end) - max(chunk.start, span.start) >= contact
            for span in gold
        )
    ]
