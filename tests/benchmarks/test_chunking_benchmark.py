import csv
import json

import pytest

from benchmarks import chunking

TEXT = "# Fees\n\nA card payment costs 1.4 percent.\n\n# Payouts\n\nMoney arrives on Tuesday.\n"


@pytest.fixture
def folder(tmp_path):
    """The layout of the public benchmark, with one corpus and two questions."""
    (tmp_path / "data" / "corpora").mkdir(parents=True)
    (tmp_path / "data" / "corpora" / "help.md").write_text(TEXT)
    with (tmp_path / "data" / "questions_df.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["question", "references", "corpus_id"])
        for question, quote in (
            ("What does a card payment cost?", "A card payment costs 1.4 percent."),
            ("When does money arrive?", "Money arrives on Tuesday."),
        ):
            start = TEXT.index(quote)
            span = {"content": quote, "start_index": start, "end_index": start + len(quote)}
            rows.writerow([question, json.dumps([span]), "help"])
    return tmp_path / "data"


def test_gold_spans_are_offsets_into_the_indexed_text(folder):
    spans = [q.evidence[0][0] for q in chunking.read_questions(folder)]
    assert [TEXT[s.start : s.end] for s in spans] == [
        "A card payment costs 1.4 percent.",
        "Money arrives on Tuesday.",
    ]
    assert {s.doc_id for s in spans} == {"corpora/help.md"}


def test_the_benchmark_runs_the_products_own_stages(
    folder, tmp_path, models_folder, monkeypatch, capsys
):
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    models_folder.mkdir(parents=True, exist_ok=True)
    (workspace / "models").symlink_to(models_folder)
    arguments = ["chunking", str(folder), "--workspace", str(workspace), "--chunker", "fixed-200@1"]
    monkeypatch.setattr("sys.argv", arguments)
    assert chunking.main() == 0
    printed = capsys.readouterr().out
    assert "100.0 [100.0, 100.0]" in printed
    assert "published: recursive 200/0" in printed
    assert "embed fixed-200@1+e5-small" in printed


def test_a_folder_of_another_layout_is_named(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["chunking", str(tmp_path)])
    with pytest.raises(SystemExit, match="2"):
        chunking.main()
    assert f"{tmp_path} has no questions_df.csv" in capsys.readouterr().err
