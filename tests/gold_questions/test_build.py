import pytest
import yaml
from measured_corpus import MeasuredCorpus, document, question, write_measured_corpus
from small_corpus import write_document

from chunking_assets.errors import CorpusError
from evals.gold_questions.build import GOLD_EVIDENCE, GOLD_QUESTIONS, read_gold


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
