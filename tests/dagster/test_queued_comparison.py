"""A comparison that was asked for, and whose questions changed before it began."""

import dagster as dg
import yaml


def test_a_comparison_whose_questions_changed_compares_nothing_and_is_due_with_new_scores(
    built_until,
):
    corpus = built_until("ragas_scores")
    corpus.materialize("strategy_comparison")
    compared = corpus.latest("strategy_comparison")
    questions = yaml.safe_load((corpus.root / "questions.yaml").read_text())["questions"]
    corpus.write("questions.yaml", yaml.safe_dump({"questions": questions[:-1]}))
    corpus.run("gold_questions")
    (result,) = corpus.run("strategy_comparison")  # asked for before
    assert result.success
    said = corpus.instance.all_logs(result.run_id)
    assert any("Nothing was compared" in entry.user_message for entry in said)
    assert corpus.latest("strategy_comparison") == compared
    requested = corpus.converge()
    assert requested["strategy_comparison"] == 1
    assert corpus.latest("strategy_comparison") != compared


def test_a_version_that_no_strategy_uses_has_nothing_judged_in_error(corpus_of):
    corpus = corpus_of(
        strategies={"one": {"chunker": "fixed-20@1", "model": "hash", "profile": "vector"}},
        comparison={"baseline": "one"},
    )
    corpus.materialize("ragas_scores")
    (evaluation,) = corpus.instance.event_log_storage.get_asset_check_execution_history(
        dg.AssetCheckKey(dg.AssetKey("ragas_scores"), "judged_without_errors"), limit=1
    )
    assert evaluation.status.value == "SUCCEEDED"
