import re

from benchmarks import comparison


def test_the_benchmark_prints_a_ratio_and_a_share_of_the_budget(monkeypatch, capsys):
    arguments = ["--questions", "60", "--strategies", "3", "--resamples", "200"]
    monkeypatch.setattr("sys.argv", ["comparison", *arguments])
    assert comparison.main() == 0
    printed = capsys.readouterr().out
    assert "60 questions on " in printed
    assert re.search(r"ours .* 26 differences, \d+ more in slices", printed)
    assert re.search(r"ours / scipy \d+\.\d\d; \d+% of 30 s", printed)
