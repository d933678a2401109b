import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chunking_assets.embedding_models.e5_small import E5Small
from chunking_assets.embedding_models.model import Embedder
from chunking_assets.embedding_models.onnx_embedder import OnnxEmbedder
from chunking_assets.embedding_models.onnx_folder import OnnxFolder
from chunking_assets.errors import CorpusError

TEXTS = [
    "The refund arrives within five working days.",
    "O reembolso chega em cinco dias úteis.",
    "a",
    "Routers are restarted by holding the button for ten seconds. " * 9,
]
LONG = " ".join(f"word{n}" for n in range(700))


def bits(vectors: np.ndarray) -> list[bytes]:
    return [vector.tobytes() for vector in vectors]


def test_a_vector_depends_on_its_text_alone(e5):
    together = bits(e5.embed_passages(TEXTS))
    alone = [bits(e5.embed_passages([text]))[0] for text in TEXTS]
    reversed_order = bits(e5.embed_passages(TEXTS[::-1]))[::-1]
    among_others = bits(e5.embed_passages([LONG, *TEXTS, "x" * 3000]))[1:-1]
    assert together == alone == reversed_order == among_others


def test_the_number_of_workers_changes_no_bit(e5, models_folder):
    model = E5Small().converted(models_folder) / "model.onnx"
    tokenizer = E5Small().tokenizer(models_folder)
    one, three = (OnnxEmbedder(model, tokenizer, e5.identity, workers=n) for n in (1, 3))
    assert bits(one.embed_passages(TEXTS)) == bits(three.embed_passages(TEXTS))


def test_vectors_are_float32_of_unit_length(e5):
    vectors = e5.embed_passages(TEXTS)
    assert vectors.dtype == np.float32
    assert vectors.shape == (len(TEXTS), e5.identity.dimensions)
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)


def test_nothing_to_embed_is_an_empty_matrix(e5):
    assert e5.embed_passages([]).shape == (0, 384)
    assert e5.embed_queries([]).shape == (0, 384)


def test_a_question_and_a_passage_of_the_same_words_differ(e5):
    assert bits(e5.embed_queries(TEXTS[:1])) != bits(e5.embed_passages(TEXTS[:1]))


@pytest.mark.parametrize(
    ("question", "answer"),
    [("How long does a refund take?", 0), ("Como reinicio o roteador?", 2)],
)
def test_a_question_is_nearest_to_the_passage_that_answers_it(e5, question, answer):
    passages = [TEXTS[0], "Our offices are closed on Sundays.", TEXTS[3], "The sea is blue."]
    scores = e5.embed_passages(passages) @ e5.embed_queries([question])[0]
    assert int(np.argmax(scores)) == answer


def test_the_end_of_a_long_text_counts(e5):
    assert e5.count_windows([LONG])[0] > 1
    ending = LONG + " and the volcano erupted"
    assert bits(e5.embed_passages([LONG])) != bits(e5.embed_passages([ending]))


def test_progress_is_told_in_order(e5):
    told: list[tuple[int, int]] = []
    e5.embed_passages(["a", "b", "c"], lambda done, total: told.append((done, total)))
    assert told == [(1, 3), (2, 3), (3, 3)]


def test_a_long_text_is_the_weighted_mean_of_its_windows(tiny_folder):
    folder = tiny_folder(max_tokens=5, passage_prefix="sea ")  # room for two words beside it
    embedder = OnnxFolder(path=str(folder)).embedder(folder)
    words = ["red", "green", "blue", "red", "red"]
    windows = [["red", "green"], ["blue", "red"], ["red"]]
    assert embedder.count_windows([" ".join(words)]) == [3]
    parts = embedder.embed_passages([" ".join(window) for window in windows]).astype(float)
    mean = parts.T @ [2, 2, 1]
    expected = mean / np.linalg.norm(mean)
    assert np.allclose(embedder.embed_passages([" ".join(words)])[0], expected, atol=1e-6)


@pytest.fixture(scope="module")
def tiny_by_limit(tiny_folder) -> dict[int, Embedder]:
    folders = {n: tiny_folder(max_tokens=n, passage_prefix="sea ") for n in range(5, 10)}
    return {n: OnnxFolder(path=str(f)).embedder(f) for n, f in folders.items()}


@given(n_words=st.integers(0, 60), limit=st.integers(5, 9))
def test_windows_hold_every_token_once_within_the_limit(tiny_by_limit, n_words, limit):
    embedder = tiny_by_limit[limit]
    tokens = embedder.count_tokens(["red " * n_words])[0]
    windows = embedder.count_windows(["red " * n_words])[0]
    lead = 1 if n_words + 3 > limit else 0  # the prefix, repeated in every window
    assert tokens == n_words + 3 + (windows - 1) * (2 + lead)
    assert windows == max(1, -(-tokens // limit))


@pytest.mark.parametrize("word", ["zero", "broken", "huge"])
def test_a_text_without_a_usable_vector_is_refused_by_its_position(tiny, word):
    with pytest.raises(CorpusError, match=r"not finite, or zero.* text 1 "):
        tiny.embed_passages(["red", word, "blue"])


def test_a_prefix_that_leaves_no_room_is_refused(tiny_folder):
    folder = tiny_folder(max_tokens=8, passage_prefix="sea sea sea sea sea sea ")
    with pytest.raises(CorpusError, match="leaves no room"):
        OnnxFolder(path=str(folder)).embedder(folder)
