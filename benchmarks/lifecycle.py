"""`python -m benchmarks.lifecycle`: what a change costs, and how that grows with the corpus.

A made-up corpus under three strategies, indexed with a model that costs next to nothing, so that
what is measured is everything around it. Each run is a process of its own, timed in CPU seconds
after its imports; printed are counts, and ratios between runs of one benchmark. With `--command`
also `make build`, to which Dagster adds a fixed part for each asset that has something to do. Then
fewer documents, one strategy and the same model beside LlamaIndex's ingestion pipeline.
"""

import argparse
import hashlib
import json
import os
import re
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar

import numpy as np
import yaml

from chunking_assets.embedding_models.model import EmbeddingModel, ModelIdentity, Progress
from chunking_assets.embedding_models.registry import MODELS

ROOT = Path(__file__).parents[1]
DIMENSIONS, MAX_TOKENS = 32, 512
KINDS = ("fixed", "recursive", "sentence")
SHARDS, PARAGRAPHS, CHUNK_TOKENS = 32, 3, 40
GROWTH, EDITED_SHARE = 10, 0.01
WORD = re.compile(r"\w+|[^\w\s]")

MOST_PARTITIONS = 256
"""For each chunker version."""
MOST_GROWTH = 12.0
"""Of a run that finds nothing to do, when the documents become ten times as many."""
MOST_FOR_AN_EDIT = 1.5
"""Times a run that finds nothing to do, with one changed document."""


class MadeUpTokenizer:
    """A token a word or punctuation mark."""

    fingerprint = "words"
    splits_at_white_space = True

    def count(self, texts: Sequence[str]) -> list[int]:
        return [len(WORD.findall(text)) for text in texts]

    def starts(self, texts: Sequence[str]) -> list[np.ndarray]:
        return [np.array([m.start() for m in WORD.finditer(t)], np.int64) for t in texts]


class MadeUpEmbedder:
    """A vector that is a hash of the text; counts how many it computed in this process."""

    computed = 0
    identity = ModelIdentity(
        "made-up", "1", DIMENSIONS, MAX_TOKENS, "", "", "mean", normalised=True
    )

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        return MadeUpTokenizer().count(texts)

    def embed_passages(self, texts: Sequence[str], progress: Progress | None = None) -> np.ndarray:
        MadeUpEmbedder.computed += len(texts)
        return vectors_of(texts)

    def embed_queries(self, texts: Sequence[str]) -> np.ndarray:
        return vectors_of(texts)


class MadeUp(EmbeddingModel):
    """`kind: made-up`, registered as a package's own model would be."""

    kind: ClassVar[str] = "made-up"

    def tokenizer_fingerprint(self) -> str:
        return MadeUpTokenizer.fingerprint

    def tokenizer(self, models_folder: Path) -> MadeUpTokenizer:
        return MadeUpTokenizer()

    def embedder(self, models_folder: Path) -> MadeUpEmbedder:
        return MadeUpEmbedder()


MODELS["made-up"] = MadeUp


def vectors_of(texts: Sequence[str]) -> np.ndarray:
    """Unit vectors, float32 (len(texts), 32); equal texts have equal ones."""
    digests = [hashlib.blake2b(text.encode(), digest_size=DIMENSIONS).digest() for text in texts]
    values = np.frombuffer(b"".join(digests), np.uint8).reshape(len(texts), -1) + np.float32(1)
    unit: np.ndarray = values / np.linalg.norm(values, axis=1, keepdims=True)
    return unit.astype(np.float32)


# --- the corpus ----------------------------------------------------------------------------------


def text_of(number: int, revision: int = 0) -> str:
    paragraphs = []
    for part in range(PARAGRAPHS):
        words = " ".join(f"w{number}x{part}x{n}" for n in range(12))
        edited = revision if part == 0 else 0
        paragraphs.append(f"Paragraph {part} of document {number} as of {edited} says: {words}.")
    return "\n\n".join(paragraphs) + "\n"


def write_corpus(root: Path, documents: int, kinds: Sequence[str], shards: int) -> Path:
    """Documents, and a corpus.yaml with a strategy for each kind of chunker; that file."""
    for number in range(documents):
        write(root, number)
    chunkers = {f"{kind}-{CHUNK_TOKENS}@1": kind for kind in kinds}
    declared = {
        "collections": {"docs": {"path": "docs", "shards": shards, "settle_seconds": 0}},
        "embedding_models": {"made-up": {"kind": "made-up"}},
        "chunkers": {n: {"kind": k, "max_tokens": CHUNK_TOKENS} for n, k in chunkers.items()},
        "retrieval_profiles": {"hybrid": {"search": "hybrid"}},
        "strategies": {
            kind: {"chunker": name, "model": "made-up", "profile": "hybrid"}
            for name, kind in chunkers.items()
        },
    }
    file = root / "corpus.yaml"
    file.write_text(yaml.safe_dump(declared), encoding="utf-8")
    return file


def write(root: Path, number: int, revision: int = 0) -> None:
    file = root / "docs" / f"{number % 100:02}" / f"{number}.md"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text_of(number, revision), encoding="utf-8")


# --- runs, each in a process of its own ----------------------------------------------------------


def run(side: str, root: Path, **environment: str) -> dict[str, float]:
    """`seconds` of CPU and vectors `computed`, of one run over the files of `root` as they are."""
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-m", "benchmarks.lifecycle", "--run", side, str(root)],
        env={
            **{n: v for n, v in os.environ.items() if n not in ("DAGSTER_HOME", "CORPUS_HOME")},
            "CORPUS_CONFIG": str(root / "corpus.yaml"),
            "DAGSTER_DISABLE_TELEMETRY": "yes",
            "PYTHONPATH": str(ROOT),
            **environment,
        },
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SystemExit(f"{side}: {done.stdout}{done.stderr}")
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def command(root: Path) -> Callable[[], None]:
    """The command that brings everything up to date."""
    import lancedb  # noqa: F401  # loading is not timed

    from dagster_defs import definitions  # noqa: F401
    from dagster_defs.materialize import main

    sys.argv = ["materialize"]

    def build() -> None:
        if main():
            raise SystemExit("the build failed")

    return build


def stages(root: Path) -> Callable[[], None]:
    """The stages that index, without Dagster and without scores: what the other side does."""
    import lancedb  # noqa: F401  # loading is not timed

    from chunking_assets import config as configuration
    from chunking_assets.chunk_embeddings.build import update_index
    from chunking_assets.chunk_sets.build import update_chunk_sets
    from chunking_assets.embedding_models.loaded import Models
    from chunking_assets.parsed_elements.build import update_documents
    from chunking_assets.parsed_elements.reuse import ParsedBefore
    from chunking_assets.raw_documents.listing import scan
    from chunking_assets.workspace import Workspace

    config = configuration.load(root / "corpus.yaml")
    workspace = Workspace(config.home)
    models = Models(config.embedding_models, workspace)

    def build() -> None:
        before = ParsedBefore(workspace)
        listings = {n: scan(n, c, config.root) for n, c in config.collections.items()}
        for shard, name in config.shards().items():
            update_documents(
                workspace,
                shard,
                name,
                config.collections[name],
                config.root,
                listing=listings[name],
                parsed_before=before,
            )
            update_chunk_sets(workspace, shard, [*config.chunker_versions.values()], models)
        for index in config.index_versions.values():
            update_index(workspace, index, [*config.shards()], models.embedder)

    return build


def llama_index(root: Path) -> Callable[[], None]:
    """Its ingestion pipeline with a document store, upserts and deletes, kept on disk."""
    from llama_index.core import SimpleDirectoryReader
    from llama_index.core.base.embeddings.base import BaseEmbedding
    from llama_index.core.ingestion import DocstoreStrategy, IngestionPipeline
    from llama_index.core.node_parser import SentenceSplitter
    from llama_index.core.storage.docstore import SimpleDocumentStore
    from llama_index.core.vector_stores import SimpleVectorStore

    class Embedding(BaseEmbedding):
        def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
            return list(MadeUpEmbedder().embed_passages(texts).tolist())

        def _get_text_embedding(self, text: str) -> list[float]:
            return self._get_text_embeddings([text])[0]

        def _get_query_embedding(self, query: str) -> list[float]:
            return self._get_text_embedding(query)

        async def _aget_query_embedding(self, query: str) -> list[float]:
            return self._get_text_embedding(query)

    kept, vectors = root / "llama_index", root / "llama_index" / "vectors.json"

    def build() -> None:
        stored = vectors.exists()
        pipeline = IngestionPipeline(
            transformations=[
                SentenceSplitter(
                    chunk_size=10 * CHUNK_TOKENS,  # it counts the path to each chunk's tokens
                    chunk_overlap=0,
                    tokenizer=WORD.findall,
                    paragraph_separator="\n\n",
                    include_metadata=False,
                ),
                Embedding(model_name="made-up"),
            ],
            docstore=SimpleDocumentStore(),
            vector_store=(
                SimpleVectorStore.from_persist_path(str(vectors)) if stored else SimpleVectorStore()
            ),
            docstore_strategy=DocstoreStrategy.UPSERTS_AND_DELETE,
        )
        if stored:
            pipeline.load(str(kept))
        reader = SimpleDirectoryReader(str(root / "docs"), recursive=True, filename_as_id=True)
        pipeline.run(documents=reader.load_data())
        pipeline.persist(str(kept))
        assert isinstance(pipeline.vector_store, SimpleVectorStore)
        pipeline.vector_store.persist(str(vectors))

    return build


SIDES = {"command": command, "stages": stages, "llama_index": llama_index}


def timed(side: str, root: Path) -> int:
    """Do one run here, and say what it took as the last line."""
    build = SIDES[side](root)
    begun = time.process_time()
    build()
    seconds = time.process_time() - begun
    print(json.dumps({"seconds": seconds, "computed": MadeUpEmbedder.computed}))
    return 0


# --- what is reported ----------------------------------------------------------------------------


def events(root: Path) -> int:
    """Rows in the event log of Dagster, of all runs."""
    return sum(_rows(file) for file in (root / ".corpus" / "dagster").rglob("*.db"))


def _rows(file: Path) -> int:
    with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as connection:
        found = connection.execute("select 1 from sqlite_master where name = 'event_logs'")
        if found.fetchone() is None or file.stem == "index":
            return 0
        (rows,) = connection.execute("select count(*) from event_logs").fetchone()
        return int(rows)


def grown(folder: Path, documents: int, command: bool) -> dict[str, dict[str, float]]:
    """Runs over so many documents, by what changed before each."""
    root = folder / str(documents)
    write_corpus(root, documents, KINDS, SHARDS)
    found = {"first": run("stages", root), "no-op": run("stages", root)}
    write(root, documents // 2, revision=1)
    found["one edit"] = run("stages", root)
    if command:
        run("command", root)
        found["no-op, command"] = run("command", root)
        rows = events(root)
        write(root, documents // 2, revision=2)
        found["one edit, command"] = run("command", root) | {"events": events(root) - rows}
    return found


def beside(folder: Path, documents: int, sides: Sequence[str]) -> Iterator[tuple[str, str, Any]]:
    """What each side did at a first run, a second, and after an edit of 1 %."""
    for side in sides:
        root = folder / side
        write_corpus(root, documents, ("recursive",), shards=1)
        yield side, "first", run(side, root)
        yield side, "no-op", run(side, root)
        for number in range(0, documents, round(1 / EDITED_SHARE)):
            write(root, number, revision=1)
        yield side, "1 % edited", run(side, root)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.lifecycle", description=__doc__)
    parser.add_argument("--documents", type=int, default=100_000)
    parser.add_argument("--beside", type=int, default=2_000, help="documents beside other tools")
    parser.add_argument("--command", action="store_true", help="run `make build` as well")
    parser.add_argument("--run", nargs=2, metavar=("SIDE", "FOLDER"), help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.run:
        return timed(chosen.run[0], Path(chosen.run[1]))
    with TemporaryDirectory() as name:
        kept = _report_growth(Path(name), chosen.documents, chosen.command)
        _report_beside(Path(name), chosen.beside)
    return 0 if kept else 1


def _report_growth(folder: Path, documents: int, command: bool) -> bool:
    sizes = [documents // GROWTH, documents]
    runs = {size: grown(folder, size, command) for size in sizes}
    print(f"{'documents':>10} {'run':18} {'vectors':>9} {'CPU s':>8} {'to no-op':>9}")
    for size, found in runs.items():
        for name, one in found.items():
            ratio = one["seconds"] / found["no-op"]["seconds"]
            print(f"{size:10,} {name:18} {one['computed']:9,} {one['seconds']:8.2f} {ratio:9.2f}")
    small, large = (runs[size] for size in sizes)
    growth = large["no-op"]["seconds"] / small["no-op"]["seconds"]
    edit = large["one edit"]["seconds"] / large["no-op"]["seconds"]
    told = [
        (f"partitions of each version: {SHARDS} (at most {MOST_PARTITIONS})", True),
        (f"no-op, {GROWTH} x the documents: {growth:.1f} x (below {MOST_GROWTH:g})",
         growth < MOST_GROWTH),
        (f"one edit to a no-op: {edit:.2f} x (below {MOST_FOR_AN_EDIT:g})",
         edit < MOST_FOR_AN_EDIT),
    ]  # fmt: skip
    if command:
        logged = [runs[size]["one edit, command"]["events"] for size in sizes]
        line = f"rows in the event log of one edit: {logged[0]:.0f} and {logged[1]:.0f}"
        told.append((line, logged[1] <= 1.2 * logged[0]))
    for line, holds in told:
        print(f"{'ok    ' if holds else 'MISSED'} {line}")
    return all(holds for _, holds in told)


def _report_beside(folder: Path, documents: int) -> None:
    print(f"\n{documents:,} documents, one strategy, CPU seconds; ratios to ours")
    base: dict[str, dict[str, float]] = {}
    for side, name, one in beside(folder, documents, ("stages", "llama_index")):
        reference = base.setdefault(name, one)
        times = one["seconds"] / reference["seconds"]
        print(
            f"{side:12} {name:11} {one['computed']:8,} vectors {one['seconds']:8.2f} s {times:7.2f}"
        )


if __name__ == "__main__":
    sys.exit(main())
