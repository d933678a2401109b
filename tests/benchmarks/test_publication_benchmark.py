import re

from benchmarks import publication


def test_the_benchmark_prints_a_ratio_and_a_share_of_the_budget(monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["publication", "--rows", "2000"])
    assert publication.main() == 0
    printed = capsys.readouterr().out
    assert printed.startswith("2,000 rows, ")
    assert re.search(r"ours / bare copy \d+\.\d\d; \d+% of 3 s", printed)
