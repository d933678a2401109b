from dataclasses import replace

import polars as pl
import pytest

from chunking_assets.config import JudgeSettings
from chunking_assets.errors import CorpusError
from chunking_assets.workspace import Workspace
from evals.gold_questions.build import GOLD_EVIDENCE, GOLD_QUESTIONS
from evals.gold_questions.resolve import EVIDENCE_SCHEMA, QUESTIONS_SCHEMA
from evals.ragas_scores.build import update_ragas_scores
from evals.retrieval_scores.build import (
    RETRIEVAL_SCORES,
    SCORES_SCHEMA,
    SERVED_PASSAGES,
    SERVED_SCHEMA,
)

SETTINGS = JudgeSettings(answer_model="ok", judge_model="ok")
STATUS = {"filter": "active", "moon": "unanswerable", "old": "stale"}


def serve(workspace, text, version):
    served = pl.DataFrame(
        [
            {"strategy": "s", "question_id": "filter", "rank": 2, "text": "It is green."},
            {"strategy": "s", "question_id": "filter", "rank": 1, "text": text},
            {"strategy": "s", "question_id": "moon", "rank": 1, "text": text},
        ],
        schema=SERVED_SCHEMA,
    )
    workspace.table(SERVED_PASSAGES).replace(served, "s", version=version)
    scores = pl.DataFrame(schema=SCORES_SCHEMA)
    workspace.table(RETRIEVAL_SCORES).replace(scores, "s", version=version)


@pytest.fixture
def workspace(tmp_path):
    workspace = Workspace(tmp_path)
    questions = pl.DataFrame(
        [
            {"question_id": name, "question": f"{name}?", "answer": "It costs 40 EUR.",
             "status": status}
            for name, status in STATUS.items()
        ],
        schema=QUESTIONS_SCHEMA,
    )  # fmt: skip
    details = {"golden_version": "g"}
    workspace.table(GOLD_QUESTIONS).replace(questions, version="1", details=details)
    evidence = pl.DataFrame(schema=EVIDENCE_SCHEMA)
    workspace.table(GOLD_EVIDENCE).replace(evidence, version="1", details=details)
    serve(workspace, "It costs 40 EUR.", "v1")
    return workspace


def values(workspace):
    scores = workspace.table("ragas_scores").read("s")
    return {(row["question_id"], row["metric"]): row["value"] for row in scores.to_dicts()}


def test_before_retrieval_is_scored_the_cure_is_named(workspace):
    with pytest.raises(CorpusError, match="Build retrieval_scores first"):
        update_ragas_scores(workspace, "never", SETTINGS)


def test_without_an_endpoint_the_tables_say_so(workspace):
    update = update_ragas_scores(workspace, "s", SETTINGS)
    assert update.statuses == {"skipped": 6}
    assert update.means == {}
    assert set(values(workspace).values()) == {None}


def test_what_was_served_is_judged_best_first(workspace, endpoint_in_environment):
    server = endpoint_in_environment
    server.answers["filter?"] = ["It costs 40 EUR.", "It is red."]
    update = update_ragas_scores(workspace, "s", SETTINGS)
    assert update.statuses == {"ok": 2, "not_applicable": 2, "stale": 2}
    assert update.means == {"faithfulness": 0.5, "context_recall": 1.0}
    [asked] = [b for b in server.requests if b["messages"][-1]["content"].endswith("filter?")]
    assert '<passage id="p1">\nIt costs 40 EUR.' in asked["messages"][-1]["content"]


def test_nothing_is_sent_or_written_when_nothing_changed(workspace, endpoint_in_environment):
    first = update_ragas_scores(workspace, "s", SETTINGS)
    sent = len(endpoint_in_environment.requests)
    file = workspace.table("ragas_scores").manifest("s").files
    second = update_ragas_scores(workspace, "s", SETTINGS)
    assert len(endpoint_in_environment.requests) == sent
    assert workspace.table("ragas_scores").manifest("s").files == file
    assert second == replace(first, requests=0)


def test_other_passages_are_judged_again(workspace, endpoint_in_environment):
    first = update_ragas_scores(workspace, "s", SETTINGS)
    serve(workspace, "It costs 50 EUR.", "v2")
    second = update_ragas_scores(workspace, "s", SETTINGS)
    assert values(workspace)["filter", "context_recall"] == 0.0
    assert second.version != first.version


def test_an_endpoint_that_appears_is_used(workspace, server, monkeypatch):
    update_ragas_scores(workspace, "s", SETTINGS)
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    update_ragas_scores(workspace, "s", SETTINGS)
    assert values(workspace)["filter", "context_recall"] == 1.0


def test_failed_rows_are_tried_again_without_any_change(workspace, endpoint_in_environment):
    settings = JudgeSettings(answer_model="ok", judge_model="refusal")
    first = update_ragas_scores(workspace, "s", settings)
    sent = len(endpoint_in_environment.requests)
    update_ragas_scores(workspace, "s", settings)
    assert first.statuses["error"] == 1
    assert len(endpoint_in_environment.requests) == sent + 1


def test_tables_of_different_runs_are_not_carried_over(workspace, endpoint_in_environment):
    """An interrupted run leaves new statements beside old scores."""
    update_ragas_scores(workspace, "s", SETTINGS)
    statements = workspace.table("ragas_statements")
    statements.replace(statements.read("s").clear(), "s", version="interrupted")
    serve(workspace, "It costs 40 EUR.", "v2")
    update_ragas_scores(workspace, "s", SETTINGS)
    assert statements.read("s").height == 1


def test_a_stopped_endpoint_is_reported_and_the_rows_are_written(
    workspace, endpoint_in_environment
):
    update = update_ragas_scores(workspace, "s", JudgeSettings(answer_model="auth"))
    assert update.stopped.startswith("invalid_api_key")
    assert update.statuses["error"] == 3
