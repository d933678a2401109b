import polars as pl
import pytest

from evals.ragas_scores.abstention import ABSTAINED, ANSWERED, abstention_scores
from evals.ragas_scores.frames import ANSWERS

QUESTIONS = pl.DataFrame({"question_id": ["known", "moon"], "status": ["active", "unanswerable"]})


def outcome(question, **answer):
    """(metric, status, value, error_kind) of one answer, beside one that makes it a run."""
    rows = [
        {"question_id": question, "status": "ok", "abstained": False, **answer},
        {"question_id": "other", "status": "ok", "abstained": False},
    ]
    scores = abstention_scores(pl.DataFrame(rows, schema=ANSWERS), QUESTIONS)
    (row,) = scores.drop("question_id").rows()
    return row


@pytest.mark.parametrize(
    ("question", "abstained", "metric", "value"),
    [
        ("known", False, ANSWERED, 1.0),
        ("known", True, ANSWERED, 0.0),
        ("moon", False, ABSTAINED, 0.0),
        ("moon", True, ABSTAINED, 1.0),
    ],
)
def test_an_outcome_is_right_or_wrong(question, abstained, metric, value):
    assert outcome(question, abstained=abstained) == (metric, "ok", value, None)


def test_a_failed_answer_is_no_outcome():
    failed = {"status": "error", "error_kind": "timeout", "abstained": None}
    assert outcome("known", **failed) == (ANSWERED, "error", None, "timeout")


def test_nothing_retrieved_is_an_abstention():
    empty = {"status": "skipped", "error_kind": "no_contexts_retrieved", "abstained": None}
    assert outcome("known", **empty) == (ANSWERED, "ok", 0.0, None)
    assert outcome("moon", **empty) == (ABSTAINED, "ok", 1.0, None)


def test_where_nothing_was_answered_there_is_nothing_to_say():
    rows = [{"question_id": "known", "status": "skipped", "error_kind": "no_judge"}]
    assert abstention_scores(pl.DataFrame(rows, schema=ANSWERS), QUESTIONS).is_empty()


def test_stale_questions_have_no_outcome():
    rows = [
        {"question_id": "known", "status": "ok", "abstained": False},
        {"question_id": "moon", "status": "skipped", "error_kind": "stale"},
    ]
    stale = QUESTIONS.with_columns(status=pl.Series(["active", "stale"]))
    scores = abstention_scores(pl.DataFrame(rows, schema=ANSWERS), stale)
    assert scores["question_id"].to_list() == ["known"]
