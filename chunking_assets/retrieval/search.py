"""The search arms: nearest vectors, and BM25 full text, over one LanceDB table.

The vector arm reads every vector (exact) until an ANN index exists. The full-text arm looks at
prefix and text. Both return hits in descending order of their own score, equal ones in text order:
the order rows happen to be stored in, which depends on the history of edits, decides nothing.
"""

import re
from collections.abc import Sequence
from functools import lru_cache
from math import fsum
from operator import attrgetter
from typing import Any

import numpy as np

from chunking_assets.retrieval.hit import Hit

TEXT_COLUMN, VECTOR_COLUMN = "embed_text", "vector"
COLUMNS = (
    "chunk_id", "doc_id", "ordinal", "start", "end", "prefix", "text", "heading_path", "n_tokens",
)  # fmt: skip
WORD = re.compile(r"[^\W_]+")
COSINE_DECIMALS, BM25_DECIMALS = 6, 4
"""As exact as float32 sums are whatever the layout of the rows: beyond lies noise, and an order
made of noise would change with every compaction."""
UNSEEN_TERM_SCORE = 12.0
"""What a term no chunk contains could have scored: about the idf of one chunk in 10^5."""


class SearchArms:
    """The two arms over one version of one table."""

    def __init__(self, table: Any) -> None:
        self._table = table
        self._best_score = lru_cache(maxsize=100_000)(self._search_best_score)

    def vector(self, query: np.ndarray, limit: int) -> list[Hit]:
        """The `limit` chunks with the highest cosine to `query` (float32, (dimensions,))."""
        rows = (
            self._table.search(query, vector_column_name=VECTOR_COLUMN)
            .distance_type("cosine")
            .limit(limit + 1)
            .select([*COLUMNS, "_distance"])
            .to_list()
        )
        cosines = [round(1.0 - row["_distance"], COSINE_DECIMALS) for row in rows]
        hits = [_hit(r, c, vector_score=c) for r, c in zip(rows, cosines, strict=True)]
        return best_of(hits, limit)

    def bm25(self, question: str, limit: int, query: np.ndarray | None = None) -> list[Hit]:
        """The `limit` chunks with the highest BM25 score; their cosine too if `query` is given."""
        from lancedb.query import MatchQuery

        if not WORD.search(question):
            return []
        columns = [*COLUMNS, "_score", *([] if query is None else [VECTOR_COLUMN])]
        match = MatchQuery(question, TEXT_COLUMN)  # type: ignore[call-arg]  # the rest has defaults
        found = self._table.search(match, query_type="fts").limit(limit + 1)
        rows = found.select(columns).to_list()
        cosines: Sequence[float | None] = [None] * len(rows)
        if query is not None and rows:
            exact = np.asarray([r[VECTOR_COLUMN] for r in rows], np.float32) @ query
            cosines = [round(cosine, COSINE_DECIMALS) for cosine in exact.tolist()]
        scores = [round(row["_score"], BM25_DECIMALS) for row in rows]
        hits = [
            _hit(row, score, vector_score=cosine, bm25_score=score)
            for row, score, cosine in zip(rows, scores, cosines, strict=True)
        ]
        return best_of(hits, limit)

    def attainable_bm25(self, question: str) -> float:
        """The BM25 score of an imagined chunk that is the best one for each word of the question.

        The yardstick for a full-text score: the best hit of a question whose words match nowhere
        much stays low, where dividing by the best hit's own score would make it perfect.
        """
        return fsum(self._best_score(word) for word in {*WORD.findall(question.lower())})

    def _search_best_score(self, word: str) -> float:
        best = self.bm25(word, 1)
        return best[0].score if best else UNSEEN_TERM_SCORE


def best_of(hits: Sequence[Hit], limit: int) -> list[Hit]:
    """The `limit` best of `limit + 1` hits, in an order that only scores and places decide.

    If hits of equal score lie on both sides of the limit, which of them the engine returned is
    chance: then none of that score is taken, unless all have it.
    """
    ordered = sorted(hits, key=attrgetter("rank_key"))
    if len(ordered) <= limit:
        return ordered
    surely = [hit for hit in ordered if hit.score > ordered[limit].score]
    return surely or ordered[:limit]


def _hit(
    row: dict[str, Any],
    score: float,
    *,
    vector_score: float | None = None,
    bm25_score: float | None = None,
) -> Hit:
    return Hit(
        **{column: row[column] for column in COLUMNS if column != "heading_path"},
        heading_path=tuple(row["heading_path"] or ()),
        score=score,
        vector_score=vector_score,
        bm25_score=bm25_score,
    )
