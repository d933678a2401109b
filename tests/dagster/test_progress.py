"""What a long piece of work says of itself while it goes on."""

import pytest

from dagster_defs import progress


@pytest.fixture
def told(monkeypatch):
    lines: list[str] = []
    clock = iter([0.0, 10.0, 20.0, 30.0])
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(clock))
    progress.listeners.append(lines.append)
    yield lines
    progress.listeners.remove(lines.append)


class Log:
    def info(self, msg):
        pass


def test_a_line_says_how_much_how_fast_and_how_long_still(told):
    tell = progress.logged(Log(), "index: embedded", "chunks")
    tell(20, 100, 8_000)
    tell(60, 100, 25_000)
    assert told == [
        "index: embedded 20/100 chunks, 2.0/s, 800 tokens/s, about 40 s left",
        "index: embedded 60/100 chunks, 3.0/s, 1,250 tokens/s, about 13 s left",
    ]


def test_work_that_reads_no_tokens_says_nothing_of_them(told):
    progress.logged(Log(), "docs: parsed", "documents")(5, 10)
    assert told == ["docs: parsed 5/10 documents, 0.5/s, about 10 s left"]
