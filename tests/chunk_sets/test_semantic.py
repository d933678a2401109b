"""Where the semantic strategy cuts. One token is one word, and vectors count words."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_corpus import HashEmbedder, HashModel

from chunking_assets.chunk_sets.semantic import SemanticChunker, sentence_spans
from chunking_assets.chunk_sets.spans import Document
from chunking_assets.embedding_models.e5_small import E5Small
from chunking_assets.embedding_models.loaded import Models
from chunking_assets.parsed_elements.markdown import parse_text
from chunking_assets.workspace import Workspace

SEA = "The sea is blue today. The blue sea is calm today. Ships cross the calm blue sea."
TAX = "An invoice lists the tax. The tax of an invoice is paid. Tax and invoice are filed."


class AskedModels:
    """Two models, and what they were asked."""

    def __init__(self):
        self.declared = {"first": HashModel(), "second": HashModel()}
        self.asked = []

    def vectors(self, name, texts):
        self.asked.append((name, list(texts)))
        return HashEmbedder(512).embed_passages(texts)


@pytest.fixture
def models():
    return AskedModels()


@pytest.fixture
def opened(words, models):
    def build(text, **known):
        return Document(text, parse_text(text).elements, words, models=models, **known)

    return build


def texts_of(chunker, document):
    return [chunk.text for chunk in chunker.chunks(document)]


def breaks(distances, **settings):
    return SemanticChunker(**settings).breaks(np.array(distances, np.float64)).tolist()


def test_a_cut_is_where_the_subject_changes(opened):
    chunker = SemanticChunker(window=0, amount=80)
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
    workspace = Workspace(tmp_path)
    (tmp_path / "models").symlink_to(models_folder, target_is_directory=True)
    models = Models({"e5": E5Small()}, workspace)
    document = Document(f"{routers} {bread}", [], words, models=models)
    assert texts_of(SemanticChunker(window=0, amount=80), document) == [routers, bread]


# thresholds


def test_the_percentile_is_of_the_documents_own_distances():
    distances = [0.1, 0.2, 0.3, 0.4, 0.5]
    assert breaks(distances) == [4]
    assert breaks(distances, amount=50) == [3, 4]
    assert breaks([d / 10 for d in distances], amount=50) == [3, 4]
    assert breaks(distances, amount=100) == []


def test_standard_deviations_above_the_mean():
    assert breaks([0.1] * 15 + [0.9], threshold="standard_deviation") == [15]
    assert breaks([0.1] * 5 + [0.9], threshold="standard_deviation") == []
    assert breaks([0.1] * 5 + [0.9], threshold="standard_deviation", amount=2) == [5]


def test_interquartile_ranges_above_the_mean():
    distances = [0.1, 0.2, 0.3, 0.4, 0.9]  # mean 0.38, quartiles 0.2 and 0.4
    assert breaks(distances, threshold="interquartile") == [4]
    assert breaks(distances, threshold="interquartile", amount=2.7) == []


def test_the_gradient_finds_where_the_distance_grows_fastest():
    distances = [0.1, 0.1, 0.1, 0.5, 0.9, 0.9, 0.9]
    assert breaks(distances, threshold="gradient") == [3]


@given(
    st.lists(st.integers(0, 1000), min_size=2, max_size=30),
    st.sampled_from(["percentile", "standard_deviation", "interquartile", "gradient"]),
)
def test_breaks_are_those_langchain_defines(thousandths, threshold):
    distances = np.array(thousandths) / 1000
    first, third = np.percentile(distances, [25, 75])
    gradient = np.gradient(distances, range(len(distances)))
    compared, limit = {
        "percentile": (distances, np.percentile(distances, 95)),
        "standard_deviation": (distances, distances.mean() + 3 * distances.std()),
        "interquartile": (distances, distances.mean() + 1.5 * (third - first)),
        "gradient": (gradient, np.percentile(gradient, 95)),
    }[threshold]
    clear = [i for i, d in enumerate(compared) if d > limit + 1e-6]
    tied = [i for i, d in enumerate(compared) if abs(d - limit) <= 1e-6]
    assert sorted({*breaks(distances, threshold=threshold)} - {*tied}) == clear


@pytest.mark.parametrize("threshold", ["percentile", "gradient"])
def test_a_percentile_above_a_hundred_is_refused(threshold):
    with pytest.raises(ValueError, match="at most 100"):
        SemanticChunker(threshold=threshold, amount=101)


# sentences


@pytest.mark.parametrize("text", ["", " \n", "One.", "# Title", "One sentence without an end"])
def test_a_text_of_at_most_one_sentence_asks_no_model(text, opened, models):
    assert texts_of(SemanticChunker(), opened(text)) == ([text] if text.strip() else [])
    assert models.asked == []


@pytest.mark.parametrize("threshold", ["percentile", "standard_deviation", "gradient"])
def test_two_sentences_have_one_distance_and_stay_together(threshold, opened):
    chunker = SemanticChunker(threshold=threshold, amount=1)
    assert texts_of(chunker, opened("The sea. An invoice.")) == ["The sea. An invoice."]


def test_a_sentence_is_embedded_with_its_neighbours(opened, models):
    document = opened("One. Two.  Three.\n\nFour.")
    texts_of(SemanticChunker(), document)
    texts_of(SemanticChunker(window=0), document)
    (_, joined), (_, single) = models.asked
    assert joined == ["One. Two.", "One. Two.  Three.", "Two.  Three.\n\nFour.", "Three.\n\nFour."]
    assert single == ["One.", "Two.", "Three.", "Four."]


def test_the_model_is_the_named_one_or_the_one_that_counts(opened, models):
    document = opened("One. Two.")
    for settings in ({}, {"tokenizer": "second"}, {"tokenizer": "second", "model": "first"}):
        texts_of(SemanticChunker(**settings), document)
    assert [name for name, _ in models.asked] == ["first", "second", "first"]
    assert SemanticChunker().models_asked() == (None,)
    assert SemanticChunker(model="second").models_asked() == ("second",)


def test_what_cleaning_leaves_out_is_not_embedded(opened, models):
    text = "One. Cookie banner. Two."
    start, end = text.index("Cookie"), text.index("Two")
    texts_of(SemanticChunker(window=0), opened(text, excluded=[(start, end)]))
    assert models.asked == [("first", ["One.", "Two."])]


def test_code_tables_and_headings_are_no_sentences_of_their_own(opened):
    code = "```\nx = 1. + 2.\n\ny = 3.\n```"
    table = "| a. b | c |\n|---|---|\n| 1. | 2 |"
    document = opened(f"# Head\n\nOne.\n\n{code}\n\n{table}\n\nTwo.")
    spans = [document.text[start:end].strip() for start, end in sentence_spans(document)]
    assert spans == ["# Head\n\nOne.", code, table, "Two."]


# sizes


def test_a_segment_too_long_is_cut_at_the_largest_distance_in_its_middle_half(opened):
    other = "A far cry. Blue sea one. Blue sea two. Old tax three. Old tax four. Old tax five."
    chunker = SemanticChunker(window=0, amount=100, max_tokens=12)
    assert texts_of(chunker, opened(other)) == [
        "A far cry. Blue sea one. Blue sea two.",
        "Old tax three. Old tax four. Old tax five.",
    ]


def test_a_text_without_full_stops_keeps_the_largest_size(opened):
    """LangChain#28250 and llama_index#17098: no largest size at all."""
    chunks = list(SemanticChunker(max_tokens=20).chunks(opened("word " * 500)))
    assert [c.n_tokens for c in chunks] == [20] * 25


def test_small_segments_join_their_neighbours(opened):
    text = f"{SEA} Hm? {TAX}"
    apart = texts_of(SemanticChunker(window=0, amount=70), opened(text))
    assert "Hm?" in apart
    joined = SemanticChunker(window=0, amount=70, min_tokens=5)
    assert all(c.n_tokens >= 5 for c in joined.chunks(opened(text)))


def test_equal_sentences_are_not_told_apart_by_rounding(opened):
    text = "The same line again. " * 40
    assert len(texts_of(SemanticChunker(window=0, amount=1), opened(text))) == 1
