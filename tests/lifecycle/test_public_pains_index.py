"""What users of other tools reported of their indexes, as cases that must end well here."""

import polars as pl
import pytest
from small_corpus import SmallCorpus, write_corpus, write_document

from chunking_assets.chunk_embeddings.build import update_index
from chunking_assets.chunk_embeddings.lance_index import LanceIndex
from chunking_assets.chunk_sets.build import CHUNKS
from chunking_assets.embedding_models.model import ModelIdentity
from chunking_assets.embedding_models.vector_cache import vec_key
from chunking_assets.parsed_elements.build import DOCUMENTS
from chunking_assets.retrieval.open import open_strategy

pytestmark = pytest.mark.usefixtures("place")

VERSION, INDEX = "fixed-20@1", "fixed-20@1+hash"
STRATEGIES = {"one": {"chunker": VERSION, "model": "hash", "profile": "vector"}}


def paragraphs(name, count=3):
    return "\n\n".join(
        f"Paragraph {n} of {name} says one thing and then another about number {n} only here."
        for n in range(count)
    )


def corpus_of(root, texts, **changes):
    corpus = SmallCorpus(write_corpus(root, texts, **{"strategies": STRATEGIES, **changes}))
    corpus.update()
    return corpus


def served(corpus):
    rows = LanceIndex(corpus.workspace, INDEX).rows(served=True).to_pylist()
    return sorted(rows, key=lambda row: row["chunk_id"])


def test_partitions_with_as_many_rows_each_keep_all_of_them(tmp_path):
    """Dagster's example: ids counted from 0 in every partition, so each overwrote the others."""
    collections = {
        name: {"path": name, "settle_seconds": 0} for name in ("issues", "discussions", "docs")
    }
    for name in collections:
        (tmp_path / name).mkdir(parents=True)
        for number in range(3):
            (tmp_path / name / f"{number}.md").write_text(paragraphs(f"{name} {number}"))
    corpus = corpus_of(tmp_path, {}, collections=collections)
    reader = open_strategy(corpus.workspace, corpus.config.strategies["one"])
    found = {hit.doc_id for hit in reader.rank("which paragraph says one thing").hits}
    assert found == {f"{name}/{number}.md" for name in collections for number in range(3)}
    assert len(served(corpus)) == len({row["chunk_id"] for row in served(corpus)})


def test_a_document_longer_than_a_batch_is_not_embedded_again(tmp_path):
    """LangChain: where a document spanned batches, every run deleted and embedded it anew."""
    corpus = corpus_of(tmp_path, {"long.md": paragraphs("a long one", 500), "b.md": "Another."})
    (index,) = corpus.config.index_versions.values()
    version = LanceIndex(corpus.workspace, INDEX).served_version()
    corpus.embedder.embedded.clear()

    def update():
        corpus.parse()
        corpus.chunk()
        embedder = lambda _: corpus.embedder  # noqa: E731
        return update_index(corpus.workspace, index, ["docs"], embedder, batch_chunks=100)[0]

    assert not update().changes
    assert LanceIndex(corpus.workspace, INDEX).served_version() == version
    text = paragraphs("a long one", 500).replace("Paragraph 499", "The last paragraph")
    write_document(tmp_path, "long.md", text)
    assert update().vectors_embedded == len(corpus.embedder.embedded) <= 2


class Refusing:
    """An embedder whose endpoint fails after so many texts."""

    def __init__(self, embedder, after):
        self.embedder, self.left = embedder, after
        self.identity, self.count_tokens = embedder.identity, embedder.count_tokens

    def embed_passages(self, texts, progress=None):
        self.left -= len(texts)
        if self.left < 0:
            raise ConnectionError("the endpoint is gone")
        return self.embedder.embed_passages(texts, progress)


@pytest.mark.parametrize("after", [0, 200])
def test_an_embedder_that_fails_leaves_the_old_index_served_and_loses_no_document(tmp_path, after):
    """LlamaIndex: the old version was deleted before the new one was embedded, and what had failed
    was taken as done by the next run."""
    corpus = corpus_of(tmp_path, {f"{n}.md": paragraphs(f"document {n}") for n in range(100)})
    before = served(corpus)
    for n in range(100):
        write_document(tmp_path, f"{n}.md", paragraphs(f"document {n}, edited"))
    embedder = corpus.embedder
    corpus.embedder = Refusing(embedder, after)
    with pytest.raises(ConnectionError):
        corpus.update()
    assert served(corpus) == before
    corpus.embedder = embedder
    corpus.update()
    assert len({row["doc_id"] for row in served(corpus) if "edited" in row["text"]}) == 100
    assert not any("edited" not in row["text"] for row in served(corpus) if row["ordinal"] == 0)


def test_another_model_embeds_everything_and_chunks_nothing(tmp_path):
    """Flowise: after a change of the model everything was skipped, and old vectors were compared
    with new ones."""
    corpus = corpus_of(tmp_path, {f"{n}.md": paragraphs(f"document {n}") for n in range(4)})
    strategies = {"one": {"chunker": VERSION, "model": "other", "profile": "vector"}}
    models = {"hash": {"kind": "hash"}, "other": {"kind": "hash", "max_tokens": 99}}
    again = SmallCorpus(write_corpus(tmp_path, {}, strategies=strategies, embedding_models=models))
    again.embedder.identity = ModelIdentity("hash", "1", 32, 99, "", "", "mean", normalised=True)
    (parsed,), chunked, (embedded,) = again.update()
    assert (parsed.parsed, sum(u.chunks_redone for u in chunked)) == (0, 0)
    assert embedded.index_version == f"{VERSION}+other"
    assert embedded.vectors_embedded == len({row["text"] for row in served(corpus)})


def test_another_setting_of_a_chunker_makes_its_own_version_and_parses_nothing(tmp_path):
    """cocoindex-code, RAGFlow: chunks stayed as they were after a change of their settings."""
    corpus = corpus_of(tmp_path, {f"{n}.md": paragraphs(f"document {n}") for n in range(4)})
    before = served(corpus)
    chunkers = {
        VERSION: {"kind": "fixed", "max_tokens": 20},
        "fixed-20@2": {"kind": "fixed", "max_tokens": 9},
    }
    strategies = STRATEGIES | {
        "two": {"chunker": "fixed-20@2", "model": "hash", "profile": "vector"}
    }
    again = SmallCorpus(write_corpus(tmp_path, {}, chunkers=chunkers, strategies=strategies))
    (parsed,), chunked, indexed = again.update()
    redone = {update.chunker_version: update.chunks_redone for update in chunked}
    embedded = {update.index_version: update for update in indexed}
    assert (parsed.parsed, redone[VERSION]) == (0, 0)
    assert redone["fixed-20@2"] == embedded["fixed-20@2+hash"].chunks > len(before)
    assert not embedded[INDEX].changes
    assert served(corpus) == before


def test_the_chunks_of_a_document_cover_it_before_and_after_an_edit(tmp_path):
    """LlamaIndex: an upsert kept the last chunk of every document and dropped the others."""
    corpus = corpus_of(tmp_path, {f"{n}.md": paragraphs(f"document {n}", 8) for n in range(4)})
    for edited in (False, True):
        if edited:
            write_document(tmp_path, "1.md", paragraphs("document 1, edited", 9))
            corpus.update()
        documents = corpus.workspace.table(DOCUMENTS).read_all(columns=["doc_id", "text"])
        chunks = corpus.workspace.table(CHUNKS).read(f"{VERSION}|docs")
        for doc_id, text in documents.iter_rows():
            spans = chunks.filter(pl.col("doc_id") == doc_id).select("start", "end").rows()
            covered = {at for start, end in spans for at in range(start, end)}
            assert all(text[at].isspace() for at in {*range(len(text))} - covered)
        assert sorted(chunks["chunk_id"]) == [row["chunk_id"] for row in served(corpus)]


def test_texts_that_are_cut_elsewhere_have_keys_of_their_own():
    """LlamaIndex: texts were joined to make the key of a batch, so other cuts had the same key."""
    identity = ModelIdentity("hash", "1", 32, 512, "", "", "mean", normalised=True)
    texts = ["ab", "c", "a", "bc", "abc"]
    keys = {vec_key(identity, role, text) for text in texts for role in ("passage", "query")}
    assert len(keys) == 2 * len(texts)
