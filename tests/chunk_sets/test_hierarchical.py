"""Parents and children of `hierarchical`. One token is one word unless a test says otherwise."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from chunking_assets.chunk_sets.hierarchical import HierarchicalChunker
from chunking_assets.chunk_sets.packing import pack
from chunking_assets.chunk_sets.recursive import LEVELS, RecursiveChunker
from chunking_assets.chunk_sets.spans import Document

SENTENCES = "\n\n".join(f"Sentence number {n} of nine." for n in range(9))


def outline(chunks):
    """Each chunk as (level, parent, words)."""
    return [(c.level, c.parent, len(c.text.split())) for c in chunks]


def test_children_are_cut_inside_their_parent_which_comes_before_them(words):
    document = Document(SENTENCES, [], words)
    chunks = list(HierarchicalChunker(sizes=[25, 10]).chunks(document))
    assert outline(chunks) == [
        (1, None, 25), (0, 0, 10), (0, 0, 10), (0, 0, 5),
        (1, None, 20), (0, 4, 10), (0, 4, 10),
    ]  # fmt: skip


def test_there_may_be_any_number_of_levels(words):
    document = Document(SENTENCES, [], words)
    chunks = list(HierarchicalChunker(sizes=[45, 20, 10, 5]).chunks(document))
    assert outline(chunks)[:5] == [(3, None, 45), (2, 0, 20), (1, 1, 10), (0, 2, 5), (0, 2, 5)]
    assert {c.level for c in chunks} == {0, 1, 2, 3}


def test_only_the_finest_are_searched(words):
    chunks = list(HierarchicalChunker(sizes=[25, 10]).chunks(Document(SENTENCES, [], words)))
    assert all(chunk.searched is (chunk.level == 0) for chunk in chunks)


def test_a_parent_that_would_equal_its_one_child_is_left_out(words):
    (chunk,) = HierarchicalChunker(sizes=[12, 6, 3]).chunks(Document("a b c", [], words))
    assert outline([chunk]) == [(0, None, 3)]
    chunks = list(HierarchicalChunker(sizes=[12, 6, 3]).chunks(Document("a b c d e", [], words)))
    assert outline(chunks) == [(1, None, 5), (0, 0, 3), (0, 0, 2)]


def test_a_child_of_a_parent_left_out_belongs_to_the_one_above(words):
    document = Document("a b c.\n\n" + "word " * 6, [], words)
    chunks = list(HierarchicalChunker(sizes=[9, 6, 3]).chunks(document))
    assert outline(chunks) == [(2, None, 9), (0, 0, 3), (1, 0, 6), (0, 2, 3), (0, 2, 3)]


def test_the_coarsest_chunks_are_those_of_recursive(words, texts, markdown):
    document = markdown(texts["portuguese"], words)
    found = HierarchicalChunker(sizes=[30, 10]).chunks(document)
    spans = [(c.start, c.end) for c in found if c.parent is None]
    expected = RecursiveChunker(max_tokens=30).chunks(document)
    assert spans == [(c.start, c.end) for c in expected]


def test_overlap_is_between_the_finest_of_one_parent_only(words):
    document = Document("word " * 40, [], words)
    chunks = list(HierarchicalChunker(sizes=[20, 8], overlap=3).chunks(document))
    parents = [c for c in chunks if c.level == 1]
    assert [len(c.text.split()) for c in parents] == [20, 20]
    assert parents[0].end < parents[1].start
    first, second = [c for c in chunks if c.parent == 0][:2]
    assert first.start < second.start < first.end
    assert all(
        parents[0].start <= c.start < c.end <= parents[0].end for c in chunks if c.parent == 0
    )


def test_only_what_is_searched_has_a_prefix(words, markdown):
    document = markdown("# Guide\n\n" + "word " * 30, words)
    chunks = list(HierarchicalChunker(sizes=[20, 10], prefix="breadcrumb").chunks(document))
    assert {(c.searched, c.prefix) for c in chunks} == {(True, ""), (True, "Guide\n"), (False, "")}


def test_small_chunks_join_their_neighbours_inside_one_parent(words):
    document = Document("\n\n".join(["word " * 8, "a"] * 4), [], words)
    chunks = list(HierarchicalChunker(sizes=[30, 10], min_tokens=4).chunks(document))
    assert min(c.n_tokens for c in chunks) >= 4
    for chunk in chunks:
        if chunk.parent is not None:
            assert chunks[chunk.parent].start <= chunk.start < chunk.end <= chunks[chunk.parent].end


# promises


def assert_tree(document, chunker, tokenizer):
    text, chunks = document.text, list(chunker.chunks(document))
    counts = tokenizer.count([c.embed_text for c in chunks])
    for at, (chunk, count) in enumerate(zip(chunks, counts, strict=True)):
        assert chunk.text == text[chunk.start : chunk.end]
        assert chunk.n_tokens == count
        size = chunker.size_of(chunk.level)
        fits = count <= size and len(chunk.text) <= 8 * size
        assert chunk.over_budget is not fits
        assert fits or chunk.level == 0
        if chunk.parent is None:
            continue
        parent = chunks[chunk.parent]
        assert chunk.parent < at
        assert parent.level > chunk.level
        assert parent.start <= chunk.start < chunk.end <= parent.end
        assert sum(c.parent == chunk.parent for c in chunks) > 1
    assert chunks == sorted(chunks, key=lambda c: (c.start, -c.level))
    covered = 0
    for chunk in (c for c in chunks if c.level == 0):
        assert chunk.end > covered
        assert not text[covered : chunk.start].strip()
        covered = chunk.end
    assert not text[covered:].strip()
    assert_nothing_that_fits_is_cut(document, chunker, [c for c in chunks if c.searched])
    return chunks


def assert_nothing_that_fits_is_cut(document, chunker, chunks):
    fitting = {
        (start, end)
        for start, end in document.wholes
        if end - start <= 8 * chunker.max_tokens
        and document.tokenizer.count([document.text[start:end]])[0] <= chunker.max_tokens
    }
    cuts = {offset for c in chunks for offset in (c.start, c.end)}
    assert not [(a, b, cut) for a, b in fitting for cut in cuts if a < cut < b]


@pytest.mark.parametrize(
    "parameters",
    [{"sizes": [64, 16]}, {"sizes": [80, 40, 20], "overlap": 6}, {"sizes": [9, 3, 2, 1]}],
    ids=str,
)
def test_promises_hold_for_every_level_of_multilingual_texts(parameters, text, tokenizer, markdown):
    assert assert_tree(markdown(text, tokenizer), HierarchicalChunker(**parameters), tokenizer)


@given(
    st.lists(st.sampled_from(["a", "漢字", "👨‍👩‍👧", "e\u0301", " ", " \u0301", "\n\n", ". ", "\n- x\n", "\n```\na\n\nb\n```\n", "# H\n", "\n| a |\n|---|\n| b |\n\n"]), max_size=50).map("".join),
    st.lists(st.integers(1, 40), min_size=2, max_size=4, unique=True),
    st.integers(0, 8),
)  # fmt: skip
@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_promises_hold_for_generated_texts(tokenizers, markdown, text, sizes, overlap):
    sizes = sorted(sizes, reverse=True)
    chunker = HierarchicalChunker(sizes=sizes, overlap=min(overlap, sizes[-1] - 1))
    for name in ("words", "byte pairs", "unigram"):
        assert_tree(markdown(text, tokenizers[name]), chunker, tokenizers[name])


def test_work_of_the_tokenizer_is_linear_in_the_text(pathological, tokenizer, markdown):
    before = tokenizer.characters
    list(HierarchicalChunker(sizes=[512, 128]).chunks(markdown(pathological, tokenizer)))
    assert tokenizer.characters - before < 6 * len(pathological)


# settings


def test_max_tokens_and_sizes_follow_from_each_other():
    declared = [
        HierarchicalChunker(**given)
        for given in ({}, {"sizes": [900, 300, 100]}, {"max_tokens": 100}, {"sizes": [8, 2], "max_tokens": 2})
    ]  # fmt: skip
    assert [(c.sizes, c.max_tokens) for c in declared] == [
        ((1024, 256), 256),
        ((900, 300, 100), 100),
        ((400, 100), 100),
        ((8, 2), 2),
    ]


def test_equal_declarations_are_recorded_alike():
    spelled = [
        HierarchicalChunker(**given) for given in ({"max_tokens": 100}, {"sizes": [400, 100]})
    ]
    assert spelled[0].declaration() == spelled[1].declaration()
    assert "sizes" not in HierarchicalChunker().declaration()


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"sizes": [256]}, "at least two"),
        ({"sizes": []}, "at least two"),
        ({"sizes": [256, 1024]}, r"sizes \(256, 1024\) must go from coarse to fine"),
        ({"sizes": [256, 256]}, "must go from coarse to fine"),
        ({"sizes": [256, 0]}, "greater than or equal to 1"),
        ({"sizes": "1024"}, "valid tuple"),
        (
            {"sizes": [1024, 256], "max_tokens": 512},
            r"max_tokens \(512\) must be the last of sizes",
        ),
        ({"sizes": list(range(40, 1, -1))}, "at most 16"),
        ({"sizes": [100, 10], "overlap": 10}, "must be smaller than max_tokens"),
        ({"sizes": [100, 10], "min_tokens": 6}, "at most half of max_tokens"),
    ],
    ids=str,
)
def test_sizes_that_cannot_be_meant_are_refused(given, problem):
    with pytest.raises(ValueError, match=problem):
        HierarchicalChunker(**given)


def test_another_budget_takes_all_sizes_along():
    other = HierarchicalChunker(sizes=[800, 400, 200], overlap=30).within(50)
    assert (other.sizes, other.max_tokens, other.overlap) == ((200, 100, 50), 50, 7)


def test_a_budget_too_small_for_all_sizes_has_fewer_levels(words):
    other = HierarchicalChunker(sizes=[5, 4, 3]).within(1)
    chunks = list(other.chunks(Document("a b c", [], words)))
    assert outline(chunks) == [(0, None, 1)] * 3


def test_max_chars_is_of_the_finest_size(words):
    document = Document("abcde " * 12, [], words)
    chunks = list(HierarchicalChunker(sizes=[40, 10], max_chars=12).chunks(document))
    assert {len(c.text) for c in chunks if c.level == 0} == {11}
    assert max(len(c.text) for c in chunks if c.level == 1) == 47
    whole = list(pack(document, RecursiveChunker(max_tokens=40, max_chars=48), LEVELS))
    assert [(c.start, c.end) for c in whole] == [(c.start, c.end) for c in chunks if c.level == 1]
