import pytest

from benchmarks import chunkers
from chunking_assets.chunk_sets.adapters.library import LibraryChunker
from chunking_assets.chunk_sets.registry import CHUNKERS

SENTENCE = "A card payment costs 1.4 percent, and money arrives on Tuesday. "


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "corpora").mkdir()
    for number in range(2):
        paragraphs = (f"# Part {number}.{i}\n\n{SENTENCE * 4}" for i in range(12))
        (tmp_path / "corpora" / f"{number}.md").write_text("\n\n".join(paragraphs))
    return tmp_path


def test_every_splitter_is_compared_and_every_promise_printed(folder, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["chunkers", str(folder), "--rounds", "1"])
    assert chunkers.main() == 0
    printed = capsys.readouterr().out
    for library in ("langchain-text-splitters", "semchunk", "semantic-text-splitter", "chonkie"):
        assert library in printed
    promises = printed[printed.index("What is promised") :]
    for kind in chunkers.own_strategies():
        assert f"{kind}: twice the text" in promises
    for claim in ("/ recursive", "/ fixed", "ten versions / one", "cluster, 5000 pieces"):
        assert claim in promises


def test_strategies_that_ask_a_model_and_adapters_are_left_out():
    found = chunkers.own_strategies()
    assert {"fixed", "recursive", "heading"} <= set(found)
    assert not any(isinstance(chunker, LibraryChunker) for chunker in found.values())
    asking = {kind for kind, cls in CHUNKERS.items() if kind in ("semantic", "cluster", "llm")}
    assert not asking & set(found)


def test_the_text_to_grow_is_twice_as_long_and_of_the_same_sort(folder):
    half, whole = chunkers.doubled(chunkers.read_corpora(folder), 4_000)
    assert len(whole.text) == pytest.approx(4_000, rel=0.1)
    assert len(whole.text) / len(half.text) == pytest.approx(2, rel=0.1)
    assert "# Part 0.1" in half.text
    assert "# Part 1." in half.text


def test_the_large_text_has_the_words_of_the_corpora_in_ever_other_orders(folder, monkeypatch):
    monkeypatch.setattr(chunkers, "LARGE_CHARS", 20_000)
    (large,) = chunkers.read_corpora(folder, large=True)
    whole = "\n\n".join(source.text for source in chunkers.read_corpora(folder))
    copies = len(large.text) // len(whole)
    assert len(large.text) >= 20_000
    assert large.text.startswith(whole)
    assert sorted(large.text.split()) == sorted(whole.split() * copies)
    assert large.text.count(SENTENCE * 4) == 24


def test_the_least_of_all_rounds_counts(monkeypatch):
    clock = iter([0, 5, 5, 6, 6, 8, 8, 11])
    monkeypatch.setattr(chunkers.time, "process_time", lambda: next(clock))
    found = chunkers.race({"one": lambda: [["a"]], "other": lambda: [["a", "b"], ["c"]]}, 2)
    assert (found["one"].seconds, found["other"].seconds) == (2, 1)
    assert (found["one"].n_chunks, found["other"].n_chunks) == (1, 3)


@pytest.mark.parametrize(
    ("target", "reached"),
    [
        (chunkers.Target("a", 1.5, at_least=1.5), True),
        (chunkers.Target("a", 1.4, at_least=1.5), False),
        (chunkers.Target("a", 2.2, below=2.2), False),
        (chunkers.Target("a", 2.1, below=2.2), True),
    ],
    ids=str,
)
def test_a_promise_is_reached_or_missed(target, reached):
    assert target.reached is reached


def test_a_folder_of_another_layout_is_named(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["chunkers", str(tmp_path)])
    assert chunkers.main() == 1
    assert f"{tmp_path} has no corpora/*.md" in capsys.readouterr().err
