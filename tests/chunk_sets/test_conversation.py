"""Conversations are cut between turns."""

import pytest

from chunking_assets.chunk_sets.conversation import ConversationChunker
from chunking_assets.chunk_sets.spans import Document
from chunking_assets.parsed_elements.plain_text import parse_text

CHAT = "".join(
    f"[2026-05-12 09:{n:02}] {'Ana (customer)' if n % 2 else 'Bo'}: Message number {n} is here.\n"
    for n in range(9)
)


@pytest.fixture
def document(words):
    return Document(CHAT, parse_text(CHAT).elements, words)


def chunks(document, **settings):
    return list(ConversationChunker(**settings).chunks(document))


def test_a_chunk_holds_whole_turns_up_to_their_number(document):
    found = chunks(document, turns=4, overlap_turns=0)
    assert [c.text.count("Message") for c in found] == [4, 4, 1]
    assert all(c.text.startswith("[2026") for c in found)


def test_a_chunk_begins_with_the_last_turn_of_the_one_before(document):
    found = chunks(document, turns=3)
    assert [c.text[12:17] for c in found] == ["09:00", "09:02", "09:04", "09:06"]


def test_a_chunk_holds_fewer_turns_where_more_do_not_fit(document):
    found = chunks(document, max_tokens=20, turns=5, overlap_turns=0, prefix="none")
    assert [c.text.count("Message") for c in found] == [2, 2, 2, 2, 1]


def test_the_prefix_names_the_speakers_and_the_time_of_the_first_turn(document):
    found = chunks(document, turns=4, overlap_turns=0)
    assert [c.prefix for c in found] == [
        "Bo, Ana (2026-05-12 09:00)\n", "Bo, Ana (2026-05-12 09:04)\n", "Bo (2026-05-12 09:08)\n",
    ]  # fmt: skip


def test_every_piece_of_a_long_turn_is_told_whose_it_is(words):
    chat = CHAT + "[2026-05-12 10:00] Ana (customer): " + "This goes on and on. " * 20
    found = chunks(Document(chat, parse_text(chat).elements, words), max_tokens=30)
    pieces = [c for c in found if "goes on" in c.text]
    assert len(pieces) > 2
    assert all(c.prefix == "Ana (2026-05-12 10:00)\n" for c in pieces[1:])


def test_those_whose_turns_did_not_fit_are_not_named(words):
    long = "[2026-05-12 08:00] Cid: " + "This goes on and on. " * 20 + "\n"
    found = chunks(Document(long + CHAT, parse_text(long + CHAT).elements, words), max_tokens=30)
    for chunk in found:
        named = chunk.prefix.partition(" (")[0].split(", ")
        spoken = ["Cid"] if chunk.start < len(long) else []
        spoken += [name for name in ("Ana", "Bo") if f"] {name}" in chunk.text]
        assert sorted(named) == sorted(spoken)


def test_text_without_turns_is_cut_as_by_recursive(words):
    found = chunks(Document("One two three. Four five.", [], words), max_tokens=3)
    assert [c.text for c in found] == ["One two three.", "Four five."]


@pytest.mark.parametrize(
    ("settings", "problem"),
    [({"overlap": 5}, "give overlap_turns"), ({"turns": 2, "overlap_turns": 2}, "smaller than")],
)
def test_overlaps_that_cannot_be_meant_are_refused(settings, problem):
    with pytest.raises(ValueError, match=problem):
        ConversationChunker(**settings)
