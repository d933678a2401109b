"""Late chunking: windows of a document, and the vectors of chunks pooled from them.

The model reads a word a token; a token's vector is its word's, and a little of all others' in the
window, as attention would have it.
"""

from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_corpus import (
    DIMENSIONS,
    WORD,
    HashEmbedder,
    HashModel,
    SmallCorpus,
    WordTokenizer,
    write_corpus,
    write_document,
)

from chunking_assets.chunk_embeddings.build import EMBEDDED_CHUNKS, is_indexed
from chunking_assets.chunk_embeddings.lance_index import LanceIndex
from chunking_assets.chunk_embeddings.late import ChunkSpan, check_late, windows_of
from chunking_assets.chunk_embeddings.version import IndexVersion
from chunking_assets.chunk_sets.build import CHUNKS, cell
from chunking_assets.chunk_sets.late import LateChunker
from chunking_assets.chunk_sets.recursive import RecursiveChunker
from chunking_assets.chunk_sets.spans import Document
from chunking_assets.chunk_sets.version import ChunkerVersion
from chunking_assets.embedding_models.onnx_folder import OnnxFolder
from chunking_assets.errors import CorpusError
from chunking_assets.parsed_elements.markdown import parse_text

MOST = 60
"""What the test's model reads at once, in words."""


class LateEmbedder(HashEmbedder):
    """Keeps the windows it was asked for."""

    tokenizer = WordTokenizer()

    def __init__(self, max_tokens=MOST):
        super().__init__(max_tokens)
        self.windows = []

    def embed_spans(self, windows):
        self.windows += [text for text, _ in windows]
        return [self._spans(text, spans) for text, spans in windows]

    def _spans(self, text, spans):
        words = list(WORD.finditer(text.lower()))
        assert len(words) <= self.identity.max_tokens
        states = np.full((len(words), DIMENSIONS), 1e-3)
        for row, word in enumerate(words):
            states[row, sum(word.group().encode()) % DIMENSIONS] += 1
        states += 0.2 * states.mean(axis=0)
        starts, ends = np.array([m.span() for m in words]).T
        own = [states[(starts < b) & (ends > a)].mean(axis=0) for a, b in spans]
        vectors = np.stack(own).astype(np.float32)
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


LATE = {
    "chunkers": {
        "late-20@1": {
            "kind": "late",
            "spans": {"kind": "recursive", "max_tokens": 20},
            "context_tokens": 8,
        },
        "recursive-20@1": {"kind": "recursive", "max_tokens": 20},
    },
    "strategies": {
        "late": {"chunker": "late-20@1", "model": "hash", "profile": "hybrid"},
        "alone": {"chunker": "recursive-20@1", "model": "hash", "profile": "hybrid"},
    },
}
INDEX = "late-20@1+hash"


def prose(seed, sentences=60):
    words = [f"{a}{b}" for a in "bdfglmnprst" for b in ("ark", "ilo", "une", "esp", "ora")]
    pick = Random(seed)
    return "\n\n".join(
        " ".join(pick.choices(words, k=pick.randrange(4, 17))).capitalize() + "."
        for _ in range(sentences)
    )


def opened(text, embedder, max_tokens=20):
    document = Document(text, parse_text(text).elements, embedder.tokenizer)
    chunks = RecursiveChunker(max_tokens=max_tokens).chunks(document)
    return document, [ChunkSpan(c.start, c.end, c.heading_path) for c in chunks]


def windows(text, context_tokens=8, most=MOST, max_tokens=20):
    embedder = LateEmbedder(most)
    document, chunks = opened(text, embedder, max_tokens)
    return document, chunks, list(windows_of(document, chunks, embedder, context_tokens))


# windows


@given(
    st.lists(st.sampled_from(["word", "Big.", "\n\n", "# Head\n\n", "日本。", " "]), max_size=300),
    st.integers(0, 30),
    st.integers(10, 80),
    st.integers(1, 40),
)
@settings(deadline=None, max_examples=150)
def test_every_chunk_that_fits_a_window_is_in_one_with_its_exact_text(
    parts, context, most, max_tokens
):
    document, chunks, found = windows(" ".join(parts), context, most, max_tokens)
    tokenizer, seen = WordTokenizer(), []
    for window in found:
        seen += window.chunks
        assert tokenizer.count([window.text])[0] <= most
        before = window.spans[0][0]
        assert tokenizer.count([window.text[:before]])[0] <= context
        assert document.text[: chunks[window.chunks[0]].start].endswith(window.text[:before])
        for position, (start, end) in zip(window.chunks, window.spans, strict=True):
            chunk = chunks[position]
            assert window.text[start:end] == document.text[chunk.start : chunk.end]
    alone = [n for n, c in enumerate(chunks) if tokenizer.count([text_of(document, c)])[0] > most]
    assert sorted(seen + alone) == list(range(len(chunks)))


def text_of(document, chunk):
    return document.text[chunk.start : chunk.end]


def test_windows_are_led_by_as_much_of_the_text_before_as_was_asked_for():
    _, _, found = windows(prose(1), context_tokens=8)
    led = [WordTokenizer().count([w.text[: w.spans[0][0]]])[0] for w in found]
    assert led[0] == 0
    assert {*led[1:]} == {7, 8}  # whole words: a full stop is a token, and begins none


def test_a_window_ends_before_the_coarsest_heading_in_reach():
    parts = ["# One", prose(1, 2), "## Deeper", prose(2, 2), "# Two", prose(3, 3)]
    document, chunks, found = windows("\n\n".join(parts), context_tokens=0, max_tokens=15)
    starts = [text_of(document, chunks[w.chunks[0]]).split("\n")[0] for w in found]
    assert "# Two" in starts


def changed_windows(before, after):
    old = {(w.text, w.spans) for w in before}
    return [w for w in after if (w.text, w.spans) not in old]


@pytest.mark.parametrize("edit", ["replaced", "added", "removed"])
def test_an_edit_changes_the_windows_around_it_and_no_others(edit):
    """Windows counted off from the start would all move with the first one."""
    text = prose(4, 150)
    _, chunks, before = windows(text)
    changed = []
    for chunk in chunks[::3]:
        space = text.index(" ", chunk.start)
        new = {
            "replaced": text[: chunk.start] + "Xylem" + text[space:],
            "added": text[:space] + " one two three four five" + text[space:],
            "removed": text[: chunk.start] + text[chunk.end :],
        }[edit]
        changed.append(len(changed_windows(before, windows(new)[2])))
    assert len(before) > 30
    assert max(changed) <= 8
    assert sum(changed) / len(changed) < 3


def test_appended_text_changes_only_the_last_windows():
    text = prose(5)
    before, after = windows(text)[2], windows(text + "\n\n" + prose(6))[2]
    assert [w.text for w in after[: len(before) - 2]] == [w.text for w in before[:-2]]


# building


@pytest.fixture
def corpus(tmp_path):
    documents = {f"{n}.md": prose(n) for n in range(3)}
    return with_embedder(SmallCorpus(write_corpus(tmp_path, documents, **LATE)))


def with_embedder(corpus):
    corpus.embedder = LateEmbedder()
    return corpus


def rows(corpus, index=INDEX):
    found = LanceIndex(corpus.workspace, index).rows("docs").to_pylist()
    return {(row["doc_id"], row["start"]): row for row in found}


def updates(corpus):
    return {update.index_version: update for update in corpus.update()[2]}


def test_a_chunk_is_the_mean_of_its_tokens_in_its_window(corpus):
    updates(corpus)
    late, alone = rows(corpus), rows(corpus, "recursive-20@1+hash")
    assert late.keys() == alone.keys()
    assert {k: r["text"] for k, r in late.items()} == {k: r["text"] for k, r in alone.items()}
    for key, row in late.items():
        vector = np.array(row["vector"])
        assert np.linalg.norm(vector) == pytest.approx(1, abs=1e-5)
        assert 0.5 < vector @ np.array(alone[key]["vector"]) < 0.9999
    whole = Document(prose(0), [], WordTokenizer())
    chunks = [ChunkSpan(r["start"], r["end"]) for (doc, _), r in sorted(late.items()) if "0" in doc]
    window = next(windows_of(whole, chunks, LateEmbedder(), 8))
    (expected,) = LateEmbedder().embed_spans([(window.text, window.spans)])
    for position, vector in zip(window.chunks, expected, strict=True):
        assert np.allclose(late["docs/0.md", chunks[position].start]["vector"], vector, atol=1e-6)


def test_the_same_chunk_has_another_vector_in_other_company(tmp_path):
    shared = "the price of the product includes shipping and all taxes"
    documents = {
        "a.md": f"Boots for walking.\n\n{shared}",
        "b.md": f"Cheese from goats.\n\n{shared}",
    }
    chunkers = {"late-20@1": {"kind": "late", "spans": {"kind": "paragraph", "max_tokens": 20}}}
    strategies = {"late": LATE["strategies"]["late"]}
    file = write_corpus(tmp_path, documents, chunkers=chunkers, strategies=strategies)
    corpus = with_embedder(SmallCorpus(file))
    updates(corpus)
    a, b = (r for r in rows(corpus).values() if r["text"] == shared)
    assert a["vec_key"] != b["vec_key"]
    boots = corpus.embedder.embed_queries(["boots"])[0]
    assert np.array(a["vector"]) @ boots > np.array(b["vector"]) @ boots + 0.01


def test_tokens_of_a_chunk_are_counted_as_under_other_strategies(corpus):
    updates(corpus)
    late, alone = rows(corpus), rows(corpus, "recursive-20@1+hash")
    assert {k: r["n_tokens"] for k, r in late.items()} == {
        k: r["n_tokens"] for k, r in alone.items()
    }
    stated = corpus.workspace.table(EMBEDDED_CHUNKS).read(f"{INDEX}|docs")
    assert set(stated["n_windows"]) == {1}


def test_what_is_paid_for_are_the_windows_read(corpus):
    update = updates(corpus)[INDEX]
    read = sum(WordTokenizer().count(corpus.embedder.windows))
    assert update.tokens_embedded == read
    assert update.vectors_embedded == update.chunks
    assert read < 1.3 * sum(r["n_tokens"] for r in rows(corpus).values())


def test_a_second_run_reads_nothing(corpus):
    updates(corpus)
    corpus.embedder.windows.clear()
    assert not updates(corpus)[INDEX].changes
    corpus.workspace.table(EMBEDDED_CHUNKS).remove(f"{INDEX}|docs")
    update = updates(corpus)[INDEX]
    assert (update.vectors_embedded, update.tokens_embedded) == (0, 0)
    assert update.vectors_reused == update.chunks
    assert corpus.embedder.windows == []


def test_after_an_edit_unchanged_windows_are_not_read_again(corpus, tmp_path):
    updates(corpus)
    every = len(corpus.embedder.windows)
    before = rows(corpus)
    corpus.embedder.windows.clear()
    write_document(tmp_path, "0.md", prose(0) + "\n\nOne more sentence at the end.")
    update = updates(corpus)[INDEX]
    assert 0 < len(corpus.embedder.windows) <= 2 < every / 3
    assert 0 < update.vectors_embedded < 12 < update.vectors_reused
    after = rows(corpus)
    kept = [key for key in before if after[key]["vec_key"] == before[key]["vec_key"]]
    assert len(kept) >= len(before) - 10
    assert all(after[key]["vector"] == before[key]["vector"] for key in kept)


def test_a_killed_run_keeps_the_windows_it_committed(corpus, monkeypatch):
    monkeypatch.setattr("chunking_assets.chunk_embeddings.late.BATCH", 3)
    read, spans = [], corpus.embedder.embed_spans

    def killed(windows):
        if len(read) >= 6:
            raise KeyboardInterrupt
        read.extend(windows)
        return spans(windows)

    monkeypatch.setattr(corpus.embedder, "embed_spans", killed)
    with pytest.raises(KeyboardInterrupt):
        updates(corpus)
    monkeypatch.setattr(corpus.embedder, "embed_spans", spans)
    corpus.embedder.windows.clear()
    update = updates(corpus)[INDEX]
    assert update.vectors_reused == sum(len(own) for _, own in read)
    assert not {text for text, _ in read} & {*corpus.embedder.windows}


def test_a_chunk_longer_than_a_window_is_embedded_by_itself(tmp_path):
    chunkers = {"late-20@1": {"kind": "late", "spans": {"kind": "recursive", "max_tokens": 100}}}
    strategies = {"late": LATE["strategies"]["late"]}
    long = " ".join(f"word{n}" for n in range(90)) + "."
    file = write_corpus(
        tmp_path, {"a.md": f"{long}\n\nA short end."}, chunkers=chunkers, strategies=strategies
    )
    corpus = with_embedder(SmallCorpus(file))
    corpus.update()
    assert corpus.embedder.embedded == [f"{long}\n\nA short end."]
    stated = corpus.workspace.table(EMBEDDED_CHUNKS).read(f"{INDEX}|docs")
    assert stated["n_windows"].to_list() == [2]


def test_what_cleaning_leaves_out_is_in_no_window(tmp_path):
    banner = "Accept all cookies of this page."
    documents = {
        f"{n}.md": f"{prose(n, 8)}\n\n# Part {n}\n\nOne {n}.\n\n{banner}\n\nTwo {n}."
        for n in range(4)
    }
    chunkers = {
        "late-20@1": {
            **LATE["chunkers"]["late-20@1"],
            "clean": {"boilerplate": 0.5, "blank_lines": True},
        }
    }
    strategies = {"late": LATE["strategies"]["late"]}
    file = write_corpus(tmp_path, documents, chunkers=chunkers, strategies=strategies)
    corpus = with_embedder(SmallCorpus(file))
    corpus.update()
    assert corpus.embedder.windows
    assert not any("cookies" in window for window in corpus.embedder.windows)
    chunks = corpus.workspace.table(CHUNKS).read(cell("late-20@1", "docs"))
    assert chunks["cleaned"].null_count() < chunks.height
    read = "\n".join(corpus.embedder.windows)
    assert all(row["embed_text"] in read for row in rows(corpus).values())


def test_a_model_without_token_vectors_is_refused_by_name(corpus):
    corpus.embedder = HashEmbedder(MOST)
    with pytest.raises(CorpusError, match="model hash gives no vectors per token"):
        corpus.update()
    assert not is_indexed(corpus.workspace, INDEX, "docs")


def test_chunks_of_another_text_are_refused(corpus, tmp_path):
    corpus.parse()
    corpus.chunk()
    write_document(tmp_path, "1.md", "Another text.")
    corpus.parse()
    with pytest.raises(CorpusError, match=r"docs/1\.md: .*Build chunk_sets of shard docs again"):
        corpus.embed()


def test_a_model_of_the_first_token_is_refused_before_anything_is_loaded(tiny_folder):
    late = LateChunker(spans={"kind": "fixed", "max_tokens": 4})
    for pooling, refused in (("cls", True), ("mean", False)):
        model = OnnxFolder(path=str(tiny_folder(pooling=pooling)))
        for chunker in (late, late.spans):
            version = ChunkerVersion("v@1", chunker, "tiny", "words")
            if refused and chunker is late:
                with pytest.raises(CorpusError, match="Choose a model with pooling: mean"):
                    check_late(IndexVersion(version, "tiny", model))
            else:
                check_late(IndexVersion(version, "tiny", model))


def test_a_model_that_says_nothing_is_asked_when_it_is_loaded():
    version = ChunkerVersion("v@1", LateChunker(spans={"kind": "fixed"}), "hash", "words")
    check_late(IndexVersion(version, "hash", HashModel()))


# token vectors of real graphs


def test_spans_are_the_means_of_their_own_tokens(tiny):
    text = "red green blue sea"
    (vectors,) = tiny.embed_spans([(text, [(0, 9), (10, 18), (4, 14), (0, 18)])])
    expected = tiny.embed_passages(["red green", "blue sea", "green blue", text])
    assert np.allclose(vectors, expected, atol=1e-6)


def test_a_token_counts_for_every_span_it_reaches_into(tiny):
    (vectors,) = tiny.embed_spans([("red green", [(0, 2), (2, 5), (3, 4)])])
    red, both = tiny.embed_passages(["red", "red green"])
    assert np.allclose(vectors, [red, both, both], atol=1e-6)


def test_the_prefix_belongs_to_no_span(tiny_folder):
    folder = tiny_folder(passage_prefix="sea ")
    prefixed = OnnxFolder(path=str(folder)).embedder(folder)
    (vectors,) = prefixed.embed_spans([("red green", [(0, 3)])])
    (red,) = prefixed.embed_queries(["red"])
    assert np.allclose(vectors[0], red, atol=1e-6)


def test_a_window_beyond_the_models_limit_is_not_cut_silently(tiny):
    with pytest.raises(ValueError, match="beyond"):
        tiny.embed_spans([("red " * 20, [(0, 3)])])


def test_a_span_without_a_usable_vector_is_refused(tiny):
    with pytest.raises(CorpusError, match="no usable vector"):
        tiny.embed_spans([("red broken", [(0, 3), (4, 10)])])


def test_a_graph_of_a_first_token_model_gives_no_spans(tiny_folder):
    folder = tiny_folder(pooling="cls")
    embedder = OnnxFolder(path=str(folder)).embedder(folder)
    with pytest.raises(CorpusError, match="choose another model or chunker"):
        embedder.embed_spans([("red", [(0, 3)])])


def pooled_by_the_graph(folder, *, with_tokens):
    """The graph of a folder, with the pooled output too, or only that."""
    import onnx
    from onnx import TensorProto, helper

    model = onnx.load(folder / "model.onnx")
    mean = helper.make_node(
        "ReduceMean", ["last_hidden_state"], ["sentence_embedding"], axes=[1], keepdims=0
    )
    model.graph.node.append(mean)
    if not with_tokens:
        del model.graph.output[:]
    model.graph.output.append(
        helper.make_tensor_value_info("sentence_embedding", TensorProto.FLOAT, ["b", 4])
    )
    onnx.save(model, folder / "model.onnx")
    return OnnxFolder(path=str(folder)).embedder(folder)


def test_a_graph_with_only_a_pooled_output_is_refused_with_the_cure(tiny_folder):
    folder = tiny_folder()
    embedder = pooled_by_the_graph(folder, with_tokens=False)
    with pytest.raises(CorpusError, match="Export it with the output last_hidden_state") as caught:
        embedder.embed_spans([("red", [(0, 3)])])
    assert str(folder) in str(caught.value)


def test_a_graph_that_pools_too_gives_spans_of_its_tokens(tiny, tiny_folder):
    embedder = pooled_by_the_graph(tiny_folder(), with_tokens=True)
    windows = [("red green blue", [(0, 3), (4, 14)])]
    assert np.allclose(embedder.embed_spans(windows)[0], tiny.embed_spans(windows)[0], atol=1e-6)


BERLIN = (
    "Berlin is the capital of Germany.",
    "Its more than 3.85 million inhabitants make it the most populous city of the union.",
    "The city is also one of the states of the country.",
)


def test_a_real_model_tells_a_chunk_what_its_pronoun_means(e5):
    text = " ".join(BERLIN)
    spans = [(text.index(part), text.index(part) + len(part)) for part in BERLIN]
    (late,) = e5.embed_spans([(text, spans)])
    alone = e5.embed_passages(BERLIN)
    query = e5.embed_queries(["Berlin"])[0]
    assert late.dtype == np.float32
    assert np.allclose(np.linalg.norm(late, axis=1), 1, atol=1e-6)
    assert all(late[1:] @ query > alone[1:] @ query)


def test_a_window_that_is_one_chunk_is_nearly_the_passage_itself(e5):
    text = " ".join(BERLIN)
    (late,) = e5.embed_spans([(text, [(0, len(text))])])
    assert late[0] @ e5.embed_passages([text])[0] > 0.98


def test_a_real_models_spans_are_the_same_in_any_company(e5):
    windows = [(part, [(0, len(part))]) for part in BERLIN]
    together = [v.tobytes() for v in e5.embed_spans(windows)]
    assert together == [e5.embed_spans([w])[0].tobytes() for w in windows]


def test_windows_of_a_real_tokenizer_fit_the_model(e5):
    text = "\n\n".join(f"Parágrafo {n}: {BERLIN[n % 3]} O café custa {n},50 €." for n in range(120))
    document, chunks = opened(text, e5, max_tokens=90)
    found = list(windows_of(document, chunks, e5, 64))
    counts = e5.count_tokens([w.text for w in found])
    assert max(counts) <= e5.identity.max_tokens
    assert sum(counts) / len(counts) > 300
