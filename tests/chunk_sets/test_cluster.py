"""The segmentation of the cluster strategy is the best there is, at linear cost."""

import tracemalloc
from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_corpus import HashEmbedder

from chunking_assets.chunk_sets.cluster import (
    ClusterChunker,
    best_segmentation,
    similarity_band,
)
from chunking_assets.chunk_sets.spans import Document
from chunking_assets.embedding_models.e5_small import E5Small
from chunking_assets.embedding_models.loaded import Models
from chunking_assets.parsed_elements.document import Element
from chunking_assets.parsed_elements.markdown import parse_text
from chunking_assets.workspace import Workspace

SEA = "The sea is blue. The blue sea is calm. Ships cross the calm blue sea."
TAX = "An invoice lists the tax. The tax of an invoice is paid. Tax and invoice are filed."


class HashModels:
    declared = ("hash",)

    def vectors(self, name, texts):
        return HashEmbedder(512).embed_passages(texts)


@pytest.fixture
def opened(words):
    def build(text):
        return Document(text, parse_text(text).elements, words, models=HashModels())

    return build


def texts_of(chunker, document):
    return [chunk.text for chunk in chunker.chunks(document)]


def unit(rows):
    vectors = np.array(rows, np.float64)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def full_matrix(vectors):
    """What the technical report defines: centred by the mean of all pairs, nothing on the
    diagonal; in millionths."""
    count = len(vectors)
    matrix = vectors @ vectors.T
    matrix = np.rint((matrix - matrix[np.triu_indices(count, 1)].mean()) * 1e6)
    np.fill_diagonal(matrix, 0)
    return matrix


def value(matrix, clusters):
    return sum(matrix[a : b + 1, a : b + 1].sum() for a, b in clusters)


def all_segmentations(count, furthest):
    for size in range(count):
        for cuts in combinations(range(1, count), size):
            clusters = [(a, b - 1) for a, b in pairwise([0, *cuts, count])]
            if all(last <= furthest[first] for first, last in clusters):
                yield clusters


components = st.lists(st.integers(-5, 5), min_size=3, max_size=3).filter(any)
small_documents = st.lists(st.tuples(components, st.integers(0, 8)), min_size=2, max_size=8)


@given(small_documents)
def test_no_segmentation_within_the_budget_has_a_larger_sum(pieces):
    vectors, count = unit([row for row, _ in pieces]), len(pieces)
    furthest = [min(count - 1, at + reach) for at, (_, reach) in enumerate(pieces)]
    width = max(last - at for at, last in enumerate(furthest)) + 1
    found = best_segmentation(similarity_band(vectors, width), furthest)
    assert [a for a, _ in found] == [0, *(b + 1 for _, b in found[:-1])]
    assert found[-1][1] == count - 1
    assert all(last <= furthest[first] for first, last in found)
    matrix = full_matrix(vectors)
    best = max(value(matrix, clusters) for clusters in all_segmentations(count, furthest))
    # A millionth of one similarity may be rounded the other way.
    assert value(matrix, found) == pytest.approx(best, abs=2 * count**2)


@given(small_documents, st.integers(1, 8))
def test_the_band_is_the_matrix_near_its_diagonal(pieces, width):
    vectors = unit([row for row, _ in pieces])
    band, matrix = similarity_band(vectors, width), full_matrix(vectors)
    assert band.shape == (len(vectors), width)
    for (i, apart), near in np.ndenumerate(band):
        expected = matrix[i, i - apart] if apart <= i else 0
        assert near == pytest.approx(expected, abs=1)


def test_memory_is_that_of_the_band_and_not_of_all_pairs():
    """Comparing all pieces of a 20 MB text takes 69 GB."""
    count, width = 5_000, 17
    vectors = unit(np.random.default_rng(1).normal(size=(count, 16)))
    furthest = np.minimum(np.arange(count) + width - 1, count - 1)
    tracemalloc.start()
    try:
        band = similarity_band(vectors, width)
        best_segmentation(band, furthest)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert band.shape == (count, width)
    assert peak < 6 * band.nbytes
    assert peak < count * count / 5


def test_planted_subjects_are_found():
    subjects = np.repeat(np.eye(6), 7, axis=0)
    noise = np.random.default_rng(3).normal(size=subjects.shape)
    vectors = unit(subjects + 0.02 * noise)
    furthest = np.minimum(np.arange(42) + 15, 41)
    clusters = best_segmentation(similarity_band(vectors, 16), furthest)
    assert clusters == [(first, first + 6) for first in range(0, 42, 7)]


def test_a_chunk_ends_with_its_subject_though_more_would_fit(opened):
    chunker = ClusterChunker(max_tokens=100, piece_tokens=5)
    assert texts_of(chunker, opened(f"{SEA} {TAX}")) == [SEA, TAX]


def test_a_real_model_finds_the_change_of_subject(words, models_folder, tmp_path):
    routers = (
        "Hold the reset button of the router for ten seconds. The lights go off and come on "
        "again. After two minutes the router is back in the network."
    )
    bread = (
        "Mix flour, water and salt to a soft dough. Let the dough rest overnight in the "
        "refrigerator. Bake the loaf until its crust is brown."
    )
    (tmp_path / "models").symlink_to(models_folder, target_is_directory=True)
    models = Models({"e5": E5Small()}, Workspace(tmp_path))
    document = Document(f"{routers} {bread}", [], words, models=models)
    assert texts_of(ClusterChunker(piece_tokens=10), document) == [routers, bread]


def test_equal_pieces_make_chunks_as_long_as_the_budget_allows(opened):
    text = " ".join(["The same line again."] * 20)
    chunks = list(ClusterChunker(max_tokens=40, piece_tokens=4).chunks(opened(text)))
    assert [c.n_tokens for c in chunks] == [40, 40]


def test_a_prefix_takes_its_part_of_the_budget(words):
    text = " ".join(["The same line again."] * 20)
    element = Element("paragraph", 0, len(text), heading_path=("Head",))
    document = Document(text, [element], words, models=HashModels())
    chunker = ClusterChunker(max_tokens=20, piece_tokens=4, prefix="breadcrumb")
    chunks = list(chunker.chunks(document))
    assert {c.prefix for c in chunks} == {"Head\n"}
    assert [c.n_tokens for c in chunks] == [17, 17, 17, 17, 17]


def test_pieces_are_whole_sentences_and_blocks(opened):
    code = "```\nx = 1. + 2.\n\ny = 3.\n```"
    text = f"One two. Three four five. Six seven.\n\n# Head\n\nEight.\n\n{code}\n\nNine."
    document = opened(text)
    pieces = ClusterChunker(piece_tokens=5).pieces(document)
    assert [text[a:b].strip() for a, b in pieces] == [
        "One two. Three four five.",
        "Six seven.",
        "# Head\n\nEight.",
        code,
        "Nine.",
    ]


@pytest.mark.parametrize("text", ["", " \n", "One.", "# Title", "One sentence without an end"])
def test_a_text_of_at_most_one_piece_asks_no_model(text, words):
    document = Document(text, parse_text(text).elements, words)
    assert texts_of(ClusterChunker(), document) == ([text] if text.strip() else [])


def test_a_text_without_full_stops_is_cut_as_by_recursive(opened):
    chunks = list(ClusterChunker(max_tokens=20).chunks(opened("word " * 500)))
    assert [c.n_tokens for c in chunks] == [20] * 25


def test_small_chunks_join_their_neighbours(opened):
    text = f"{SEA} Hm? {TAX}"
    settings = {"max_tokens": 100, "piece_tokens": 1}
    assert "Hm?" in texts_of(ClusterChunker(**settings), opened(text))
    joined = ClusterChunker(**settings, min_tokens=5)
    assert all(c.n_tokens >= 5 for c in joined.chunks(opened(text)))


def test_the_model_is_declared_as_deciding():
    assert ClusterChunker().models_asked() == (None,)
    assert ClusterChunker(model="e5").models_asked() == ("e5",)
