"""Everything here runs the released ragas metrics against the server of judge_server.py."""

import asyncio
import json
import logging
import os
import socket
from dataclasses import replace

import polars as pl
import pytest

from chunking_assets.config import JudgeSettings
from evals.ragas_scores import score
from evals.ragas_scores.frames import (
    ANSWERS,
    SCORES,
    STATEMENTS,
    JudgedQuestion,
)
from evals.ragas_scores.instructions import ENGLISH
from evals.ragas_scores.judge import Judge
from evals.ragas_scores.metrics.registry import METRICS
from evals.ragas_scores.score import judge_strategy

PUMP = JudgedQuestion(
    question_id="pump",
    question="How often is the pump serviced?",
    reference_answer="The pump is serviced every 6 months. Only Ada may do it.",
    status="ok",
    contexts=["The pump is serviced every 6 months.", "Filters cost 40 EUR."],
)
FILTER = JudgedQuestion(
    question_id="filter",
    question="What does a filter cost?",
    reference_answer="Filters cost 40 EUR.",
    status="ok",
    contexts=["Filters cost 40 EUR."],
)
MOON = JudgedQuestion(
    question_id="moon",
    question="Who owns the moon?",
    reference_answer="",
    status="unanswerable",
    contexts=["Filters cost 40 EUR."],
)
STALE = replace(FILTER, question_id="old", status="stale_evidence_missing")
ALL = [PUMP, FILTER, MOON, STALE]


@pytest.fixture
def server(endpoint_in_environment):
    server = endpoint_in_environment
    server.answers[PUMP.question] = [
        "The pump is serviced every 6 months.",
        "Filters cost 40 EUR.",
        "The pump is blue.",
    ]
    server.answers[FILTER.question] = ["Filters cost 40 EUR."]
    return server


@pytest.fixture
def run(tmp_path):
    def run(
        questions=ALL, previous=None, progress=None, strategy="s", vectors=None,
        instructions=ENGLISH, **settings,
    ):  # fmt: skip
        given = JudgeSettings(
            **{"answer_model": "ok", "judge_model": "ok", "timeout": 20, **settings}
        )
        return judge_strategy(
            strategy, questions, given, tmp_path, previous, progress,
            instructions=instructions, vectors=vectors,
        )  # fmt: skip

    return run


def row(frame, question_id, metric=None):
    rows = frame.filter(question_id=question_id, **({"metric": metric} if metric else {}))
    assert rows.height == 1
    return rows.row(0, named=True)


def test_faithfulness_is_the_share_of_supported_statements_of_the_answer(server, run):
    found = row(run([PUMP]).scores, "pump", "faithfulness")
    assert found["value"] == pytest.approx(2 / 3, abs=1e-12)
    assert (found["status"], found["n_statements"], found["n_supported"]) == ("ok", 3, 2)
    assert (found["calls"], found["cached_calls"]) == (2, 0)


def test_context_recall_is_the_share_of_the_reference_found_in_the_contexts(server, run):
    found = row(run([PUMP]).scores, "pump", "context_recall")
    assert found["value"] == 0.5
    assert (found["status"], found["n_statements"], found["n_supported"]) == ("ok", 2, 1)
    assert found["calls"] == 1


def test_every_verdict_is_kept_with_its_reason(server, run):
    statements = run([PUMP]).statements.filter(metric="faithfulness")
    assert statements.select("statement", "text", "verdict", "reason").rows() == [
        (0, "The pump is serviced every 6 months.", 1, "by substring"),
        (1, "Filters cost 40 EUR.", 1, "by substring"),
        (2, "The pump is blue.", 0, "by substring"),
    ]


def test_an_answer_is_kept_with_what_is_wrong_with_its_citations(server, run):
    found = row(run([PUMP]).answers, "pump")
    assert found["status"] == "ok"
    assert found["abstained"] is False
    assert found["answer"].endswith("Filters cost 40 EUR. The pump is blue.")
    assert found["issues"] == ["unknown_source: p9", "quote_not_in_source: The pump is blue."]
    assert found["answerer"] == f"ok@{server.host}"


def test_who_judged_is_in_every_row(server, run):
    judges = run(ALL).scores["judge"].to_list()
    assert all(judge.startswith(f"ok@{server.host}|ragas-0.4.3|") for judge in judges)


def test_there_is_a_row_for_every_question_and_metric(server, run):
    judged = run(ALL)
    assert judged.answers["question_id"].to_list() == [q.question_id for q in ALL]
    assert judged.scores.height == 2 * len(ALL)


def test_a_stale_question_is_not_judged(server, run):
    judged = run([STALE])
    assert judged.scores["status"].to_list() == ["stale", "stale"]
    assert row(judged.answers, "old")["error_kind"] == "stale"
    assert server.requests == []


def test_an_abstention_is_no_failure_and_has_no_faithfulness(server, run):
    judged = run([MOON])
    answer, faithfulness = row(judged.answers, "moon"), row(judged.scores, "moon", "faithfulness")
    assert (answer["status"], answer["abstained"]) == ("ok", True)
    assert (faithfulness["status"], faithfulness["error_kind"]) == ("not_applicable", "abstained")


def test_an_answer_to_an_unanswerable_question_is_judged(server, run):
    server.answers[MOON.question] = ["Nobody owns the moon."]
    judged = run([MOON])
    assert row(judged.scores, "moon", "faithfulness")["value"] == 0.0
    recall = row(judged.scores, "moon", "context_recall")
    assert (recall["status"], recall["error_kind"]) == ("not_applicable", "unanswerable")


def test_nothing_retrieved_means_recall_zero_by_definition_and_no_faithfulness(server, run):
    judged = run([replace(PUMP, contexts=[])])
    recall = row(judged.scores, "pump", "context_recall")
    faithfulness = row(judged.scores, "pump", "faithfulness")
    assert (recall["status"], recall["value"]) == ("ok", 0.0)
    assert recall["error_kind"] == faithfulness["error_kind"] == "no_contexts_retrieved"
    assert (faithfulness["status"], faithfulness["value"]) == ("not_applicable", None)
    assert row(judged.answers, "pump")["status"] == "skipped"
    assert server.requests == []


def test_without_a_reference_answer_there_is_no_context_recall(server, run):
    found = row(run([replace(PUMP, reference_answer=" ")]).scores, "pump", "context_recall")
    assert (found["status"], found["error_kind"]) == ("not_applicable", "no_reference_answer")


def test_metrics_that_read_no_answer_ask_for_none(server, run):
    judged = run([PUMP], metrics=["context_recall"])
    assert len(server.requests) == 1
    assert row(judged.answers, "pump")["error_kind"] == "not_needed"
    assert judged.scores["metric"].to_list() == ["context_recall"]


@pytest.mark.parametrize("model", ["fenced", "think", "badjson1", "length1", "noschema", "429x2"])
def test_faults_that_can_be_cured_leave_the_scores_as_they_are(server, run, model):
    scores = run([PUMP], judge_model=model, answer_model=model).scores
    assert scores["value"].to_list() == [pytest.approx(2 / 3), 0.5]


@pytest.mark.parametrize(
    ("model", "kind"),
    [
        ("badjson", "invalid_output"),
        ("verdict2", "invalid_output"),
        ("refusal", "refused"),
        ("filter", "content_filter"),
        ("length", "truncated"),
        ("429x99", "rate_limited"),
        ("later", "rate_limited"),
        ("toolong", "endpoint_error"),
    ],
)
def test_a_failed_judgement_is_a_row_with_its_kind_and_no_value(server, run, model, kind):
    judged = run([PUMP], judge_model=model)
    assert judged.scores["status"].to_list() == ["error", "error"]
    assert judged.scores["error_kind"].to_list() == [kind, kind]
    assert judged.scores["value"].to_list() == [None, None]
    assert judged.statements.is_empty()


def test_one_bad_judgement_of_several_is_one_bad_row(server, run):
    """ragas itself loses the whole batch; JSON of another schema is asked for once more."""
    others = [replace(FILTER, question_id=f"q{n}", question=f"Cost {n}?") for n in range(3)]
    server.broken = {FILTER.question}
    judged = run([*others, FILTER], metrics=["context_recall"])
    assert judged.scores["status"].to_list() == ["ok"] * 3 + ["error"]
    bad = row(judged.scores, "filter")
    assert (bad["error_kind"], bad["value"], bad["calls"]) == ("invalid_output", None, 2)


def test_so_many_judgements_are_in_flight_and_no_more(server, run):
    """ragas itself sends all at once."""
    server.full_at = 3
    many = [replace(FILTER, question_id=f"q{n}", question=f"Cost {n}?") for n in range(9)]
    judged = run(many, judge_model="slow", metrics=["context_recall"], concurrency=3)
    assert judged.scores["value"].to_list() == [1.0] * 9
    assert server.peak == 3


def test_equal_judgements_asked_for_at_once_are_sent_once(server, run):
    """ragas itself sends each, cache or not."""
    same = [replace(FILTER, question_id=f"q{n}") for n in range(5)]
    judged = run(same, metrics=["context_recall"])
    assert judged.scores["value"].to_list() == [1.0] * 5
    assert len(server.requests) == 1


def test_a_judge_that_hangs_is_a_row_that_says_timeout(server, run):
    found = run([FILTER], judge_model="hang", timeout=0.5, metrics=["context_recall"])
    assert row(found.scores, "filter")["error_kind"] == "timeout"


def test_fewer_verdicts_than_statements_are_not_a_score(server, run):
    """ragas itself would divide by the verdicts it got: 1 of 1."""
    found = row(run([PUMP], judge_model="drop").scores, "pump", "faithfulness")
    assert (found["status"], found["value"]) == ("error", None)
    assert found["error_kind"] == "invalid_output"
    assert "1 verdicts given, 3 expected" in found["error"]
    assert found["calls"] == 3


def test_an_answer_without_statements_is_not_applicable(server, run):
    judged = run([PUMP], judge_model="nostatements")
    faithfulness = row(judged.scores, "pump", "faithfulness")
    assert (faithfulness["status"], faithfulness["value"]) == ("not_applicable", None)
    assert faithfulness["error_kind"] == "no_statements"
    recall = row(judged.scores, "pump", "context_recall")
    assert (recall["status"], recall["error_kind"]) == ("error", "invalid_output")


def test_a_failed_answer_leaves_context_recall_standing(server, run):
    judged = run([PUMP], answer_model="refusal")
    assert row(judged.answers, "pump")["error_kind"] == "refused"
    faithfulness = row(judged.scores, "pump", "faithfulness")
    assert (faithfulness["status"], faithfulness["error_kind"]) == ("error", "no_answer")
    assert "refused" in faithfulness["error"]
    assert row(judged.scores, "pump", "context_recall")["value"] == 0.5


def test_a_defect_met_in_one_row_costs_the_others_nothing(server, run, monkeypatch):
    async def failing(self, metric, sample, *rest):
        if sample.question == PUMP.question:
            raise KeyError("unexpected")
        await judging(self, metric, sample, *rest)

    judging = Judge.judge
    monkeypatch.setattr(Judge, "judge", failing)
    scores = run([PUMP, FILTER]).scores
    assert row(scores, "pump", "faithfulness")["error_kind"] == "judge_error"
    assert row(scores, "filter", "faithfulness")["value"] == 1.0


def test_unknown_token_counts_are_null_and_never_zero(server, run):
    judged = run([PUMP], judge_model="nousage", answer_model="nousage")
    assert judged.scores["value"].null_count() == 0
    assert judged.scores["prompt_tokens"].to_list() == [None, None]
    assert judged.answers["completion_tokens"].to_list() == [None]
    assert judged.summary.prompt_tokens is None


def test_the_second_run_sends_nothing_and_gives_the_same_rows(server, run):
    first = run(ALL)
    sent = len(server.requests)
    second = run(ALL, previous=first)
    # An answer and 2 + 1 judgements for two questions, one repair, an abstention for the third.
    assert sent == 10
    assert len(server.requests) == sent
    assert second.answers.equals(first.answers)
    assert second.scores.equals(first.scores)
    assert second.statements.equals(first.statements)
    assert (second.summary.requests, second.summary.carried_over) == (0, 7)


def test_rows_of_the_last_run_need_no_cache(server, run, tmp_path):
    first = run(ALL)
    for file in tmp_path.glob("*.sqlite*"):
        file.unlink()
    sent = len(server.requests)
    assert run(ALL, previous=first).scores.equals(first.scores)
    assert len(server.requests) == sent


def test_a_run_that_lost_its_rows_is_served_from_the_cache(server, run):
    first = run(ALL)
    sent = len(server.requests)
    again = run(ALL)
    assert len(server.requests) == sent
    assert again.scores["value"].equals(first.scores["value"])
    assert row(again.scores, "pump", "faithfulness")["cached_calls"] == 2
    assert row(again.scores, "pump", "faithfulness")["prompt_tokens"] == 0


def test_only_what_changed_is_judged_again(server, run):
    first = run([PUMP, FILTER])
    sent = len(server.requests)
    changed = replace(FILTER, reference_answer="A filter is 40 EUR.")
    second = run([PUMP, changed], previous=first)
    assert len(server.requests) == sent + 1
    assert row(second.scores, "filter", "context_recall")["value"] == 0.0
    assert row(second.scores, "pump", "faithfulness") == row(first.scores, "pump", "faithfulness")


def test_other_contexts_are_judged_again(server, run):
    first = run([FILTER], metrics=["context_recall"])
    moved = replace(FILTER, contexts=["The pump is serviced every 6 months."])
    second = run([moved], previous=first, metrics=["context_recall"])
    assert (first.scores["value"].to_list(), second.scores["value"].to_list()) == ([1.0], [0.0])
    assert second.summary.carried_over == 0


def test_another_judge_does_not_change_what_is_judged(server, run):
    first = run([PUMP])
    sent = len(server.requests)
    second = run([PUMP], previous=first, judge_model="fenced", judge_repeats=1)
    assert second.answers.equals(first.answers)
    assert [body["model"] for body in server.requests[sent:]] == ["fenced"] * 3
    assert first.scores["judge_key"].to_list() != second.scores["judge_key"].to_list()


def test_failed_rows_are_tried_again(server, run):
    first = run([PUMP], judge_model="refusal")
    sent = len(server.requests)
    second = run([PUMP], previous=first, judge_model="refusal")
    assert len(server.requests) == sent + 2
    assert second.answers.equals(first.answers)


def test_rows_of_another_strategy_are_not_carried_over(server, run):
    first = run([PUMP])
    second = run([PUMP], previous=first, strategy="t")
    assert second.scores["strategy"].to_list() == ["t", "t"]
    assert second.summary.carried_over == 0


def test_rows_with_other_columns_are_not_carried_over(server, run):
    first = run([PUMP])
    older = replace(first, scores=first.scores.drop("latency_s"))
    assert run([PUMP], previous=older).summary.carried_over == 1


def test_a_fatal_failure_keeps_what_is_done_and_marks_the_rest(server, run):
    first = run([PUMP])
    second = run([PUMP, FILTER], previous=first, answer_model="auth", judge_model="ok")
    assert second.summary.stopped.startswith("invalid_api_key: ")
    assert "OPENAI_API_KEY" in second.summary.stopped
    # Recall of PUMP was done before; its answer is another model's and could not be had.
    assert row(second.scores, "pump", "context_recall")["value"] == 0.5
    assert row(second.answers, "filter")["error_kind"] == "stopped: invalid_api_key"
    for metric in ("faithfulness", "context_recall"):
        found = row(second.scores, "filter", metric)
        assert (found["status"], found["value"]) == ("error", None)
        assert found["error_kind"] == "stopped: invalid_api_key"


def test_answers_had_before_a_fatal_failure_are_kept(server, run):
    judged = run([PUMP, FILTER], judge_model="auth", concurrency=1)
    assert judged.answers["status"].to_list() == ["ok", "ok"]
    assert judged.scores["error_kind"].unique().to_list() == ["stopped: invalid_api_key"]
    assert [body["model"] for body in server.requests].count("auth") == 1


def test_a_fatal_failure_stops_the_sending(server, run):
    many = [replace(FILTER, question_id=f"q{n}", question=f"Cost {n}?") for n in range(12)]
    judged = run(many, answer_model="quota", concurrency=1)
    assert len(server.requests) == 1
    assert judged.scores["error_kind"].unique().to_list() == ["stopped: insufficient_quota"]


def test_without_an_endpoint_every_row_is_skipped(run):
    judged = run(ALL)
    assert judged.scores["status"].unique().to_list() == ["skipped"]
    assert judged.scores["error_kind"].unique().to_list() == ["no_judge"]
    assert judged.scores["value"].null_count() == judged.scores.height == 2 * len(ALL)
    assert judged.answers["status"].to_list() == ["skipped"] * len(ALL)
    assert "set OPENAI_API_KEY" in judged.summary.skipped


def test_a_broken_ragas_skips_every_row_with_the_cure(server, run, monkeypatch):
    monkeypatch.setattr(score, "ragas_problem", lambda: "ragas does not import: pip install X")
    judged = run(ALL)
    assert judged.scores["error_kind"].unique().to_list() == ["ragas_unavailable"]
    assert judged.scores["error"].unique().to_list() == ["ragas does not import: pip install X"]
    assert judged.scores["value"].null_count() == judged.scores.height
    assert server.requests == []


def test_more_questions_than_allowed_are_skipped_and_the_choice_is_stable(server, run):
    many = [replace(FILTER, question_id=f"q{n}") for n in range(6)]
    chosen = run(many, max_questions=2).scores.filter(status="ok")["question_id"].unique()
    again = run(many[::-1], max_questions=2).scores
    assert again.filter(status="ok")["question_id"].unique().sort().equals(chosen.sort())
    assert chosen.len() == 2
    assert again.filter(status="skipped")["error_kind"].unique().to_list() == ["max_questions"]


def test_without_questions_the_tables_have_their_columns(server, run):
    judged = run([])
    for frame, schema in [
        (judged.answers, ANSWERS),
        (judged.scores, SCORES),
        (judged.statements, STATEMENTS),
    ]:
        assert frame.schema == pl.Schema(schema)


@pytest.mark.parametrize("questions", [[MOON], [STALE], ALL])
def test_the_columns_do_not_depend_on_the_rows(server, run, questions):
    judged = run(questions)
    assert judged.answers.schema == pl.Schema(ANSWERS)
    assert judged.scores.schema == pl.Schema(SCORES)
    assert judged.statements.schema == pl.Schema(STATEMENTS)


def test_progress_counts_every_question(server, run):
    seen = []
    run(ALL, progress=lambda done, total: seen.append((done, total)))
    assert seen == [(n, len(ALL)) for n in range(1, len(ALL) + 1)]


def test_it_works_where_a_loop_runs_already(server, run):
    async def notebook_cell():
        return run([FILTER])

    assert asyncio.run(notebook_cell()).scores["value"].to_list() == [1.0, 1.0]


def test_what_the_server_does_not_accept_is_in_the_summary(server, run):
    adaptations = run([FILTER], judge_model="reasoning").summary.adaptations
    assert "temperature not supported, left out" in adaptations["reasoning"]


def test_wrong_citations_are_sent_back_once(server, run):
    server.repaired[PUMP.question] = ["The pump is serviced every 6 months."]
    answer = row(run([PUMP], metrics=["faithfulness"]).answers, "pump")
    [repair] = [body["messages"] for body in server.requests if len(body["messages"]) == 4]
    assert "- quote_not_in_source: The pump is blue." in repair[-1]["content"]
    assert (answer["answer"], answer["issues"]) == ("The pump is serviced every 6 months.", [])
    assert json.loads(answer["sentences"]) == [
        {
            "text": "The pump is serviced every 6 months.",
            "sources": ["p1"],
            "quote": "The pump is serviced every 6 months.",
        }
    ]


def test_a_repair_may_withdraw_the_answer(server, run):
    server.repaired[PUMP.question] = []
    answer = row(run([PUMP]).answers, "pump")
    assert (answer["status"], answer["abstained"], answer["issues"]) == ("ok", True, [])


def test_a_repair_that_makes_it_worse_is_not_taken(server, run):
    server.repaired[PUMP.question] = ["It is red.", "It is big."]
    answer = row(run([PUMP]).answers, "pump")
    assert answer["answer"].endswith("The pump is blue.")
    assert len(answer["issues"]) == 2


def test_right_citations_cost_one_request(server, run):
    run([FILTER], metrics=["faithfulness"])
    assert sum(len(body["messages"]) == 2 for body in server.requests) == 1
    assert not [body for body in server.requests if len(body["messages"]) > 2]


def test_what_an_answer_says_beyond_its_contexts_is_flagged(server, run):
    server.answers[FILTER.question] = ["Filters cost 40 EUR.", "Orders go to Bosch by 2031."]
    answer = row(run([FILTER]).answers, "filter")
    assert answer["numbers_not_in_context"] == ["2031"]
    assert answer["names_not_in_context"] == ["Bosch"]
    assert (answer["quotes_not_in_context"], answer["lexical_support"]) == ([], None)


def test_an_abstention_has_no_flags(server, run):
    assert row(run([MOON]).answers, "moon")["numbers_not_in_context"] is None


def test_lexical_support_is_measured_on_request_and_apart_from_the_scores(server, run):
    judged = run([PUMP], lexical_support=True, metrics=["context_recall"])
    assert row(judged.answers, "pump")["lexical_support"] == pytest.approx(2 / 3)
    assert judged.scores["metric"].to_list() == ["context_recall"]


def test_lexical_support_asked_for_later_asks_no_model_again(server, run):
    first = run([PUMP])
    sent = len(server.requests)
    second = run([PUMP], previous=first, lexical_support=True)
    assert row(second.answers, "pump")["lexical_support"] == pytest.approx(2 / 3)
    assert len(server.requests) == sent


def test_repeated_judgements_are_averaged_with_their_variance(server, run):
    found = row(
        run([FILTER], judge_model="noisy", judge_repeats=3).scores, "filter", "faithfulness"
    )
    assert found["value"] == pytest.approx(1 / 3)
    assert (found["n_judgements"], found["variance"]) == (3, pytest.approx(1 / 3))
    assert (found["n_statements"], found["n_supported"], found["calls"]) == (3, 1, 6)


def test_a_single_judgement_has_no_variance(server, run):
    found = row(run([FILTER]).scores, "filter", "faithfulness")
    assert (found["n_judgements"], found["variance"]) == (1, None)


def test_every_repeated_judgement_keeps_its_verdicts(server, run):
    judged = run([FILTER], judge_model="noisy", judge_repeats=2, metrics=["context_recall"])
    assert judged.statements.select("judgement", "statement", "source", "verdict").rows() == [
        (0, 0, "reference", 1),
        (1, 0, "reference", 0),
    ]


def test_more_repeats_ask_only_for_the_further_judgements(server, run):
    first = run([FILTER], metrics=["context_recall"])
    sent = len(server.requests)
    second = run([FILTER], previous=first, metrics=["context_recall"], judge_repeats=3)
    assert len(server.requests) == sent + 2
    assert row(second.scores, "filter", "context_recall")["cached_calls"] == 1


def test_one_failed_judgement_of_several_is_no_score(server, run):
    given = server.reply
    server.reply = lambda body: {} if body["seed"] == 107 else given(body)
    found = row(run([FILTER], judge_repeats=2).scores, "filter", "context_recall")
    assert (found["status"], found["value"], found["n_judgements"]) == ("error", None, None)


def test_an_extractive_answer_needs_no_endpoint_and_is_labelled(run):
    judged = run([FILTER, MOON, STALE], answerer="extractive")
    answer = row(judged.answers, "filter")
    assert (answer["status"], answer["answer"]) == ("ok", "Filters cost 40 EUR.")
    assert (answer["answer_kind"], answer["answerer"]) == ("extractive", "extractive@1")
    assert (answer["issues"], answer["prompt_tokens"]) == ([], None)
    assert row(judged.answers, "moon")["abstained"] is True
    assert judged.scores["error_kind"].unique().to_list() == ["no_judge"]


def test_an_extractive_answer_is_judged_where_there_is_a_judge_and_asked_of_nobody(server, run):
    judged = run([FILTER], answerer="extractive")
    assert row(judged.scores, "filter", "faithfulness")["value"] == 1.0
    assert row(judged.answers, "filter")["answer_kind"] == "extractive"
    assert all(body["messages"][0]["role"] == "user" for body in server.requests)


def test_an_extractive_answer_is_never_taken_for_a_generated_one(server, run):
    first = run([FILTER], answerer="extractive")
    second = run([FILTER], previous=first)
    keys = [row(judged.answers, "filter")["answer_key"] for judged in (first, second)]
    assert keys[0] != keys[1]
    assert row(second.answers, "filter")["answer_kind"] == "generated"


@pytest.mark.parametrize(
    ("question", "passage", "reference"),
    [
        ("フィルターはいくらですか？", "フィルターは40ユーロです。", '40ユーロ、"税込"です。'),
        ("كم سعر المرشّح؟", "سعر المرشح ٤٠ يورو.", "السعر ٤٠ يورو."),
    ],
    ids=["ja", "ar"],
)
def test_texts_of_any_language_reach_the_judge_and_come_back_untouched(
    server, run, question, passage, reference
):
    server.answers[question] = [passage]
    asked = JudgedQuestion("x", question, reference, "ok", [passage])
    judged = run([asked], metrics=["faithfulness", "context_recall"])
    sent = [body["messages"][-1]["content"] for body in server.requests]
    assert f'<passage id="p1">\n{passage}\n</passage>' in sent[0]
    assert sent[0].endswith(f"Question: {question}")
    for prompt in sent[1:]:
        given = json.loads(prompt[prompt.rindex("\ninput: ") + 8 :].rpartition("\nOutput:")[0])
        assert set(given.values() if "statements" not in given else [given["context"]]) <= {
            question, passage, reference,
        }  # fmt: skip
    assert row(judged.answers, "x")["answer"] == passage
    assert row(judged.scores, "x", "faithfulness")["value"] == 1.0
    assert judged.statements.filter(metric="faithfulness")["text"].to_list() == [passage]


def test_the_key_is_in_no_row_file_or_log(server, run, key, tmp_path, caplog):
    caplog.set_level(logging.DEBUG)
    shown = [caplog.text]
    for model in ("ok", "refusal", "auth"):
        judged = run(ALL, judge_model=model)
        frames = (judged.answers, judged.scores, judged.statements)
        shown += [frame.write_json() for frame in frames] + [repr(judged.summary)]
    shown += [caplog.text, *(repr(vars(record)) for record in caplog.records)]
    shown += [file.read_bytes().decode("latin-1") for file in tmp_path.iterdir()]
    assert f"Bearer {key}" in server.keys
    assert key[:12] not in "".join(shown)


def test_nothing_but_the_endpoint_is_contacted(server, run, vectors, monkeypatch, tmp_path):
    contacted = set()
    connect, look_up = socket.socket.connect, socket.getaddrinfo

    def guarded_connect(sock, address):
        contacted.add(address[0])
        return connect(sock, address)

    def guarded_look_up(host, *args, **options):
        contacted.add(host if isinstance(host, str) else host.decode())
        return look_up(host, *args, **options)

    monkeypatch.setattr(socket.socket, "connect", guarded_connect)
    monkeypatch.setattr(socket, "getaddrinfo", guarded_look_up)
    home = tmp_path / "home"
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_DATA_HOME", str(home))
    run(ALL, metrics=list(METRICS), vectors=vectors)
    assert contacted == {"127.0.0.1"}
    assert not home.exists()  # where ragas would write who its user is


def test_the_telemetry_of_ragas_is_off(server, run):
    run([FILTER])
    from ragas._analytics import do_not_track

    assert os.environ["RAGAS_DO_NOT_TRACK"] == "true"
    assert do_not_track()
