"""What every strategy promises for every text, held against the text and the real tokenizer."""

from random import Random

import pytest
import regex
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from chunking_assets.chunk_sets.registry import CHUNKERS
from chunking_assets.chunk_sets.spans import Document

PARAMETERS = [
    {"max_tokens": 32},
    {"max_tokens": 32, "overlap": 8},
    {"max_tokens": 100, "overlap": 20, "prefix": "breadcrumb"},
    {"max_tokens": 24, "overlap": 23, "prefix": "none"},
    {"max_tokens": 200, "max_chars": 40},
    {"max_tokens": 5, "overlap": 2, "prefix": "breadcrumb"},
    {"max_tokens": 1},
]
every_strategy = pytest.mark.parametrize("kind", CHUNKERS)
every_setting = pytest.mark.parametrize("parameters", PARAMETERS, ids=str)


def assert_promises(document, chunker, tokenizer):
    text, chunks = document.text, list(chunker.chunks(document))
    graphemes = {0, *(m.end() for m in regex.finditer(r"\X", text))}
    counts = tokenizer.count([c.prefix + c.text for c in chunks])
    previous_start, covered = -1, 0
    for chunk, count in zip(chunks, counts, strict=True):
        assert chunk.text == text[chunk.start : chunk.end]
        assert chunk.text.strip()
        assert {chunk.start, chunk.end} <= graphemes
        assert_trimmed(chunk, graphemes)
        assert chunk.start > previous_start
        assert chunk.end > covered
        assert not text[covered : chunk.start].strip()
        assert chunk.n_tokens == count
        fits = count <= chunker.max_tokens and len(chunk.text) <= chunker.char_cap
        assert chunk.over_budget is not fits
        assert fits or regex.fullmatch(r"\X", chunk.text)
        assert count <= chunker.max_tokens or not chunk.prefix
        if chunker.overlap == 0:
            assert chunk.start >= covered
        previous_start, covered = chunk.start, chunk.end
    assert not text[covered:].strip()
    assert chunks == list(chunker.chunks(Document(text, document.elements, tokenizer)))
    return chunks


def assert_trimmed(chunk, graphemes):
    """No white space at the ends but what carries a combining mark."""
    leading = len(chunk.text) - len(chunk.text.lstrip())
    trailing = len(chunk.text.rstrip())
    assert not any(chunk.start + i in graphemes for i in range(1, leading + 1))
    assert not any(chunk.start + i in graphemes for i in range(trailing, len(chunk.text)))


@every_strategy
@every_setting
def test_promises_hold_for_ten_multilingual_texts(kind, parameters, text, tokenizer, markdown):
    assert_promises(markdown(text, tokenizer), CHUNKERS[kind](**parameters), tokenizer)


@every_strategy
@pytest.mark.parametrize("parameters", PARAMETERS[1:3], ids=str)
def test_promises_hold_for_pathological_texts(kind, parameters, pathological, tokenizer, markdown):
    assert_promises(markdown(pathological, tokenizer), CHUNKERS[kind](**parameters), tokenizer)


PIECES = st.sampled_from(
    [
        *["a", "word", "Überprüfung", "。", "漢字", "葛\U000e0100", "e\u0301", "\u0301", "\u200d"],
        *[
            "👨‍👩‍👧",
            "🇧🇷",
            "👍🏽",
            "한국",
            "ᄀ",
            "ᅡ",
            "क्षि",
            "्",
            "นี่",
            "\u0600",
            "\ufe0f",
            "\x00",
            "\x1c",
        ],
        *[" ", "  ", "\n", "\n\n", "\r\n", "\r", "\t", "\u00a0", "\u2028", "\u3000", "\u200b"],
        *[
            ". ",
            "! ",
            "? ",
            "Dr. ",
            "… ",
            "# H\n",
            "\n## Sub\n\n",
            "\n```\n",
            "\n~~~\n",
            "    code\n",
        ],
        *[
            "    code\n",
            "- item\n",
            "> quote\n",
            "| a | b |\n|---|---|\n| 1 | 2 |\n",
            "---\n",
            "1. x\n",
            "<p>",
        ],
    ]
)
hostile_text = st.one_of(
    st.text(max_size=200),
    st.lists(PIECES, max_size=60).map("".join),
    st.text(" \n\r\ta.#", max_size=80),
)
any_parameters = st.builds(
    lambda max_tokens, overlap, prefix, max_chars: {
        "max_tokens": max_tokens,
        "overlap": min(overlap, max_tokens - 1),
        "prefix": prefix,
        "max_chars": max_chars,
    },
    st.integers(1, 40),
    st.integers(0, 20),
    st.sampled_from(["none", "breadcrumb"]),
    st.none() | st.integers(1, 60),
)


@every_strategy
@given(hostile_text, any_parameters)
@settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_promises_hold_for_generated_texts(kind, tokenizer, markdown, text, parameters):
    assert_promises(markdown(text, tokenizer), CHUNKERS[kind](**parameters), tokenizer)


@every_strategy
@given(hostile_text, any_parameters)
@settings(max_examples=60, deadline=None)
def test_promises_hold_without_elements(kind, tokenizers, text, parameters):
    tokenizer = tokenizers["byte pairs"]
    assert_promises(Document(text, [], tokenizer), CHUNKERS[kind](**parameters), tokenizer)


@every_strategy
@pytest.mark.parametrize("blank", ["", " ", "\n" * 1000, " \t\r\n\u00a0\u3000\u2028"])
def test_empty_and_blank_texts_have_no_chunks(kind, blank, words):
    assert list(CHUNKERS[kind]().chunks(Document(blank, [], words))) == []


@pytest.mark.parametrize("kind", ["fixed", "recursive"])
@pytest.mark.parametrize("overlap", [0, 8])
def test_appended_text_changes_only_the_last_chunks(
    kind, overlap, text, texts, tokenizers, markdown
):
    tokenizer = tokenizers["byte pairs"]
    chunker = CHUNKERS[kind](max_tokens=32, overlap=overlap)
    before = list(chunker.chunks(markdown(text, tokenizer)))
    longer = text + "\n\nAn appended paragraph.\n\n" + texts["portuguese"]
    after = list(chunker.chunks(markdown(longer, tokenizer)))
    assert after[: len(before) - 2] == before[:-2]
    assert len(after) > len(before)


@pytest.mark.parametrize("kind", ["recursive", "heading"])
def test_an_edit_in_one_section_leaves_the_chunks_of_later_sections(kind, words, markdown):
    sections = [f"# Part {i}\n\n" + f"Sentence number {i} goes on. " * 20 for i in range(8)]
    chunker = CHUNKERS[kind](max_tokens=60)
    before = list(chunker.chunks(markdown("\n\n".join(sections), words)))
    sections[1] = sections[1].replace("goes on", "has been edited and goes on")
    after = list(chunker.chunks(markdown("\n\n".join(sections), words)))
    kept = {c.text for c in before if "number 7" in c.text}
    assert kept
    assert kept <= {c.text for c in after}


@every_strategy
@pytest.mark.parametrize("overlap", [0, 16])
def test_work_of_the_tokenizer_is_linear_in_the_text(
    kind, overlap, pathological, tokenizer, markdown
):
    before = tokenizer.characters
    list(CHUNKERS[kind](max_tokens=128, overlap=overlap).chunks(markdown(pathological, tokenizer)))
    assert tokenizer.characters - before < 4 * len(pathological)


@every_strategy
def test_work_stays_linear_where_many_chunks_must_be_shortened(kind, tokenizer, texts, markdown):
    text = " ".join(Random(1).choices(" ".join(texts.values()).split(), k=10_000))
    before = tokenizer.characters
    list(CHUNKERS[kind](max_tokens=64).chunks(markdown(text, tokenizer)))
    assert tokenizer.characters - before < 3 * len(text)


def test_a_blank_line_far_away_does_not_multiply_the_work(tokenizers, markdown):
    tokenizer = tokenizers["byte pairs"]
    text = "word " * 20_000 + "\n\nend"
    before = tokenizer.characters
    list(CHUNKERS["recursive"](max_tokens=64).chunks(markdown(text, tokenizer)))
    assert tokenizer.characters - before < 4 * len(text)


def test_ten_versions_share_one_tokenization_where_words_stand_alone(tokenizers, texts, markdown):
    tokenizer = tokenizers["word pieces"]
    text = "\n\n".join([texts["portuguese"], texts["french"], texts["turkish"]] * 20)
    document, before = markdown(text, tokenizer), tokenizer.characters
    for number in range(10):
        list(CHUNKERS["recursive"](max_tokens=50 + 20 * number).chunks(document))
    assert tokenizer.characters - before < 1.2 * len(text)


def test_one_version_reuses_what_another_counted(tokenizers, texts, markdown):
    tokenizer = tokenizers["unigram"]
    document = markdown(texts["french"] * 10, tokenizer)
    list(CHUNKERS["recursive"](max_tokens=50).chunks(document))
    before = tokenizer.characters
    list(CHUNKERS["recursive"](max_tokens=50, max_chars=10_000).chunks(document))
    assert tokenizer.characters == before
