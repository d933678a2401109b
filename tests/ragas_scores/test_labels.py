import pytest

from chunking_assets.errors import CorpusError
from evals.ragas_scores.labels import LabelledAnswer, LabelledText, load_labels

YAML = """\
labels:
  - question: What does it cost?
    contexts: [It costs 40 EUR., It is red.]
    answer: It costs 45 EUR.
    faithful: no
    kind: wrong number
  - question: What does it cost?
    contexts: [It costs 40 EUR.]
    kind: plain
    statements:
      - {text: It costs 40 EUR., supported: yes}
      - {text: It is blue., supported: no, kind: unsupported}
"""
CSV = """\
question,contexts,answer,statement,label,kind
What does it cost?,"[""It costs 40 EUR."", ""It is red.""]",It costs 45 EUR.,,no,wrong number
What does it cost?,It costs 40 EUR.,,It is blue.,no,unsupported
"""
WHOLE = LabelledAnswer(
    "What does it cost?",
    ("It costs 40 EUR.", "It is red."),
    "It costs 45 EUR.",
    LabelledText("It costs 45 EUR.", False, "wrong number"),
)


@pytest.fixture
def load(tmp_path):
    def load(text, name="labels.yaml"):
        file = tmp_path / name
        file.write_text(text, encoding="utf-8")
        return load_labels(file)

    return load


def test_answers_and_statements_are_labelled_in_yaml(load):
    whole, stated = load(YAML)
    assert whole == WHOLE
    assert (stated.whole, stated.statements) == (
        None,
        (
            LabelledText("It costs 40 EUR.", True, "plain"),
            LabelledText("It is blue.", False, "unsupported"),
        ),
    )


def test_a_csv_has_a_row_a_label(load):
    whole, stated = load(CSV, "labels.csv")
    assert whole == WHOLE
    assert stated.statements == (LabelledText("It is blue.", False, "unsupported"),)
    assert stated.contexts == ("It costs 40 EUR.",)


def test_a_csv_as_a_spreadsheet_saves_it_is_read(load):
    assert load("\ufeff" + CSV.replace("\n", "\r\n"), "labels.csv") == load(CSV, "labels.csv")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (YAML.replace("faithful: no", "faithfull: no"), "label number 1: faithfull: unknown key"),
        (YAML.replace("    faithful: no\n", ""), "needs either `faithful` or `statements`"),
        (YAML.replace("    answer: It costs 45 EUR.\n", ""), "has no `answer`"),
        (YAML.replace("[It costs 40 EUR., It is red.]", "[]"), "contexts"),
        (YAML.replace("supported: yes", "supported: perhaps"), "label number 2"),
        ("- a", "Start it with `labels:`"),
        ("labels: [", "line"),
    ],
)
def test_what_is_no_label_is_said_with_its_place(load, text, said):
    with pytest.raises(CorpusError, match=said) as refused:
        load(text)
    assert "labels.yaml" in str(refused.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (CSV.replace("label,kind", "label"), "first line.*has no kind"),
        (CSV.replace(",no,wrong", ",,wrong"), "row 2: faithful"),
        (CSV.replace("What does it cost?,It", ",It"), "row 3: question"),
    ],
)
def test_a_csv_row_that_is_no_label_is_said_with_its_number(load, text, said):
    with pytest.raises(CorpusError, match=said):
        load(text, "labels.csv")


def test_a_file_that_is_missing_is_said(tmp_path):
    for name in ("labels.yaml", "labels.csv"):
        with pytest.raises(CorpusError, match="cannot be read"):
            load_labels(tmp_path / name)
