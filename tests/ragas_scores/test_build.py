from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
import yaml

from chunking_assets.config import JudgeSettings
from chunking_assets.errors import CorpusError
from chunking_assets.workspace import Workspace
from evals.gold_questions.build import GOLD_EVIDENCE, GOLD_QUESTIONS
from evals.gold_questions.resolve import EVIDENCE_SCHEMA, QUESTIONS_SCHEMA
from evals.ragas_scores.build import (
    judge_identity,
    labels_identity,
    update_judge_agreement,
    update_ragas_scores,
)
from evals.retrieval_scores.build import (
    RETRIEVAL_SCORES,
    SCORES_SCHEMA,
    SERVED_PASSAGES,
    SERVED_SCHEMA,
)

ROOT = Path(__file__).parent
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
        update_ragas_scores(workspace, "never", SETTINGS, ROOT)


def test_without_an_endpoint_the_tables_say_so(workspace):
    update = update_ragas_scores(workspace, "s", SETTINGS, ROOT)
    assert update.statuses == {"skipped": 6}
    assert update.means == {}
    assert set(values(workspace).values()) == {None}


def test_what_was_served_is_judged_best_first(workspace, endpoint_in_environment):
    server = endpoint_in_environment
    server.answers["filter?"] = ["It costs 40 EUR.", "It is red."]
    update = update_ragas_scores(workspace, "s", SETTINGS, ROOT)
    assert update.statuses == {"ok": 2, "not_applicable": 2, "stale": 2}
    assert update.means == {"faithfulness": 0.5, "context_recall": 1.0}
    [asked] = [b for b in server.requests if b["messages"][-1]["content"].endswith("filter?")]
    assert '<passage id="p1">\nIt costs 40 EUR.' in asked["messages"][-1]["content"]


def test_a_mean_says_what_it_is_a_mean_of(workspace, endpoint_in_environment):
    endpoint_in_environment.answers["filter?"] = ["It costs 40 EUR."]
    settings = SETTINGS.model_copy(update={"judge_model": "refusal"})
    update = update_ragas_scores(workspace, "s", settings, ROOT)
    faithfulness = update.coverage["faithfulness"]
    assert (faithfulness.n_scored, faithfulness.n_total) == (0, 1)
    assert (faithfulness.mean_low, faithfulness.mean_high) == (0.0, 1.0)
    assert update.means == {}


def test_abstentions_and_flags_are_counted(workspace, endpoint_in_environment):
    endpoint_in_environment.answers["filter?"] = ["It costs 45 EUR."]
    update = update_ragas_scores(workspace, "s", SETTINGS, ROOT)
    assert (update.answered, update.abstained, update.flagged) == (2, 1, 1)


def test_a_change_of_the_judge_asks_for_no_answer(workspace, endpoint_in_environment):
    server = endpoint_in_environment
    server.answers["filter?"] = ["It costs 40 EUR."]
    update_ragas_scores(workspace, "s", SETTINGS, ROOT)
    before, sent = workspace.table("answers").read("s"), len(server.requests)
    settings = SETTINGS.model_copy(update={"judge_model": "fenced", "judge_repeats": 2})
    update_ragas_scores(workspace, "s", settings, ROOT)
    assert {body["model"] for body in server.requests[sent:]} == {"fenced"}
    assert len(server.requests) > sent
    assert workspace.table("answers").read("s").equals(before)


def test_extractive_answers_are_written_without_an_endpoint(workspace):
    settings = SETTINGS.model_copy(update={"answerer": "extractive"})
    update = update_ragas_scores(workspace, "s", settings, ROOT)
    assert (update.answered, update.statuses) == (2, {"skipped": 6})


def test_settings_that_change_no_row_do_not_change_the_judge(tmp_path):
    (tmp_path / "labels.yaml").write_text("labels: []")
    same = SETTINGS.model_copy(update={"concurrency": 2, "judge_labels": "labels.yaml"})
    other = SETTINGS.model_copy(update={"judge_repeats": 2})
    assert judge_identity(same, tmp_path) == judge_identity(SETTINGS, tmp_path)
    assert judge_identity(other, tmp_path) != judge_identity(SETTINGS, tmp_path)


def test_an_edited_translation_is_another_judge(tmp_path):
    settings = SETTINGS.model_copy(update={"judge_instructions": "pt.yaml"})
    (tmp_path / "pt.yaml").write_text("{}")
    before = judge_identity(settings, tmp_path)
    (tmp_path / "pt.yaml").write_text("{ }")
    assert judge_identity(settings, tmp_path) != before


@pytest.fixture
def labelled(tmp_path):
    """Settings that name a file of two labels, one of which the judge of these tests misses."""
    labels = [
        {"question": "q", "contexts": ["It costs 40 EUR."], "answer": answer, "faithful": True}
        for answer in ("It costs 40 EUR.", "The price is 40 EUR.")
    ]
    (tmp_path / "labels.yaml").write_text(yaml.safe_dump({"labels": labels}))
    return SETTINGS.model_copy(update={"judge_labels": "labels.yaml"})


def test_the_judge_is_compared_with_people_once(
    workspace, labelled, endpoint_in_environment, tmp_path
):
    [first] = update_judge_agreement(workspace, labelled, tmp_path)
    sent = len(endpoint_in_environment.requests)
    [second] = update_judge_agreement(workspace, labelled, tmp_path)
    assert (first.accuracy, first.n_judged, first == second) == (0.5, 2, True)
    assert len(endpoint_in_environment.requests) == sent
    assert workspace.table("judge_agreement").read()["accuracy"].to_list() == [0.5]


def test_other_labels_are_compared_anew(workspace, labelled, endpoint_in_environment, tmp_path):
    update_judge_agreement(workspace, labelled, tmp_path)
    before = labels_identity(labelled, tmp_path)
    file = tmp_path / "labels.yaml"
    file.write_text(file.read_text().replace("The price is", "It costs"))
    assert labels_identity(labelled, tmp_path) != before
    [row] = update_judge_agreement(workspace, labelled, tmp_path)
    assert row.accuracy == 1.0


def test_without_a_judge_agreement_is_unknown_and_tried_again(
    workspace, labelled, tmp_path, server, monkeypatch
):
    [row] = update_judge_agreement(workspace, labelled, tmp_path)
    assert (row.judge, row.accuracy, row.error_kind, row.n_labels) == (None, None, "no_judge", 2)
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    [row] = update_judge_agreement(workspace, labelled, tmp_path)
    assert row.accuracy == 0.5


def test_without_labels_there_is_no_agreement(workspace, tmp_path):
    assert update_judge_agreement(workspace, SETTINGS, tmp_path) == []
    assert workspace.table("judge_agreement").read() is None


def test_nothing_is_sent_or_written_when_nothing_changed(workspace, endpoint_in_environment):
    first = update_ragas_scores(workspace, "s", SETTINGS, ROOT)
    sent = len(endpoint_in_environment.requests)
    file = workspace.table("ragas_scores").manifest("s").files
    second = update_ragas_scores(workspace, "s", SETTINGS, ROOT)
    assert len(endpoint_in_environment.requests) == sent
    assert workspace.table("ragas_scores").manifest("s").files == file
    assert second == replace(first, requests=0, costs=())


def test_other_passages_are_judged_again(workspace, endpoint_in_environment):
    first = update_ragas_scores(workspace, "s", SETTINGS, ROOT)
    serve(workspace, "It costs 50 EUR.", "v2")
    second = update_ragas_scores(workspace, "s", SETTINGS, ROOT)
    assert values(workspace)["filter", "context_recall"] == 0.0
    assert second.version != first.version


def test_an_endpoint_that_appears_is_used(workspace, server, monkeypatch):
    update_ragas_scores(workspace, "s", SETTINGS, ROOT)
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    update_ragas_scores(workspace, "s", SETTINGS, ROOT)
    assert values(workspace)["filter", "context_recall"] == 1.0


def test_failed_rows_are_tried_again_without_any_change(workspace, endpoint_in_environment):
    settings = JudgeSettings(answer_model="ok", judge_model="refusal")
    first = update_ragas_scores(workspace, "s", settings, ROOT)
    sent = len(endpoint_in_environment.requests)
    update_ragas_scores(workspace, "s", settings, ROOT)
    assert first.statuses["error"] == 1
    assert len(endpoint_in_environment.requests) == sent + 1


def test_tables_of_different_runs_are_not_carried_over(workspace, endpoint_in_environment):
    """An interrupted run leaves new statements beside old scores."""
    update_ragas_scores(workspace, "s", SETTINGS, ROOT)
    statements = workspace.table("ragas_statements")
    statements.replace(statements.read("s").clear(), "s", version="interrupted")
    serve(workspace, "It costs 40 EUR.", "v2")
    update_ragas_scores(workspace, "s", SETTINGS, ROOT)
    assert statements.read("s").height == 1


def test_a_stopped_endpoint_is_reported_and_the_rows_are_written(
    workspace, endpoint_in_environment
):
    update = update_ragas_scores(workspace, "s", JudgeSettings(answer_model="auth"), ROOT)
    assert update.stopped.startswith("invalid_api_key")
    assert update.statuses["error"] == 3
