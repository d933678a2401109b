"""The reader of an index: the one way questions are answered, in production and in the scores.

A strategy's profile composes the steps: search, fuse, dedupe, select, parents, merge. The reader
holds the table at the version its tag names and follows the tag when the index is published anew.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock

from chunking_assets.chunk_embeddings.lance_index import LanceIndex
from chunking_assets.embedding_models.model import Embedder
from chunking_assets.errors import CorpusError
from chunking_assets.retrieval.dedupe import dedupe
from chunking_assets.retrieval.fuse import fuse
from chunking_assets.retrieval.hit import Hit, Passage
from chunking_assets.retrieval.parents import with_parents
from chunking_assets.retrieval.profile import RetrievalProfile
from chunking_assets.retrieval.search import SearchArms
from chunking_assets.retrieval.select import merge, select
from chunking_assets.workspace import Workspace

FOLLOW_SECONDS = 0.5
"""How old the reader's knowledge of the published version may be."""


@dataclass(frozen=True)
class _Served:
    version: int
    arms: SearchArms


class Reader:
    """Answers questions from one index version with one retrieval profile; safe for threads."""

    def __init__(
        self,
        workspace: Workspace,
        index_version: str,
        profile: RetrievalProfile,
        embedder: Callable[[], Embedder],
    ) -> None:
        self.profile = profile
        self._workspace, self._index_version = workspace, index_version
        self._load_embedder = embedder
        self._embedder: Embedder | None = None
        self._served: _Served | None = None
        self._looked = 0.0
        self._lock = Lock()

    def rank(self, question: str) -> list[Hit]:
        """Every candidate for the question, best first, before any limit of the profile.

        Raises:
            CorpusError: the question is empty, or the index was never published.
        """
        if not question.strip():
            raise CorpusError("The question is empty. Ask something.")
        arms, profile = self._arms(), self.profile
        limit = max(profile.candidates, profile.k)
        if profile.search == "bm25":
            return arms.bm25(question, limit)
        query = self._embed().embed_queries([question])[0]
        if profile.search == "vector":
            return arms.vector(query, limit)
        return fuse(
            arms.vector(query, limit),
            arms.bm25(question, limit, query),
            arms.attainable_bm25(question),
            profile.vector_weight,
        )

    def search(self, question: str) -> list[Passage]:
        """The passages the profile hands on for a question, best first."""
        return self.passages(self.chosen(self.rank(question)))

    def chosen(
        self, ranked: list[Hit], *, k: int | None = None, token_budget: int | None = None
    ) -> list[Hit]:
        """The hits the profile keeps of a ranking, at its own limits or at another k or budget.

        A `token_budget` given here replaces the profile's k: as many chunks as fit.
        """
        profile = self.profile
        if token_budget is None:
            k, token_budget = k or profile.k, profile.token_budget
        else:
            k = None
        if profile.dedupe is not None:
            ranked = dedupe(ranked, profile.dedupe)
        hits = select(ranked, k=k, cut=profile.cut, token_budget=token_budget)
        if profile.parents is not None:
            hits = with_parents(hits, profile.parents, self._arms().families, token_budget)
        return hits

    def passages(self, hits: list[Hit]) -> list[Passage]:
        if not self.profile.merge:
            return merge(hits, adjacent=False)
        return merge(hits, neighbours=self._arms().neighbours(hits))

    def _embed(self) -> Embedder:
        with self._lock:
            if self._embedder is None:
                self._embedder = self._load_embedder()
            return self._embedder

    def _arms(self) -> SearchArms:
        with self._lock:
            now = time.monotonic()
            if self._served is None or now - self._looked > FOLLOW_SECONDS:
                index = LanceIndex(self._workspace, self._index_version)
                version = index.served_version()
                if version is None:
                    raise CorpusError(
                        f"index {self._index_version} was never published. "
                        "Build chunk_embeddings first."
                    )
                if self._served is None or self._served.version != version:
                    self._served = _Served(version, SearchArms(index.open_served()))
                self._looked = now
            return self._served.arms
