"""Answer every gold question with a strategy, through the code that serves, and score it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from chunking_assets.chunk_embeddings.build import EMBEDDED_CHUNKS, ledger
from chunking_assets.embedding_models.metered import MeteredQueries, Tell
from chunking_assets.embedding_models.model import Embedder, Progress
from chunking_assets.embedding_models.vector_cache import VECTORS
from chunking_assets.keys import digest
from chunking_assets.retrieval.hit import Hit
from chunking_assets.retrieval.open import open_strategy
from chunking_assets.retrieval.ranking import Ranking
from chunking_assets.retrieval.reader import Reader
from chunking_assets.retrieval.strategy import Strategy
from chunking_assets.workspace import Workspace
from evals.gold_questions.build import Gold, read_gold
from evals.retrieval_scores.cutoff import Cutoff
from evals.retrieval_scores.registry import METRICS
from evals.retrieval_scores.score import evidence_by_question, score_question
from evals.retrieval_scores.spans import Passage

RETRIEVAL_SCORES, RETRIEVED_CHUNKS = "retrieval_scores", "retrieved_chunks"
SERVED_PASSAGES = "served_passages"

SCORER = 1
"""Raised when the same passages and evidence would be scored otherwise."""

CUTOFFS = ("5", "10", "500t", "1000t", "2000t", "served")
RECORDED_RANKS = 20
SHOWN = ("recall@5", "precision@5", "mrr@10", "ndcg@10", "recall@1000t", "recall@served")

SCORES_SCHEMA = pl.Schema(
    {
        "strategy": pl.String,
        "strategy_digest": pl.String,
        "question_id": pl.String,
        "metric": pl.String,
        "cutoff": pl.String,
        "value": pl.Float64,
    }
)
RETRIEVED_SCHEMA = pl.Schema(
    {
        "strategy": pl.String,
        "question_id": pl.String,
        "rank": pl.Int64,
        "chunk_id": pl.String,
        "doc_id": pl.String,
        "start": pl.Int64,
        "end": pl.Int64,
        "n_tokens": pl.Int64,
        "score": pl.Float64,
        "vector_score": pl.Float64,
        "bm25_score": pl.Float64,
    }
)
SERVED_SCHEMA = pl.Schema(
    {
        "strategy": pl.String,
        "question_id": pl.String,
        "rank": pl.Int64,
        "doc_id": pl.String,
        "text": pl.String,
        "n_tokens": pl.Int64,
    }
)


@dataclass(frozen=True)
class ScoresUpdate:
    """Mean scores of one strategy; `asked` is 0 when nothing had changed."""

    strategy: str
    version: str
    rows: int
    asked: int
    means: dict[str, float]


def update_retrieval_scores(
    workspace: Workspace,
    strategy: Strategy,
    shards: Sequence[str],
    embedder: Callable[[str], Embedder],
    progress: Progress | None = None,
    tell: Tell | None = None,
    *,
    again: bool = False,
) -> ScoresUpdate:
    """Score one strategy on the gold questions as they are now, unless nothing changed.

    `again` scores also what did not change. `tell` is told what the vectors of the questions took,
    also if it then fails.

    Raises:
        CorpusError: the gold questions or the index are not there yet.
    """
    gold = read_gold(workspace)
    inputs = scores_inputs(workspace, strategy, shards, gold)
    table = workspace.table(RETRIEVAL_SCORES)
    asked = 0
    if again or scored_from(workspace, strategy.name) != inputs:
        name, folder = strategy.index.model_name, workspace.caches / VECTORS
        queries: list[MeteredQueries] = []

        def load() -> MeteredQueries:
            queries.append(MeteredQueries(embedder(name), folder, name, strategy.name))
            return queries[-1]

        reader = open_strategy(workspace, strategy, load)
        try:
            scores, retrieved, served, asked = _ask(reader, strategy, gold, progress)
        finally:
            for sent in queries:
                if tell is not None:
                    tell(sent.spent)
        workspace.table(RETRIEVED_CHUNKS).replace(retrieved, strategy.name, version=inputs)
        workspace.table(SERVED_PASSAGES).replace(served, strategy.name, version=inputs)
        table.replace(scores, strategy.name, version=inputs, details=measurement(gold.version))
    rows = table.read(strategy.name)
    assert rows is not None
    return ScoresUpdate(strategy.name, inputs, rows.height, asked, _means(rows))


def measurement(golden_version: str) -> dict[str, object]:
    """What scores must have in common to be compared: kept with each strategy's."""
    return {
        "golden_version": golden_version,
        "scorer": SCORER,
        "cutoffs": list(CUTOFFS),
        "metrics": sorted(METRICS),
    }


def scores_inputs(
    workspace: Workspace, strategy: Strategy, shards: Sequence[str], gold: Gold
) -> str:
    """The version that a strategy's scores have if they are of the index and questions as they are
    now."""
    indexed = [
        (shard, manifest.version)
        for shard in shards
        if (
            manifest := workspace.table(EMBEDDED_CHUNKS).manifest(
                ledger(strategy.index.name, shard)
            )
        )
    ]
    measured = measurement(gold.version)
    return digest("retrieval_scores", measured, strategy.digest, gold.content, indexed)


def scored_from(workspace: Workspace, strategy: str) -> str | None:
    """The version of a strategy's scores, if all three tables are there and of one run."""
    names = (RETRIEVAL_SCORES, RETRIEVED_CHUNKS, SERVED_PASSAGES)
    manifests = [workspace.table(name).manifest(strategy) for name in names]
    versions = {manifest.version if manifest else None for manifest in manifests}
    return versions.pop() if len(versions) == 1 else None


def _ask(
    reader: Reader, strategy: Strategy, gold: Gold, progress: Progress | None
) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame, int]:
    declared = {"strategy": strategy.name, "strategy_digest": strategy.digest}
    evidence = evidence_by_question(gold.evidence)
    questions = gold.questions.filter(pl.col("status") != "stale")
    scores: list[dict[str, Any]] = []
    retrieved: list[dict[str, Any]] = []
    served: list[dict[str, Any]] = []
    for number, (question_id, question, status) in enumerate(
        questions.select("question_id", "question", "status").iter_rows(), 1
    ):
        ranked = reader.rank(question)
        key = {"strategy": strategy.name, "question_id": question_id}
        retrieved += [{**key, **_row(rank, hit)} for rank, hit in _numbered(ranked)]
        served += [
            {
                **key,
                "rank": rank,
                "doc_id": passage.doc_id,
                "text": passage.text,
                "n_tokens": passage.n_tokens,
            }
            for rank, passage in enumerate(reader.passages(reader.chosen(ranked), ranked), 1)
        ]
        if status == "active":
            by_cutoff = {
                cutoff: spans_of(hits_within(reader, ranked, cutoff)) for cutoff in CUTOFFS
            }
            for (metric, cutoff), value in score_question(by_cutoff, evidence[question_id]).items():
                row = {"question_id": question_id, "metric": metric, "cutoff": cutoff}
                scores.append({**declared, **row, "value": value})
        if progress:
            progress(number, questions.height)
    return (
        pl.DataFrame(scores, schema=SCORES_SCHEMA),
        pl.DataFrame(retrieved, schema=RETRIEVED_SCHEMA),
        pl.DataFrame(served, schema=SERVED_SCHEMA),
        questions.height,
    )


def hits_within(reader: Reader, ranked: Ranking, cutoff: str) -> list[Hit]:
    """What the reader would choose at a cutoff: its own limits, another k, or a token budget."""
    limit = Cutoff.parse(cutoff)
    return reader.chosen(ranked, k=limit.passages, token_budget=limit.tokens)


def _numbered(ranked: Ranking) -> list[tuple[int, Hit]]:
    return list(enumerate(ranked.hits[:RECORDED_RANKS], 1))


def _row(rank: int, hit: Hit) -> dict[str, Any]:
    columns = RETRIEVED_SCHEMA.keys() - {"strategy", "question_id", "rank"}
    return {"rank": rank, **{column: getattr(hit, column) for column in columns}}


def spans_of(hits: list[Hit]) -> list[Passage]:
    """Chunks as the scorer takes them. Joining neighbours is left out: it would blur the ranks."""
    return [Passage(hit.doc_id, hit.start, hit.end, hit.n_tokens) for hit in hits]


def _means(rows: pl.DataFrame) -> dict[str, float]:
    means = rows.group_by(pl.concat_str("metric", "cutoff", separator="@")).agg(
        pl.col("value").mean()
    )
    found = dict(means.iter_rows())
    return {name: found[name] for name in SHOWN if name in found}
