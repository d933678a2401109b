"""A small workspace in which every table has rows, and its published database."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import duckdb
import polars as pl
import pytest

from chunking_assets.workspace import Workspace
from evals.database import publish, table_columns

PARQUET = {"start_char": "start", "end_char": "end", "recorded_at": "at", "requested_by": "by"}
TYPES = {
    "bigint": pl.Int64(),
    "double": pl.Float64(),
    "boolean": pl.Boolean(),
    "varchar[]": pl.List(pl.String()),
    "timestamptz": pl.Datetime("us", "UTC"),
}
DAY_1, DAY_2, DAY_3 = (datetime(2026, 11, day, 12, tzinfo=UTC) for day in (1, 2, 3))


def _strategies() -> pl.DataFrame:
    return pl.DataFrame(
        {
            "strategy": ["small", "large", "never-run"],
            "chunker_version": ["recursive-200@1", "recursive-400@1", "markdown-400@1"],
            "chunker_kind": ["recursive", "recursive", "markdown"],
            "embedding_model": ["e5-small"] * 3,
            "index_version": [
                f"{version}+e5-small"
                for version in ("recursive-200@1", "recursive-400@1", "markdown-400@1")
            ],
            "profile": ["vector-5", "hybrid-5", "hybrid-5"],
            "search": ["vector", "hybrid", "hybrid"],
            "k": [5, 5, 5],
            "settings": ['{"profile": {"k": 5}}'] * 3,
            "strategy_digest": ["s1", "l2", "n1"],
        }
    )


def _declared_indexes() -> pl.DataFrame:
    return pl.DataFrame(
        {
            "index_version": ["recursive-200@1+e5-small", "markdown-400@1+e5-small"],
            "chunker_version": ["recursive-200@1", "markdown-400@1"],
            "chunker_kind": ["recursive", "markdown"],
            "embedding_model": ["e5-small"] * 2,
            "model_kind": ["e5-small"] * 2,
            "precision": ["float32"] * 2,
            "dimensions": [384, None],
            "revision": ["w1"] * 2,
            "fingerprint": ["f1"] * 2,
        }
    )


def _tables() -> dict[str, pl.DataFrame]:
    """The rows below; columns that no test here is about have no values."""
    return {name: _complete(name, rows) for name, rows in _rows().items()}


def _complete(table: str, rows: pl.DataFrame) -> pl.DataFrame:
    missing = [c for c in table_columns(table) if PARQUET.get(c.name, c.name) not in rows.columns]
    return rows.with_columns(
        pl.lit(None, dtype=TYPES.get(c.type, pl.String())).alias(PARQUET.get(c.name, c.name))
        for c in missing
    )


def _rows() -> dict[str, pl.DataFrame]:
    """As the stages write them: `start`, `end`, `at` and `by` under their Parquet names."""
    return {
        "documents": pl.DataFrame(
            {
                "doc_id": ["kb/a.md", "kb/b.md", "kb/scan.pdf"],
                "collection": ["kb"] * 3,
                "path": ["a.md", "b.md", "scan.pdf"],
                "doc_rev": ["r1", "r2", "r3"],
                "media_type": ["text/markdown", "text/markdown", "application/pdf"],
                "size": [120, 80, 9000],
                "modified_at": [DAY_1, DAY_1, DAY_2],
                "status": ["ok", "ok", "unsupported"],
                "error": [None, None, "no reader for application/pdf"],
                "cure": [None, None, "Convert it to Markdown, or exclude it."],
                "parser": ["markdown", "markdown", ""],
                "parse_key": ["p1", "p2", "p3"],
                "text": ["Refunds take five days. Fees apply.", "Chargebacks take ten days.", ""],
                "text_sha": ["t1", "t2", "t3"],
                "elements_sha": ["e1", "e2", "e3"],
                "n_chars": [35, 26, 0],
                "n_elements": [1, 1, 0],
                "language": ["en", "en", None],
                "language_confidence": [0.99, 0.98, None],
            }
        ),
        "elements": pl.DataFrame(
            {
                "doc_id": ["kb/a.md", "kb/b.md"],
                "ordinal": [0, 0],
                "kind": ["paragraph", "paragraph"],
                "level": [0, 0],
                "start": [0, 0],
                "end": [35, 26],
                "heading_path": [["Refunds"], []],
                "language": pl.Series([None, None], dtype=pl.String),
                "attributes": ["{}", '{"page": 1}'],
            }
        ),
        "chunks": pl.DataFrame(
            {
                "chunker_version": ["recursive-200@1"] * 3 + ["recursive-400@1"],
                "chunk_id": ["c1", "c2", "c3", "c4"],
                "doc_id": ["kb/a.md", "kb/b.md", "kb/b.md", "kb/a.md"],
                "ordinal": [0, 0, 1, 0],
                "start": [0, 0, 13, 0],
                "end": [23, 13, 26, 35],
                "text": ["Refunds take five days.", "same", "same", "Refunds and fees."],
                "prefix": ["", "", "", "Refunds\n"],
                "cleaned": [None, None, None, "Refunds."],
                "n_tokens": [5, 3, 4, 9],
                "n_chars": [23, 4, 4, 17],
                "heading_path": [["Refunds"], [], [], ["Refunds"]],
                "level": [0, 0, 0, 0],
                "parent_id": pl.Series([None] * 4, dtype=pl.String),
                "searched": [True] * 4,
                "budget": [400, 400, 400, 400],
                "over_budget": [False, False, True, False],
                "remark": [None, None, "cut as by recursive: timeout", None],
                "text_sha": ["x1", "x2", "x2", "x4"],
                "chunkset_key": ["k1", "k2", "k2", "k4"],
            }
        ),
        "excluded_spans": pl.DataFrame(
            {
                "chunker_version": ["recursive-400@1"],
                "doc_id": ["kb/a.md"],
                "start": [23],
                "end": [35],
                "reason": ["boilerplate"],
            }
        ),
        "embedded_chunks": pl.DataFrame(
            {
                "index_version": ["recursive-200@1+e5-small"] * 3 + ["recursive-400@1+e5-small"],
                "chunk_id": ["c1", "c2", "c3", "c4"],
                "doc_id": ["kb/a.md", "kb/b.md", "kb/b.md", "kb/a.md"],
                "shard": ["kb"] * 4,
                "vec_key": ["v1", "v2", "v2", "v1"],
                "n_tokens": [8, 6, 6, 8],
                "n_windows": [1, 1, 1, 2],
            }
        ),
        "gold_questions": pl.DataFrame(
            {
                "question_id": ["q1", "q2", "q3", "q4"],
                "question": ["How long do refunds take?", "Prazo?", "Old?", "Weather?"],
                "answer": ["Five days.", "Dez dias.", "Gone.", ""],
                "language": ["en", "pt", "en", "en"],
                "tags": [["time", "time"], ["time", "chargeback"], [], []],
                "answerable": [True, True, True, False],
                "status": ["active", "active", "stale", "unanswerable"],
                "reason": [None, None, "evidence 1: the quote is gone", None],
                "file": ["questions/en.yaml", "questions/pt.yaml", "questions/en.yaml", "x.yaml"],
                "n_evidence": [1, 1, 1, 0],
            }
        ),
        "gold_evidence": pl.DataFrame(
            {
                "question_id": ["q1", "q2", "q2", "q3"],
                "evidence": [1, 1, 1, 1],
                "alternative": [1, 1, 1, 1],
                "doc_id": ["kb/a.md", "kb/b.md", "kb/b.md", "kb/scan.pdf"],
                "quote": ["five days", "ten days", "ten days", "no longer said"],
                "occurrence": [1, 1, 2, 0],
                "start": [13, 17, 20, None],
                "end": [22, 25, 28, None],
                "status": ["found", "ambiguous", "ambiguous", "missing_quote"],
                "passage": ["in five days", "in ten days", "or ten days", "it is no longer said"],
                "diff": [None, None, None, "it is [-no longer-]{+often+} said"],
            }
        ),
        "retrieved_chunks": pl.DataFrame(
            {
                "strategy": ["small", "small", "large", "large"],
                "question_id": ["q1", "q2", "q1", "q2"],
                "rank": [1, 1, 1, 1],
                "chunk_id": ["c1", "c1", "c4", "replaced"],
                "doc_id": ["kb/a.md", "kb/a.md", "kb/a.md", "kb/b.md"],
                "start": [0, 0, 0, 0],
                "end": [23, 23, 35, 20],
                "n_tokens": [8, 8, 12, 12],
                "score": [0.9, 0.4, 0.9, 0.5],
                "vector_score": [0.9, 0.4, 0.9, 0.5],
                "bm25_score": pl.Series([None, None, 3.2, 1.1], dtype=pl.Float64),
            }
        ),
        "retrieval_scores": _retrieval_scores(),
        "answers": pl.DataFrame(
            {
                "strategy": ["small", "small", "large"],
                "question_id": ["q1", "q2", "q1"],
                "answer_key": ["a1", "a2", "a3"],
                "answerer": ["model@host"] * 3,
                "answer_kind": ["generated"] * 3,
                "status": ["ok", "ok", "error"],
                "answer": ["Five days.", "", None],
                "abstained": [False, True, None],
                "sentences": ['[{"text": "Five days.", "sources": [], "quote": ""}]', "[]", None],
                "issues": [["uncited: Five days."], [], []],
                "numbers_not_in_context": pl.Series([[], [], None], dtype=pl.List(pl.String)),
                "names_not_in_context": pl.Series([["Bosch"], [], None], dtype=pl.List(pl.String)),
                "quotes_not_in_context": pl.Series([[], [], None], dtype=pl.List(pl.String)),
                "lexical_support": [0.5, None, None],
                "error_kind": [None, None, "refused"],
                "error": [None, None, "the model refused"],
                "prompt_tokens": [120, 110, None],
                "completion_tokens": [9, 1, None],
            }
        ),
        "ragas_scores": _ragas_scores(),
        "ragas_statements": pl.DataFrame(
            {
                "strategy": ["small", "small"],
                "question_id": ["q1", "q1"],
                "metric": ["faithfulness", "faithfulness"],
                "judgement": [0, 0],
                "statement": [1, 2],
                "source": ["answer", "answer"],
                "text": ["Refunds take five days.", "Refunds are free."],
                "verdict": [1, 0],
                "reason": ["said", "fees apply"],
            }
        ),
        "judge_agreement": pl.DataFrame(
            {
                "judge": ["judge@host"],
                "labels": ["l1"],
                "kind": ["all"],
                "n_labels": [10],
                "n_judged": [10],
                "both_supported": [5],
                "only_judge_supported": [1],
                "only_people_supported": [0],
                "neither_supported": [4],
                "accuracy": [0.9],
                "accuracy_low": [0.6],
                "accuracy_high": [0.98],
                "kappa": [0.8],
                "error_kind": pl.Series([None], dtype=pl.String),
            }
        ),
        "strategy_comparisons": pl.DataFrame(
            {
                "metric": ["recall@5", "recall@5", "precision@5"],
                "baseline": ["small"] * 3,
                "strategy": ["large", "small", "large"],
                "n_questions": [2] * 3,
                "n_documents": [2] * 3,
                "baseline_mean": [0.5, 0.5, 0.4],
                "mean": [0.75, 0.5, 0.3],
                "difference": [0.25, 0.0, -0.1],
                "ci_low": [-0.5, 0.0, -0.4],
                "ci_high": [1.0, 0.0, 0.2],
                "p_value": [0.5, 1.0, 0.6],
                "p_randomisation": [0.4, 1.0, 0.6],
                "p_holm": [0.5, 1.0, 0.6],
                "p_best": [0.7, 0.3, 0.4],
                "behind_best": [0.0, 0.25, 0.1],
                "p_behind": [1.0, 0.6, 0.8],
                "minimum_detectable_difference": [0.6, None, 0.6],
                "questions_needed": [12, None, 72],
                "n_scored": [2] * 3,
                "n_total": [2] * 3,
                "coverage": [1.0] * 3,
                "mean_low": [0.75, 0.5, 0.3],
                "mean_high": [0.75, 0.5, 0.3],
                "difference_low": [0.25, 0.0, -0.1],
                "difference_high": [0.25, 0.0, -0.1],
                "verdict": ["cannot tell", "baseline", "cannot tell"],
                "reason": ["2 questions, 10 are needed"] * 3,
                "state": ["best so far", "in play", "in play"],
                "changed": pl.Series([None] * 3, dtype=pl.String),
                "is_primary": [True, True, False],
                "seed": [1] * 3,
                "resamples": [10_000] * 3,
                "confidence": [0.95] * 3,
            }
        ),
        "strategy_slices": pl.DataFrame(
            {
                "metric": ["recall@5"] * 2,
                "baseline": ["small"] * 2,
                "strategy": ["large", "small"],
                "dimension": ["language"] * 2,
                "slice": ["en"] * 2,
                "n_questions": [1] * 2,
                "n_documents": [1] * 2,
                "baseline_mean": [1.0] * 2,
                "mean": [0.5, 1.0],
                "difference": [-0.5, 0.0],
                **dict.fromkeys(
                    ("ci_low", "ci_high", "p_holm", "minimum_detectable_difference"),
                    pl.Series([None] * 2, dtype=pl.Float64),
                ),
                "verdict": [None, "baseline"],
            }
        ),
        "question_changes": pl.DataFrame(
            {
                "baseline": ["small", "small"],
                "strategy": ["large", "large"],
                "question_id": ["q1", "q2"],
                "change": ["lost", "won"],
                "metric": ["recall@5", "recall@5"],
                "baseline_value": [1.0, 0.0],
                "value": [0.5, 1.0],
            }
        ),
        "promotions": pl.DataFrame(
            {
                "event_id": ["1", "2", "3"],
                "at": [DAY_1, DAY_2, DAY_3],
                "action": ["promote", "promote", "rollback"],
                "strategy": ["small", "large", "small"],
                "previous": [None, "small", "large"],
                "verdict": [None, "cannot tell", None],
                "reason": ["first", "faster", "complaints"],
                "forced": [False, True, False],
                "by": ["ana", "ana", "rui"],
            }
        ),
        "costs": pl.DataFrame(
            {
                "at": [DAY_1],
                "run_id": ["r2"],
                "asset": ["chunk_embeddings"],
                "partition": ["recursive-200@1+e5-small|kb"],
                "work": ["embed"],
                "model": ["e5-small"],
                "tokens_sent": [14],
                "requests": [1],
                "requests_saved": [0],
                "retries": [0],
            }
        ),
        "builds": pl.DataFrame(
            {
                "at": [DAY_1, DAY_1, DAY_2],
                "run_id": ["r1", "r2", "r3"],
                "asset": ["parsed_elements", "chunk_embeddings", "chunk_embeddings"],
                "partition": ["kb", *["recursive-200@1+e5-small|kb"] * 2],
                "documents_added": [3, 2, 0],
                "documents_changed": [0, 0, 1],
                "documents_removed": [0, 0, 0],
                "documents_unchanged": [0, 0, 1],
                "documents_failed": [1, 0, 0],
                "rows": [3, 3, 3],
                "chunks_redone": [None, None, None],
                "vectors_embedded": [None, 2, 1],
                "vectors_reused": [None, 1, 2],
                "tokens_embedded": [None, 14, 6],
                "seconds": [0.5, 2.0, 1.0],
            }
        ),
    }


def _retrieval_scores() -> pl.DataFrame:
    values = {
        ("small", "s1", "q1"): {"recall@5": 1.0, "precision@5": 0.4, "context_tokens@5": 8.0},
        ("small", "s1", "q2"): {"recall@5": 0.0, "precision@5": 0.0, "context_tokens@5": 10.0},
        # Measured before the evidence was edited away: no view may average it.
        ("small", "s1", "q3"): {"recall@5": 1.0},
        ("large", "l1", "q1"): {"recall@5": 0.5, "recall@1000t": 0.5, "context_tokens@5": 12.0},
        ("large", "l1", "q2"): {"recall@5": 1.0, "recall@1000t": 1.0, "context_tokens@5": 12.0},
    }
    for strategy, digest, question in [*values]:
        if question != "q3":
            read = {"small": 6.0, "large": 4.0}[strategy]
            values[strategy, digest, question]["context_tokens@served"] = read
    return pl.DataFrame(
        [
            (strategy, digest, question, *measure.split("@"), value)
            for (strategy, digest, question), scores in values.items()
            for measure, value in scores.items()
        ],
        schema=["strategy", "strategy_digest", "question_id", "metric", "cutoff", "value"],
        orient="row",
    )


def _ragas_scores(
    rows: list[tuple[str, str, str, float | None]] | None = None,
) -> pl.DataFrame:
    """Faithfulness rows from (strategy, question, status, value)."""
    rows = rows or [
        ("small", "q1", "ok", 0.5),
        ("small", "q2", "ok", 1.0),
        ("small", "q3", "error", None),
        ("small", "q4", "not_applicable", None),
        ("large", "q1", "skipped", None),
    ]
    return pl.DataFrame(
        {
            "strategy": [r[0] for r in rows],
            "question_id": [r[1] for r in rows],
            "metric": ["faithfulness"] * len(rows),
            "judge": ["judge@host" if r[2] == "ok" else None for r in rows],
            "judge_key": ["j"] * len(rows),
            "status": [r[2] for r in rows],
            "value": pl.Series([r[3] for r in rows], dtype=pl.Float64),
            "n_judgements": pl.Series([1 if r[2] == "ok" else None for r in rows], dtype=pl.Int64),
            "variance": pl.Series([None] * len(rows), dtype=pl.Float64),
            **dict.fromkeys(
                ("error_kind", "error"), pl.Series([None] * len(rows), dtype=pl.String)
            ),
            **dict.fromkeys(
                (
                    "n_statements",
                    "n_supported",
                    "calls",
                    "cached_calls",
                    "prompt_tokens",
                    "completion_tokens",
                ),
                [1] * len(rows),
            ),
            "latency_s": [0.1] * len(rows),
        }
    )


@pytest.fixture
def tables() -> dict[str, pl.DataFrame]:
    return _tables()


@pytest.fixture
def strategies() -> pl.DataFrame:
    return _strategies()


@pytest.fixture
def ragas_scores() -> Callable[[list[tuple[str, str, str, float | None]]], pl.DataFrame]:
    return _ragas_scores


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Workspace(tmp_path / "corpus")


@pytest.fixture(scope="session")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """Every table has rows; `chunks` in two partitions. Published."""
    workspace = Workspace(tmp_path_factory.mktemp("filled"))
    for name, rows in _tables().items():
        if name == "chunks":
            for (version,), part in rows.partition_by("chunker_version", as_dict=True).items():
                workspace.table(name).replace(part, f"{version}|kb", version="1")
        else:
            workspace.table(name).replace(rows, version="1")
    dimensions = {"strategies": _strategies(), "declared_indexes": _declared_indexes()}
    publish(workspace, dimensions)
    return workspace


@pytest.fixture(scope="session")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """Nothing was ever written. Published."""
    workspace = Workspace(tmp_path_factory.mktemp("empty"))
    publish(workspace)
    return workspace


@pytest.fixture(scope="session")
def rows(filled: Workspace) -> Iterator[Callable[[str], list[dict[str, object]]]]:
    """Run a query on the filled database; one dict a row."""
    with duckdb.connect(filled.eval_database, read_only=True) as connection:
        yield lambda query: connection.sql(query).pl().to_dicts()
