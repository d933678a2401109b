import pytest
import yaml
from measured_corpus import MeasuredCorpus, document, question, write_measured_corpus
from small_corpus import write_document

from chunking_assets.errors import CorpusError
from dagster_defs import inputs
from evals.gold_questions.build import GOLD_EVIDENCE, GOLD_QUESTIONS, LostQuote, read_gold
from evals.gold_questions.report import LISTED, lost_passages


@pytest.fixture
def corpus(tmp_path):
    corpus = MeasuredCorpus(write_measured_corpus(tmp_path))
    corpus.parse()
    return corpus


def test_every_question_has_a_status(corpus):
    update = corpus.resolve()
    assert (update.total, update.active, update.unanswerable, update.stale) == (13, 12, 1, ())


def test_resolving_again_writes_nothing(corpus):
    corpus.resolve()
    before = [corpus.workspace.table(n).files() for n in (GOLD_QUESTIONS, GOLD_EVIDENCE)]
    corpus.resolve()
    assert [corpus.workspace.table(n).files() for n in (GOLD_QUESTIONS, GOLD_EVIDENCE)] == before


def test_an_edit_above_the_evidence_moves_its_span_and_the_version(corpus):
    before = corpus.resolve()
    write_document(corpus.config.root, "3.md", "New first line.\n\n" + document(3))
    corpus.parse()
    after = corpus.resolve()
    assert after.active == 12
    assert after.version != before.version


def test_an_edit_elsewhere_leaves_the_version(corpus):
    before = corpus.resolve()
    write_document(corpus.config.root, "3.md", document(3) + "\nNew last line.\n")
    corpus.parse()
    assert corpus.resolve().version == before.version


def test_evidence_that_is_gone_makes_its_question_stale_and_says_why(corpus):
    write_document(corpus.config.root, "3.md", "Something else.")
    (corpus.config.root / "docs" / "4.md").unlink()
    corpus.parse()
    update = corpus.resolve()
    assert update.active == 10
    assert dict(update.stale) == {
        "q3": "evidence 1: quote not found in docs/3.md",
        "q4": "evidence 1: no document docs/4.md",
    }


def test_tables_of_two_updates_are_not_read_together(corpus):
    corpus.resolve()
    evidence = corpus.workspace.table(GOLD_EVIDENCE)
    evidence.replace(evidence.read(), version="another")
    with pytest.raises(CorpusError, match="Build gold_questions again"):
        read_gold(corpus.workspace)


def test_a_question_file_is_named_from_the_configuration(corpus):
    corpus.resolve()
    assert read_gold(corpus.workspace).questions["file"].unique().to_list() == ["gold.yaml"]


def test_a_mistake_in_a_question_file_names_it(corpus):
    broken = {"questions": [question(0), question(0)]}
    (corpus.config.root / "gold.yaml").write_text(yaml.safe_dump(broken))
    with pytest.raises(CorpusError, match=r"gold\.yaml.*q0"):
        corpus.resolve()


def with_draft(corpus):
    entries = [question(n) for n in range(12)]
    entries.append(question(0, id="draft", question="Who drafts?", status="draft"))
    entries.append(question(0, id="moon", answerable=False, evidence=[], answer=""))
    (corpus.config.root / "gold.yaml").write_text(yaml.safe_dump({"questions": entries}))


def test_a_draft_is_recorded_and_no_reader_is_given_it(corpus):
    before = corpus.resolve()
    gold = read_gold(corpus.workspace)
    with_draft(corpus)
    after = corpus.resolve()
    assert (after.total, after.active, after.drafts) == (14, 12, 1)
    assert after.version == before.version
    rows = corpus.workspace.table(GOLD_QUESTIONS).read()
    assert rows.filter(question_id="draft")["status"].item() == "draft"
    now = read_gold(corpus.workspace)
    assert "draft" not in now.questions["question_id"]
    assert "draft" not in now.evidence["question_id"]
    assert now.content == gold.content


def test_a_draft_makes_no_score_out_of_date(corpus):
    corpus.update()
    corpus.resolve()
    asked = corpus.score("recursive").asked
    before = inputs.wanted(corpus.config, corpus.workspace, "strategy_comparison")
    with_draft(corpus)
    corpus.resolve()
    assert asked > 0
    assert corpus.score("recursive").asked == 0
    assert inputs.wanted(corpus.config, corpus.workspace, "strategy_comparison") == before
    approved = (corpus.config.root / "gold.yaml").read_text().replace("draft\n", "approved\n")
    (corpus.config.root / "gold.yaml").write_text(approved.replace("id: approved", "id: draft"))
    corpus.resolve()
    assert corpus.score("recursive").asked == asked + 1


def test_what_became_of_a_passage_is_kept_and_reported(corpus):
    corpus.resolve()
    write_document(corpus.config.root, "3.md", document(3).replace("Lisbon", "Porto"))
    corpus.parse()
    (lost,) = corpus.resolve().lost
    assert (lost.question_id, lost.doc_id) == ("q3", "docs/3.md")
    assert "payouts to [-Lisbon-]{+Porto+} accounts" in lost.diff
    assert "In short" in lost.diff
    row = corpus.workspace.table(GOLD_EVIDENCE).read().filter(question_id="q3")
    assert "payouts to Lisbon" in row["passage"].item()
    assert row["diff"].item() == lost.diff
    assert "      " + lost.diff in lost_passages([lost])


def test_a_lost_passage_is_reported_until_it_is_mended(corpus):
    corpus.resolve()
    write_document(corpus.config.root, "3.md", document(3).replace("Lisbon", "Porto"))
    corpus.parse()
    first = corpus.resolve()
    assert corpus.resolve() == first
    write_document(corpus.config.root, "3.md", document(3))
    corpus.parse()
    assert corpus.resolve().lost == ()


def test_many_lost_passages_are_cut_short():
    lost = [LostQuote(f"q{n}", "docs/a.md", "words\nof two lines", None) for n in range(LISTED + 2)]
    text = lost_passages(lost)
    assert text.count("[-words of two lines-] (nothing there is like it)") == LISTED
    assert "… and 2 more in `gold_evidence`" in text
    assert lost_passages([]) == "none"


def test_gold_tables_of_an_earlier_release_are_replaced(corpus):
    corpus.resolve()
    for name in (GOLD_QUESTIONS, GOLD_EVIDENCE):
        table = corpus.workspace.table(name)
        new = ("alternative", "passage", "diff")
        table.replace(table.read().drop(new, strict=False), version="old", details={})
    assert corpus.resolve().active == 12
    assert "passage" in corpus.workspace.table(GOLD_EVIDENCE).read().columns


def test_other_rows_of_the_same_files_are_built_again(corpus, monkeypatch):
    before = inputs.wanted(corpus.config, corpus.workspace, "gold_questions")
    monkeypatch.setattr(inputs, "RESOLVING", inputs.RESOLVING + 1)
    assert inputs.wanted(corpus.config, corpus.workspace, "gold_questions") != before
