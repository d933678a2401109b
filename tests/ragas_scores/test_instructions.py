"""A judge instructed in another language: a reviewed file, part of who judged, checked whole."""

import pytest
import yaml

from chunking_assets.config import JudgeSettings
from chunking_assets.errors import CorpusError
from evals.ragas_scores.frames import JudgedQuestion
from evals.ragas_scores.instructions import (
    ENGLISH,
    english_prompts,
    prompt_version,
    read_instructions,
)
from evals.ragas_scores.metrics.registry import METRICS
from evals.ragas_scores.score import judge_strategy

QUESTION = JudgedQuestion("f", "Quanto custa?", "Custa 40 EUR.", "ok", ["Custa 40 EUR."])


def translated(value):
    """Every text marked, everything else as it is."""
    if isinstance(value, dict):
        return {name: translated(part) for name, part in value.items()}
    if isinstance(value, list):
        return [translated(part) for part in value]
    return f"pt: {value}" if isinstance(value, str) and value not in ("low", "high") else value


@pytest.fixture
def content():
    return translated(yaml.safe_load(english_prompts(METRICS)))


@pytest.fixture
def written(tmp_path):
    def written(content):
        file = tmp_path / "pt.yaml"
        file.write_text(yaml.safe_dump(content, allow_unicode=True), encoding="utf-8")
        return read_instructions(file)

    return written


def judged(tmp_path, instructions):
    settings = JudgeSettings(answer_model="ok", judge_model="ok")
    return judge_strategy("s", [QUESTION], settings, tmp_path, instructions=instructions)


@pytest.mark.parametrize("name", METRICS)
def test_a_translation_is_another_measurement(content, written, name):
    assert prompt_version(name, written(content)) != prompt_version(name)


@pytest.mark.parametrize("name", METRICS)
def test_what_is_printed_to_be_translated_is_what_the_judge_is_told(written, name):
    same = written(yaml.safe_load(english_prompts([name])))
    assert prompt_version(name, same) == prompt_version(name)


def test_the_judge_is_told_in_the_language_and_named_by_it(
    endpoint_in_environment, content, written, tmp_path
):
    server = endpoint_in_environment
    server.answers[QUESTION.question] = QUESTION.contexts
    scores = judged(tmp_path, written(content)).scores
    assert scores["value"].to_list() == [1.0, 1.0]
    assert all(name.endswith("|pt") for name in scores["judge"])
    told = [b["messages"][0]["content"] for b in server.requests if len(b["messages"]) == 1]
    assert len(told) == 3
    assert all(prompt.startswith("pt: ") for prompt in told)
    assert "Albert Einstein was born" not in "".join(told).replace("pt: Albert Einstein", "")


def test_the_texts_that_are_judged_are_not_translated(
    endpoint_in_environment, content, written, tmp_path
):
    endpoint_in_environment.answers[QUESTION.question] = QUESTION.contexts
    statements = judged(tmp_path, written(content)).statements
    assert set(statements["text"]) == {"Custa 40 EUR."}


def test_without_a_file_it_is_english():
    assert read_instructions(None) == ENGLISH


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            lambda c: c.pop("faithfulness"),
            "NLIStatementPrompt, StatementGeneratorPrompt is missing",
        ),
        (lambda c: c["faithfulness"].pop("NLIStatementPrompt"), "NLIStatementPrompt is missing"),
        (lambda c: c["faithfulness"]["NLIStatementPrompt"].pop("instruction"), "instruction"),
        (lambda c: c["faithfulness"]["NLIStatementPrompt"]["examples"].pop(), "other statements"),
        (
            lambda c: c["faithfulness"]["NLIStatementPrompt"]["examples"][0].pop("input"),
            "no 'input'",
        ),
        (
            lambda c: c["faithfulness"]["NLIStatementPrompt"]["examples"][0]["output"][
                "statements"
            ][0].update(verdict=1),
            "other statements or verdicts",
        ),
        (
            lambda c: c["faithfulness"]["NLIStatementPrompt"]["examples"][0]["output"][
                "statements"
            ][0].update(verdict="maybe"),
            "verdict",
        ),
    ],
    ids=["metric", "prompt", "instruction", "example", "input", "verdict", "type"],
)
def test_a_translation_that_is_another_prompt_is_refused(content, written, change, said):
    change(content)
    with pytest.raises(CorpusError, match=said) as refused:
        prompt_version("faithfulness", written(content))
    assert "pt.yaml" in str(refused.value)


def test_a_translation_that_does_not_fit_stops_before_anything_is_sent(
    endpoint_in_environment, content, written, tmp_path
):
    del content["context_recall"]
    with pytest.raises(CorpusError, match="ContextRecallPrompt is missing"):
        judged(tmp_path, written(content))
    assert endpoint_in_environment.requests == []


@pytest.mark.parametrize(
    ("text", "said"),
    [("- a", "is not a mapping"), ("a: [", "line"), ("faith: {}", "is no metric")],
)
def test_a_file_that_is_no_translation_names_the_cure(tmp_path, text, said):
    file = tmp_path / "pt.yaml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(CorpusError, match=said) as refused:
        read_instructions(file)
    assert "prompts` prints" in str(refused.value)


def test_a_file_that_is_missing_is_said(tmp_path):
    with pytest.raises(CorpusError, match="cannot be read"):
        read_instructions(tmp_path / "pt.yaml")
