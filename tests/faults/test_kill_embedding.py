"""SIGKILL when nearly all is embedded: the next run pays for the rest, and serves what a calm one
does."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from small_corpus import SmallCorpus, write_corpus

from chunking_assets.chunk_embeddings.lance_index import LanceIndex

pytestmark = pytest.mark.usefixtures("place")

TESTS = Path(__file__).parents[1]
DOCUMENTS = 640
INDEX = "fixed-20@1+hash"
STRATEGIES = {"one": {"chunker": "fixed-20@1", "model": "hash", "profile": "vector"}}

PROGRAM = """
import os, signal, sys
from pathlib import Path
from small_corpus import SmallCorpus
from chunking_assets.chunk_embeddings.build import update_index
from chunking_assets.embedding_models import vector_cache

vector_cache.SECONDS_PER_COMMIT = 0.0  # as with a model that takes that long for a batch
corpus = SmallCorpus(Path(sys.argv[1]))
(index,) = corpus.config.index_versions.values()

def progress(done, of, tokens):
    if done >= 0.9 * of:
        os.kill(os.getpid(), signal.SIGKILL)

update_index(
    corpus.workspace, index, ["docs"], lambda _: corpus.embedder, progress, batch_chunks=100
)
"""


def chunked(root):
    texts = {f"{n:03}.md": f"Document {n} is about subject {n}." for n in range(DOCUMENTS)}
    corpus = SmallCorpus(write_corpus(root, texts, strategies=STRATEGIES))
    corpus.parse()
    corpus.chunk()
    return corpus


def served(corpus):
    rows = LanceIndex(corpus.workspace, INDEX).rows(served=True).to_pylist()
    return sorted(rows, key=lambda row: row["chunk_id"])


def test_killed_when_nine_tenths_are_embedded_the_next_run_pays_for_one(tmp_path):
    corpus, calm = chunked(tmp_path / "killed"), chunked(tmp_path / "calm")
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM, corpus.config.file],
        env={**os.environ, "PYTHONPATH": f"{TESTS}:{TESTS.parent}"},
        timeout=120,
        check=False,
    )
    assert run.returncode == -9
    assert LanceIndex(corpus.workspace, INDEX).served_version() is None
    (update,) = corpus.embed()
    assert update.vectors_embedded == len(corpus.embedder.embedded) <= 0.1 * DOCUMENTS
    assert update.vectors_reused >= 0.9 * DOCUMENTS
    calm.embed()
    assert served(corpus) == served(calm)
    assert not list(corpus.workspace.root.glob("tmp*")), "what was set aside went with the process"
