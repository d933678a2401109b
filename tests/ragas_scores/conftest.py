"""The judge of judge_server.py in the environment, and an embedding model that counts words."""

import numpy as np
import pytest
from chat_server import KEY, serving
from judge_server import JudgeServer

from chunking_assets.embedding_models.model import ModelIdentity
from chunking_assets.keys import digest
from evals.ragas_scores.question_vectors import QuestionVectors


@pytest.fixture
def server():
    with serving(JudgeServer()) as running:
        yield running


@pytest.fixture
def key():
    return KEY


@pytest.fixture
def endpoint_in_environment(server, monkeypatch):
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    return server


class WordVectors:
    """Questions are as alike as the words they share."""

    identity = ModelIdentity("words", "1", 64, 128, "", "", "mean", True)

    def count_tokens(self, texts):
        return [len(text.split()) for text in texts]

    def embed_queries(self, texts):
        vectors = np.zeros((len(texts), 64), np.float32)
        for vector, text in zip(vectors, texts, strict=True):
            for word in text.lower().strip("?").split():
                vector[int(digest(word)[:8], 16) % 64] += 1
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)

    embed_passages = None  # a question is never a passage


@pytest.fixture
def vectors(tmp_path):
    return QuestionVectors("words", {"kind": "words"}, WordVectors, tmp_path / "vectors")
