"""What makes a drafted question useless, as plain rules: no model judges another here.

Each rule says what is wrong in words a model can act on, because the reply is sent back once with
them. The phrases cover the languages named; in others only the instructions ask for a question
that stands alone.
"""

import re
from collections.abc import Iterable, Sequence

from chunking_assets.chunk_sets.context import echoed_share, plain_words
from evals.gold_questions.check import holds_answer, other_language, same_words

LEAST_QUOTE_BYTES, LONGEST_QUOTE_CHARS = 20, 600
"""In UTF-8 (20 Latin letters, 7 Chinese characters), and in code points. Shorter words stand
anywhere; longer ones make every strategy miss some."""
MOST_QUOTES = 5
MOST_OF_DOCUMENT = 0.5
"""The share of its document that evidence may be."""
MOST_COPIED = 0.5
"""The share of a question's runs of words that may stand in its quotes: more, and matching words
finds it without understanding."""
MOST_ALIKE = 0.75
"""The share of their content words that two questions may have in common. Higher than for prose:
one question about two products differs in a name."""

_ABOUT_THE_TEXT = re.compile(
    r"\b(?:"
    r"(?:this|given|above|following|provided) "
    r"(?:document|text|passage|excerpt|article|section|paragraph|page|extract|context)s?\b"
    r"|(?:according to|in) the (?:document|text|article|page|section|paragraph|context)\b"
    r"|the (?:text|passage|excerpt|extract|author)s?\b"
    r"|(?:mentioned|described|listed|stated|shown) (?:above|below|here)\b"
    r"|n?es[st]e (?:documento|texto|artigo|excerto|trecho|parágrafo)\b"
    r"|(?:segundo|conforme|de acordo com) o (?:documento|texto|artigo|excerto|trecho)\b"
    r"|(?:ce|cet) (?:document|texte|article|extrait|passage|paragraphe)\b"
    r"|(?:selon|d['’]après) (?:le|l['’]) ?(?:document|texte|article|extrait|passage)\b"
    r"|(?:este|ese) (?:documento|texto|artículo|fragmento|pasaje|párrafo)\b"
    r"|(?:según|de acuerdo con) el (?:documento|texto|artículo|fragmento|pasaje)\b"
    r"|diese[mnrs]? (?:dokument|text|abschnitt|artikel|auszug|absatz)\b"
    r"|laut (?:dem |des )?(?:dokument|text|abschnitt|artikel|auszug)s?\b"
    r")",
    re.IGNORECASE,
)
_IMPERSONAL = re.compile(
    r"\bit (?:take|cost|possible|allowed|necessary|required|mandatory|safe|happen)\w*\b.+"
    r"\b(?:to|for|if|when|before|until|that)\b"
    r"|-il (?:possible|nécessaire|obligatoire|permis)\b",
    re.IGNORECASE,
)
"""How long does it take to …, est-il possible de …: the subject comes after."""
_PRONOUN_SUBJECT = re.compile(
    r"\b(?:"
    r"(?:is|are|was|were|does|do|did|can|could|will|would|should|must|has|have|had|may) "
    r"(?:it|they|he|she|this|that|these|those|its|his|her|their)\b"
    r"|(?:é|são|foi|foram|pode|podem|deve|devem|tem) "
    r"(?:ele|ela|eles|elas|isto|isso|este|esta|esse|essa)\b"
    r"|(?:est|sont|était|peut|peuvent|doit|doivent|dure|coûte|a-t|ont)-(?:il|elle|ils|elles)\b"
    r"|(?:ist|sind|war|wird|kann|muss|hat) (?:er|sie|es|dies|diese|dieser|dieses)\b"
    r")",
    re.IGNORECASE,
)
_QUESTION_WORD = re.compile(
    r"\b(?:what|when|where|which|who|whose|why|how|many|much|long|often|then"
    r"|the|and|are|was|does|that|from|can|for"
    r"|quando|quanto|quantos|quantas|qual|quais|como|onde"
    r"|quel|quels|quelle|quelles|combien|comment|pourquoi|quand"
    r"|wann|welche|welcher|welches|warum|viele|lange|cuándo|cuánto|cuántos|cómo|dónde)\b",
    re.IGNORECASE,
)
_CONTENT = re.compile(r"[^\W\d_]{4,}")
_LEAST_ANTECEDENT = 2


def problem_of(
    question: str, answer: str, quotes: Sequence[str], document_chars: int, language: str
) -> str | None:
    """Why a draft is of no use, as `kind: what to do`; None if it may be shown to a person.

    `quotes` are the document's own words, `document_chars` is its length and `language` its own.
    """
    if problem := not_self_contained(question):
        return f"self-contained: {problem}"
    if not same_words(answer):
        return "answer: is empty; answer in a few words"
    if holds_answer(question, answer):
        return "answer: the question says it; ask without it"
    if problem := poor_evidence(quotes, document_chars):
        return f"evidence: {problem}"
    if copied(question, quotes):
        return "words: the question repeats its quotes; ask in other words, as a user would"
    if other := other_language(language, question):
        return f"language: the question is in {other}; ask in {language}"
    return None


def not_self_contained(question: str) -> str | None:
    """Why a question cannot be understood without the text it was written from.

    >>> not_self_contained("What does this document say about fees?")
    "name the subject instead of 'this document'"
    >>> not_self_contained("How long does it take?")
    "name what 'does it' stands for"
    >>> not_self_contained("When a payout fails, how often is it tried again?")
    >>> not_self_contained("How long does it take to refund a payment?")
    """
    if found := _ABOUT_THE_TEXT.search(question):
        return f"name the subject instead of {found[0]!r}"
    found = _PRONOUN_SUBJECT.search(question)
    if found is None or _IMPERSONAL.search(question):
        return None
    before = _QUESTION_WORD.sub(" ", question[: found.start()])
    if len(_CONTENT.findall(before)) >= _LEAST_ANTECEDENT:
        return None  # it names its subject first
    return f"name what {found[0]!r} stands for"


def poor_evidence(quotes: Sequence[str], document_chars: int) -> str | None:
    """Why quotes would measure nothing."""
    if not 1 <= len(quotes) <= MOST_QUOTES:
        return f"give 1 to {MOST_QUOTES} quotes"
    for number, quote in enumerate(quotes, start=1):
        if len(quote.encode()) < LEAST_QUOTE_BYTES:
            return f"quote {number} is too short; quote the whole sentence"
        if len(quote) > LONGEST_QUOTE_CHARS:
            return f"quote {number} is too long; quote only the words that answer"
    if sum(map(len, quotes)) > MOST_OF_DOCUMENT * document_chars:
        return "the quotes are most of the document; quote only the words that answer"
    return None


def copied(question: str, quotes: Iterable[str]) -> bool:
    """Whether a question is mostly made of runs of its quotes' words."""
    return echoed_share(question, plain_words(" ".join(quotes))) > MOST_COPIED


def alike(question: str, others: Iterable[str]) -> str | None:
    """The first question that asks nearly the same words.

    >>> alike("How long is the notice period?", ["Who signs?", "What is the period of notice?"])
    'What is the period of notice?'
    >>> alike("How long are Start refunds possible?", ["How long are Grow refunds possible?"])
    """
    words = _content_words(question)
    for other in others:
        theirs = _content_words(other)
        if same_words(question) == same_words(other):
            return other
        if words & theirs and len(words & theirs) >= MOST_ALIKE * len(words | theirs):
            return other
    return None


def _content_words(text: str) -> frozenset[str]:
    kept = plain_words(_QUESTION_WORD.sub(" ", text)).split()
    return frozenset(word for word in kept if len(word) > 2 or not word.isascii())
