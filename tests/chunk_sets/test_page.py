"""The page that shows a document's chunks side by side."""

import json
import re

from chunking_assets.chunk_sets.page import MOST_CHARS, Bands, chunks_page
from chunking_assets.chunk_sets.recursive import RecursiveChunker
from chunking_assets.chunk_sets.spans import Document


def page_of(text, words, **bands):
    chunks = list(RecursiveChunker(max_tokens=4).chunks(Document(text, [], words)))
    return chunks_page("a.md", text, [Bands("recursive-4@1", 4, chunks, **bands)]), chunks


def data_of(page):
    return json.loads(re.search(r'id="data">(.*?)</script>', page, re.DOTALL)[1])


def test_the_page_has_the_text_and_where_each_chunk_is_in_utf_16(words):
    text = "One 👩🏽‍💻 two three. Four five six seven."
    page, chunks = page_of(text, words)
    found = data_of(page)["strategies"][0]["chunks"]
    wide = data_of(page)["text"].encode("utf-16-le")
    for band, chunk in zip(found, chunks, strict=True):
        assert wide[2 * band["start"] : 2 * band["end"]].decode("utf-16-le") == chunk.text
        assert (band["from"], band["to"], band["tokens"]) == (
            chunk.start,
            chunk.end,
            chunk.n_tokens,
        )


def test_a_hostile_document_stays_data(words):
    text = "</script><script>alert(1)</script><!-- <b>&amp;\u2028__DATA__"
    page, _ = page_of(text, words)
    assert "alert(1)</script>" not in page
    assert data_of(page)["text"] == text


def test_the_page_loads_nothing_from_anywhere(words):
    page, _ = page_of("Text.", words)
    assert not re.search(r"""(?:src|href)\s*=|url\(|@import|https?:""", page)


def test_the_page_of_a_long_text_says_where_it_ends(words):
    text = "word " * MOST_CHARS
    page, chunks = page_of(text, words)
    data = data_of(page)
    assert len(data["text"]) == MOST_CHARS
    assert f"shows the first {MOST_CHARS:,}" in data["notes"]
    assert len(data["strategies"][0]["chunks"]) < len(chunks)
    assert data["strategies"][0]["summary"][1] == f"{len(chunks):,}"


def test_the_summary_tells_sizes_and_what_is_left_out(words):
    page, _ = page_of("a b c d. e f g h. i j.", words, excluded=[(3, 8)])
    assert data_of(page)["strategies"][0]["summary"] == [
        "recursive-4@1", "3", "3", "4 of 4", "0.28", "67%", "5 chars",
    ]  # fmt: skip


def test_a_document_without_chunks_has_a_page(words):
    page, chunks = page_of("  ", words)
    assert chunks == []
    assert data_of(page)["strategies"][0]["summary"][1:4] == ["0", "0", "0 of 4"]
