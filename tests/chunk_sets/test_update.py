"""A shard brought up to date in batches and processes: the same rows, whatever is done at once."""

import threading
import traceback
from typing import ClassVar

import polars as pl
import pytest
from faulty_models import FailingModel, MortalModel
from hypothesis import given
from hypothesis import strategies as st
from small_corpus import HashModel, SmallCorpus, WordTokenizer, write_corpus, write_document

from chunking_assets.chat_models.chat import Chat
from chunking_assets.chunk_sets import build
from chunking_assets.chunk_sets.batches import batches
from chunking_assets.chunk_sets.build import CHUNKS, EXCLUDED_SPANS, cell, update_chunk_sets
from chunking_assets.chunk_sets.chunker import Chunker
from chunking_assets.chunk_sets.fixed import FixedChunker
from chunking_assets.chunk_sets.version import ChunkerVersion
from chunking_assets.embedding_models.loaded import Models
from chunking_assets.errors import CorpusError
from chunking_assets.parsed_elements.build import ELEMENTS

CHUNKERS = {
    "recursive-20@1": {"kind": "recursive", "max_tokens": 20, "prefix": "breadcrumb"},
    "sizes@1": {"kind": "hierarchical", "sizes": [40, 10]},
    "clean@1": {"kind": "fixed", "max_tokens": 20, "clean": {"boilerplate": 0.5}},
}
STRATEGIES = {"one": {"chunker": "clean@1", "model": "hash", "profile": "vector"}}


def document(number, revision=0):
    parts = (
        f"## Part {part}\n\nSentence {part} of document {number}, revision {revision}. "
        f"It goes on for {number} words and one more.\n\n"
        for part in range(1 + number % 4)
    )
    return f"# Document {number}\n\n" + "".join(parts) + "All rights reserved.\n"


def corpus_of(root, documents=30):
    texts = {f"{n:03}.md": document(n) for n in range(documents)}
    return SmallCorpus(write_corpus(root, texts, chunkers=CHUNKERS, strategies=STRATEGIES))


@pytest.fixture
def corpus(tmp_path):
    corpus = corpus_of(tmp_path)
    corpus.parse()
    return corpus


@pytest.fixture
def in_processes(monkeypatch):
    monkeypatch.setattr(build, "WORTH_PROCESSES", 0)


def chunk(corpus, versions=None, models=None, **settings):
    declared = list(corpus.config.chunker_versions.values())
    return update_chunk_sets(
        corpus.workspace, "docs", versions or declared, models or corpus.models, **settings
    )


def files(corpus):
    """The bytes of every chunk set and its excluded spans, by partition."""
    tables = [corpus.workspace.table(name) for name in (CHUNKS, EXCLUDED_SPANS)]
    return {
        (table.name, partition): [file.read_bytes() for file in table.files([partition])]
        for table in tables
        for partition in table.partitions()
    }


def test_processes_and_batches_change_no_byte(corpus, tmp_path, monkeypatch):
    done = chunk(corpus, workers=1)
    here = files(corpus)
    assert len(here) == 4
    for partition in corpus.workspace.table(CHUNKS).partitions():
        corpus.workspace.table(CHUNKS).remove(partition)
    monkeypatch.setattr(build, "WORTH_PROCESSES", 0)
    monkeypatch.setattr(build, "BATCHES_PER_PROCESS", 5)
    assert chunk(corpus, workers=2) == done
    assert files(corpus) == here


@given(st.dictionaries(st.text("abc", min_size=1), st.integers(0, 50)), st.integers(1, 100))
def test_a_batch_is_within_its_size_or_one_document(sizes, most):
    found = list(batches(sizes, most))
    assert [doc_id for batch in found for doc_id in batch] == sorted(sizes)
    assert all(len(b) == 1 or sum(sizes[d] for d in b) <= most for b in found)


def test_few_documents_start_no_process(corpus, monkeypatch):
    monkeypatch.setattr(build, "in_processes", None)
    assert [u.chunks_redone > 0 for u in chunk(corpus, workers=2)] == [True] * 3


@pytest.mark.parametrize("workers", [1, 2])
def test_an_update_stores_what_a_build_from_nothing_does(tmp_path, in_processes, workers):
    edited, anew = corpus_of(tmp_path / "edited"), corpus_of(tmp_path / "anew")
    edited.parse()
    chunk(edited)
    for corpus in (edited, anew):
        root = corpus.config.root
        for number in (0, 1, 7, 20, 29):
            write_document(root, f"{number:03}.md", document(number, revision=1))
        for name in ("000b.md", "015b.md", "z.md"):
            write_document(root, name, document(3, revision=2))
        for number in (5, 12):
            (root / "docs" / f"{number:03}.md").unlink()
        corpus.parse()
        done = chunk(corpus, workers=workers)
    assert {len(u.changes.redo) for u in done} == {31}
    assert files(edited) == files(anew)


def test_unchanged_rows_are_streamed_past_in_pieces_of_a_row_group(corpus, monkeypatch):
    monkeypatch.setattr("chunking_assets.workspace.ROW_GROUP_BYTES", 2_000)
    chunk(corpus)
    before = corpus.workspace.table(CHUNKS).read(cell("recursive-20@1", "docs"))
    write_document(corpus.config.root, "014.md", document(14, revision=1))
    corpus.parse()
    (update, *_) = chunk(corpus)
    assert update.changes.redo == ("docs/014.md",)
    after = corpus.workspace.table(CHUNKS).read(cell("recursive-20@1", "docs"))
    kept = pl.col("doc_id") != "docs/014.md"
    assert after.filter(kept).equals(before.filter(kept))
    assert after.equals(after.sort("doc_id", "ordinal"))


class CountingTokenizer(WordTokenizer):
    """Remembers how many characters it was given to find the tokens of."""

    characters: ClassVar[int] = 0

    def starts(self, texts):
        type(self).characters += sum(map(len, texts))
        return super().starts(texts)


class CountingModel(HashModel):
    def tokenizer(self, models_folder):
        return CountingTokenizer()


def test_a_document_is_tokenized_once_for_all_versions_that_see_the_same_of_it(corpus):
    models = Models({"hash": CountingModel()}, corpus.workspace)
    settings = [FixedChunker(max_tokens=n) for n in (10, 20, 30, 40, 50)]
    versions = [ChunkerVersion(f"v{n}@1", s, "hash", "words") for n, s in enumerate(settings)]
    CountingTokenizer.characters = 0
    chunk(corpus, versions[:1], models)
    once = CountingTokenizer.characters
    corpus.workspace.table(CHUNKS).remove(cell("v0@1", "docs"))
    chunk(corpus, versions, models)
    assert CountingTokenizer.characters == 2 * once


def test_a_process_killed_for_want_of_memory_is_named_and_nothing_is_stored(corpus, in_processes):
    deadly = corpus.config.root / "deadly"
    deadly.touch()
    models = Models({"hash": MortalModel(deadly=str(deadly))}, corpus.workspace)
    said = (
        r"docs/0.* was ended from outside.*lower chunking.batch_mb.*Nothing was stored: run again"
    )
    with pytest.raises(CorpusError, match=said):
        chunk(corpus, models=models, workers=2)
    assert files(corpus) == {}
    assert list((corpus.workspace.root / "tables" / CHUNKS).rglob("*.parquet")) == []
    deadly.unlink()
    chunk(corpus, models=models, workers=2)
    healed = files(corpus)
    for partition in corpus.workspace.table(CHUNKS).partitions():
        corpus.workspace.table(CHUNKS).remove(partition)
    chunk(corpus, workers=1)
    assert files(corpus) == healed


@pytest.mark.parametrize("workers", [1, 2])
def test_an_error_says_which_document_and_version_it_was(corpus, in_processes, workers):
    models = Models({"hash": FailingModel()}, corpus.workspace)
    with pytest.raises(ValueError, match="no tokens for twenty") as caught:
        chunk(corpus, models=models, workers=workers)
    assert "It was docs/020.md under clean@1." in "".join(traceback.format_exception(caught.value))
    assert files(corpus) == {}


def test_what_no_other_process_can_import_is_refused_with_the_cure(corpus, in_processes):
    class Local(HashModel):
        def __reduce__(self):
            raise TypeError("is of this process only")

    with pytest.raises(CorpusError, match=r"in a module that can be imported, or set chunking\.w"):
        chunk(corpus, models=Models({"hash": Local()}, corpus.workspace), workers=2)


class Meeting(Chunker):
    """Chunks a document only when another is being chunked at the same time."""

    kind = "meeting"
    barrier: ClassVar = threading.Barrier(2, timeout=30)

    def asks_chat(self):
        return True

    def chunks(self, document):
        self.barrier.wait()
        return FixedChunker(max_tokens=20).chunks(document)


def test_documents_wait_for_a_chat_model_together(corpus):
    version = ChunkerVersion("meeting@1", Meeting(max_tokens=20), "hash", "words")
    chat, seen = Chat(None, corpus.workspace.caches / "chat.sqlite"), []
    chunk(corpus, [version], chat=chat, progress=lambda *done: seen.append(done))
    assert seen == [(n, 30) for n in range(1, 31)]
    rows = corpus.workspace.table(CHUNKS).read(cell("meeting@1", "docs"))
    assert rows["doc_id"].n_unique() == 30
    assert rows.equals(rows.sort("doc_id", "ordinal"))


def test_elements_of_another_text_are_noticed(corpus):
    elements = corpus.workspace.table(ELEMENTS)
    manifest = elements.manifest("docs")
    keys = {**manifest.keys, "docs/003.md": "of another text"}
    elements.replace(elements.read("docs"), "docs", keys=keys, details=manifest.details)
    with pytest.raises(CorpusError, match=r"docs/003\.md: its elements do not belong"):
        chunk(corpus)


def test_excluded_spans_that_are_gone_are_found_again(corpus):
    chunk(corpus)
    before = files(corpus)
    corpus.workspace.table(EXCLUDED_SPANS).remove(cell("clean@1", "docs"))
    assert [u.chunker_version for u in chunk(corpus) if u.chunks_redone] == ["clean@1"]
    assert files(corpus) == before


def test_boilerplate_is_what_the_whole_shard_has(corpus, in_processes):
    chunk(corpus, workers=2)
    spans = corpus.workspace.table(EXCLUDED_SPANS).read(cell("clean@1", "docs"))
    assert spans["doc_id"].n_unique() == 30
    assert set(spans["reason"]) == {"boilerplate"}
