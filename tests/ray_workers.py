"""`kind: hash` in the processes of a Ray cluster, found by entry point as a model of anyone's is.

It notes what Ray assigned to its task. The first cell that comes to the text `MARK` waits until its
neighbours are built, says so with its process, and goes on no more: it is there to be killed.
"""

import json
import os
import time
import uuid
from pathlib import Path

import small_corpus

from chunking_assets import config as configuration
from chunking_assets.chunk_embeddings.build import EMBEDDED_CHUNKS
from chunking_assets.embedding_models.registry import MODELS
from chunking_assets.workspace import Workspace

FOLDER = "RAY_WORKERS_FOLDER"
"""Names the folder for what workers tell."""
SHARDS = 3
MARK = "Paragraph 3 of docs 2 says"


class HashEmbedder(small_corpus.HashEmbedder):
    def embed_passages(self, texts, progress=None):
        import ray

        folder = Path(os.environ[FOLDER])
        assigned = ray.get_runtime_context().get_assigned_resources()
        (folder / f"{uuid.uuid4().hex}.json").write_text(json.dumps(assigned))
        if any(MARK in text for text in texts) and is_first(folder / "came"):
            embedded = Workspace(configuration.load().home).table(EMBEDDED_CHUNKS)
            while len(embedded.partitions()) < SHARDS - 1:
                time.sleep(0.05)
            (folder / "waits").write_text(str(os.getpid()))
            while True:
                time.sleep(60)
        return super().embed_passages(texts, progress)


def is_first(file):
    try:
        file.touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


class HashModel(small_corpus.HashModel):
    def embedder(self, models_folder):
        return HashEmbedder(self.max_tokens)


if FOLDER in os.environ:  # and not where pytest looks for doctests
    MODELS["hash"] = HashModel
