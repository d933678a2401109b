"""Where each strategy cuts, on texts small enough to read. One token is one word here."""

from itertools import pairwise

import pytest

from chunking_assets.chunk_sets.fixed import FixedChunker
from chunking_assets.chunk_sets.heading import HeadingChunker
from chunking_assets.chunk_sets.packing import prefix_at
from chunking_assets.chunk_sets.recursive import RecursiveChunker
from chunking_assets.chunk_sets.registry import CHUNKERS
from chunking_assets.chunk_sets.spans import Document
from chunking_assets.parsed_elements.document import Element

every_strategy = pytest.mark.parametrize("kind", CHUNKERS)


def texts_of(chunker, document):
    return [chunk.text for chunk in chunker.chunks(document)]


# fixed


def test_fixed_windows_hold_as_many_words_as_fit_whatever_they_say(words):
    document = Document("One two. Three\n\nfour five six seven", [], words)
    assert texts_of(FixedChunker(max_tokens=3), document) == [
        "One two. Three",
        "four five six",
        "seven",
    ]


def test_fixed_windows_overlap_by_whole_words(words):
    document = Document("a b c d e f g", [], words)
    assert texts_of(FixedChunker(max_tokens=4, overlap=2), document) == [
        "a b c d",
        "c d e f",
        "e f g",
    ]


def test_the_last_window_ends_the_chunks(words):
    """Windows clamped to the text's end went on for ever in agno#1703."""
    document = Document("a b c d", [], words)
    assert texts_of(FixedChunker(max_tokens=4, overlap=3), document) == ["a b c d"]
    assert texts_of(FixedChunker(max_tokens=3, overlap=2), document) == ["a b c", "b c d"]


def test_equal_chunks_have_their_own_offsets(words):
    """Searching for a chunk's text gave all of them one offset in langchain#21475."""
    chunks = list(FixedChunker(max_tokens=1).chunks(Document("chunk chunk chunk", [], words)))
    assert [(c.start, c.end) for c in chunks] == [(0, 5), (6, 11), (12, 17)]


# recursive


def test_recursive_ends_at_the_last_block_that_fits(words):
    document = Document("One two three.\n\nFour five.\n\nSix seven.", [], words)
    assert texts_of(RecursiveChunker(max_tokens=6), document) == [
        "One two three.\n\nFour five.",
        "Six seven.",
    ]


def test_recursive_falls_through_to_lines_sentences_and_words(words):
    document = Document("a b c d\ne f g h\n\nI j k. L m n o. P q.", [], words)
    assert texts_of(RecursiveChunker(max_tokens=5), document) == [
        "a b c d",
        "e f g h",
        "I j k.",
        "L m n o.",
        "P q.",
    ]
    assert texts_of(RecursiveChunker(max_tokens=2), document)[:3] == ["a b", "c d", "e f"]


def test_a_sentence_longer_than_the_budget_is_cut(words):
    """It was emitted whole in chonkie#170."""
    document = Document("Short. " + "word " * 50 + "end.", [], words)
    assert all(c.n_tokens <= 8 for c in RecursiveChunker(max_tokens=8).chunks(document))


def test_a_boundary_that_leaves_a_chunk_under_a_quarter_full_is_passed_over(words):
    document = Document("a\n\n" + "b " * 20, [], words)
    assert texts_of(RecursiveChunker(max_tokens=10), document)[0] == "a\n\n" + "b " * 8 + "b"


def test_small_blocks_join_their_neighbours_and_none_vanishes(words):
    """Chunks under a minimal size were dropped in Connapse#311."""
    document = Document("\n\n".join("abcdefghij"), [], words)
    assert texts_of(RecursiveChunker(max_tokens=4), document) == [
        "a\n\nb\n\nc\n\nd",
        "e\n\nf\n\ng\n\nh",
        "i\n\nj",
    ]


def test_a_heading_stays_with_its_text(words, markdown):
    document = markdown("One two three.\n\n# Head\n\nFour five six seven.", words)
    assert texts_of(RecursiveChunker(max_tokens=6), document) == [
        "One two three.",
        "# Head\n\nFour five six seven.",
    ]


def test_code_and_tables_stay_whole_while_they_fit(words, markdown):
    code = "```\na\n\nb\n\nc\n```"
    document = markdown(f"One two three four.\n\n{code}\n\nEnd.", words)
    assert texts_of(RecursiveChunker(max_tokens=6), document) == [
        "One two three four.",
        f"{code}\n\nEnd.",
    ]


def test_white_space_inside_a_chunk_is_kept_to_the_byte(words, markdown):
    """Tabs, NBSP, indentation and blank lines were lost in langchain#40071, #20823 and #19436."""
    text = "Para one.\n\n\n```yaml\na:\n\tb:\u00a0c\n\n    - d\n```\n\n- x\n    - y"
    assert texts_of(RecursiveChunker(), markdown(text, words)) == [text]


def test_identical_paragraphs_under_two_headings_keep_their_places(words, markdown):
    """Both got the first one's offset in llama_index#20050."""
    document = markdown("# A\n\nSame words here.\n\n# B\n\nSame words here.", words)
    starts = [c.start for c in HeadingChunker(max_tokens=5).chunks(document)]
    assert starts == [0, document.text.index("# B")]


def test_overlap_begins_at_a_sentence_if_one_begins_in_its_first_half(words):
    document = Document("A b c d. E f g. H i j k l m n o p q r.", [], words)
    first, second = list(RecursiveChunker(max_tokens=8, overlap=4).chunks(document))[:2]
    assert (first.text, second.text) == ("A b c d. E f g.", "E f g. H i j k l")


def test_overlap_begins_at_a_word_if_a_sentence_would_leave_less_than_half(words):
    document = Document("A b c d e f g. Hh. I j k l m n o p.", [], words)
    first, second = list(RecursiveChunker(max_tokens=8, overlap=4).chunks(document))[:2]
    assert (first.text, second.text.split()[:3]) == ("A b c d e f g. Hh.", ["f", "g.", "Hh."])


def test_a_chunk_is_never_pure_overlap(words):
    """Boundaries near the overlap made starts go back in mempalace#2058."""
    document = Document("\n\n".join(["a b c"] * 9), [], words)
    chunks = list(RecursiveChunker(max_tokens=4, overlap=3).chunks(document))
    new = [document.text[a.end : b.end] for a, b in pairwise(chunks)]
    assert len(new) > 8
    assert all(text.strip() for text in new)


def test_a_short_chunk_is_repeated_by_its_share_only(words):
    document = Document("a b c d\n\n" + "e " * 20, [], words)
    first, second = list(RecursiveChunker(max_tokens=12, overlap=6).chunks(document))[:2]
    assert (first.text, second.text.split()[:3]) == ("a b c d", ["c", "d", "e"])


# heading


def test_a_section_with_its_subsections_is_one_chunk_if_it_fits(words, markdown):
    document = markdown("# A\n\na.\n\n## B\n\nb.\n\n# C\n\n" + "c " * 8, words)
    assert texts_of(HeadingChunker(max_tokens=10, prefix="none"), document) == [
        "# A\n\na.\n\n## B\n\nb.",
        "# C\n\nc c c c c c c c",
    ]


def test_small_siblings_are_joined_under_their_parent_only(words, markdown):
    text = "# A\n\n## B\n\nb b b\n\n## C\n\nc c\n\n## D\n\nd d d\n\n# E\n\n## F\n\nf f"
    assert texts_of(HeadingChunker(max_tokens=11, prefix="none"), markdown(text, words)) == [
        "# A\n\n## B\n\nb b b\n\n## C\n\nc c",
        "## D\n\nd d d",
        "# E\n\n## F\n\nf f",
    ]


def test_a_subsection_is_not_joined_with_its_parents_sibling(words, markdown):
    text = "# A\n\n## B\n\n" + "b " * 8 + "\n\n### B1\n\nx\n\n## C\n\ny\n\n# D\n\nz"
    assert texts_of(HeadingChunker(max_tokens=12, prefix="none"), markdown(text, words)) == [
        "# A\n\n## B\n\nb b b b b b b b",
        "### B1\n\nx",
        "## C\n\ny",
        "# D\n\nz",
    ]


def test_a_large_section_is_cut_apart_from_its_subsections(words, markdown):
    text = "# A\n\n" + "a " * 12 + "\n\n## B\n\nb"
    assert texts_of(HeadingChunker(max_tokens=8, prefix="none"), markdown(text, words)) == [
        "# A\n\na a a a a a",
        "a a a a a a",
        "## B\n\nb",
    ]


def test_text_before_the_first_heading_is_a_section(words, markdown):
    """An un-anchored search deleted it in haystack#11920."""
    document = markdown("intro # not a heading\n\n# A\n\na", words)
    assert texts_of(HeadingChunker(max_tokens=5), document) == ["intro # not a heading", "# A\n\na"]


def test_levels_may_be_skipped(words, markdown):
    text = "### A\n\na a a\n\n# B\n\nb b b\n\n#### C\n\nc c c\n\n## D\n\nd d d"
    assert texts_of(HeadingChunker(max_tokens=5, prefix="none"), markdown(text, words)) == [
        "### A\n\na a a",
        "# B\n\nb b b",
        "#### C\n\nc c c",
        "## D\n\nd d d",
    ]


def test_overlap_stays_inside_a_section(words, markdown):
    document = markdown("# A\n\n" + "a " * 8 + "\n\n# B\n\n" + "b " * 8, words)
    chunks = texts_of(HeadingChunker(max_tokens=8, overlap=2, prefix="none"), document)
    assert [chunk.startswith("# ") for chunk in chunks] == [True, False, True, False]
    assert chunks[1] == "a a a a"


# prefix


def test_the_breadcrumb_names_the_headings_above_but_not_the_chunks_own(words, markdown):
    document = markdown("# Guide\n\n## Install\n\n" + "x " * 9, words)
    chunks = list(HeadingChunker(max_tokens=12).chunks(document))
    assert [(c.prefix, c.text.split()[0]) for c in chunks] == [
        ("", "#"),
        ("Guide > Install\n", "x"),
    ]
    assert chunks[1].heading_path == ("Guide", "Install")


@every_strategy
def test_every_strategy_can_have_the_breadcrumb_and_counts_it(kind, words, markdown):
    """A prefix outside the budget made chunks too long in docling#3428."""
    document = markdown("# Guide\n\n" + "x " * 30, words)
    chunks = list(CHUNKERS[kind](max_tokens=8, prefix="breadcrumb").chunks(document))
    assert [c.n_tokens for c in chunks[1:-1]] == [8] * (len(chunks) - 2)
    assert {c.prefix for c in chunks[1:]} == {"Guide\n"}


def test_a_long_breadcrumb_loses_its_outermost_headings_first(words):
    path = ("one two three", "four five", "six")
    document = Document("text", [Element("paragraph", 0, 4, heading_path=path)], words)
    prefixes = {
        size: prefix_at(document, RecursiveChunker(max_tokens=size, prefix="breadcrumb"), 0)
        for size in (100, 20, 4, 3)
    }
    assert prefixes == {
        100: "one two three > four five > six\n",
        20: "four five > six\n",
        4: "six\n",
        3: "",
    }


def test_one_enormous_heading_is_shortened_from_its_left_and_no_text_is_dropped(words):
    """Such chunks were dropped in docling#723."""
    title = " ".join(f"w{i}" for i in range(500))
    text = "body " * 20
    document = Document(text, [Element("paragraph", 0, len(text), heading_path=(title,))], words)
    chunks = list(RecursiveChunker(max_tokens=12, prefix="breadcrumb").chunks(document))
    assert {c.prefix for c in chunks} == {"w497 w498 w499\n"}
    assert sum(len(c.text.split()) for c in chunks) == 20


def test_a_chunk_that_starts_inside_a_function_is_told_its_name(words):
    text = "def f():\n    a b\n    c d"
    element = Element("function", 0, len(text), heading_path=("module", "f"))
    document = Document(text, [element], words)
    chunker = RecursiveChunker(max_tokens=12, max_chars=16, prefix="breadcrumb")
    assert [(c.prefix, c.text) for c in chunker.chunks(document)] == [
        ("module\n", "def f():\n    a b"),
        ("module > f\n", "c d"),
    ]


# budget


@every_strategy
def test_one_grapheme_over_the_budget_is_emitted_alone_and_marked(kind, tokenizers):
    """llama_index#21900 and semchunk#24 looped or raised RecursionError."""
    family = "👨‍👩‍👧‍👦"
    document = Document(f"ab {family}{family} cd", [], tokenizers["byte pairs"])
    chunks = list(CHUNKERS[kind](max_tokens=2).chunks(document))
    assert [c.text for c in chunks if c.over_budget] == [family, family]
    assert all(c.n_tokens <= 2 for c in chunks if not c.over_budget)


def test_a_grapheme_that_fits_only_without_prefix_loses_the_prefix(tokenizers):
    tokenizer = tokenizers["byte pairs"]
    family = "👨‍👩‍👧‍👦"
    (size,) = tokenizer.count([family])
    document = Document(family, [Element("paragraph", 0, len(family), 0, ("H",))], tokenizer)
    (chunk,) = RecursiveChunker(max_tokens=size, prefix="breadcrumb").chunks(document)
    assert (chunk.prefix, chunk.over_budget) == ("", False)


@every_strategy
def test_a_grapheme_over_max_chars_is_marked(kind, words):
    chunks = list(CHUNKERS[kind](max_chars=1).chunks(Document("e\u0301x", [], words)))
    assert [(c.text, c.over_budget) for c in chunks] == [("e\u0301", True), ("x", False)]


@every_strategy
def test_a_space_that_belongs_to_a_cluster_is_not_cut_off_it(kind, words):
    """The Arabic number sign takes what follows into its cluster, a mark the space before it."""
    chunker = CHUNKERS[kind](max_chars=5)
    assert texts_of(chunker, Document("aaaa\u0600 bbb", [], words)) == ["aaaa", "\u0600 bbb"]
    assert texts_of(chunker, Document("aaaa \u0301bbb", [], words)) == ["aaaa", " \u0301bbb"]


@every_strategy
def test_one_enormous_unknown_word_is_bounded_by_characters(kind, tokenizers):
    """A page without spaces counted as one word in gbrain#648 and LightRAG#3050."""
    document = Document("x" * 10_000, [], tokenizers["word pieces"])
    chunks = list(CHUNKERS[kind](max_tokens=100).chunks(document))
    assert all(len(c.text) <= 800 and c.n_tokens <= 100 for c in chunks)
    assert len(chunks) < 20


@every_strategy
def test_chinese_without_spaces_is_cut_at_its_sentences_or_characters(kind, tokenizers):
    text = "今天天气很好。我们去公园散步！然后回家吃饭。" * 100
    document = Document(text, [], tokenizers["byte pairs"])
    chunks = list(CHUNKERS[kind](max_tokens=60).chunks(document))
    assert "".join(c.text for c in chunks) == text
    if kind != "fixed":
        assert all(c.text[-1] in "。！" for c in chunks)


# settings


@every_strategy
@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"max_tokens": 10, "overlap": 10}, "must be smaller than max_tokens"),
        ({"max_tokens": 10, "overlap": 11}, "must be smaller than max_tokens"),
        ({"overlap": -1}, "greater than or equal to 0"),
        ({"max_tokens": 0}, "greater than or equal to 1"),
        ({"max_chars": 0}, "greater than or equal to 1"),
        ({"chunk_size": 100}, "Extra inputs are not permitted"),
        ({"prefix": "title"}, "Input should be 'none' or 'breadcrumb'"),
    ],
    ids=str,
)
def test_settings_that_cannot_be_meant_are_refused(kind, given, problem):
    """An overlap as large as the window looped for ever in litellm#38980 and pixeltable#1500."""
    with pytest.raises(ValueError, match=problem):
        CHUNKERS[kind](**given)


def test_a_strategy_is_registered_under_its_kind():
    assert {kind: chunker.kind for kind, chunker in CHUNKERS.items()} == {
        "fixed": "fixed",
        "recursive": "recursive",
        "heading": "heading",
    }
    assert {kind: chunker().prefix for kind, chunker in CHUNKERS.items()} == {
        "fixed": "none",
        "recursive": "none",
        "heading": "breadcrumb",
    }


def test_the_registry_is_light_to_import():
    import subprocess
    import sys

    code = "import sys, chunking_assets.chunk_sets.registry; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    assert not {"tokenizers", "onnxruntime", "lancedb", "polars", "dagster"} & set(loaded)
