"""Other libraries' splitters: their chunks as they are, at exact places."""

from importlib import metadata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from chunking_assets.chunk_sets.adapters.langchain import LangchainChunker
from chunking_assets.chunk_sets.adapters.library import LibraryChunker
from chunking_assets.chunk_sets.adapters.semantic_text_splitter import SemanticTextSplitterChunker
from chunking_assets.chunk_sets.adapters.semchunk import SemchunkChunker
from chunking_assets.chunk_sets.spans import Document
from chunking_assets.errors import CorpusError

ADAPTERS = [LangchainChunker, SemchunkChunker, SemanticTextSplitterChunker]
every_adapter = pytest.mark.parametrize("adapter", ADAPTERS, ids=lambda a: a.kind)
with_and_without_overlap = pytest.mark.parametrize("overlap", [0, 8])


class Returning(LibraryChunker):
    """A library that returns what the test says."""

    kind = "returning"
    package = "pydantic"
    returned: tuple[tuple[int, str], ...] = ()

    def pieces(self, document, count):
        return self.returned


def assert_exact(document, chunker, tokenizer):
    text, covered, previous = document.text, 0, -1
    chunks = list(chunker.chunks(document))
    for chunk in chunks:
        assert chunk.text == text[chunk.start : chunk.end]
        assert chunk.start > previous
        assert chunk.text.strip()
        assert not text[covered : chunk.start].strip()
        (count,) = tokenizer.count([chunk.text])
        assert chunk.n_tokens == count
        assert chunk.over_budget is (
            count > chunker.max_tokens or len(chunk.text) > chunker.char_cap
        )
        covered, previous = max(covered, chunk.end), chunk.start
    assert not text[covered:].strip()
    return chunks


@every_adapter
@with_and_without_overlap
def test_every_chunk_of_ten_multilingual_texts_is_a_span_and_none_is_lost(
    adapter, overlap, text, tokenizer
):
    chunker = adapter(max_tokens=24, overlap=overlap)
    assert assert_exact(Document(text, [], tokenizer), chunker, tokenizer)


@every_adapter
@given(st.text(" \n\ta.é👨‍👩‍👧返", max_size=80), st.sampled_from([0, 3]))
@settings(max_examples=60, deadline=None)
def test_every_chunk_of_generated_text_is_a_span_and_none_is_lost(
    adapter, tokenizers, text, overlap
):
    tokenizer = tokenizers["word pieces"]
    assert_exact(Document(text, [], tokenizer), adapter(max_tokens=8, overlap=overlap), tokenizer)


@with_and_without_overlap
def test_langchain_cuts_as_it_does_alone(overlap, text, tokenizer):
    from langchain_text_splitters import RecursiveCharacterTextSplitter

    alone = RecursiveCharacterTextSplitter(
        chunk_size=24, chunk_overlap=overlap, length_function=lambda t: tokenizer.count([t])[0]
    )
    chunks = LangchainChunker(max_tokens=24, overlap=overlap).chunks(Document(text, [], tokenizer))
    assert [c.text for c in chunks] == alone.split_text(text)


def test_repeated_text_is_told_apart_where_langchain_overlaps(words):
    text = "same line\n\n" * 20 + "end"
    chunks = list(LangchainChunker(max_tokens=8, overlap=4).chunks(Document(text, [], words)))
    assert [c.start for c in chunks] == list(range(0, 22 * len(chunks), 22))
    assert chunks[-1].text.endswith("end")


@every_adapter
def test_blank_texts_have_no_chunks(adapter, words):
    for blank in ("", " \n\n\t\u3000"):
        assert list(adapter().chunks(Document(blank, [], words))) == []


@every_adapter
def test_tokens_are_those_of_the_documents_own_tokenizer(adapter, tokenizers, texts):
    sizes = {
        name: len(list(adapter(max_tokens=32).chunks(Document(texts["turkish"], [], tokenizer))))
        for name, tokenizer in tokenizers.items()
    }
    assert sizes["byte pairs"] > sizes["words"]


@pytest.mark.parametrize(
    "pieces",
    [[(0, "one  two")], [(0, "one"), (9, "two")], [(4, "two"), (0, "one")]],
    ids=["changed", "misplaced", "backwards"],
)
def test_a_chunk_that_is_not_in_the_text_where_it_should_be_is_an_error(pieces, words):
    chunker = Returning(returned=pieces)
    with pytest.raises(CorpusError, match=r"pydantic .* returned a chunk that is not in the text"):
        list(chunker.chunks(Document("one two", [], words)))


def test_chunks_are_trimmed_and_blank_ones_left_out(words):
    chunker = Returning(returned=[(0, " one "), (5, " \n"), (7, "two\n")])
    found = [(c.start, c.end) for c in chunker.chunks(Document(" one  \ntwo\n", [], words))]
    assert found == [(1, 4), (7, 10)]


def test_what_is_over_the_budget_is_marked_and_left_whole(words):
    document = Document("one two three four", [], words)
    for limits in ({"max_tokens": 3}, {"max_tokens": 9, "max_chars": 17}):
        chunker = Returning(returned=[(0, "one two three four")], **limits)
        assert [(c.n_tokens, c.over_budget) for c in chunker.chunks(document)] == [(4, True)]


@every_adapter
@pytest.mark.parametrize(
    "parameters",
    [{"min_tokens": 5}, {"prefix": "breadcrumb"}, {"clean": {"blank_lines": True}}, {"levels": 2}],
    ids=str,
)
def test_a_parameter_the_library_lacks_is_refused(adapter, parameters):
    with pytest.raises(ValidationError, match=next(iter(parameters))):
        adapter(**parameters)


@every_adapter
def test_the_release_of_the_library_is_declared(adapter):
    release = metadata.version(adapter.package)
    assert adapter().declaration()["library"] == f"{adapter.package} {release}"


def test_a_missing_library_is_named_with_its_cure(words):
    class Missing(Returning):
        kind = "missing"
        package = "no-such-splitter"

    for use in (Missing().declaration, lambda: list(Missing().chunks(Document("a", [], words)))):
        with pytest.raises(CorpusError, match=r"no-such-splitter is not .*chunking-assets\[base"):
            use()
