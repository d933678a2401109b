import pytest
import yaml
from measured_corpus import question, write_measured_corpus

from evals.gold_questions.__main__ import main


@pytest.fixture
def file(tmp_path, monkeypatch):
    monkeypatch.setenv("CORPUS_CONFIG", str(write_measured_corpus(tmp_path)))
    return tmp_path / "gold.yaml"


def test_right_questions_are_counted(file, capsys):
    assert main() == 0
    assert "13 (1 of them unanswerable)" in capsys.readouterr().out


def test_a_mistake_is_one_line_with_its_cure(file, capsys):
    file.write_text(yaml.safe_dump({"questions": [question(0, answer=1924)]}))
    assert main() == 1
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "gold.yaml: question 'q0': answer: " in error
    assert "Put the value in quotes." in error
