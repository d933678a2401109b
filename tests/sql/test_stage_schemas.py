"""The declared tables are those that the stages write."""

import importlib

import polars as pl
import pytest

from chunking_assets.workspace import Workspace
from evals.database import publish, table_columns, table_names

SCHEMAS = {
    "documents": "chunking_assets.parsed_elements.build:DOCUMENTS_SCHEMA",
    "elements": "chunking_assets.parsed_elements.parse:ELEMENTS_SCHEMA",
    "chunks": "chunking_assets.chunk_sets.rows:CHUNKS_SCHEMA",
    "excluded_spans": "chunking_assets.chunk_sets.rows:EXCLUDED_SPANS_SCHEMA",
    "embedded_chunks": "chunking_assets.chunk_embeddings.build:EMBEDDED_CHUNKS_SCHEMA",
    "builds": "chunking_assets.build_log:BUILDS_SCHEMA",
    "costs": "chunking_assets.cost_ledger:COSTS_SCHEMA",
    "strategy_costs": "chunking_assets.live_index.strategy_cost:STRATEGY_COSTS_SCHEMA",
    "promotions": "chunking_assets.live_index.promotion:PROMOTIONS_SCHEMA",
    "gold_questions": "evals.gold_questions.resolve:QUESTIONS_SCHEMA",
    "gold_evidence": "evals.gold_questions.resolve:EVIDENCE_SCHEMA",
    "retrieval_scores": "evals.retrieval_scores.build:SCORES_SCHEMA",
    "retrieved_chunks": "evals.retrieval_scores.build:RETRIEVED_SCHEMA",
    "answers": "evals.ragas_scores.frames:ANSWERS",
    "ragas_scores": "evals.ragas_scores.frames:SCORES",
    "ragas_statements": "evals.ragas_scores.frames:STATEMENTS",
    "judge_agreement": "evals.ragas_scores.agreement:AGREEMENT",
    "strategy_comparisons": "evals.strategy_comparison.compare:TABLE_SCHEMA",
    "question_changes": "evals.strategy_comparison.compare:CHANGES_SCHEMA",
    "strategy_slices": "evals.strategy_comparison.compare:SLICE_ROWS_SCHEMA",
}
NOT_PUBLISHED = {
    "documents": {"text"},  # the chunks hold it
    "promotions": {"declaration"},  # for the reader that serves
}
PUBLISHED_NAMES = {
    "start": "start_char",
    "end": "end_char",
    "at": "recorded_at",
    "by": "requested_by",
}
TYPES = {
    pl.String(): {"varchar", "json"},
    pl.Int64(): {"bigint"},
    pl.Float64(): {"double"},
    pl.Boolean(): {"boolean"},
    pl.List(pl.String): {"varchar[]"},
    pl.Datetime("us", "UTC"): {"timestamptz"},
}


def schema_of(table: str) -> pl.Schema:
    module, _, name = SCHEMAS[table].partition(":")
    return pl.Schema(getattr(importlib.import_module(module), name))


def test_every_table_but_those_of_the_configuration_has_a_stage():
    assert {*SCHEMAS, "strategies", "declared_indexes"} == set(table_names())


@pytest.mark.parametrize("table", SCHEMAS)
def test_a_table_publishes_every_column_its_stage_writes(table):
    written = {
        PUBLISHED_NAMES.get(name, name): kind
        for name, kind in schema_of(table).items()
        if name not in NOT_PUBLISHED.get(table, set())
    }
    declared = {column.name: column.type for column in table_columns(table)}
    assert written.keys() == declared.keys()
    assert [name for name, kind in written.items() if declared[name] not in TYPES[kind]] == []


def test_the_empty_tables_of_every_stage_are_published(tmp_path):
    workspace = Workspace(tmp_path)
    for table in SCHEMAS:
        workspace.table(table).replace(schema_of(table).to_frame())
    assert set(publish(workspace).rows.values()) == {0}
