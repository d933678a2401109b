"""BM25 by the profile's own settings, over candidates that the full-text index found.

The index knows one way to score and no language. So it is asked for candidates only: by the
question's words, in all the forms that stand in the index where `stem` is on. Their scores are
computed here, for every candidate of either search, from the word frequencies kept beside the
index: the same whatever the store's layout, and with k1 and b as one likes.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import fsum, log
from typing import Protocol

from pydantic import BaseModel, ConfigDict, Field

from chunking_assets.chunk_embeddings.word_frequencies import (
    WordFrequencies,
    spelt_words,
    words_of,
)
from chunking_assets.errors import CorpusError
from chunking_assets.parsed_elements.document import Element
from chunking_assets.parsed_elements.language import detect_language
from chunking_assets.retrieval.stop_words import STOP_WORDS

STEMMERS = {
    "ar": "arabic", "da": "danish", "de": "german", "el": "greek", "en": "english",
    "es": "spanish", "eu": "basque", "fi": "finnish", "fr": "french", "ga": "irish",
    "hi": "hindi", "hu": "hungarian", "hy": "armenian", "id": "indonesian", "it": "italian",
    "lt": "lithuanian", "ne": "nepali", "nl": "dutch", "no": "norwegian", "pt": "portuguese",
    "ro": "romanian", "ru": "russian", "sr": "serbian", "sv": "swedish", "ta": "tamil",
    "tr": "turkish",
}  # fmt: skip
"""ISO 639-1 code to the Snowball stemmer of that language."""

MOST_FORMS = 40
"""Of a stem, the most frequent; more would be names and mistakes."""
MOST_COUNTED = 2048
"""Chunks whose words are kept, about 10 kB each: many questions find the same ones."""


class Bm25Settings(BaseModel):
    """`bm25:` of a profile.

    `stem` finds other forms of a word too, after the Snowball stemmer of `language`; `stop_words`
    leaves out the question's articles, pronouns and the like, unless there is nothing else.
    `language` is an ISO 639-1 code (None: that of the question, as far as it can be told). `k1`
    says how soon repetitions of a word stop to count, `b` how much long chunks are held back, 0 to
    1 (Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond", 2009).
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    stem: bool = False
    stop_words: bool = False
    language: str | None = None
    k1: float = Field(default=1.2, ge=0, le=10)
    b: float = Field(default=0.75, ge=0, le=1)


@lru_cache(maxsize=MOST_COUNTED)
def _counted(text: str) -> tuple[int, Mapping[str, int]]:
    """How many words a chunk has, and how often each."""
    words = words_of(text)
    return len(words), dict(Counter(words))


@dataclass(frozen=True)
class Term:
    """A word of the question: its forms as they are `spelt`, any of which counts, the same as they
    are searched, and its inverse document frequency."""

    spelt: frozenset[str]
    forms: frozenset[str]
    idf: float


@dataclass(frozen=True)
class Bm25Query:
    """A question weighed against one index."""

    terms: tuple[Term, ...]
    words_per_chunk: float
    settings: Bm25Settings

    @property
    def asked(self) -> str:
        """What the full-text index is asked for."""
        return " ".join(sorted({form for term in self.terms for form in term.spelt}))

    @property
    def attainable(self) -> float:
        """The least score no chunk reaches: that of every word repeated without end.

        The yardstick for a score: the best hit of a question whose words match nowhere much stays
        low, where dividing by the best hit's own score would make it perfect.
        """
        return fsum(term.idf for term in self.terms) * (self.settings.k1 + 1)

    def score(self, text: str) -> float:
        """The BM25 score of a chunk, from what is embedded of it."""
        words, counts = _counted(text)
        found = counts.keys() & self._term_of.keys()
        if not found:
            return 0.0
        often = Counter[int]()
        for word in found:
            often[self._term_of[word]] += counts[word]
        k1, b = self.settings.k1, self.settings.b
        length = k1 * (1 - b + b * words / max(self.words_per_chunk, 1e-9))
        return fsum(
            self.terms[term].idf * count * (k1 + 1) / (count + length)
            for term, count in often.items()
        )

    @cached_property
    def _term_of(self) -> dict[str, int]:
        return {form: number for number, term in enumerate(self.terms) for form in term.forms}


class Weigher:
    """Weighs questions against the words of one index; safe for threads."""

    def __init__(self, frequencies: WordFrequencies) -> None:
        self._frequencies = frequencies
        self._forms = lru_cache(maxsize=len(STEMMERS))(self._forms_by_stem)

    def weigh(self, question: str, settings: Bm25Settings) -> Bm25Query:
        """The question as BM25 sees it. In a language without a stemmer or a list of stop words,
        or one that cannot be told, its words are taken as they are.

        Raises:
            CorpusError: the package with the stemmers is missing.
        """
        words = list(dict.fromkeys(spelt_words(question)))
        language = settings.language
        if language is None and (settings.stem or settings.stop_words):
            language = language_of(question)
        if settings.stop_words and language is not None:
            ignored = STOP_WORDS.get(language, frozenset())
            words = [word for word in words if word not in ignored] or words
        spellings: dict[str, set[str]] = {}
        stems = words
        if settings.stem and language in STEMMERS:
            stems = _stemmer(language).stemWords(words)
            known = self._forms(language)
            spellings = {stem: {*known.get(stem, ())} for stem in stems}
        for word, stem in zip(words, stems, strict=True):
            spellings.setdefault(stem, set()).add(word)
        return self._query(spellings.values(), settings)

    def weigh_words(self, words: Iterable[str], settings: Bm25Settings) -> Bm25Query:
        """These words as they are, whatever the settings say of forms and of small words."""
        return self._query(({word} for word in dict.fromkeys(words)), settings)

    def _query(self, spellings: Iterable[Iterable[str]], settings: Bm25Settings) -> Bm25Query:
        terms = tuple(map(self._term, spellings))
        return Bm25Query(terms, self._frequencies.words_per_chunk, settings)

    def _term(self, spelt: Iterable[str]) -> Term:
        """Forms of one word are taken not to stand in the same chunk."""
        forms = frozenset(form for word in spelt for form in words_of(word))
        chunks, with_word = self._frequencies.chunks, self._frequencies.chunks_with
        found = min(chunks, sum(with_word.get(form, 0) for form in forms))
        return Term(frozenset(spelt), forms, log(1 + (chunks - found + 0.5) / (found + 0.5)))

    def _forms_by_stem(self, language: str) -> Mapping[str, Sequence[str]]:
        words = sorted(self._frequencies.spelt, key=lambda word: -self._frequencies.spelt[word])
        by_stem: dict[str, list[str]] = {}
        for word, stem in zip(words, _stemmer(language).stemWords(words), strict=True):
            forms = by_stem.setdefault(stem, [])
            if len(forms) < MOST_FORMS:
                forms.append(word)
        return by_stem


def language_of(question: str) -> str | None:
    """The language of a question, None where it cannot be told.

    Questions are short and full of small words, so these decide where there is a list of them;
    what detects a document's language is asked about the others.

    >>> language_of("Quel est le délai de virement ?"), language_of("Qual é o prazo?")
    ('fr', 'pt')
    """
    words = spelt_words(question)
    small = sorted(
        ((sum(word in known for word in words), code) for code, known in STOP_WORDS.items()),
        reverse=True,
    )
    (most, language), (next_most, _) = small[:2]
    if most >= 2 and most > next_most:
        return language
    found = detect_language(question, [Element("paragraph", 0, len(question))])
    return None if found is None else found.code


def _stemmer(language: str) -> "_Stemmer":
    try:
        from Stemmer import Stemmer  # type: ignore[import-not-found]
    except ImportError as error:
        raise CorpusError(
            "`stem` needs the package pystemmer. Install it, or leave `stem` out of the profile."
        ) from error
    stemmer: _Stemmer = Stemmer(STEMMERS[language])  # not safe for threads, so one a call
    return stemmer


class _Stemmer(Protocol):
    def stemWords(self, words: Sequence[str]) -> list[str]:
        """The stem of each."""
