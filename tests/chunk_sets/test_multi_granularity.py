"""One text in several sizes. One token is one word unless a test says otherwise."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from chunking_assets.chunk_sets.multi_granularity import MultiGranularityChunker
from chunking_assets.chunk_sets.recursive import RecursiveChunker
from chunking_assets.chunk_sets.spans import Document

SENTENCES = "\n\n".join(f"Sentence number {n} of nine." for n in range(9))


def spans(chunks):
    return [(c.start, c.end) for c in chunks]


def test_each_size_is_cut_over_the_whole_text_and_all_are_searched(words):
    document = Document(SENTENCES, [], words)
    chunks = list(MultiGranularityChunker(sizes=[20, 10]).chunks(document))
    assert [(c.level, len(c.text.split())) for c in chunks] == [
        (1, 20), (0, 10), (0, 10), (1, 20), (0, 10), (0, 10), (0, 5),
    ]  # fmt: skip
    assert {(c.searched, c.parent) for c in chunks} == {(True, None)}


def test_a_span_that_two_sizes_share_appears_once_as_of_the_finer(words):
    document = Document("a b c.\n\n" + "word " * 20, [], words)
    chunks = list(MultiGranularityChunker(sizes=[9, 6, 3]).chunks(document))
    assert [(c.start, c.level) for c in chunks].count((0, 0)) == 1
    assert len(set(spans(chunks))) == len(chunks)


def test_a_short_text_has_one_chunk(words):
    (chunk,) = MultiGranularityChunker().chunks(Document("a b c", [], words))
    assert (chunk.level, chunk.text) == (0, "a b c")


@pytest.mark.parametrize("sizes", [[64, 16], [80, 40, 20], [9, 3, 2, 1]], ids=str)
@pytest.mark.parametrize("prefix", ["none", "breadcrumb"])
def test_each_size_is_as_recursive_cuts_it(sizes, prefix, text, tokenizer, markdown):
    document = markdown(text, tokenizer)
    chunks = list(MultiGranularityChunker(sizes=sizes, prefix=prefix).chunks(document))
    assert chunks == sorted(chunks, key=lambda c: (c.start, -c.level))
    expected = [
        set(spans(RecursiveChunker(max_tokens=size, prefix=prefix).chunks(document)))
        for size in reversed(sizes)
    ]
    for level in range(len(sizes)):
        own = {(c.start, c.end) for c in chunks if c.level == level}
        assert own == expected[level].difference(*expected[:level])
    for chunk, count in zip(chunks, tokenizer.count([c.embed_text for c in chunks]), strict=True):
        assert chunk.n_tokens == count
        assert chunk.over_budget or count <= sizes[-1 - chunk.level]
        assert chunk.text == text[chunk.start : chunk.end]


@given(
    st.lists(st.sampled_from(["a", "漢字", "👨‍👩‍👧", "e\u0301", " ", " \u0301", "\n\n", ". ", "# H\n"]), max_size=60).map("".join),
    st.lists(st.integers(1, 40), min_size=2, max_size=4, unique=True),
    st.integers(0, 8),
)  # fmt: skip
@settings(
    max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_order_and_coverage_hold_for_generated_texts(tokenizers, markdown, text, sizes, overlap):
    sizes = sorted(sizes, reverse=True)
    chunker = MultiGranularityChunker(sizes=sizes, overlap=min(overlap, sizes[0] - 1))
    for name in ("words", "byte pairs"):
        document = markdown(text, tokenizers[name])
        chunks = list(chunker.chunks(document))
        assert chunks == sorted(chunks, key=lambda c: (c.start, -c.level))
        assert len(set(spans(chunks))) == len(chunks)
        covered = 0
        for chunk in (c for c in chunks if c.level == 0):
            assert not text[covered : chunk.start].strip()
            covered = chunk.end
        assert not text[covered:].strip()


def test_what_is_measured_against_the_coarsest_size_goes_along_in_proportion():
    chunker = MultiGranularityChunker(sizes=[400, 100], overlap=40, min_tokens=20, max_chars=1000)
    fine = chunker.at(0)
    assert (fine.max_tokens, fine.overlap, fine.min_tokens, fine.char_cap) == (100, 10, 5, 250)
    assert chunker.at(1).char_cap == 1000


def test_max_tokens_and_sizes_follow_from_each_other():
    declared = [
        MultiGranularityChunker(**given)
        for given in ({}, {"sizes": [300, 100]}, {"max_tokens": 100}, {"max_tokens": 1})
    ]
    assert [(c.sizes, c.max_tokens) for c in declared] == [
        ((512, 256, 128), 512),
        ((300, 100), 300),
        ((100, 50, 25), 100),
        ((1,), 1),
    ]


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"sizes": [256]}, "at least two"),
        ({"sizes": [128, 256]}, "must go from coarse to fine"),
        (
            {"sizes": [256, 128], "max_tokens": 128},
            r"max_tokens \(128\) must be the first of sizes",
        ),
        ({"context": {"model": "m", "max_tokens": 100}}, r"half of the finest size \(128\)"),
    ],
    ids=str,
)
def test_sizes_that_cannot_be_meant_are_refused(given, problem):
    with pytest.raises(ValueError, match=problem):
        MultiGranularityChunker(**given)


def test_another_budget_takes_all_sizes_along():
    other = MultiGranularityChunker(sizes=[400, 200], overlap=30).within(100)
    assert (other.sizes, other.max_tokens, other.overlap) == ((100, 50), 100, 7)
