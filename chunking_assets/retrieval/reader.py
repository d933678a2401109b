"""The reader of an index: the one way questions are answered, in production and in the scores.

A strategy's profile composes the steps: search, fuse, smooth, rerank, dedupe, cut, mmr, trim,
select with expand, other languages, parents, merge. The reader holds the table at the version its
tag names and follows the tag when the index is published anew.
"""

import time
from abc import ABC, abstractmethod
from asyncio import to_thread
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache, partial
from operator import attrgetter
from threading import Lock
from typing import Any

import numpy as np

from chunking_assets.chunk_embeddings.lance_index import LanceIndex
from chunking_assets.chunk_embeddings.word_frequencies import word_frequencies
from chunking_assets.embedding_models.model import Embedder
from chunking_assets.errors import CorpusError
from chunking_assets.retrieval.bm25 import Bm25Settings, Weigher, language_of
from chunking_assets.retrieval.dedupe import dedupe
from chunking_assets.retrieval.expand import Expand, neighbours, smooth
from chunking_assets.retrieval.filters import Filters, where
from chunking_assets.retrieval.fuse import ScoreFusion, reciprocal_rank
from chunking_assets.retrieval.hit import Answer, Hit, Passage
from chunking_assets.retrieval.mmr import mmr
from chunking_assets.retrieval.other_languages import Languages, of_other_languages
from chunking_assets.retrieval.pages import Pages
from chunking_assets.retrieval.parents import holds, with_parents
from chunking_assets.retrieval.profile import RetrievalProfile
from chunking_assets.retrieval.ranking import Ranking
from chunking_assets.retrieval.rerank import Rerank, Scorer, rerank
from chunking_assets.retrieval.search import Question, SearchArms
from chunking_assets.retrieval.select import Selection, cut, merge, select, within
from chunking_assets.retrieval.trim import trim
from chunking_assets.retrieval.word_translation import Translator
from chunking_assets.workspace import Workspace

FOLLOW_SECONDS = 0.5
"""How old the reader's knowledge of the published version may be."""

NEIGHBOURHOOD = 20
"""Of so many of the best hits, or k if that is more, the chunks beside them are looked at."""


class Answering(ABC):
    """The ways to ask: one question or several, waiting or awaiting; all safe for threads."""

    @abstractmethod
    def answers(
        self, questions: Sequence[str], filters: Filters | None = None, *, explained: bool = True
    ) -> list[Answer]:
        """What each question is answered with, and, if `explained`, what became of every candidate.

        Questions are embedded together and answered by one version of one strategy. `filters` hold
        beside those of the profile.

        Raises:
            CorpusError: a question is empty, or there is nothing to answer from.
        """

    def answer(self, question: str, filters: Filters | None = None) -> Answer:
        return self.answers([question], filters)[0]

    def search(self, question: str, filters: Filters | None = None) -> list[Passage]:
        """The passages the profile hands on for a question, best first."""
        return self.search_many([question], filters)[0]

    def search_many(
        self, questions: Sequence[str], filters: Filters | None = None
    ) -> list[list[Passage]]:
        found = self.answers(questions, filters, explained=False)
        return [list(answer.passages) for answer in found]

    async def asearch(self, question: str, filters: Filters | None = None) -> list[Passage]:
        return await to_thread(self.search, question, filters)

    async def asearch_many(
        self, questions: Sequence[str], filters: Filters | None = None
    ) -> list[list[Passage]]:
        return await to_thread(self.search_many, questions, filters)

    async def aanswer(self, question: str, filters: Filters | None = None) -> Answer:
        return await to_thread(self.answer, question, filters)


@dataclass(frozen=True)
class _Served:
    version: int
    arms: SearchArms
    weigher: Weigher | None
    pages: Pages
    languages: Languages
    translator: Translator | None


class Reader(Answering):
    """Answers questions from one index version with one retrieval profile; safe for threads."""

    def __init__(
        self,
        workspace: Workspace,
        index_version: str,
        profile: RetrievalProfile,
        embedder: Callable[[], Embedder],
        at: datetime | None = None,
    ) -> None:
        """With `at`, the reader keeps to what was served then."""
        self.profile = profile
        self._workspace, self._index_version, self._at = workspace, index_version, at
        self._load_embedder = embedder
        self._embedder: Embedder | None = None
        self._reranker: Scorer | None = None
        self._served: _Served | None = None
        self._looked = 0.0
        self._lock = Lock()

    def answers(
        self, questions: Sequence[str], filters: Filters | None = None, *, explained: bool = True
    ) -> list[Answer]:
        found = []
        for question, ranking in zip(questions, self._rank(questions, filters), strict=True):
            selection = self._select(ranking)
            if explained:
                hits = ranking.served.pages.of(selection.hits)
                selection = Selection(hits, selection.dropped)
            candidates = _explained(ranking, selection) if explained else ()
            passages = tuple(self.passages(selection.hits, ranking))
            found.append(Answer(question, passages, candidates))
        return found

    def rank(self, question: str, filters: Filters | None = None) -> Ranking:
        """Every candidate for the question, best first, before any limit of the profile.

        Raises:
            CorpusError: the question is empty, or the index was never published.
        """
        return self._rank([question], filters)[0]

    def chosen(
        self, ranking: Ranking, *, k: int | None = None, token_budget: int | None = None
    ) -> list[Hit]:
        """The hits the profile keeps of a ranking, at its own limits or at another k or budget.

        A `token_budget` given here replaces the profile's k: as many chunks as fit.
        """
        return self._select(ranking, k=k, token_budget=token_budget).hits

    def passages(self, hits: list[Hit], ranking: Ranking | None = None) -> list[Passage]:
        """The hits as they are handed on, from the same published index as their `ranking`."""
        served: _Served = self._follow() if ranking is None else ranking.served
        hits = served.pages.of(hits)
        if not self.profile.merge:
            return merge(hits, adjacent=False)
        return merge(hits, neighbours=served.arms.neighbours(hits))

    def _rank(self, questions: Sequence[str], filters: Filters | None) -> list[Ranking]:
        for question in questions:
            if not question.strip():
                raise CorpusError("The question is empty. Ask something.")
        profile, served = self.profile, self._follow()
        queries: list[np.ndarray | None] = [None] * len(questions)
        if profile.search != "bm25" and questions:
            queries = [*self._embed().embed_queries(questions)]
        both = [f for f in (profile.filters, filters) if f is not None]
        allowed = both[0].also(both[1]) if len(both) == 2 else next(iter(both), None)
        condition = None if allowed is None else where(allowed, self._workspace)
        rankings = []
        for text, query in zip(questions, queries, strict=True):
            settings = profile.bm25 or Bm25Settings()
            bm25 = served.weigher.weigh(text, settings) if served.weigher else None
            rankings.append(self._ranking(text, Question(query, bm25, condition), served))
        return rankings

    def _ranking(self, text: str, question: Question, served: _Served) -> Ranking:
        profile, arms = self.profile, served.arms
        limit = max(profile.candidates, profile.k)
        if profile.search == "hybrid":  # both at once: each waits for the store most of the time
            full_text = _pool().submit(arms.bm25, question, limit)
            vector, bm25 = arms.vector(question, limit), full_text.result()
        else:
            vector = arms.vector(question, limit) if question.query is not None else []
            bm25 = arms.bm25(question, limit) if question.bm25 is not None else []
        language = language_of(text) if profile.other_languages else None
        translated: list[Hit] = []
        if language is not None and profile.translate:
            translated = self._translated(text, language, question, served)
        elif language is not None:
            vector = [*vector, *self._scarce([*vector, *bm25], language, question, served)]
        score: Callable[[Hit], Hit] = _own_score
        if profile.search != "hybrid":
            hits = vector or bm25
        elif profile.fusion == "ranks":
            hits = reciprocal_rank(vector, bm25, profile.rank_constant, profile.vector_weight)
            score = partial(_place_score, {hit.chunk_id: hit for hit in hits})
        else:
            score, hits = self._fused(vector, bm25, question)
        hits, beside = self._beside(hits, score, question, arms)
        best = hits[0].score if hits else 0.0
        dropped = {}
        if profile.rerank is not None:
            first = hits
            hits = rerank(text, hits, profile.rerank.top, self._rerank(profile.rerank))
            why = f"rerank: not among the first {profile.rerank.top}"
            dropped = {hit.chunk_id: (hit, why) for hit in first[profile.rerank.top :]}
        return Ranking(hits, beside, best, question.vectors, dropped, language, translated, served)

    def _fused(
        self, vector: Sequence[Hit], bm25: Sequence[Hit], question: Question
    ) -> tuple[ScoreFusion, list[Hit]]:
        every = list({hit.chunk_id: hit for hit in (*vector, *bm25)}.values())
        assert question.bm25 is not None
        score = ScoreFusion.over(every, question.bm25.attainable, self.profile.vector_weight)
        return score, sorted(map(score, every), key=attrgetter("rank_key"))

    def _translated(
        self, text: str, language: str, question: Question, served: _Served
    ) -> list[Hit]:
        """The best hits of every other language, asked for by the nearest words in it."""
        assert served.translator is not None
        profile, translator, arms = self.profile, served.translator, served.arms
        limit, settings = max(profile.candidates, profile.k), profile.bm25 or Bm25Settings()
        conditions = served.languages.conditions
        others = sorted(conditions.keys() - {language})
        weighed = zip(others, translator.weigh(text, language, others, settings), strict=True)
        asked = [question.within(conditions[other], bm25) for other, bm25 in weighed]
        full_texts = [_pool().submit(arms.bm25, narrowed, limit) for narrowed in asked]
        vectors = [_pool().submit(arms.vector, narrowed, limit) for narrowed in asked]
        found = zip(asked, vectors, full_texts, strict=True)
        return [
            hit
            for narrowed, vector, full_text in found
            for hit in self._fused(vector.result(), full_text.result(), narrowed)[1]
        ]

    def _scarce(
        self, hits: Sequence[Hit], language: str, question: Question, served: _Served
    ) -> list[Hit]:
        """The nearest chunks of languages that the candidates hold too few of."""
        most, languages = self.profile.other_languages or 0, served.languages
        wanted = languages.scarce(hits, language, most)
        asked = [question.within(languages.conditions[other]) for other in wanted]
        found = _pool().map(lambda narrowed: served.arms.vector(narrowed, most), asked)
        known = {hit.chunk_id for hit in hits}
        new = (hit for nearest in found for hit in nearest if hit.chunk_id not in known)
        return sorted(new, key=attrgetter("rank_key"))

    def _beside(
        self,
        hits: list[Hit],
        score: Callable[[Hit], Hit],
        question: Question,
        arms: SearchArms,
    ) -> tuple[list[Hit], dict[tuple[str, int], Hit]]:
        """The hits, smoothed if the profile says so, and the chunks around the best of them."""
        profile = self.profile
        if not hits or (profile.smooth is None and profile.expand is None):
            return hits, {}
        expand = profile.expand or Expand(before=0, after=0)
        reach = max(expand.before, expand.after) + (profile.smooth is not None)
        near = max(NEIGHBOURHOOD, profile.k)
        beside = {p: score(h) for p, h in arms.beside(hits[:near], reach, question).items()}
        if profile.smooth is None:
            return hits, beside
        raised = smooth(list(beside.values()), beside, profile.smooth)
        smoothed = {(hit.doc_id, hit.ordinal): hit for hit in raised}
        best = {hit.chunk_id for hit in hits[:near]}
        return [*(hit for hit in raised if hit.chunk_id in best), *hits[near:]], smoothed

    def _select(
        self, ranking: Ranking, *, k: int | None = None, token_budget: int | None = None
    ) -> Selection:
        profile = self.profile
        if token_budget is None:
            k, token_budget = k or profile.k, profile.token_budget
        else:
            k = None
        hits = list(ranking.hits)
        dropped: dict[str, str] = {}

        def leave(kept: list[Hit], why: str) -> list[Hit]:
            dropped.update(
                dict.fromkeys({h.chunk_id for h in hits} - {h.chunk_id for h in kept}, why)
            )
            return kept

        if profile.dedupe is not None:
            hits = leave(dedupe(hits, profile.dedupe), "dedupe: better hits say it already")
        every, abroad = hits, self._abroad(hits, ranking)
        if profile.cut is not None and hits:
            hits = leave(cut(hits, profile.cut), f"cut: below {profile.cut} of the best score")
        if profile.mmr is not None:
            hits = mmr(hits, ranking.vectors, profile.mmr, max(NEIGHBOURHOOD, k or 0))
        if profile.trim is not None and every:
            good = cut(every, profile.trim)
            parents = ranking.served.arms.parents
            hits, abroad = (trim(h, good, parents, token_budget) for h in (hits, abroad))
        selection = select(
            hits,
            k=k,
            token_budget=token_budget,
            beside=partial(self._neighbours, ranking) if profile.expand else lambda hit: (),
        )
        chosen = within(selection.hits, abroad, token_budget)
        fits, known = {h.chunk_id for h in abroad}, {h.chunk_id for h in ranking.hits}
        for hit in ranking.translated:
            if hit.chunk_id not in known:
                beaten = f"other_languages: {profile.other_languages} of its language are better"
                over = f"token_budget: {token_budget} tokens"
                dropped[hit.chunk_id] = over if hit.chunk_id in fits else beaten
        dropped |= selection.dropped
        if profile.parents is not None:
            families = ranking.served.arms.families
            hits, chosen = chosen, with_parents(chosen, profile.parents, families, token_budget)
            leave(chosen, "parents: its parent was handed on")
        if profile.trim is not None:
            for hit in every:
                why = selection.dropped.get(hit.parent_id or "")
                if any(holds(whole, hit) for whole in chosen):
                    why = "trim: its parent was handed on"
                dropped |= {hit.chunk_id: why} if why else {}
        handed_on = {hit.chunk_id for hit in chosen}
        return Selection(chosen, {i: why for i, why in dropped.items() if i not in handed_on})

    def _abroad(self, hits: Sequence[Hit], ranking: Ranking) -> list[Hit]:
        most, language = self.profile.other_languages, ranking.language
        if most is None or language is None:
            return []
        if self.profile.translate:
            hits = ranking.translated
            if self.profile.dedupe is not None:
                hits = dedupe(hits, self.profile.dedupe)
        return of_other_languages(hits, language, most, ranking.served.languages.by_document)

    def _neighbours(self, ranking: Ranking, hit: Hit) -> list[Hit]:
        expand = self.profile.expand
        assert expand is not None
        least = None if expand.share is None else expand.share * ranking.best_score
        return neighbours(hit, ranking.beside, expand, least)

    def _embed(self) -> Embedder:
        with self._lock:
            if self._embedder is None:
                self._embedder = self._load_embedder()
            return self._embedder

    def _rerank(self, settings: Rerank) -> Scorer:
        with self._lock:
            if self._reranker is None:
                self._reranker = settings.scorer(self._workspace.caches)
            return self._reranker

    def _follow(self) -> _Served:
        with self._lock:
            index, now = LanceIndex(self._workspace, self._index_version), time.monotonic()
            if self._at is not None:
                if self._served is None:
                    table, then = index.open_at(self._at)
                    self._served = self._open(index, table, then.version)
            elif self._served is None or now - self._looked > FOLLOW_SECONDS:
                version = index.served_version()
                if version is None:
                    raise CorpusError(
                        f"index {self._index_version} was never published. "
                        "Build chunk_embeddings first."
                    )
                if self._served is None or self._served.version != version:
                    self._served = self._open(index, index.open_served(), version)
                self._looked = now
            return self._served

    def _open(self, index: LanceIndex, table: Any, version: int) -> _Served:
        weigher = None
        if self.profile.search != "vector":
            weigher = Weigher(word_frequencies(self._workspace, index.name, table))
        pages, languages = Pages(self._workspace), Languages(self._workspace)
        translator = None
        if self.profile.translate and weigher is not None:
            conditions, workspace = languages.conditions, self._workspace
            translator = Translator(workspace, table, weigher, conditions, self._embed)
        return _Served(version, SearchArms(table), weigher, pages, languages, translator)


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(8, thread_name_prefix="full-text")


def _explained(ranking: Ranking, selection: Selection) -> tuple[Hit, ...]:
    """What was handed on, then the other candidates, best first, with why they were not."""
    candidates = {hit.chunk_id: hit for hit in (*ranking.translated, *ranking.hits)}
    ranked = dict.fromkeys(hit.chunk_id for hit in (*ranking.hits, *ranking.translated))
    dropped = [(candidates[i], selection.dropped[i]) for i in ranked if i in selection.dropped]
    others = (replace(hit, dropped=why) for hit, why in (*dropped, *ranking.dropped.values()))
    return (*selection.hits, *others)


def _own_score(hit: Hit) -> Hit:
    """Of one arm: the score that arm gives."""
    score = hit.vector_score if hit.bm25_score is None else hit.bm25_score
    return replace(hit, score=score or 0.0)


def _place_score(placed: dict[str, Hit], hit: Hit) -> Hit:
    """Places are of candidates only; another chunk has none."""
    return placed.get(hit.chunk_id, hit)
