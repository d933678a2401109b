"""Answers without a model: the sentences of the passages most like the question.

A baseline that lets everything behind an answer run offline, and no more: it copies, so that what
it says is faithful by construction, and its threshold does not know an unanswerable question from
one in other words. Its answers are labelled, and never pass for a model's.
"""

import math
from collections import Counter
from collections.abc import Sequence

from evals.ragas_scores.answers import GroundedAnswer, Sentence
from evals.ragas_scores.words import sentences, words

EXTRACTIVE = "extractive@1"
"""The answerer's name in rows and keys; raised when the same passages would give another answer."""

LEAST_OVERLAP = 0.35
"""Below this weight of the question's words in the best sentence, the passages do not answer."""

WORTH_A_SECOND = 0.15
"""What a second sentence must add to it."""


def extractive_answer(question: str, contexts: Sequence[str]) -> GroundedAnswer:
    """One or two sentences of `contexts`, each its own quote, or an abstention.

    A word weighs as much as it is rare among the sentences of the passages.

    >>> extractive_answer("What does a filter cost?",
    ...     ["The pump is blue.", "A filter costs 40 EUR. It is green."]).text
    'A filter costs 40 EUR.'
    """
    candidates = [
        (f"p{number}", text, frozenset(words(text)))
        for number, passage in enumerate(contexts, 1)
        for text in sentences(passage)
    ]
    rarity = Counter(word for _, _, found in candidates for word in found)
    weights = {w: math.log(1 + len(candidates) / max(1, rarity[w])) for w in words(question)}
    whole = sum(weights.values()) or 1.0

    def weight(of: frozenset[str], without: frozenset[str] = frozenset()) -> float:
        return sum(weights[w] for w in weights.keys() & of - without) / whole

    # Longer ones hold more words; of two that hold as much, the earlier passage is taken.
    best = max(candidates, key=lambda c: weight(c[2]), default=None)
    if best is None or weight(best[2]) < LEAST_OVERLAP:
        return GroundedAnswer(found=False)
    chosen = [best]
    second = max(candidates, key=lambda c: weight(c[2], best[2]))
    if weight(second[2], best[2]) >= WORTH_A_SECOND:
        chosen.append(second)
    return GroundedAnswer(
        found=True,
        sentences=[
            Sentence(text=text, sources=[passage], quote=text)
            for passage, text, _ in sorted(chosen, key=candidates.index)
        ],
    )
