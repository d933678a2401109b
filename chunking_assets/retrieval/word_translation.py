"""A question's words in another language: the nearest words of the texts in that language.

A multilingual model that knows a whole question only roughly in another language still knows most
of its words. So each stands for the word of those texts whose vector is nearest, which is itself
where it is a name, and BM25 looks for that: dictionary lookup with word vectors in place of the
dictionary (Vulić and Moens, "Monolingual and Cross-Lingual Information Retrieval Models Based on
(Bilingual) Word Embeddings", SIGIR 2015). The vectors of words are kept in the vector cache of this
machine, so only new ones are ever computed.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
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

    def weigh(
        self, question: str, language: str, others: Sequence[str], settings: Bm25Settings
    ) -> list[Bm25Query]:
        """The question's words as each of the other languages has them, without the small ones of
        both."""
        small = STOP_WORDS.get(language, frozenset())
        asked = [word for word in dict.fromkeys(spelt_words(question)) if word not in small]
        named = [word for word in asked if _TRANSLATED.fullmatch(word)]
        vectors = self._embedder.embed_queries(named)
        weighed = []
        for other in others:
            small_there = STOP_WORDS.get(other, frozenset())
            nearest = dict(zip(named, self._nearest(vectors, other), strict=False))
            words = (nearest.get(word, word) for word in asked)
            told = (word for word in words if word not in small_there)
            weighed.append(self._weigher.weigh_words(told, settings))
        return weighed

    @cached_property
    def _embedder(self) -> CachedQueries:
        """Where it is not one that keeps what it embeds, it does so on this machine: a reader may
        write nothing elsewhere."""
        embedder = self._load()
        if isinstance(embedder, CachedQueries):
            return embedder
        return CachedQueries(embedder, self._folder, gives=False)

    def _nearest(self, vectors: np.ndarray, language: str) -> list[str]:
        """The word nearest to each vector; none where the language has no words."""
        known, of_known = self._words(language)
        if not known or not len(vectors):
            return []
        return [known[int(at)] for at in (vectors @ of_known.T).argmax(axis=1)]

    def _words(self, language: str) -> tuple[list[str], np.ndarray]:
        """The words of the texts in a language, and their vectors of unit length, one a row."""
        with self._lock:
            if language not in self._known:
                words = frequent_words(texts_within(self._table, self._conditions[language]))
                self._known[language] = words, self._embedder.embed_queries(words)
            return self._known[language]


def frequent_words(texts: Iterable[str], most: int = MOST_WORDS) -> list[str]:
    """The words that stand in most texts, in the order of the alphabet, without any with digits.

    >>> frequent_words(["two T2 readers", "T2 readers"], most=1)
    ['readers']
    """
    found = Counter(word for text in texts for word in {*spelt_words(text)})
    words = sorted(word for word in found if _TRANSLATED.fullmatch(word))
    return sorted(sorted(words, key=lambda word: -found[word])[:most])
