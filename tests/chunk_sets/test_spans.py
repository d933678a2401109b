"""The span primitive: boundaries, token positions, grapheme clusters."""

from itertools import pairwise

import pytest
import regex
from hypothesis import given, settings
from hypothesis import strategies as st

from chunking_assets.chunk_sets.spans import SEGMENT_CHARS, Document
from chunking_assets.parsed_elements.document import Element

LEVELS = ["section", "block", "line", "sentence", "word"]


def units(document, level):
    cuts = [0, *document.boundaries(level), len(document.text)]
    return [document.text[a:b].strip() for a, b in pairwise(cuts)]


@pytest.mark.parametrize("level", LEVELS)
def test_boundaries_increase_strictly_inside_the_text(level, text, words, markdown):
    document = markdown(text, words)
    found = [0, *document.boundaries(level), len(text)]
    assert all(a < b for a, b in pairwise(found))


@pytest.mark.parametrize("level", LEVELS)
def test_a_unit_starts_with_text_not_white_space(level, text, words, markdown):
    document = markdown(text, words)
    assert not any(text[a].isspace() for a in document.boundaries(level))


def test_blocks_are_elements_and_what_blank_lines_part(words, markdown):
    document = markdown("One\ntwo.\n\n- a\n- b\n\nThree", words)
    assert units(document, "block") == ["One\ntwo.", "- a", "- b", "Three"]


def test_blank_lines_part_blocks_where_nothing_was_parsed(words):
    document = Document("One\r\ntwo\r\n\r\nthree\r\rfour\n \t\nfive", [], words)
    assert units(document, "block") == ["One\r\ntwo", "three", "four", "five"]


def test_a_single_crlf_is_no_blank_line(words):
    assert list(Document("a\r\nb", [], words).boundaries("block")) == []


def test_code_and_tables_have_no_blocks_or_sentences_inside_but_lines(words, markdown):
    code = "```python\na = 1. \n\n\nb = 2. C\n```"
    table = "| A. B | c |\n|---|---|\n| D. E | f |"
    document = markdown(f"Before.\n\n{code}\n\n{table}\n\nAfter.", words)
    assert units(document, "block") == ["Before.", code, table, "After."]
    assert units(document, "sentence") == ["Before.", code, table, "After."]
    assert "b = 2. C" in units(document, "line")
    assert "| D. E | f |" in units(document, "line")


def test_a_heading_is_not_parted_from_what_it_heads(words, markdown):
    document = markdown("Intro.\n\n# A\n\n## B\n\nText. More.\n\n## C\n\n- item\n- item", words)
    assert units(document, "block") == [
        "Intro.",
        "# A\n\n## B\n\nText. More.",
        "## C\n\n- item",
        "- item",
    ]
    assert units(document, "line")[1] == "# A\n\n## B\n\nText. More."
    assert units(document, "sentence")[1:3] == ["# A\n\n## B\n\nText.", "More."]


def test_headings_without_text_are_blocks_of_their_own(words, markdown):
    document = markdown("# A\n\n# B\n\n# C\n", words)
    assert units(document, "block") == ["# A", "# B", "# C"]


def test_a_heading_in_a_quote_opens_no_section(words, markdown):
    document = markdown("# A\n\n> # Quoted\n>\n> text\n\nMore.\n\n# B\n\nEnd.", words)
    assert units(document, "section") == ["# A\n\n> # Quoted\n>\n> text\n\nMore.", "# B\n\nEnd."]


def test_words_of_scripts_without_spaces_are_single_characters(words):
    assert units(Document("ab 返品はcd", [], words), "word") == ["ab", "返", "品", "は", "cd"]


def test_count_and_reach_agree(tokenizer, text, markdown):
    document = markdown(text, tokenizer)
    for start in range(0, len(text), 7):
        for budget in (1, 5, 50):
            end = document.reach(start, budget)
            assert document.count(start, end) <= budget or end == start
            if end < len(text):
                assert document.count(start, end + 1) > budget


def test_back_leaves_at_most_the_budget(tokenizer, text, markdown):
    document = markdown(text, tokenizer)
    for end in range(0, len(text), 7):
        start = document.back(end, 10)
        assert sum(start <= token < end for token in document.token_starts) <= 10


def test_several_tokens_of_one_character_share_its_start(tokenizers):
    document = Document("👨🏿‍🚀", [], tokenizers["byte pairs"])
    assert len(set(document.token_starts)) < len(document.token_starts)
    assert document.reach(0, 1) == 0


@pytest.mark.parametrize(
    "text",
    ["a" * 1_000_000, "a" + "\n" * 100_000 + " " * 300_000 + "b", "今" * 300_000, ". " * 50_000],
    ids=["one word", "white space", "chinese", "stops"],
)
def test_the_boundaries_of_a_megabyte_are_found_in_one_pass(text, words):
    """Where a pattern looks again at what it has seen, this takes hours."""
    document = Document(text, [], words)
    for level in LEVELS:
        assert len(document.boundaries(level)) < len(text)
    assert document.skip_space(1, len(text)) <= len(text)
    assert document.trim(0, len(text)) > 0


def test_a_long_text_is_tokenized_in_bounded_pieces(text):
    class Recorder:
        longest = 0

        def starts(self, texts):
            self.longest = max(self.longest, *map(len, texts))
            return [[] for _ in texts]

    recorder = Recorder()
    assert len(Document(text * 30 + "x" * 50_000, [], recorder).token_starts) == 0
    assert 0 < recorder.longest <= SEGMENT_CHARS


def test_the_text_is_tokenized_once_however_often_it_is_asked(tokenizers, texts):
    tokenizer = tokenizers["unigram"]
    before = tokenizer.characters
    document = Document(texts["mixed"], [], tokenizer)
    for start in range(50):
        document.count(start, 100)
    assert tokenizer.characters - before == len(texts["mixed"])


def test_spans_at_white_space_are_added_up_exactly(tokenizers, text, markdown):
    tokenizer = tokenizers["word pieces"]
    document = markdown(text, tokenizer)
    cuts = [0, *document.boundaries("word"), len(text)]
    spans = [
        ("Guide > Install\n", document.skip_space(a, len(text)), document.trim(a, b))
        for a, b in zip(cuts, cuts[5:], strict=False)
        if text[a:b].strip()
    ]
    alone = tokenizer.count([prefix + text[a:b] for prefix, a, b in spans])
    assert document.count_exactly(spans) == alone


HOSTILE_PIECES = [
    *" \t\n\r", "\r\n", "\n\n", *"a1.▁返é#", "word", "naïve",
    *"\u00a0\u200b\u3000\ufeff\ufffd\x01\x1c\x85\u2028\u0301\u0600\u200d\ufe0f\u00a8\ufc5e\u00ad한ﬁ½",
]  # fmt: skip
hostile = st.lists(
    st.sampled_from(HOSTILE_PIECES) | st.characters(exclude_categories=["Cs"]), max_size=40
).map("".join)


@given(hostile, st.data(), st.sampled_from(["", "Guide > In\n", "x\u200b\n"]))
@settings(max_examples=200, deadline=None)
def test_a_real_tokenizer_counts_what_is_added_up(e5_tokenizer, markdown, text, data, prefix):
    document = markdown(text, e5_tokenizer)
    place = st.integers(0, len(text))
    start, end = sorted(data.draw(st.tuples(place, place)))
    start = document.skip_space(start, end)
    end = document.trim(start, end)
    if start < end:
        counted = e5_tokenizer.count([prefix + text[start:end]])
        assert document.count_exactly([(prefix, start, end)]) == counted


def test_a_word_tokenized_in_pieces_is_counted_again_whole(tokenizers):
    tokenizer = tokenizers["word pieces"]
    text = "a " + "x" * (SEGMENT_CHARS + 50) + " b"
    document = Document(text, [], tokenizer)
    assert document.count_exactly([("", 0, len(text))]) == tokenizer.count([text])
    assert document.count(0, len(text)) > tokenizer.count([text])[0]


characters = st.text(
    st.one_of(
        st.characters(exclude_categories=["Cs"]),
        st.sampled_from(
            "a \n\r\t\u0301\u200d\u0600\ufe0f🇧🇷👩👍🏽한각क्षि\u0e33\U000e0100\x00\u2028"
        ),
    ),
    max_size=40,
)


@given(characters)
@settings(max_examples=1000, deadline=None)
def test_what_is_said_to_be_apart_is_a_grapheme_boundary(text):
    document = Document(text, [], None)
    ends = {0, *(m.end() for m in regex.finditer(r"\X", text))}
    assert {i for i in range(len(text) + 1) if document.is_apart(i)} <= ends


@given(characters.filter(bool), st.data())
@settings(max_examples=500, deadline=None)
def test_grapheme_end_is_the_last_one_within_or_the_first(text, data):
    ends = [m.end() for m in regex.finditer(r"\X", text)]
    start = data.draw(st.sampled_from([0, *ends[:-1]]))
    at_most = data.draw(st.integers(start, len(text)))
    after = [end for end in ends if end > start]
    expected = max((end for end in after if end <= at_most), default=after[0])
    assert Document(text, [], None).grapheme_end(start, at_most) == expected


def test_a_cut_never_falls_between_flags_however_long_the_row(words):
    flags = "🇧🇷" * 500
    assert Document(flags, [], words).grapheme_end(0, 801) == 800


def test_wholes_are_blocks_of_code_and_rows_of_tables(words, markdown):
    code, rows = "```\na\n\nb\n```", ["| A | b |", "|---|---|", "| c \\| d | e |"]
    table = "\n".join(rows)
    document = markdown(f"Text.\n\n  {code}\n\n{table}\n\n- item\n\n      in it\n", words)
    assert [document.text[a:b] for a, b in document.wholes][: 1 + len(rows)] == [code, *rows]
    start = document.text.index(rows[2])
    around = [document.whole_around(start + at) for at in (0, 1, len(rows[2]))]
    assert around == [None, (start, start + len(rows[2])), None]


def test_text_before_every_element_has_no_heading_path(words):
    document = Document("intro # A", [Element("heading", 6, 9, 1, ("A",))], words)
    assert document.heading_path(0) == ()
