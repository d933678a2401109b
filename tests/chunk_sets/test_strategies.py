"""Where each strategy cuts, on texts small enough to read. One token is one word here."""

import pytest
from chunk_promises import NOT_TAKEN, OWN, declared, opened

from chunking_assets.chunk_sets.fixed import FixedChunker
from chunking_assets.chunk_sets.heading import HeadingChunker
from chunking_assets.chunk_sets.packing import prefix_at
from chunking_assets.chunk_sets.recursive import RecursiveChunker
from chunking_assets.chunk_sets.registry import CHUNKERS
from chunking_assets.chunk_sets.spans import Document
from chunking_assets.parsed_elements.document import Element

our_strategies = pytest.mark.parametrize("kind", OWN)


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


# recursive


def test_recursive_ends_at_the_last_block_that_fits(words):
    document = Document("One two three.\n\nFour five.\n\nSix seven.", [], words)
    assert texts_of(RecursiveChunker(max_tokens=6), document) == [
        "One two three.\n\nFour five.",
        "Six seven.",
    ]


def test_recursive_falls_through_to_lines_sentences_and_words(words):
    document = Document("a b c d\ne f g h\n\nIt is so. Then we go on. So be it.", [], words)
    assert texts_of(RecursiveChunker(max_tokens=5), document) == [
        "a b c d",
        "e f g h",
        "It is so.",
        "Then we go on.",
        "So be it.",
    ]
    assert texts_of(RecursiveChunker(max_tokens=2), document)[:3] == ["a b", "c d", "e f"]


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


def test_overlap_begins_at_a_sentence_if_one_begins_in_its_first_half(words):
    document = Document("A b c dog. He ran far. Then all of it came to an end.", [], words)
    first, second = list(RecursiveChunker(max_tokens=8, overlap=4).chunks(document))[:2]
    assert (first.text, second.text) == (
        "A b c dog. He ran far.",
        "He ran far. Then all of it came",
    )


def test_overlap_begins_at_a_word_if_a_sentence_would_leave_less_than_half(words):
    document = Document("A b c d e f g. Hh. I j k l m n o p.", [], words)
    first, second = list(RecursiveChunker(max_tokens=8, overlap=4).chunks(document))[:2]
    assert (first.text, second.text.split()[:3]) == ("A b c d e f g. Hh.", ["f", "g.", "Hh."])


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


@pytest.mark.parametrize("kind", [k for k in OWN if "prefix" not in NOT_TAKEN.get(k, ())])
def test_every_strategy_can_have_the_breadcrumb_and_counts_it(kind, words, markdown):
    text = "# Guide\n\n" + "x " * 30
    document = opened(text, markdown(text, words).elements, words)
    chunks = declared(kind, max_tokens=8, prefix="breadcrumb").chunks(document)
    inside = [c for c in chunks if c.start > 0 and c.level == 0]
    assert {c.prefix for c in inside} == {"Guide\n"}
    assert max(c.n_tokens for c in inside) == 8


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


def test_a_grapheme_that_fits_only_without_prefix_loses_the_prefix(tokenizers):
    tokenizer = tokenizers["byte pairs"]
    family = "👨‍👩‍👧‍👦"
    (size,) = tokenizer.count([family])
    document = Document(family, [Element("paragraph", 0, len(family), 0, ("H",))], tokenizer)
    (chunk,) = RecursiveChunker(max_tokens=size, prefix="breadcrumb").chunks(document)
    assert (chunk.prefix, chunk.over_budget) == ("", False)


@our_strategies
def test_a_grapheme_over_max_chars_is_marked(kind, words):
    chunks = declared(kind, max_chars=1).chunks(opened("e\u0301x", [], words))
    finest = [c for c in chunks if c.level == 0]
    assert [(c.text, c.over_budget) for c in finest] == [("e\u0301", True), ("x", False)]


@our_strategies
def test_a_space_that_belongs_to_a_cluster_is_not_cut_off_it(kind, words):
    """The Arabic number sign takes what follows into its cluster, a mark the space before it."""
    for text, parts in (
        ("aaaa\u0600 bbb", ["aaaa", "\u0600 bbb"]),
        ("aaaa \u0301bbb", ["aaaa", " \u0301bbb"]),
    ):
        chunks = declared(kind, max_tokens=8, max_chars=5).chunks(opened(text, [], words))
        assert [c.text for c in chunks if c.level == 0] == parts


# settings


@pytest.mark.parametrize("kind", CHUNKERS)
def test_settings_that_cannot_be_meant_are_refused(kind):
    for given, problem in (
        ({"overlap": -1}, "greater than or equal to 0"),
        ({"max_tokens": 10, "overlap": 10}, "must be smaller than max_tokens"),
        ({"max_tokens": 0}, "greater than or equal to 1"),
        ({"max_tokens": 2.5}, "valid integer"),
        ({"max_chars": 0}, "greater than or equal to 1"),
        ({"max_tokens": 10, "min_tokens": 6}, "at most half of max_tokens"),
        ({"chunk_size": 100}, "Extra inputs are not permitted"),
        ({"language_factors": {"pt": 0}}, "must be from 0.1 to 20"),
        ({"prefix": "path"}, "Input should be 'none'"),
        ({"clean": {"html": True}}, "Extra inputs are not permitted"),
    ):
        if not set(given) & set(NOT_TAKEN.get(kind, ())):
            with pytest.raises(ValueError, match=problem):
                declared(kind, **given)


@pytest.mark.parametrize("kind", NOT_TAKEN)
def test_a_parameter_that_a_strategy_cannot_honour_is_refused(kind):
    meant = {"overlap": 5, "prefix": "breadcrumb", "min_tokens": 5}
    meant |= {"clean": {"invisible": True}, "neighbours": {"before": 1}}
    needed = {"spans": {"kind": "recursive"}} if kind == "late" else {}
    for name in NOT_TAKEN[kind]:
        with pytest.raises(ValueError, match=name):
            CHUNKERS[kind].model_validate({**needed, name: meant[name]})


def test_a_strategy_is_registered_under_its_kind():
    assert {kind: chunker.kind for kind, chunker in CHUNKERS.items()} == {k: k for k in CHUNKERS}


def test_the_registry_is_light_to_import():
    import subprocess
    import sys

    code = "import sys, chunking_assets.chunk_sets.registry; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    assert not {"tokenizers", "onnxruntime", "lancedb", "polars", "dagster"} & set(loaded)


# separators


def test_own_separators_are_tried_in_their_order(words):
    text = "one two; three four. five six; seven"
    chunker = CHUNKERS["recursive"](max_tokens=5, separators=(". ", "; "))
    assert [c.text for c in chunker.chunks(Document(text, [], words))] == [
        "one two; three four.", "five six; seven",
    ]  # fmt: skip


def test_a_separator_that_opens_something_begins_the_next_chunk(words):
    text = "Intro here.\n## One\nText of one.\n## Two\nText of two."
    chunker = CHUNKERS["recursive"](max_tokens=6, preset="markdown")
    assert [c.text for c in chunker.chunks(Document(text, [], words))] == [
        "Intro here.", "## One\nText of one.", "## Two\nText of two.",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"separators": ["x"], "preset": "go"}, "not both"),
        ({"separators": [""]}, "empty"),
        ({"preset": "cobol"}, "Input should be"),
    ],
)
def test_separators_that_cannot_be_meant_are_refused(given, problem):
    with pytest.raises(ValueError, match=problem):
        CHUNKERS["recursive"](**given)


# units


@pytest.mark.parametrize("overlap", [{}, {"overlap_sentences": 1}, {"overlap": 9}])
def test_no_sentence_that_fits_is_torn(words, overlap):
    long, short = "Gamma " + "three " * 40 + "end.", "Hi."
    for text in (f"{short} {long} Delta.", f"{long} {short} {long} {short} {short} {long}"):
        chunker = CHUNKERS["sentence"](max_tokens=45, **overlap)
        for chunk in chunker.chunks(Document(text, [], words)):
            assert chunk.text.startswith(("Hi", "Gamma", "Delta"))
            assert chunk.text.endswith(".")


def test_a_sentence_that_fits_no_chunk_begins_in_the_chunk_before_it(words):
    text = "Hi. " + "word " * 100 + "end."
    chunks = list(CHUNKERS["sentence"](max_tokens=20).chunks(Document(text, [], words)))
    assert chunks[0].n_tokens == 20


# another budget


@pytest.mark.parametrize("kind", OWN)
def test_what_is_measured_against_the_budget_goes_along_with_it(kind):
    chunker = declared(kind, max_tokens=100, max_chars=400, min_tokens=20, overlap=10)
    half, double = chunker.within(chunker.max_tokens // 2), chunker.within(2 * chunker.max_tokens)
    for name in ("overlap", "min_tokens", "max_chars"):
        size = getattr(chunker, name)
        assert getattr(half, name) == (size and size // 2)
        assert getattr(double, name) == (size and 2 * size)


@pytest.mark.parametrize("kind", OWN)
@pytest.mark.parametrize("given", ["200", 200.0])
def test_a_size_is_a_whole_number(kind, given):
    with pytest.raises(ValueError, match="valid integer"):
        declared(kind, max_tokens=given)


def test_yes_is_no_size():
    with pytest.raises(ValueError, match="valid integer"):
        RecursiveChunker(max_tokens=True)


@pytest.mark.parametrize("kind", OWN)
def test_a_language_is_named_by_its_code(kind):
    with pytest.raises(ValueError, match="'english' is not an ISO 639-1 code"):
        declared(kind, max_tokens=100, language_factors={"english": 2})
