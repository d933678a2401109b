"""A small corpus and a fast, deterministic embedding model, for tests of what happens around them.

The model hashes words into a few dimensions: texts with common words are near each other, equal
texts are equal, and ten thousand are embedded in a second.
"""

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import yaml

from chunking_assets import config as configuration
from chunking_assets.chunk_embeddings.build import IndexUpdate, update_index
from chunking_assets.chunk_sets.build import ChunkSetUpdate, update_chunk_sets
from chunking_assets.config import Config
from chunking_assets.embedding_models.loaded import Models
from chunking_assets.embedding_models.model import EmbeddingModel, ModelIdentity, Progress
from chunking_assets.embedding_models.registry import MODELS
from chunking_assets.parsed_elements.build import DocumentsUpdate, update_documents
from chunking_assets.parsed_elements.reuse import ParsedBefore
from chunking_assets.workspace import Table, Workspace, encode

PLACE = "CORPUS_TEST_BUCKET"
"""The variable with the URL below which `write_corpus` puts workspaces; without it, folders."""
DIMENSIONS = 32
WORD = re.compile(r"\w+|[^\w\s]")


class WordTokenizer:
    """A token a word or punctuation mark."""

    fingerprint = "words"
    splits_at_white_space = True

    def count(self, texts: Sequence[str]) -> list[int]:
        return [len(WORD.findall(text)) for text in texts]

    def starts(self, texts: Sequence[str]) -> list[np.ndarray]:
        return [np.array([m.start() for m in WORD.finditer(t)], np.int64) for t in texts]


class HashEmbedder:
    """Counts the texts it was asked for, so that a test can say nothing was embedded."""

    def __init__(self, max_tokens: int) -> None:
        self.embedded: list[str] = []
        self.identity = ModelIdentity(
            "hash", "1", DIMENSIONS, max_tokens, "", "", "mean", normalised=True
        )

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        return WordTokenizer().count(texts)

    def embed_passages(self, texts: Sequence[str], progress: Progress | None = None) -> np.ndarray:
        self.embedded += texts
        return self._vectors(texts)

    def embed_queries(self, texts: Sequence[str]) -> np.ndarray:
        return self._vectors(texts)

    def _vectors(self, texts: Sequence[str]) -> np.ndarray:
        vectors = np.full((len(texts), DIMENSIONS), 1e-3, np.float32)
        for row, text in enumerate(texts):
            for word in WORD.findall(text.lower()):
                vectors[row, sum(word.encode()) % DIMENSIONS] += 1
        unit: np.ndarray = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
        return unit


class HashModel(EmbeddingModel):
    """`kind: hash` in a test's corpus.yaml."""

    kind: ClassVar[str] = "hash"
    max_tokens: int = 512

    def tokenizer_fingerprint(self) -> str:
        return WordTokenizer.fingerprint

    def tokenizer(self, models_folder: Path) -> WordTokenizer:
        return WordTokenizer()

    def embedder(self, models_folder: Path) -> HashEmbedder:
        return HashEmbedder(self.max_tokens)


MODELS["hash"] = HashModel

CONFIGURATION: dict[str, Any] = {
    "collections": {"docs": {"path": "docs", "settle_seconds": 0}},
    "embedding_models": {"hash": {"kind": "hash"}},
    "chunkers": {
        "recursive-20@1": {"kind": "recursive", "max_tokens": 20},
        "fixed-20@1": {"kind": "fixed", "max_tokens": 20},
    },
    "retrieval_profiles": {"hybrid": {"search": "hybrid"}, "vector": {"search": "vector"}},
    "strategies": {
        "recursive": {"chunker": "recursive-20@1", "model": "hash", "profile": "hybrid"},
        "fixed": {"chunker": "fixed-20@1", "model": "hash", "profile": "vector"},
    },
}


def write_corpus(root: Path, documents: dict[str, str], **changes: Any) -> Path:
    """A folder with `docs/` and a corpus.yaml; returns the file. `changes` replace sections."""
    for name, text in documents.items():
        write_document(root, name, text)
    (root / "docs").mkdir(exist_ok=True, parents=True)
    file = root / "corpus.yaml"
    sections = {**CONFIGURATION, **declared_place(root), **changes}
    file.write_text(yaml.safe_dump(sections), encoding="utf-8")
    return file


def declared_place(root: Path) -> dict[str, str]:
    """What the corpus.yaml of a folder says of its workspace: nothing, or that it is in the bucket
    that a test has, at a place of its own."""
    bucket = os.environ.get(PLACE)
    return {"workspace": f"{bucket}/{root.name}"} if bucket else {}


def write_document(root: Path, name: str, text: str) -> Path:
    file = root / "docs" / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    return file


def empty_file(table: Table, partition: str) -> None:
    """Damage the file of a partition where it is stored, whatever this machine has fetched."""
    manifest = table.manifest(partition)
    assert manifest is not None
    table.store.write(f"{encode(partition)}/{manifest.files[0]}", b"")


class SmallCorpus:
    """Runs the stages of a configuration one after the other, without Dagster."""

    def __init__(self, file: Path) -> None:
        self.config: Config = configuration.load(file)
        self.workspace = Workspace(self.config.home)
        self.models = Models(self.config.embedding_models, self.workspace)
        self.embedder = HashEmbedder(512)

    def parse(self, *, confirm_deletions: bool = False) -> list[DocumentsUpdate]:
        parsed_before = ParsedBefore(self.workspace)
        return [
            update_documents(
                self.workspace,
                shard,
                name,
                self.config.collections[name],
                self.config.root,
                parsed_before=parsed_before,
                confirm_deletions=confirm_deletions,
            )
            for shard, name in self.config.shards().items()
        ]

    def chunk(self) -> list[ChunkSetUpdate]:
        return [
            update
            for shard in self.config.shards()
            for update in update_chunk_sets(
                self.workspace,
                shard,
                list(self.config.chunker_versions.values()),
                self.models,
            )
        ]

    def embed(self) -> list[IndexUpdate]:
        return [
            update
            for index in self.config.index_versions.values()
            for update in update_index(
                self.workspace, index, list(self.config.shards()), lambda _: self.embedder
            )
        ]

    def update(
        self, *, confirm_deletions: bool = False
    ) -> tuple[list[DocumentsUpdate], list[ChunkSetUpdate], list[IndexUpdate]]:
        return self.parse(confirm_deletions=confirm_deletions), self.chunk(), self.embed()
