"""A question's words in another language: the nearest words of the texts in that language.

A multilingual model that knows a whole question only roughly in another language still knows most
of its words. So each stands for the word of those texts whose vector is nearest, which is itself
where it is a name, and BM25 looks for that: dictionary lookup with word vectors in place of the
dictionary (Vulić and Moens, "Monolingual and Cross-Lingual Information Retrieval Models Based on
(Bilingual) Word Embeddings", SIGIR 2015). The vectors of words are kept in the vector cache, so
only new ones are ever computed.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from threading import Lock
from typing import Any

import numpy as np
import regex

from chunking_assets.chunk_embeddings.word_frequencies import spelt_words
from chunking_assets.embedding_models.model import Embedder
from chunking_assets.embedding_models.vector_cache import VECTORS, CachedQueries
from chunking_assets.retrieval.bm25 import Bm25Query, Bm25Settings, Weigher
from chunking_assets.retrieval.search import texts_within
from chunking_assets.retrieval.stop_words import STOP_WORDS
from chunking_assets.workspace import Workspace

MOST_WORDS = 20_000
"""Of a language, those in most chunks: a minute of work for the default model, once."""

_TRANSLATED = regex.compile(r"[\p{Alphabetic}\p{Mn}]{2,}")
"""What has digits is the same in every language."""


class Translator:
    """Weighs questions in the words of another language, for one version of a table.

    The words of a language are read, and embedded where the cache has no vector of them, at the
    first question that needs them. Safe for threads.
    """

    def __init__(
        self,
        workspace: Workspace,
        table: Any,
        weigher: Weigher,
        conditions: Mapping[str, str],
        embedder: Callable[[], Embedder],
    ) -> None:
        """`conditions` say by language, as the store's SQL, that a chunk is in it."""
        self._folder, self._table = workspace.caches / VECTORS, table
        self._weigher, self._conditions, self._load = weigher, conditions, embedder
        self._known: dict[str, tuple[list[str], np.ndarray]] = {}
        self._lock = Lock()

    def weigh(self, question: str, language: str, other: str, settings: Bm25Settings) -> Bm25Query:
        """The question's words as the `other` language has them, without the small ones of both."""
        small, small_there = (STOP_WORDS.get(code, frozenset()) for code in (language, other))
        asked = [word for word in dict.fromkeys(spelt_words(question)) if word not in small]
        nearest = self._nearest([w for w in asked if _TRANSLATED.fullmatch(w)], other)
        words = (nearest.get(word, word) for word in asked)
        return self._weigher.weigh_words((w for w in words if w not in small_there), settings)

    def _nearest(self, words: list[str], language: str) -> dict[str, str]:
        known, vectors = self._words(language)
        if not words or not known:
            return {}
        closeness = CachedQueries(self._load(), self._folder).embed_queries(words) @ vectors.T
        return {w: known[int(at)] for w, at in zip(words, closeness.argmax(axis=1), strict=True)}

    def _words(self, language: str) -> tuple[list[str], np.ndarray]:
        """The words of the texts in a language, and their vectors of unit length, one a row."""
        with self._lock:
            if language not in self._known:
                words = frequent_words(texts_within(self._table, self._conditions[language]))
                embedder = CachedQueries(self._load(), self._folder)
                self._known[language] = words, embedder.embed_queries(words)
            return self._known[language]


def frequent_words(texts: Iterable[str], most: int = MOST_WORDS) -> list[str]:
    """The words that stand in most texts, in the order of the alphabet, without any with digits.

    >>> frequent_words(["two T2 readers", "T2 readers"], most=1)
    ['readers']
    """
    found = Counter(word for text in texts for word in {*spelt_words(text)})
    words = sorted(word for word in found if _TRANSLATED.fullmatch(word))
    return sorted(sorted(words, key=lambda word: -found[word])[:most])
