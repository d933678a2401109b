"""Faults other splitters were reported for, each as a test of ours."""

import re
import socket
from itertools import pairwise

import pytest
from chunk_promises import BASELINES, OWN, declared, looking_at, opened
from hard_texts import PYTHON, TEXTS
from small_corpus import SmallCorpus, write_corpus

from chunking_assets.chunk_sets.chunking import chunk
from chunking_assets.chunk_sets.registry import CHUNKERS
from chunking_assets.chunk_sets.sentences import sentence_starts
from chunking_assets.embedding_models.e5_small import E5Small
from chunking_assets.embedding_models.minilm import MiniLM
from chunking_assets.parsed_elements import html, markdown, python_source
from chunking_assets.parsed_elements.document import Element
from chunking_assets.parsed_elements.source_code import SourceCode

every_strategy = pytest.mark.parametrize("kind", CHUNKERS)
our_strategies = pytest.mark.parametrize("kind", OWN)
OVERLAPPING = [kind for kind in OWN if kind != "conversation"]
"""A conversation overlaps by whole turns."""
overlapping = pytest.mark.parametrize("kind", OVERLAPPING)
WITH_BREADCRUMB = [kind for kind in OWN if kind != "late"]
"""The window is the context of what is pooled late."""
FAMILY = "👨‍👩‍👧‍👦"
FENCES = [
    "```\n# comment\n\nx\n```",
    "~~~\n# comment\n```\n\nx\n~~~",
    "   ```\n   # comment\n\n   x\n   ```",
    "```\n# comment\n\nx\n`````",
    "````\n```\n# comment\n\nx\n````",
    "```\n# comment in a fence that never closes\n\nx",
]


def chunked(kind, text, tokenizer, parser=None, **parameters):
    """The finest chunks of a text, in a budget of `max_tokens`; they overlap only where asked to."""
    elements = parser.parse_text(text).elements if parser else []
    return cut(kind, opened(text, elements, tokenizer), **parameters)


def cut(kind, document, **parameters):
    chunks = chunk(document, declared(kind, **{"overlap": 0, **parameters}))
    return [c for c in chunks if c.level == 0]


@our_strategies
def test_repeated_words_have_their_own_offsets(kind, words):
    """langchain#21475: searching for a chunk's text gave all of them the first one's offset."""
    chunks = chunked(kind, "chunk chunk chunk", words, max_tokens=1)
    assert [(c.start, c.end) for c in chunks] == [(0, 5), (6, 11), (12, 17)]


@every_strategy
def test_offsets_are_right_where_sizes_are_tokens_and_chunks_overlap(kind, tokenizers):
    """langchain#17642 and #29884: sizes in tokens, offsets searched in characters, gave -1."""
    for name, text in TEXTS.items():
        with looking_at(name):
            chunks = chunked(kind, text, tokenizers["word pieces"], max_tokens=32, overlap=8)
            assert [c.text for c in chunks] == [text[c.start : c.end] for c in chunks]
            assert min(c.start for c in chunks) == 0


@our_strategies
def test_tabs_and_no_break_spaces_in_code_are_kept(kind, words):
    """langchain#40071: a fenced block lost them."""
    text = "Before.\n\n```make\nall:\n\tcc\u00a0-o x\u2003y\n```\n\nAfter."
    (one,) = chunked(kind, text, words, markdown, max_chars=1000, min_tokens=20)
    assert one.text == text


@our_strategies
def test_indentation_and_blank_lines_are_kept(kind, words):
    """langchain#20823, #19436 and #22256: YAML, nested lists and paragraphs were re-joined."""
    text = "One.\n\n\nTwo.\n\n```yaml\na:\n  b:\n\n    - c\n```\n\n- x\n    - y\n\n      z\n"
    (one,) = chunked(kind, text, words, markdown, max_chars=1000, min_tokens=30)
    assert one.text == text.rstrip()


@our_strategies
@pytest.mark.parametrize("fence", FENCES)
def test_a_comment_in_a_fence_is_no_heading(kind, fence, words):
    """haystack#12373, agno#10470 and langchain#13511: `#` in code opened a section."""
    text = f"# Title\n\nSome words before it.\n\n{fence}\n"
    chunks = chunked(kind, text, words, markdown, max_tokens=9, prefix="breadcrumb")
    assert {c.heading_path for c in chunks} == {("Title",)}
    (start,) = (m.start() for m in re.finditer("# comment", text))
    assert not any(start in (c.start, c.end) for c in chunks)


@our_strategies
def test_text_before_the_first_heading_is_kept(kind, words):
    """haystack#11920: an un-anchored search for the heading deleted what stood before it."""
    text = "intro # not a heading\n\n# A\n\na"
    chunks = chunked(kind, text, words, markdown, max_tokens=5)
    assert chunks[0].text.startswith("intro # not a heading")
    assert "".join(text.split()) == "".join("".join(c.text for c in chunks).split())


@our_strategies
def test_the_heading_path_is_a_stack(kind, words):
    """langchain#40409: the first level was lost once a second appeared."""
    text = "# A\n\n## B\n\n### C\n\nccc ccc\n\n## D\n\nddd ddd\n\n# E\n\neee eee"
    chunks = chunked(kind, text, words, markdown, max_tokens=2)
    paths = {c.text.split()[0]: c.heading_path for c in chunks if c.text[0] in "cde"}
    assert paths == {"ccc": ("A", "B", "C"), "ddd": ("A", "D"), "eee": ("E",)}


@pytest.mark.parametrize("kind", [*OVERLAPPING, *BASELINES])
@pytest.mark.parametrize("overlap", [10, 11])
def test_an_overlap_as_large_as_the_chunk_is_refused(kind, overlap):
    """litellm#38980 and pixeltable#1500: such windows never went on."""
    with pytest.raises(ValueError, match=r"overlap \(\d+\) must be smaller than max_tokens"):
        declared(kind, max_tokens=10, overlap=overlap)


@overlapping
def test_the_window_that_reaches_the_end_is_the_last(kind, words):
    """agno#1703 and accelerated-intelligent-document-processing#1090: windows clamped to the end
    of the text began again before it, for ever."""
    for last in range(2, 9):
        text = " ".join("abcdefghi"[: last + 1])
        chunks = chunked(kind, text, words, max_tokens=3, overlap=2)
        assert [c.end for c in chunks].count(len(text)) == 1
        assert chunks[-1].end == len(text)


@overlapping
def test_every_chunk_goes_beyond_the_one_before(kind, words):
    """mempalace#2058: pulled back to a paragraph, with an overlap of over half, starts went back."""
    text = "\n\n".join(["a b c."] * 9)
    chunks = chunked(kind, text, words, max_tokens=4, overlap=3)
    assert all(a.start < b.start and a.end < b.end for a, b in pairwise(chunks))
    assert all(text[a.end : b.end].strip() for a, b in pairwise(chunks))


@our_strategies
def test_one_cluster_over_the_budget_is_emitted_alone_and_marked(kind, tokenizers):
    """llama_index#21900 and semchunk#24: an emoji of several tokens at size 1, or size 0, ended
    in RecursionError."""
    text = f"ab {FAMILY}{FAMILY} cd"
    chunks = chunked(kind, text, tokenizers["byte pairs"], max_tokens=2)
    assert [c.text for c in chunks if c.over_budget] == [FAMILY, FAMILY]
    assert all(c.n_tokens <= 2 for c in chunks if not c.over_budget)
    with pytest.raises(ValueError, match="max_tokens"):
        declared(kind, max_tokens=0)


@our_strategies
def test_repeated_sentences_have_rising_starts_in_characters(kind, tokenizers):
    """chonkie#201, #37 and #84: repeated sentences shared a start, and batches counted tokens."""
    text = "The same sentence. " * 30
    chunks = chunked(kind, text, tokenizers["byte pairs"], max_tokens=20)
    assert [text[c.start : c.end] for c in chunks] == [c.text for c in chunks]
    assert len({c.start for c in chunks}) == len(chunks) > 5


def test_a_document_among_others_has_the_offsets_it_has_alone(tmp_path):
    """chonkie#84: a batch gave offsets in other units than a single text."""
    texts = {f"{name}.md": text for name, text in TEXTS.items()}
    together = SmallCorpus(write_corpus(tmp_path / "all", texts))
    together.parse()
    together.chunk()
    alone = SmallCorpus(write_corpus(tmp_path / "one", {"emoji.md": TEXTS["emoji"]}))
    alone.parse()
    alone.chunk()
    spans = [
        corpus.workspace.table("chunks")
        .read("recursive-20@1|docs")
        .filter(doc_id="docs/emoji.md")
        .select("start", "end", "text", "n_tokens")
        .rows()
        for corpus in (together, alone)
    ]
    assert spans[0] == spans[1]
    assert all(TEXTS["emoji"][start:end] == text for start, end, text, _ in spans[0])


@our_strategies
def test_an_emoji_in_a_comment_shifts_no_later_chunk(kind, tokenizers):
    """chonkie#587, llama_index#11818 and #18702: bytes of the syntax tree taken for characters."""
    for parser in (python_source, _go()):
        code = PYTHON if parser is python_source else _GO
        chunks = chunked(kind, code, tokenizers["byte pairs"], parser, max_tokens=60)
        assert "".join(c.text for c in chunks).count("返品について") == 1
        assert [c.text for c in chunks] == [code[c.start : c.end] for c in chunks]
    code_chunks = chunked("code", _GO, tokenizers["byte pairs"], _go(), max_tokens=60)
    assert any(c.text.startswith("// 👨‍👩‍👧‍👦 é\nfunc Second()") for c in code_chunks)


@our_strategies
def test_a_sentence_longer_than_the_budget_is_cut(kind, words):
    """chonkie#170: it was emitted whole."""
    chunks = chunked(kind, "Short. " + "word " * 50 + "end.", words, max_tokens=8)
    assert all(c.n_tokens <= 8 and not c.over_budget for c in chunks)
    assert sum(c.n_tokens for c in chunks) == 52


@our_strategies
def test_a_blank_line_far_away_does_not_multiply_the_work(kind, tokenizers):
    """text-splitter#1177 and #184: each chunk looked for the largest boundary up to the end."""
    tokenizer = tokenizers["word pieces"]
    text = "word " * 10_000 + "\n\nend"
    before = tokenizer.characters
    chunked(kind, text, tokenizer, markdown, max_tokens=64)
    assert tokenizer.characters - before < 4 * len(text)


@pytest.mark.parametrize("kind", WITH_BREADCRUMB)
def test_the_prefix_counts_and_a_long_one_is_shortened(kind, words):
    """docling#3428, #723 and docling-core#327: headings came on top of the budget, or a chunk was
    dropped whose headings left no room for it."""
    title = " ".join(f"w{i}" for i in range(500))
    text = "body " * 20
    document = opened(text, [Element("paragraph", 0, len(text), 0, (title,))], words)
    chunks = cut(kind, document, max_tokens=12, prefix="breadcrumb")
    prefix = "w497 w498 w499\n"
    assert {c.prefix[-len(prefix) :] for c in chunks} == {prefix}
    assert all(c.n_tokens == len((c.prefix + c.text).split()) <= 12 for c in chunks)
    assert chunks[-1].end == len(text.rstrip())


@pytest.mark.parametrize("rows", [1, 2])
def test_every_piece_of_a_table_has_its_header_and_its_line_of_dashes(rows, words):
    """docling-core#672, chonkie#582 and text-splitter#422: continuations lost one or the other."""
    table = "| Key | Value |\n|---|---|\n" + "".join(f"| k{n} | v{n} v |\n" for n in range(9))
    text = f"# Keys\n\nBefore.\n\n{table}\nAfter."
    chunks = chunked("element", text, words, markdown, max_tokens=14 + 6 * rows)
    pieces = [c for c in chunks if "| k" in c.text and "| Key" not in c.text]
    assert len(pieces) > 1
    assert all(c.prefix.endswith("| Key | Value |\n|---|---|\n") for c in pieces)
    assert all(c.prefix.count("|---|") == 1 for c in pieces)


@our_strategies
def test_chinese_is_cut_at_its_sentences_or_characters(kind, tokenizers):
    """gbrain#648 and LightRAG#3050: a page without spaces was one word and one chunk."""
    text = "今天天气很好。我们去公园散步！然后回家吃饭。" * 60
    chunks = chunked(kind, text, tokenizers["byte pairs"], max_tokens=60)
    assert "".join(c.text for c in chunks) == text
    assert all(c.n_tokens <= 60 for c in chunks)
    if kind not in ("fixed", "sliding_window", "code"):
        assert {c.end for c in chunks} <= {*sentence_starts(text), len(text)}


@our_strategies
def test_one_enormous_unknown_word_is_bounded_by_characters(kind, tokenizers):
    """LightRAG#3050: to a tokenizer that knows no such word, it is one token, whatever its size."""
    chunks = chunked(kind, "x" * 10_000, tokenizers["word pieces"], max_tokens=100)
    assert all(len(c.text) <= 800 and c.n_tokens <= 100 for c in chunks)


@our_strategies
def test_every_chunk_is_valid_text(kind, tokenizers):
    """runanywhere-sdks#847: chunks measured in bytes ended inside a character."""
    for name, text in TEXTS.items():
        with looking_at(name):
            chunks = chunked(kind, text, tokenizers["byte pairs"], max_tokens=9)
            assert all(c.text.encode("utf-8").decode("utf-8") == c.text for c in chunks)
            assert "\ufffd" not in "".join(c.embed_text for c in chunks)


@our_strategies
def test_small_chunks_join_their_neighbours_and_none_vanishes(kind, words):
    """Connapse#311: chunks under the least size were dropped."""
    text = "\n\n".join(f"{word} {word}." for word in "abcdefghijkl")
    chunks = chunked(kind, text, words, markdown, max_tokens=12, min_tokens=6)
    assert "".join(text.split()) == "".join("".join(c.text for c in chunks).split())
    assert min(c.n_tokens for c in chunks) >= 6


@overlapping
def test_an_overlap_that_is_asked_for_is_there(kind, words):
    """Connapse#311: it was discarded where a chunk ended at a boundary."""
    text = "One two three four five six seven eight nine ten " * 8  # no boundary but words
    chunks = chunked(kind, text, words, max_tokens=12, overlap=5)
    assert any(a.end > b.start for a, b in pairwise(chunks))


@our_strategies
def test_equal_paragraphs_under_two_headings_keep_their_places(kind, words):
    """llama_index#20050: both got the first one's offset."""
    text = "# A\n\nSame words here.\n\n# B\n\nSame words here."
    chunks = chunked(kind, text, words, markdown, max_tokens=5)
    assert [(c.start, c.heading_path) for c in chunks] == [
        (0, ("A",)),
        (text.index("# B"), ("B",)),
    ]


def test_the_text_of_nested_list_items_and_tables_stays_in_its_place():
    """xberg#1459, #1397, #1112 and #774: an item with a list of its own lost its text, columns were
    spliced, tables came before the headings above them, and bodies went missing."""
    pages = {
        markdown: "# One\n\n- alpha\n  - beta\n    - gamma\n\n      delta\n- epsilon\n\n# Two\n\n"
        "| zeta | eta |\n|---|---|\n| theta | iota |\n\nkappa",
        html: "<h1>One</h1><ul><li>alpha<ul><li>beta<ul><li>gamma<p>delta</p></li></ul></li></ul></li>"
        "<li>epsilon</li></ul><h1>Two</h1><table><tr><th>zeta</th><th>eta</th></tr>"
        "<tr><td>theta</td><td>iota</td></tr></table><p>kappa</p>",
    }
    names = [
        "One",
        "alpha",
        "beta",
        "gamma",
        "delta",
        "epsilon",
        "Two",
        "zeta",
        "eta",
        "theta",
        "iota",
        "kappa",
    ]
    for parser, page in pages.items():
        parsed = parser.parse(page.encode())
        read = " ".join(parsed.text[e.start : e.end] for e in parsed.elements)
        assert re.findall("|".join(names), read) == names


def test_without_its_grammar_code_is_read_as_text_and_says_so():
    """tree-sitter-language-pack#95 and semble#224: a grammar that could not be fetched made lines
    of code in silence."""
    parsed = SourceCode("cobol", "no_such_grammar", {}).parse_text("MOVE A TO B.\n")
    assert {e.kind for e in parsed.elements} == {"code"}
    assert "no-such-grammar" in (parsed.warning or "").replace("_", "-")


def test_tokenizers_are_there_without_a_network(monkeypatch, tmp_path):
    """tiktoken#513: the vocabulary was downloaded although it had been."""

    def refuse(*address):
        raise OSError("there is no network")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    for model in (MiniLM(), E5Small()):
        assert model.tokenizer(tmp_path).count(["Two words"]) > [1]


_GO = """\
package main

import "fmt"

// 👨‍👩‍👧‍👦 é
func First() {
\tfmt.Println("返品について")
}

// 👨‍👩‍👧‍👦 é
func Second() {
\tfmt.Println("end")
}
"""


def _go():
    from chunking_assets.parsed_elements.source_code import GO

    return GO
