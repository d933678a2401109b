"""A judge against people: its verdicts are by substring, so what it misses is known."""

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from chunking_assets import config as configuration
from chunking_assets.config import JudgeSettings
from chunking_assets.workspace import Workspace
from evals.ragas_scores.__main__ import main
from evals.ragas_scores.agreement import (
    JudgedLabel,
    agreement_frame,
    agreements,
    cohens_kappa,
    distrust,
    judge_labels,
    wilson,
)
from evals.ragas_scores.labels import LabelledAnswer, LabelledText

CONTEXTS = ("A filter costs 40 EUR. It is red.",)
COUNTS = st.tuples(*[st.integers(0, 30)] * 4).filter(sum)


def whole(answer, is_supported, kind=""):
    return LabelledAnswer("q", CONTEXTS, answer, LabelledText(answer, is_supported, kind))


def stated(*texts):
    return LabelledAnswer("q", CONTEXTS, "", None, tuple(LabelledText(*text) for text in texts))


LABELS = [
    whole("A filter costs 40 EUR. It is red.", True, "verbatim"),
    whole("It is red. It costs 45 EUR.", False, "wrong number"),
    stated(
        ("It is red.", True, "verbatim"),
        ("40 EUR is what a filter costs.", True, "paraphrase"),
        ("It is blue.", False, "unsupported"),
    ),
]


@pytest.fixture
def judged(tmp_path):
    def judged(labels=LABELS, model="ok"):
        return judge_labels(labels, JudgeSettings(judge_model=model, timeout=20), tmp_path)

    return judged


def test_every_label_has_the_judges_word_in_order(endpoint_in_environment, judged):
    name, found = judged()
    assert [each.judged for each in found] == [True, False, True, False, False]
    assert name.startswith("ok@")
    assert "It costs 45 EUR. (by substring)" in found[1].reason


def test_labelled_statements_are_put_to_the_judge_as_they_stand(endpoint_in_environment, judged):
    judged([LABELS[2]])
    [asked] = endpoint_in_environment.requests
    assert '"40 EUR is what a filter costs."' in asked["messages"][0]["content"]


def test_verdicts_in_another_order_are_put_back(endpoint_in_environment, judged):
    server = endpoint_in_environment
    given = server.reply
    server.reply = lambda body: {"statements": given(body)["statements"][::-1]}
    _, found = judged([LABELS[2]])
    assert [each.judged for each in found] == [True, False, False]


def test_accuracy_and_kappa_are_counted_for_all_and_for_each_kind(endpoint_in_environment, judged):
    name, found = judged()
    rows = {row.kind: row for row in agreements(name, "l", found)}
    assert list(rows) == ["all", "paraphrase", "unsupported", "verbatim", "wrong number"]
    everything = rows["all"]
    assert (everything.n_labels, everything.n_judged, everything.accuracy) == (5, 5, 0.8)
    assert (everything.both_supported, everything.only_people_supported) == (2, 1)
    assert everything.kappa == pytest.approx((0.8 - 0.48) / (1 - 0.48))
    assert (rows["paraphrase"].accuracy, rows["verbatim"].accuracy) == (0.0, 1.0)
    assert rows["verbatim"].kappa is None  # all are supported: chance agrees always


def test_a_failed_judgement_is_neither_agreement_nor_disagreement(endpoint_in_environment, judged):
    name, found = judged([LABELS[0], LABELS[2]], model="drop")
    [row, *_] = agreements(name, "l", found)
    assert (row.n_labels, row.n_judged, row.error_kind) == (4, 0, "invalid_output")
    assert (row.accuracy, row.kappa) == (None, None)


def test_without_a_judge_nothing_is_known(judged):
    name, found = judged()
    assert name is None
    assert {each.error_kind for each in found} == {"no_judge"}


@given(COUNTS)
def test_kappa_is_at_most_one_and_one_only_without_disagreement(counts):
    _, only_judge, only_people, _ = counts
    kappa = cohens_kappa(*counts)
    assert kappa is None or -1 <= kappa <= 1
    assert (kappa == 1) <= (only_judge == only_people == 0)


@given(COUNTS)
def test_kappa_does_not_ask_who_is_who(counts):
    both, only_judge, only_people, neither = counts
    assert cohens_kappa(*counts) == cohens_kappa(both, only_people, only_judge, neither)


@given(st.integers(1, 500).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_an_interval_holds_its_share(counts):
    low, high = wilson(*counts)
    assert 0 <= low <= counts[0] / counts[1] + 1e-12
    assert counts[0] / counts[1] - 1e-12 <= high <= 1


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A project with labels, from its folder."""
    (tmp_path / "docs").mkdir()
    labels = [
        {"question": "q", "contexts": list(CONTEXTS), "answer": text, "faithful": True, "kind": k}
        for text, k in (("It is red.", "verbatim"), ("40 EUR is the price.", "paraphrase"))
    ]
    (tmp_path / "labels.yaml").write_text(yaml.safe_dump({"labels": labels}))
    ragas = {"judge_model": "ok", "judge_labels": "labels.yaml"}
    content = {
        "collections": {"docs": {"path": "docs"}},
        "embedding_models": {"minilm": {"kind": "minilm"}},
        "chunkers": {"fixed-20@1": {"kind": "fixed", "max_tokens": 20}},
        "retrieval_profiles": {"bm25": {"search": "bm25"}},
        "strategies": {"s": {"chunker": "fixed-20@1", "model": "minilm", "profile": "bm25"}},
    }

    def write(**changes):
        (tmp_path / "corpus.yaml").write_text(yaml.safe_dump({**content, "ragas": ragas | changes}))

    write()
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CORPUS_CONFIG", raising=False)
    monkeypatch.delenv("CORPUS_HOME", raising=False)
    return write


def test_the_command_says_how_far_the_judge_agrees_and_where_not(
    project, endpoint_in_environment, capsys
):
    assert main(["agreement"]) == 0
    said = capsys.readouterr().out
    assert "all: accuracy 0.50 (0.09 to 0.91), kappa 0.00, 2 of 2 judged" in said
    assert "not supported, people disagree (paraphrase): 40 EUR is the price." in said


def test_the_command_fails_where_the_judge_did_not_judge(project, capsys):
    assert main(["agreement"]) == 1
    assert "all: none of 2 judged (no_judge)" in capsys.readouterr().out


def test_the_command_without_labels_names_the_cure(project, capsys):
    project(judge_labels=None)
    assert main(["agreement"]) == 1
    assert "ragas.judge_labels: no labels are named" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"judge_labels": "gone.yaml"}, "ragas.judge_labels: no file"),
        ({"judge_instructions": "gone.yaml"}, "ragas.judge_instructions: no file"),
        ({"embedding_model": "gone"}, "ragas.embedding_model: unknown embedding model 'gone'"),
    ],
)
def test_a_setting_that_names_nothing_is_a_mistake_in_the_file(project, capsys, changes, said):
    project(**changes)
    assert main(["agreement"]) == 1
    assert said in capsys.readouterr().err


def test_the_prompts_are_printed_to_be_translated(project, capsys):
    assert main(["prompts"]) == 0
    printed = yaml.safe_load(capsys.readouterr().out)
    assert list(printed) == ["faithfulness", "context_recall"]


def measured(right, wrong, failed=0, judge="judge"):
    """The table after so many labels were judged; labels are supported and not in turn."""
    judged = [JudgedLabel(LabelledText("", n % 2 == 0, ""), n % 2 == 0, "") for n in range(right)]
    judged += [JudgedLabel(LabelledText("", n % 2 == 0, ""), n % 2 == 1, "") for n in range(wrong)]
    judged += [JudgedLabel(LabelledText("", True, ""), None, "", "timeout") for _ in range(failed)]
    return agreement_frame(agreements(judge, "labels", judged))


@pytest.mark.parametrize(
    ("agreement", "said"),
    [
        (None, "was not compared with people. Name a file of labels under ragas.judge_labels"),
        (measured(40, 0, judge="other"), "was not compared with people"),
        (measured(29, 0), "on 29 of 29 labels, 30 are needed"),
        (measured(40, 0, failed=4), "on 40 of 44 labels, 42 are needed"),
        (measured(24, 16), "by kappa 0.20, 0.6 is needed (comparison.min_kappa)"),
    ],
)
def test_a_judge_decides_nothing_before_it_agrees_with_people(agreement, said):
    reason = distrust(agreement, "judge", 0.6)
    assert said in reason
    assert reason.endswith("python -m evals.ragas_scores agreement")


def test_labels_that_are_all_alike_say_nothing_of_a_judge():
    judged = [JudgedLabel(LabelledText("", True, ""), True, "")] * 40
    table = agreement_frame(agreements("judge", "labels", judged))
    assert "alike" in distrust(table, "judge", 0.6)


def test_a_judge_that_agrees_with_people_is_trusted():
    assert distrust(measured(40, 4), "judge", 0.6) is None


def test_the_command_records_what_it_measured(project, endpoint_in_environment, capsys):
    assert main(["agreement"]) == 0
    recorded = Workspace(configuration.load().home).table("judge_agreement").read()
    assert recorded.filter(kind="all")["accuracy"].to_list() == [0.5]
