"""The judged scores as an asset: what a person sees beside them, and what redoes them."""

import pytest
import yaml
from chat_server import serving
from judge_server import JudgeServer

LABELS = {
    "labels": [
        {"question": "q", "contexts": ["It is red."], "answer": answer, "faithful": True}
        for answer in ("It is red.", "Red it is.")
    ]
}
RAGAS = {
    "answer_model": "ok",
    "judge_model": "ok",
    "metrics": ["faithfulness", "context_precision", "answer_relevancy"],
    "judge_labels": "labels.yaml",
}


@pytest.fixture
def judging(corpus_of, tmp_path, monkeypatch):
    """(corpus, server): three metrics and two labels, by the judge on loopback."""
    (tmp_path / "labels.yaml").write_text(yaml.safe_dump(LABELS))
    with serving(JudgeServer()) as server:
        corpus = corpus_of(ragas=RAGAS)
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        for shard in ("docs", "notes"):
            for n in range(3):
                server.answers[f"What does paragraph {n} of {shard} {n} say?"] = [
                    f"Paragraph {n} of {shard} {n} says one thing and then another about "
                    f"number {n} only here."
                ]
        yield corpus, server


def test_scores_show_their_coverage_and_how_far_the_judge_agrees_with_people(judging):
    corpus, _ = judging
    corpus.materialize("strategy_comparison")
    compared = corpus.latest("strategy_comparison").metadata["judged"].value
    assert "- `recursive`, faithfulness: cannot tell: 6 questions, 10 are needed." in compared
    shown = corpus.latest("ragas_scores", "fixed-20@1").metadata
    assert "all: accuracy 0.50" in shown["agreement_with_people"].value
    covered = [str(m.value) for name, m in shown.items() if name.endswith("faithfulness, coverage")]
    assert covered
    assert all(" of 6 scored, bounds " in text for text in covered)
    assert any(name.endswith(": answer_relevancy") for name in shown)


def test_nothing_is_asked_twice_and_edited_labels_ask_for_no_judgement_of_answers(judging):
    corpus, server = judging
    corpus.materialize("ragas_scores")
    sent = len(server.requests)
    assert corpus.materialize("ragas_scores")["ragas_scores"] == 0
    assert len(server.requests) == sent
    corpus.write("labels.yaml", yaml.safe_dump({"labels": LABELS["labels"][:1]}))
    assert corpus.materialize("ragas_scores")["ragas_scores"] == 2
    assert len(server.requests) == sent
    said = corpus.latest("ragas_scores", "fixed-20@1").metadata["agreement_with_people"].value
    assert "all: accuracy 1.00" in said
