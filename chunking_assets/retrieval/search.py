"""The search arms: nearest vectors, and BM25 full text, over one LanceDB table.

The vector arm reads every vector (exact) until an ANN index exists. The full-text arm looks at
prefix and text. Both return hits in descending order of their own score, equal ones in text order:
the order rows happen to be stored in, which depends on the history of edits, decides nothing.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import combinations
from math import fsum
from operator import attrgetter
from typing import Any

import numpy as np

from chunking_assets.chunk_embeddings.lance_index import sql_literal
from chunking_assets.retrieval.hit import Hit
from chunking_assets.retrieval.parents import Family

TEXT_COLUMN, VECTOR_COLUMN = "embed_text", "vector"
COLUMNS = (
    "chunk_id", "doc_id", "ordinal", "start", "end", "prefix", "text", "heading_path", "n_tokens",
    "level", "parent_id",
)  # fmt: skip
WORD = re.compile(r"[^\W_]+")
COSINE_DECIMALS, BM25_DECIMALS = 6, 4
"""As exact as float32 sums are whatever the layout of the rows: beyond lies noise, and an order
made of noise would change with every compaction."""
WIDEST_GAP = 200
"""White space between two chunks that still makes them neighbours, in characters."""
UNSEEN_TERM_SCORE = 12.0
"""What a term no chunk contains could have scored: about the idf of one chunk in 10^5."""


class SearchArms:
    """The two arms over one version of one table."""

    def __init__(self, table: Any) -> None:
        self._table = table
        # Parents are only read; an index without them is asked without a filter, which is faster.
        self._where = "searched" if table.count_rows("NOT searched") else None
        self._has_levels = table.count_rows("level > 0") > 0
        self._best_score = lru_cache(maxsize=100_000)(self._search_best_score)

    def vector(self, query: np.ndarray, limit: int) -> list[Hit]:
        """The `limit` chunks with the highest cosine to `query` (float32, (dimensions,))."""
        search = self._table.search(query, vector_column_name=VECTOR_COLUMN)
        rows = (
            self._searched(search.distance_type("cosine"))
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
        found = self._searched(self._table.search(match, query_type="fts")).limit(limit + 1)
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

    def _searched(self, query: Any) -> Any:
        return query if self._where is None else query.where(self._where)

    def attainable_bm25(self, question: str) -> float:
        """The BM25 score of an imagined chunk that is the best one for each word of the question.

        The yardstick for a full-text score: the best hit of a question whose words match nowhere
        much stays low, where dividing by the best hit's own score would make it perfect.
        """
        return fsum(self._best_score(word) for word in {*WORD.findall(question.lower())})

    def families(self, hits: Sequence[Hit]) -> dict[str, Family]:
        """The parents of these hits with the number of their children, by the parent's chunk_id."""
        named = sorted({hit.parent_id for hit in hits if hit.parent_id is not None})
        if not named:
            return {}
        # The table has an index on doc_id; the rest is looked for in these documents only.
        documents = f"doc_id IN ({_listed({hit.doc_id for hit in hits})})"
        parents = self._rows(f"{documents} AND chunk_id IN ({_listed(named)})", COLUMNS)
        children = self._rows(f"{documents} AND parent_id IN ({_listed(named)})", ["parent_id"])
        counts = Counter(row["parent_id"] for row in children)
        return {row["chunk_id"]: Family(_hit(row, 0.0), counts[row["chunk_id"]]) for row in parents}

    def neighbours(self, hits: Sequence[Hit]) -> set[frozenset[str]]:
        """The pairs of chunk_ids with nothing but white space between them.

        Asked where an index has several levels: chunks of other levels, that stand between two
        neighbours there, make their ordinals say nothing.
        """
        gaps: dict[frozenset[str], tuple[str, int, int]] = {}
        by_document = defaultdict(list)
        for hit in hits if self._has_levels else ():
            by_document[hit.doc_id].append(hit)
        for doc_id, found in by_document.items():
            for one, other in combinations(sorted(found, key=attrgetter("start")), 2):
                if 0 < other.start - one.end <= WIDEST_GAP:
                    gap = doc_id, one.end, other.start
                    gaps[frozenset((one.chunk_id, other.chunk_id))] = gap
        if not gaps:
            return set()
        # The finest chunks hold all of the text.
        reaching = " OR ".join(
            f"(doc_id = {sql_literal(doc_id)} AND start < {end} AND `end` > {start})"
            for doc_id, start, end in sorted({*gaps.values()})
        )
        finest = self._rows(f"level = 0 AND ({reaching})", ["doc_id", "start", "end", "text"])
        return {
            pair
            for pair, (doc_id, start, end) in gaps.items()
            if not any(
                row["text"][max(0, start - row["start"]) : max(0, end - row["start"])].strip()
                for row in finest
                if row["doc_id"] == doc_id
            )
        }

    def _rows(self, where: str, columns: Sequence[str]) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = (
            self._table.search().where(where).select(list(columns)).limit(None).to_list()
        )
        return found

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


def _listed(values: Iterable[str]) -> str:
    return ", ".join(map(sql_literal, sorted(values)))


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
