"""The text around a chunk as part of its prefix."""

import pytest

from chunking_assets.chunk_sets.chunker import Neighbours
from chunking_assets.chunk_sets.chunking import chunk
from chunking_assets.chunk_sets.recursive import RecursiveChunker
from chunking_assets.chunk_sets.spans import Document

TEXT = "One is here. Two is there. Three is far. Four is near. Five is gone."


def chunked(document, max_tokens=16, **neighbours):
    return chunk(
        document, RecursiveChunker(max_tokens=max_tokens, neighbours=Neighbours(**neighbours))
    )


@pytest.fixture
def document(words):
    return Document(TEXT, [], words)


def test_the_sentence_before_a_chunk_is_in_its_prefix_and_not_in_its_text(document):
    chunks = chunked(document, before=1)
    assert [(c.prefix, c.text) for c in chunks] == [
        ("", "One is here. Two is there. Three is far. Four is near."),
        ("Four is near.\n", "Five is gone."),
    ]


def test_the_sentence_after_a_chunk_follows_an_ellipsis(document):
    chunks = chunked(document, max_tokens=12, before=1, after=1)
    assert [c.prefix for c in chunks] == ["Four is near.\n", "Three is far.\n"]
    assert [c.text for c in chunks] == [
        "One is here. Two is there. Three is far.",
        "Four is near. Five is gone.",
    ]


def test_characters_are_whole_words(document):
    chunks = chunked(document, unit="characters", before=10)
    assert chunks[1].prefix == "is near.\n"


def test_what_does_not_fit_a_quarter_of_the_budget_is_left_out(document):
    assert [c.prefix for c in chunked(document, max_tokens=8, before=1)] == [""] * 3


def test_the_budget_counts_the_neighbours(tokenizers, texts):
    tokenizer = tokenizers["byte pairs"]
    for text in texts.values():
        chunks = chunked(Document(text, [], tokenizer), max_tokens=60, before=2, after=1)
        counts = tokenizer.count([c.prefix + c.text for c in chunks])
        assert [c.n_tokens for c in chunks] == counts
        assert max(counts) <= 60


def test_a_cluster_that_leaves_no_room_has_no_neighbours(tokenizers):
    tokenizer, cluster = tokenizers["byte pairs"], "Z" + "\u0351\u036b\u0343\u036a" * 6
    (size,) = tokenizer.count([cluster])
    assert tokenizer.count(["Ok.\n"])[0] <= (size + 1) // 4
    chunks = chunked(Document(f"Ok. {cluster} Ok.", [], tokenizer), size + 1, before=1)
    (alone,) = (c for c in chunks if c.text == cluster)
    assert (alone.prefix, alone.n_tokens, alone.over_budget) == ("", size, False)


def test_neighbours_of_nothing_are_refused():
    with pytest.raises(ValueError, match="leave neighbours out instead"):
        Neighbours(before=0, after=0)
