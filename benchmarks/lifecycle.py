"""`python -m benchmarks.lifecycle`: what a change costs, and how that grows with the corpus.

A made-up corpus under three strategies, indexed with a model that costs next to nothing, so that
what is measured is everything around it. Each run is a process of its own, timed in CPU seconds:
its work, after what it needs is imported, and the whole of it, as a user waits for it. Printed are
counts, and ratios between runs of one benchmark. With `--command` also `make build`, to which
Dagster adds a fixed part for each asset that has something to do. Then fewer documents, one
strategy and the same model beside LlamaIndex's ingestion pipeline and, where it is installed,
CocoIndex.
"""

import argparse
import json
import os
import resource
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from importlib import import_module
from importlib.util import find_spec
from itertools import accumulate
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import yaml

from chunking_assets.embedding_models.model import Progress
from chunking_assets.embedding_models.registry import MODELS
from tests.small_corpus import DIMENSIONS, WORD, HashEmbedder, HashModel

ROOT = Path(__file__).parents[1]
KINDS = ("fixed", "recursive", "sentence")
SHARDS, CHUNK_TOKENS = 32, 40
CHUNK_BYTES = 240
"""About as much text, for what counts bytes."""
GROWTH, EDITED_SHARE = 10, 0.01
TIMES = 3

SYLLABLES = [consonant + vowel for consonant in "kldv" for vowel in "aeiou"]
RANKS = range(20_000)
FREQUENCIES = list(accumulate(1 / (rank + 2) for rank in RANKS))
"""Zipf's law over a made-up vocabulary."""

COCOINDEX = "pip install --target FOLDER cocoindex==1.0.26, and PYTHONPATH=FOLDER"
"""Of this benchmark only, so that it is not among what the project installs."""

MOST_PARTITIONS = 256
"""For each chunker version."""
MOST_GROWTH = 12.0
"""Of a run that finds nothing to do, when the documents become ten times as many."""
MOST_FOR_AN_EDIT = 1.5
"""Times a run that finds nothing to do, with one changed document."""


class CountingEmbedder(HashEmbedder):
    """Counts the texts embedded in this process, and keeps none of them."""

    computed = 0

    def embed_passages(self, texts: Sequence[str], progress: Progress | None = None) -> np.ndarray:
        CountingEmbedder.computed += len(texts)
        return self.embed_queries(texts)


class CountingModel(HashModel):
    """`kind: hash`, registered as a package's own model would be."""

    def embedder(self, models_folder: Path) -> CountingEmbedder:
        return CountingEmbedder(self.max_tokens)


MODELS[CountingModel.kind] = CountingModel


# --- the corpus ----------------------------------------------------------------------------------


def text_of(number: int, revision: int = 0) -> str:
    """Of 200 to 500 bytes: paragraphs of words that are as frequent as those of a language."""
    words = Random(number)  # noqa: S311
    paragraphs = [
        " ".join(map(_word, words.choices(RANKS, cum_weights=FREQUENCIES, k=words.randint(18, 26))))
        for _ in range(words.choice((2, 2, 3)))
    ]
    begun = f"Document {number}, revision {revision}"
    return "\n\n".join(f"{text.capitalize()}." for text in (begun, *paragraphs)) + "\n"


def _word(rank: int) -> str:
    """
    >>> _word(0), _word(19_999)
    ('ka', 'kiluvuvu')
    """
    syllables = ""
    while True:
        rank, last = divmod(rank, len(SYLLABLES))
        syllables = SYLLABLES[last] + syllables
        if not rank:
            return syllables


def write_corpus(root: Path, documents: int, kinds: Sequence[str], shards: int) -> Path:
    """Documents, and a corpus.yaml with a strategy for each kind of chunker; that file."""
    for number in range(documents):
        write(root, number)
    chunkers = {f"{kind}-{CHUNK_TOKENS}@1": kind for kind in kinds}
    declared = {
        "collections": {"docs": {"path": "docs", "shards": shards, "settle_seconds": 0}},
        "embedding_models": {"hash": {"kind": "hash"}},
        "chunkers": {n: {"kind": k, "max_tokens": CHUNK_TOKENS} for n, k in chunkers.items()},
        "retrieval_profiles": {"hybrid": {"search": "hybrid"}},
        "strategies": {
            kind: {"chunker": name, "model": "hash", "profile": "hybrid"}
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
    """Of one run over the files of `root` as they are: `seconds` of CPU without imports, those of
    the `process` from its start to its end, and vectors `computed`."""
    before = _cpu_of_children()
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-m", "benchmarks.lifecycle", "--run", side, str(root)],
        env={
            **{n: v for n, v in os.environ.items() if n not in ("DAGSTER_HOME", "CORPUS_HOME")},
            "CORPUS_CONFIG": str(root / "corpus.yaml"),
            "DAGSTER_DISABLE_TELEMETRY": "yes",
            "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]),
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
    return found | {"process": _cpu_of_children() - before}


def _cpu_of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def command(root: Path) -> Callable[[], None]:
    """The command that brings everything up to date."""
    import lance  # noqa: F401  # loading is not timed
    import lancedb  # noqa: F401

    from dagster_defs import definitions  # noqa: F401
    from dagster_defs.materialize import main

    sys.argv = ["materialize"]

    def build() -> None:
        if main():
            raise SystemExit("the build failed")

    return build


def stages(root: Path) -> Callable[[], None]:
    """The stages that index, without Dagster and without scores: what the other side does."""
    import lance  # noqa: F401  # loading is not timed
    import lancedb  # noqa: F401

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
            return list(CountingEmbedder(512).embed_passages(texts).tolist())

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
                    chunk_size=CHUNK_TOKENS,
                    chunk_overlap=0,
                    tokenizer=WORD.findall,
                    paragraph_separator="\n\n",
                    include_metadata=False,
                ),
                Embedding(model_name="hash"),
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
        documents = reader.load_data()
        for document in documents:  # the path counts as a part of each chunk, unless it is left out
            names = list(document.metadata)
            document.excluded_embed_metadata_keys = document.excluded_llm_metadata_keys = names
        pipeline.run(documents=documents)
        pipeline.persist(str(kept))
        assert isinstance(pipeline.vector_store, SimpleVectorStore)
        pipeline.vector_store.persist(str(vectors))

    return build


def cocoindex(root: Path) -> Callable[[], None]:
    """Its pipeline of the documentation over LanceDB: files by content, chunks by file."""
    from collections.abc import AsyncIterator
    from dataclasses import make_dataclass
    from typing import Annotated

    from numpy.typing import NDArray

    coco, lancedb, localfs, text, ids_of, schema_of = (
        import_module(f"cocoindex{part}")
        for part in (
            "", ".connectors.lancedb", ".connectors.localfs", ".ops.text", ".resources.id",
            ".resources.schema",
        )
    )  # fmt: skip

    kept = root / "cocoindex"
    kept.mkdir(exist_ok=True)
    database = coco.ContextKey("database")
    splitter, embedder = text.RecursiveSplitter(), CountingEmbedder(512)
    vector = Annotated[
        NDArray[np.float32], schema_of.VectorSchema(np.dtype(np.float32), DIMENSIONS)
    ]
    fields = [("id", int), ("file", str), ("start", int), ("text", str), ("vector", vector)]
    row_of = make_dataclass("Chunk", fields)

    @coco.fn  # type: ignore[untyped-decorator]
    async def index_chunk(chunk: Any, file: Path, ids: Any, table: Any) -> None:
        table.declare_row(
            row=row_of(
                id=await ids.next_id(chunk.text),
                file=str(file),
                start=chunk.start.char_offset,
                text=chunk.text,
                vector=embedder.embed_passages([chunk.text])[0],
            )
        )

    @coco.fn(memo=True)  # type: ignore[untyped-decorator]
    async def index_file(file: Any, table: Any) -> None:
        chunks = splitter.split(await file.read_text(), chunk_size=CHUNK_BYTES, chunk_overlap=0)
        await coco.map(index_chunk, chunks, file.file_path.path, ids_of.IdGenerator(), table)

    @coco.fn  # type: ignore[untyped-decorator]
    async def index_folder(folder: Path) -> None:
        schema = await lancedb.TableSchema.from_class(row_of, primary_key=["id"])
        table = await lancedb.mount_table_target(database, "chunks", schema)
        files = localfs.walk_dir(folder, recursive=True)
        await coco.mount_each(index_file, files.items(), table)

    @coco.lifespan  # type: ignore[untyped-decorator]
    async def opened(builder: Any) -> AsyncIterator[None]:
        builder.settings.db_path = kept / "state"
        builder.provide(database, await lancedb.connect_async(str(kept / "lance")))
        yield

    app = coco.App(coco.AppConfig(name="lifecycle"), index_folder, folder=root / "docs")

    def build() -> None:
        app.update_blocking()

    return build


SIDES = {
    "command": command,
    "stages": stages,
    "llama_index": llama_index,
    "cocoindex": cocoindex,
}


def timed(side: str, root: Path) -> int:
    """Do one run here, and say what it took as the last line."""
    build = SIDES[side](root)
    begun = time.process_time()
    build()
    seconds = time.process_time() - begun
    print(json.dumps({"seconds": seconds, "computed": CountingEmbedder.computed}))
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


def grown(root: Path, documents: int, command: bool) -> dict[str, dict[str, float]]:
    """Runs over so many documents, by what changed before each."""
    found = {}
    if not (root / "corpus.yaml").exists():
        write_corpus(root, documents, KINDS, SHARDS)
        found["first"] = run("stages", root)
    found["no-op"] = _least(run("stages", root) for _ in range(TIMES))
    found["one edit"] = _least(_edited("stages", root, documents) for _ in range(TIMES))
    if command:
        run("command", root)
        found["no-op, command"] = _least(run("command", root) for _ in range(TIMES))
        rows = events(root)
        found["one edit, command"] = _edited("command", root, documents)
        found["one edit, command"]["events"] = events(root) - rows
    return found


def _edited(side: str, root: Path, documents: int) -> dict[str, float]:
    write(root, documents // 2, revision=time.time_ns())
    return run(side, root)


def _least(runs: Iterable[dict[str, float]]) -> dict[str, float]:
    """Of several runs alike, the one that other work on the machine disturbed least."""
    return min(runs, key=lambda run: run["seconds"])


def beside(folder: Path, documents: int, sides: Sequence[str]) -> Iterator[tuple[str, str, Any]]:
    """What each side did at a first run, a second, and after an edit of 1 %."""
    for side in sides:
        root = folder / side
        write_corpus(root, documents, ("recursive",), shards=1)
        yield side, "first", run(side, root)
        yield side, "no-op", _least(run(side, root) for _ in range(TIMES))
        for number in range(0, documents, round(1 / EDITED_SHARE)):
            write(root, number, revision=1)
        yield side, "1 % edited", run(side, root)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.lifecycle", description=__doc__)
    parser.add_argument("--documents", type=int, default=100_000)
    parser.add_argument("--beside", type=int, default=2_000, help="documents beside other tools")
    parser.add_argument("--command", action="store_true", help="run `make build` as well")
    parser.add_argument(
        "--folder", type=Path, help="keep the indexed corpora here for the next time"
    )
    parser.add_argument("--run", nargs=2, metavar=("SIDE", "FOLDER"), help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.run:
        return timed(chosen.run[0], Path(chosen.run[1]))
    with TemporaryDirectory() as name:
        folder = chosen.folder or Path(name)
        kept = _report_growth(folder, chosen.documents, chosen.command)
        _report_beside(Path(name), chosen.beside)
    return 0 if kept else 1


def _report_growth(folder: Path, documents: int, command: bool) -> bool:
    sizes = [documents // GROWTH, documents]
    runs = {size: grown(folder / str(size), size, command) for size in sizes}
    print(
        f"{'documents':>10} {'run':18} {'vectors':>9} {'CPU s':>8} {'to no-op':>9}"
        f" {'process':>9} {'to no-op':>9}"
    )
    for size, found in runs.items():
        for name, one in found.items():
            kind = "no-op, command" if name.endswith("command") else "no-op"
            ratios = {of: one[of] / found[kind][of] for of in ("seconds", "process")}
            print(
                f"{size:10,} {name:18} {one['computed']:9,} {one['seconds']:8.2f}"
                f" {ratios['seconds']:9.2f} {one['process']:9.2f} {ratios['process']:9.2f}"
            )
    small, large = (runs[size] for size in sizes)
    growth = large["no-op"]["seconds"] / small["no-op"]["seconds"]
    told = [
        (f"partitions of each version: {SHARDS} (at most {MOST_PARTITIONS})", True),
        (f"no-op, {GROWTH} x the documents: {growth:.1f} x (below {MOST_GROWTH:g})",
         growth < MOST_GROWTH),
    ]  # fmt: skip
    for size, found in runs.items():
        edit = found["one edit"]["seconds"] / found["no-op"]["seconds"]
        line = f"one edit to a no-op, {size:,}: {edit:.2f} x"
        line += f" (below {MOST_FOR_AN_EDIT:g})" if size == documents else ""
        told.append((line, edit < MOST_FOR_AN_EDIT or size < documents))
    if command:
        logged = [runs[size]["one edit, command"]["events"] for size in sizes]
        line = f"rows in the event log of one edit: {logged[0]:.0f} and {logged[1]:.0f}"
        told.append((line, logged[1] <= 1.2 * logged[0]))
    for line, holds in told:
        print(f"{'ok    ' if holds else 'MISSED'} {line}")
    return all(holds for _, holds in told)


def _report_beside(folder: Path, documents: int) -> None:
    sides = ["stages", "llama_index"]
    if find_spec("cocoindex"):
        sides.append("cocoindex")
    else:
        print(f"\ncocoindex is not installed; {COCOINDEX}")
    print(f"\n{documents:,} documents, one strategy, CPU seconds; ratios to ours")
    base: dict[str, dict[str, float]] = {}
    for side, name, one in beside(folder, documents, sides):
        reference = base.setdefault(name, one)
        times = one["seconds"] / reference["seconds"]
        print(
            f"{side:12} {name:11} {one['computed']:8,} vectors {one['seconds']:8.2f} s {times:7.2f}"
            f"   process {one['process']:8.2f} s {one['process'] / reference['process']:7.2f}"
        )


if __name__ == "__main__":
    sys.exit(main())
