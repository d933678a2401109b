"""Cleaning leaves out of what is embedded, and moves no offset."""

import unicodedata

import pytest
from chunk_promises import OWN, declared, opened
from hypothesis import given, settings
from hypothesis import strategies as st

from chunking_assets.chunk_sets.chunker import Cleaning
from chunking_assets.chunk_sets.cleaning import blocks_of, boilerplate_blocks, excluded_spans
from chunking_assets.chunk_sets.registry import CHUNKERS
from chunking_assets.chunk_sets.spans import Document
from chunking_assets.parsed_elements.markdown import parse_text

EVERYTHING = Cleaning(boilerplate=0.5, blank_lines=True, invisible=True, unicode="NFC")


def cleaned(text, cleaning, boilerplate=()):
    parts, at = [], 0
    for span in excluded_spans(text, parse_text(text).elements, cleaning, boilerplate):
        parts.append(text[at : span.start])
        at = span.end
    return "".join(parts) + text[at:]


def test_blank_lines_are_folded_into_one_but_not_in_code():
    text = "One.\n\n\n\n  \nTwo.\n\n```\na\n\n\n\nb\n```\n\n\nThree.\n"
    assert cleaned(text, Cleaning(blank_lines=True)) == (
        "One.\n\nTwo.\n\n```\na\n\n\n\nb\n```\n\nThree.\n"
    )


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_blank_lines_are_folded_whatever_ends_a_line(end):
    assert cleaned(f"a{end * 5}b", Cleaning(blank_lines=True)) == f"a{end * 2}b"


def test_invisible_characters_are_left_out_and_joiners_of_letters_and_emoji_are_not():
    text = "co\u00adop\u200ber\u2060ate\ufeff \u200fنص\u202c \x07bell 👨‍👩‍👧 می\u200cخواهم\ta\nb"
    assert cleaned(text, Cleaning(invisible=True)) == "cooperate نص bell 👨‍👩‍👧 می\u200cخواهم\ta\nb"


def test_blocks_that_many_documents_have_are_boilerplate_and_their_headings_are_not():
    notice = "Was this page helpful?  Tell us."
    pages = [f"# Introduction\n\nPage {n} has its own text.\n\n{notice}\n" for n in range(4)]
    pages.append("# Introduction\n\nNo notice here.\n")
    blocks = boilerplate_blocks([blocks_of(p, parse_text(p).elements) for p in pages], 0.8)
    spaced = "# Introduction\n\nOwn.\n\nWas this page\nhelpful? Tell us.\n"
    assert cleaned(spaced, Cleaning(boilerplate=0.8), blocks) == "# Introduction\n\nOwn.\n\n\n"


def test_two_documents_with_a_block_in_common_have_no_boilerplate():
    assert boilerplate_blocks([{"a"}, {"a"}], 0.5) == frozenset()


@pytest.mark.parametrize("kind", OWN)
def test_no_chunk_begins_or_ends_in_what_is_left_out_and_its_text_is_still_the_slice(kind, words):
    text = "A\u00ad b c.\n\n\n\n\nLeave this out.\n\nd e\u200b f.\n\n\n\ng\u2060 h."
    elements = parse_text(text).elements
    boilerplate = blocks_of("Leave this out.", parse_text("Leave this out.").elements)
    spans = [(e.start, e.end) for e in excluded_spans(text, elements, EVERYTHING, boilerplate)]
    document = opened(text, elements, words, excluded=spans, form="NFC")
    chunker = declared(kind, max_tokens=4, overlap=0)
    chunks = [c for c in chunker.chunks(document) if c.level == 0]
    assert all(chunk.text == text[chunk.start : chunk.end] for chunk in chunks)
    assert not any(
        start <= c.start < end or start < c.end <= end for c in chunks for start, end in spans
    )
    assert " ".join(" ".join(c.embed_text.split()) for c in chunks) == "A b c. d e f. g h."


def test_what_is_left_out_costs_no_tokens(words):
    text = "one two " + "noise " * 50 + "three four"
    document = Document(text, [], words, excluded=[(8, 8 + 300)])
    (chunk,) = CHUNKERS["recursive"](max_tokens=4, max_chars=1000).chunks(document)
    assert (chunk.start, chunk.end) == (0, len(text))
    assert (chunk.cleaned, chunk.n_tokens) == ("one two three four", 4)


def test_embedded_text_is_normalised_and_the_chunk_is_not(words):
    text = unicodedata.normalize("NFD", "Égalité")
    (chunk,) = CHUNKERS["fixed"]().chunks(Document(text, [], words, form="NFC"))
    assert (chunk.text, chunk.embed_text) == (text, "Égalité")


@given(st.text("ab \n\r\u00ad\u200b\x07e\u0301", max_size=60), st.integers(1, 6))
@settings(max_examples=150, deadline=None)
def test_every_character_is_in_a_chunk_or_left_out(tokenizers, text, max_tokens):
    tokenizer = tokenizers["byte pairs"]
    elements = parse_text(text).elements
    spans = [(e.start, e.end) for e in excluded_spans(text, elements, EVERYTHING)]
    document = Document(text, elements, tokenizer, excluded=spans)
    chunks = list(CHUNKERS["recursive"](max_tokens=max_tokens).chunks(document))
    covered = {at for span in [*spans, *((c.start, c.end) for c in chunks)] for at in range(*span)}
    assert not "".join(c for at, c in enumerate(text) if at not in covered).strip()
    for chunk, count in zip(chunks, tokenizer.count([c.embed_text for c in chunks]), strict=True):
        assert chunk.n_tokens == count
        assert chunk.embed_text.strip()
