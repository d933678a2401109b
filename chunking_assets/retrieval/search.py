"""The search arms: nearest vectors, and full text, over one LanceDB table.

The vector arm reads every vector (exact) until an ANN index exists, whose candidates are ranked by
their exact cosines; 8-bit integers are compared in memory, all of them (`int8.py`). The full-text
arm finds candidates in prefix and text; `bm25.py` scores them. Both return hits in descending order
of their own score, equal ones in text order: the order rows happen to be stored in, which depends
on the history of edits, decides nothing.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations
from operator import attrgetter
from threading import Lock
from typing import Any

import numpy as np

from chunking_assets.chunk_embeddings.ann import EVERY_GRAPH, has_ann_index
from chunking_assets.chunk_embeddings.int8 import Int8Vectors, holds_int8
from chunking_assets.chunk_embeddings.lance_index import sql_literal
from chunking_assets.retrieval.bm25 import Bm25Query
from chunking_assets.retrieval.expand import Place
from chunking_assets.retrieval.hit import Hit
from chunking_assets.retrieval.parents import Family
from chunking_assets.storage import asking_bucket

TEXT_COLUMN, VECTOR_COLUMN = "embed_text", "vector"
COLUMNS = (
    "chunk_id", "doc_id", "ordinal", "start", "end", "prefix", "text", "heading_path", "n_tokens",
    "level", "parent_id",
)  # fmt: skip
COSINE_DECIMALS, BM25_DECIMALS = 6, 4
"""As exact as float32 sums are whatever the layout of the rows: beyond lies noise, and an order
made of noise would change with every compaction."""
WIDEST_GAP = 200
"""White space between two chunks that still makes them neighbours, in characters."""
ANN_SEARCH, ANN_REFINE = 300, 2
"""What an HNSW search keeps at least, and how many times `limit` vectors are read for their exact
cosines: recall is then 0.99 or better (`benchmarks/search.py`)."""

Vectors = dict[str, np.ndarray]
"""By chunk_id."""


class Question:
    """A question as the arms ask it: its vector, its weighed words, and what may answer.

    `query` is float32 (dimensions,), None where vectors are not searched; `bm25` None where words
    are not. Hits it scores know the scores of whichever it has.
    """

    def __init__(
        self, query: np.ndarray | None, bm25: Bm25Query | None, where: str | None = None
    ) -> None:
        self.query, self.bm25, self.where = query, bm25, where
        self.vectors: Vectors = {}

    def within(self, where: str, bm25: Bm25Query | None = None) -> "Question":
        """The same question with one more condition, and perhaps in other words; vectors found for
        it are known to both."""
        both = where if self.where is None else f"{self.where} AND {where}"
        narrowed = Question(self.query, bm25 or self.bm25, both)
        narrowed.vectors = self.vectors
        return narrowed


class SearchArms:
    """The two arms over one version of one table."""

    def __init__(self, table: Any) -> None:
        self._table = table
        with asking_bucket(f"table {table.name}"):
            # Parents are only read; an index without them is asked without a filter: faster.
            self._where = "searched" if table.count_rows("NOT searched") else None
            self._has_levels = table.count_rows("level > 0") > 0
            self._ann = has_ann_index(table)
        self._in_memory: Int8Vectors | None = None
        self._is_int8, self._reading = holds_int8(table), Lock()

    def vector(self, question: Question, limit: int) -> list[Hit]:
        """The `limit` chunks with the highest cosine to the question."""
        if self._is_int8:
            return best_of(self._hits(self._nearest(question, limit + 1), question), limit)
        search = self._table.search(question.query, vector_column_name=VECTOR_COLUMN)
        search = self._searched(search.distance_type("cosine"), question)
        if self._ann:
            kept = max(ANN_SEARCH, ANN_REFINE * (limit + 1))
            search = search.nprobes(EVERY_GRAPH).ef(kept).refine_factor(ANN_REFINE)
        rows = self._found(search.limit(limit + 1).select([*self._read(question), "_distance"]))
        return best_of(self._hits(rows, question), limit)

    def _nearest(self, question: Question, limit: int) -> Any:
        among = None
        if question.where is not None:
            allowed = self._searched(self._table.search(), question).select(["_rowid"])
            among = self._found(allowed.with_row_id(True).limit(None))["_rowid"].to_numpy()
        with self._reading, asking_bucket(f"table {self._table.name}"):
            if self._in_memory is None:
                self._in_memory = Int8Vectors(self._table)
        assert question.query is not None
        nearest = self._in_memory.nearest(question.query, limit, among)
        return self._found(self._table.take_row_ids(nearest.tolist()).select(self._read(question)))

    def bm25(self, question: Question, limit: int) -> list[Hit]:
        """The `limit` chunks that the full-text index ranks first, by their BM25 score."""
        from lancedb.query import MatchQuery

        assert question.bm25 is not None
        if not question.bm25.terms:
            return []
        match = MatchQuery(question.bm25.asked, TEXT_COLUMN)  # type: ignore[call-arg]  # defaults
        search = self._searched(self._table.search(match, query_type="fts"), question)
        rows = self._found(search.limit(limit + 1).select([*self._read(question), "_score"]))
        engine = [round(score, BM25_DECIMALS) for score in rows["_score"].to_pylist()]
        surely = best_of(self._hits(rows, question), limit, engine)
        return sorted(surely, key=lambda hit: (-(hit.bm25_score or 0.0), *hit.rank_key[1:]))

    def beside(self, hits: Sequence[Hit], reach: int, question: Question) -> dict[Place, Hit]:
        """The chunks up to `reach` places before and after these, and they themselves."""
        places: dict[str, set[int]] = defaultdict(set)
        for hit in hits:
            places[hit.doc_id] |= {*range(hit.ordinal - reach, hit.ordinal + reach + 1)}
        if not places:
            return {}
        # The first condition has an index, which the store does not look for inside an OR.
        among = " OR ".join(
            f"(doc_id = {sql_literal(doc_id)} AND ordinal IN ({', '.join(map(str, sorted(at)))}))"
            for doc_id, at in sorted(places.items())
        )
        near = f"doc_id IN ({_listed(places)}) AND ({among})"
        search = self._searched(self._table.search(), question, near)
        rows = self._found(search.select(self._read(question)).limit(None))
        return {(hit.doc_id, hit.ordinal): hit for hit in self._hits(rows, question)}

    def _read(self, question: Question) -> list[str]:
        scored = [TEXT_COLUMN] if question.bm25 else []
        return [*COLUMNS, *scored, *([VECTOR_COLUMN] if question.query is not None else [])]

    def _hits(self, rows: Any, question: Question) -> list[Hit]:
        """Rows as hits that know their scores, the vector arm's first; their vectors are kept with
        the question."""
        cosines: Sequence[float | None] = [None] * rows.num_rows
        if question.query is not None and rows.num_rows:
            flat = rows[VECTOR_COLUMN].combine_chunks().flatten().to_numpy()
            vectors = flat.reshape(rows.num_rows, -1)
            if vectors.dtype != np.float32:  # rounded, so not quite of unit length
                vectors = _unit(vectors.astype(np.float32))
            cosines = [round(c, COSINE_DECIMALS) for c in (vectors @ question.query).tolist()]
            question.vectors |= zip(rows["chunk_id"].to_pylist(), vectors, strict=True)
        bm25: Sequence[float | None] = [None] * rows.num_rows
        if question.bm25 is not None:
            texts = rows[TEXT_COLUMN].to_pylist()
            bm25 = [round(question.bm25.score(text), BM25_DECIMALS) for text in texts]
        return [
            _hit(row, cosine if cosine is not None else score, cosine, score)
            for row, cosine, score in zip(
                rows.select(COLUMNS).to_pylist(), cosines, bm25, strict=True
            )
        ]

    def _searched(self, search: Any, question: Question, also: str | None = None) -> Any:
        conditions = [c for c in (self._where, question.where, also) if c is not None]
        return search.where(" AND ".join(conditions)) if conditions else search

    def parents(self, hits: Sequence[Hit]) -> dict[str, Hit]:
        """The parents of these hits, by chunk_id."""
        return {row["chunk_id"]: _hit(row) for row in self._related("chunk_id", hits, COLUMNS)}

    def families(self, hits: Sequence[Hit]) -> dict[str, Family]:
        """The parents of these hits with the number of their children, by the parent's chunk_id."""
        children = self._related("parent_id", hits, ["parent_id"])
        counts = Counter(row["parent_id"] for row in children)
        return {i: Family(parent, counts[i]) for i, parent in self.parents(hits).items()}

    def _related(
        self, column: str, hits: Sequence[Hit], columns: Sequence[str]
    ) -> list[dict[str, Any]]:
        """The rows of which this column names a parent of these hits."""
        named = sorted({hit.parent_id for hit in hits if hit.parent_id is not None})
        if not named:
            return []
        # The table has an index on doc_id; the rest is looked for in these documents only.
        documents = f"doc_id IN ({_listed({hit.doc_id for hit in hits})})"
        return self._rows(f"{documents} AND {column} IN ({_listed(named)})", columns)

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
        search = self._table.search().where(where).select(list(columns)).limit(None)
        found: list[dict[str, Any]] = self._found(search).to_pylist()
        return found

    def _found(self, search: Any) -> Any:
        """The rows of a search as an Arrow table."""
        with asking_bucket(f"table {self._table.name}"):
            return search.to_arrow()


def texts_within(table: Any, where: str) -> Iterator[str]:
    """What is embedded of the searched chunks that a condition leaves."""
    query = table.search().where(f"searched AND {where}").select([TEXT_COLUMN]).limit(None)
    with asking_bucket(f"table {table.name}"):
        for batch in query.to_batches():
            yield from batch[TEXT_COLUMN].to_pylist()


def best_of(hits: Sequence[Hit], limit: int, scores: Sequence[float] | None = None) -> list[Hit]:
    """The `limit` best of `limit + 1` hits, in an order that only scores and places decide.

    `scores` are those that the engine found them by (None: the hits' own). If hits of equal score
    lie on both sides of the limit, which of them the engine returned is chance: then none of that
    score is taken, unless all have it.
    """
    found = zip(scores or [hit.score for hit in hits], hits, strict=True)
    ordered = sorted(found, key=lambda pair: (-pair[0], *pair[1].rank_key[1:]))
    if len(ordered) > limit:
        beyond = ordered[limit][0]
        ordered = [pair for pair in ordered if pair[0] > beyond] or ordered[:limit]
    return [hit for _, hit in ordered]


def _unit(vectors: np.ndarray) -> np.ndarray:
    """Of length 1; what damage left without a direction as zeros."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    usable = np.isfinite(lengths) & (lengths > 0)
    unit: np.ndarray = np.divide(vectors, lengths, out=np.zeros_like(vectors), where=usable)
    return unit


def _listed(values: Iterable[str]) -> str:
    return ", ".join(map(sql_literal, sorted(values)))


def _hit(
    row: dict[str, Any],
    score: float | None = None,
    vector_score: float | None = None,
    bm25_score: float | None = None,
) -> Hit:
    return Hit(
        **{column: value for column, value in row.items() if column != "heading_path"},
        heading_path=tuple(row["heading_path"] or ()),
        score=score or 0.0,
        vector_score=vector_score,
        bm25_score=bm25_score,
    )
