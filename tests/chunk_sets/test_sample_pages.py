"""Pages of a few documents, from what is stored."""

import pytest
from small_corpus import SmallCorpus, write_corpus

from chunking_assets.chunk_sets.sample_pages import write_sample_pages
from chunking_assets.chunk_sets.spans import Document

DOCUMENTS = {f"{n}.md": "Words and words. " * n for n in range(1, 8)}


def test_the_longest_the_middle_and_the_shortest_document_have_a_page(tmp_path):
    corpus = SmallCorpus(write_corpus(tmp_path, DOCUMENTS))
    corpus.parse()
    corpus.chunk()
    versions = list(corpus.config.chunker_versions.values())
    pages = write_sample_pages(corpus.workspace, "docs", versions)
    assert list(pages) == ["docs/7.md", "docs/4.md", "docs/1.md"]
    for page in pages.values():
        content = page.read_text(encoding="utf-8")
        assert all(version.name in content for version in versions)


def test_the_pages_show_what_is_stored(tmp_path, monkeypatch):
    corpus = SmallCorpus(write_corpus(tmp_path, DOCUMENTS))
    corpus.parse()
    corpus.chunk()
    monkeypatch.delattr(Document, "__init__")  # nothing is cut for a page
    versions = list(corpus.config.chunker_versions.values())
    before = write_sample_pages(corpus.workspace, "docs", versions)
    content = {name: page.read_bytes() for name, page in before.items()}
    assert write_sample_pages(corpus.workspace, "docs", versions) == before
    assert {name: page.read_bytes() for name, page in before.items()} == content


@pytest.mark.parametrize("documents", [{}, {"blank.md": "  "}])
@pytest.mark.parametrize("parsed", [True, False])
def test_a_shard_without_text_has_no_pages(tmp_path, documents, parsed):
    corpus = SmallCorpus(write_corpus(tmp_path, documents))
    if parsed:
        corpus.parse()
    versions = list(corpus.config.chunker_versions.values())
    assert write_sample_pages(corpus.workspace, "docs", versions) == {}
