"""Every metric runs as released; its values are counted by hand, its faults are never scores."""

import asyncio
from typing import get_args

import pytest
from chat_server import KEY

from chunking_assets.chat_models.chat_endpoint import CallFailed, ChatEndpoint
from chunking_assets.chat_models.endpoint import Endpoint
from chunking_assets.chat_models.response_cache import ResponseCache
from chunking_assets.config import JudgeSettings
from evals.ragas_scores.instructions import prompt_version
from evals.ragas_scores.judge import Judge, Judgement
from evals.ragas_scores.metrics.metric import Sample
from evals.ragas_scores.metrics.registry import METRICS

SAMPLE = Sample(
    question="what does the filter cost",
    answer="A filter is 40 EUR. It is red. It is new.",
    reference="A filter is 40 EUR. It is green.",
    contexts=("Pumps are blue.", "A filter is 40 EUR.", "It is green."),
)
BY_HAND = {
    "faithfulness": 1 / 3,
    "context_recall": 1.0,
    "context_precision": (1 / 2 + 2 / 3) / 2,
    "factual_correctness": 2 * 1 / (2 * 1 + 2 + 1),
    "answer_relevancy": 1.0,
}


@pytest.fixture
def judged(endpoint_in_environment, tmp_path, vectors):
    server = endpoint_in_environment
    server.derived[SAMPLE.answer] = SAMPLE.question

    def judged(name, sample=SAMPLE, model="ok"):
        async def one():
            with ResponseCache(tmp_path / "replies.sqlite") as cache:
                endpoint = Endpoint(server.url, KEY)
                async with ChatEndpoint(endpoint, cache, concurrency=4, timeout=20) as chat:
                    judgement = Judgement()
                    judge = Judge(chat, model, vectors=vectors)
                    await judge.judge(METRICS[name], sample, judgement)
                    return judgement

        return asyncio.run(one())

    return judged


@pytest.mark.parametrize("name", METRICS)
def test_a_metric_is_what_can_be_counted_by_hand(judged, name):
    assert judged(name).value == pytest.approx(BY_HAND[name], abs=1e-6)


@pytest.mark.parametrize(
    ("name", "calls"),
    [("faithfulness", 2), ("context_recall", 1), ("context_precision", 3),
     ("factual_correctness", 4), ("answer_relevancy", 3)],
)  # fmt: skip
def test_a_metric_costs_as_many_requests_as_it_says(judged, endpoint_in_environment, name, calls):
    assert judged(name).spent.requests == calls
    assert len(endpoint_in_environment.requests) == calls


def test_equal_prompts_of_one_judgement_are_asked_under_seeds_of_their_own(
    judged, endpoint_in_environment
):
    judged("answer_relevancy")
    assert [body["seed"] for body in endpoint_in_environment.requests] == [7, 8, 9]


@pytest.mark.parametrize("name", METRICS)
@pytest.mark.parametrize(
    ("model", "kind"),
    [("verdict2", "invalid_output"), ("badjson", "invalid_output"), ("refusal", "refused"),
     ("length", "truncated")],
)  # fmt: skip
def test_a_reply_that_is_no_judgement_is_a_failure_with_its_kind(judged, name, model, kind):
    with pytest.raises(CallFailed) as failed:
        judged(name, model=model)
    assert failed.value.kind == kind


@pytest.mark.parametrize("name", ["faithfulness", "factual_correctness"])
def test_fewer_verdicts_than_statements_are_refused(judged, name):
    with pytest.raises(CallFailed, match="1 verdicts given, 3 expected"):
        judged(name, model="drop")


@pytest.mark.parametrize("name", ["faithfulness", "factual_correctness"])
def test_a_text_without_statements_has_no_value(judged, name):
    assert judged(name, model="nostatements").value is None


def test_a_reference_without_claims_has_no_factual_correctness(judged, endpoint_in_environment):
    server = endpoint_in_environment
    given = server.reply
    server.reply = lambda body: (
        {"claims": []} if "It is green" in str(body["messages"]) and "atomicity" in
        str(body["messages"]).rpartition("input: ")[2] else given(body)
    )  # fmt: skip
    assert judged("factual_correctness").value is None


def test_passages_none_of_which_helped_have_no_precision(judged):
    useless = Sample(SAMPLE.question, "", "It is square.", SAMPLE.contexts)
    assert judged("context_precision", useless).value == 0.0


def test_an_evasive_answer_is_not_relevant(judged):
    judgement = judged("answer_relevancy", model="evasive")
    assert judgement.value == 0.0
    assert judgement.said.of("question") == [0, 0, 0]


def test_questions_that_share_half_their_words_are_half_as_relevant(
    judged, endpoint_in_environment
):
    endpoint_in_environment.derived[SAMPLE.answer] = "what does ice weigh there"
    assert judged("answer_relevancy").value == pytest.approx(2 / 5, abs=1e-6)


def test_an_empty_derived_question_is_no_reply(judged, endpoint_in_environment):
    endpoint_in_environment.derived[SAMPLE.answer] = " "
    with pytest.raises(CallFailed, match="the question is empty"):
        judged("answer_relevancy")


def test_the_sources_of_statements_are_told_apart(judged):
    verdicts = judged("factual_correctness").said.verdicts
    assert [(v.source, v.verdict) for v in verdicts] == [
        ("answer", 1), ("answer", 0), ("answer", 0), ("reference", 1), ("reference", 0),
    ]  # fmt: skip


def test_the_embedding_model_is_part_of_the_judge_of_relevancy_alone(vectors):
    class Chat:
        host = "host"

    judge = Judge(Chat(), "m", vectors=vectors)
    assert judge.name("answer_relevancy").endswith("|" + vectors.identity)
    assert "words" not in judge.name("faithfulness")


def test_the_metrics_that_may_be_configured_are_those_there_are():
    [names, _] = get_args(JudgeSettings.model_fields["metrics"].annotation)
    assert list(get_args(names)) == list(METRICS)


def test_the_prompts_are_the_ones_scores_were_made_with():
    """A change here is another measurement: old and new scores are not comparable."""
    assert {name: prompt_version(name) for name in METRICS} == {
        "faithfulness": "58cb34bd1640",
        "context_recall": "09d9367edbba",
        "context_precision": "9cc1d5a1f2e5",
        "factual_correctness": "b72e28955a96",
        "answer_relevancy": "02ae422d1a8c",
    }


def test_the_parameters_are_the_ones_scores_were_made_with():
    from evals.ragas_scores.instructions import _inert

    factual = METRICS["factual_correctness"].of_ragas(*_inert())
    assert (factual.mode, factual.beta, factual.atomicity, factual.coverage) == (
        "f1", 1.0, "low", "low",
    )  # fmt: skip
    assert METRICS["answer_relevancy"].of_ragas(*_inert()).strictness == 3
