"""`python -m benchmarks.scale`: how the work of each stage grows, and what a second worker brings.

A made-up corpus of 1,000 chunks, ten times as many, and so on; a worker is a process bound to one
core, which takes whole shards, as runs do. Printed are chunks or questions a second, the exponent
of growth (1 is in proportion, of a question 0 is as good as it gets), and for two workers how many
times the one. Vectors cost next to nothing there, so that what is measured is the rest; embedding
is measured by itself, with the default model. Then one shard alone: how much memory writing it
takes, by the setting that bounds it. Last, many small cells, built in the process of a run and as
Ray tasks: what a task costs more. The largest of several sizes is for one worker, unless
`--workers` says for how many.
"""

import argparse
import hashlib
import json
import os
import re
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import ClassVar

import numpy as np
import yaml

from chunking_assets import config as configuration
from chunking_assets.chunk_embeddings.build import BATCH_CHUNKS, update_index
from chunking_assets.chunk_sets.build import CHUNKS, cell, update_chunk_sets
from chunking_assets.embedding_models.loaded import Models
from chunking_assets.embedding_models.model import EmbeddingModel, ModelIdentity, Progress
from chunking_assets.embedding_models.registry import MODELS
from chunking_assets.parsed_elements.build import update_documents
from chunking_assets.retrieval.profile import RetrievalProfile
from chunking_assets.retrieval.reader import Reader
from chunking_assets.workspace import Workspace
from tests.small_corpus import WordTokenizer

ROOT = Path(__file__).parents[1]
DIMENSIONS, SUBJECTS, VOCABULARY = 384, 2_000, 50_000
CHUNK_TOKENS, SENTENCE, CHUNKS_PER_DOCUMENT = 48, 12, 50
SHARDS, QUESTIONS, SEED = 4, 100, 20_260_101
SIZES = (1_000, 10_000, 100_000, 1_000_000)
CELLS, CHUNKS_PER_CELL, RAY_CPUS, RAY_PORT = 16, 50, 2, 6390
EMBEDDED = 400
"""Chunks for the default model."""
LEAST_GAIN = 1.6
"""Of a second worker, in chunking and embedding."""


class Subjects:
    """Vectors around a common centre for texts that begin with the same word."""

    identity = ModelIdentity("scale", "1", DIMENSIONS, 512, "", "", "mean", normalised=True)

    def __init__(self) -> None:
        rng = np.random.default_rng(SEED)
        self.centres = rng.normal(size=(SUBJECTS, DIMENSIONS)).astype(np.float32)
        self.spread = (rng.normal(size=(64, DIMENSIONS)) / 64).astype(np.float32)

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        return WordTokenizer().count(texts)

    def embed_passages(self, texts: Sequence[str], progress: Progress | None = None) -> np.ndarray:
        digests = b"".join(hashlib.blake2b(text.encode()).digest() for text in texts)
        noise = np.frombuffer(digests, np.uint8).reshape(-1, 64).astype(np.float32) - 127.5
        first = [hashlib.blake2b(text[:8].encode()).digest()[:4] for text in texts]
        subject = [int.from_bytes(value) % SUBJECTS for value in first]
        values = self.centres[subject] + noise @ self.spread / 10
        unit: np.ndarray = values / np.linalg.norm(values, axis=1, keepdims=True)
        return unit.astype(np.float32)

    def embed_queries(self, texts: Sequence[str]) -> np.ndarray:
        return self.embed_passages(texts)


class ScaleModel(EmbeddingModel):
    """`kind: scale`, registered as a package's own model would be."""

    kind: ClassVar[str] = "scale"

    def tokenizer_fingerprint(self) -> str:
        return WordTokenizer.fingerprint

    def tokenizer(self, models_folder: Path) -> WordTokenizer:
        return WordTokenizer()

    def embedder(self, models_folder: Path) -> Subjects:
        return Subjects()


MODELS["scale"] = ScaleModel


# --- the corpus ----------------------------------------------------------------------------------


def write_corpus(root: Path, chunks: int, shards: int, model: str = "scale") -> None:
    """Documents of about `CHUNKS_PER_DOCUMENT` chunks in as many collections as shards, each a
    single shard; words are as frequent as words are."""
    rng = np.random.default_rng(SEED)
    frequency = 1 / np.arange(1, VOCABULARY + 1)
    cumulated = np.cumsum(frequency / frequency.sum())
    lines = CHUNKS_PER_DOCUMENT * CHUNK_TOKENS // (SENTENCE + 1)
    for number in range(max(shards, chunks // CHUNKS_PER_DOCUMENT)):
        ids = np.searchsorted(cumulated, rng.random((lines, SENTENCE))).tolist()
        text = " ".join(" ".join(f"w{word}" for word in row) + "." for row in ids)
        file = root / f"part-{number % shards}" / f"{number // 1000}" / f"{number}.txt"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text + "\n", encoding="utf-8")
    parts = [f"part-{n}" for n in range(shards)]
    declared = {
        "collections": {p: {"path": p, "shards": 1, "settle_seconds": 0} for p in parts},
        "embedding_models": {model: {"kind": model}},
        "chunkers": {"sentence@1": {"kind": "sentence", "max_tokens": CHUNK_TOKENS}},
        "retrieval_profiles": {"hybrid": {"search": "hybrid"}},
        "strategies": {"made-up": {"chunker": "sentence@1", "model": model, "profile": "hybrid"}},
    }
    (root / "corpus.yaml").write_text(yaml.safe_dump(declared), encoding="utf-8")


# --- a worker, in a process and on a core of its own ---------------------------------------------


def prepared(stage: str, root: Path, shards: Sequence[str], batch: int) -> Callable[[], object]:
    """The work of a stage over some shards, with everything loaded that it takes."""
    import lance  # noqa: F401
    import lancedb  # noqa: F401

    config = configuration.load(root / "corpus.yaml")
    workspace = Workspace(config.home)
    models = Models(config.embedding_models, workspace)
    versions = [*config.chunker_versions.values()]
    (index,) = config.index_versions.values()
    embedder = models.embedder(index.model_name)
    collections = config.shards()

    def parse() -> None:
        for shard in shards:
            name = collections[shard]
            update_documents(workspace, shard, name, config.collections[name], config.root)

    def chunk() -> None:
        for shard in shards:
            update_chunk_sets(workspace, shard, versions, models, workers=1)

    def write() -> None:
        update_index(workspace, index, shards, lambda _: embedder, batch_chunks=batch)

    if stage == "search":
        reader = Reader(workspace, index.name, RetrievalProfile(search="hybrid"), lambda: embedder)
        asked = questions(workspace, shards[0], index.chunker_version.name)
        reader.search(asked[0])
        return lambda: [reader.search(question) for question in asked]
    return {"parse": parse, "chunk": chunk, "write": write}[stage]


def questions(workspace: Workspace, shard: str, version: str) -> list[str]:
    """Ten words each of chunks that are there."""
    rows = workspace.table(CHUNKS).read(cell(version, shard), ["text"])
    if rows is None:
        raise SystemExit(f"{shard} was never chunked")
    texts = rows["text"].sample(QUESTIONS, with_replacement=True, seed=SEED)
    return [" ".join(text.split()[:10]) for text in texts]


def work(stage: str, root: Path, core: int, shards: Sequence[str], batch: int) -> int:
    """Load, say so, wait to be told, do it, and say what it took."""
    os.sched_setaffinity(0, {core})
    do = prepared(stage, root, shards, batch)
    print("ready", flush=True)
    sys.stdin.readline()
    cpu, wall = time.process_time(), time.perf_counter()
    do()
    told = {
        "cpu": time.process_time() - cpu,
        "wall": time.perf_counter() - wall,
        "megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }
    print(json.dumps(told))
    return 0


def together(
    stage: str, root: Path, workers: int, shards: int, batch: int = BATCH_CHUNKS, home: str = ""
) -> dict[str, float]:
    """Wall seconds from the start of all workers to the end of the last, their CPU seconds, and
    the most memory that one of them took."""
    cores = sorted(os.sched_getaffinity(0))
    parts = [f"part-{n}" for n in range(shards)]
    processes = []
    for number in range(workers):
        of_worker = ",".join(parts if stage == "search" else parts[number::workers])
        arguments = [stage, str(root), str(cores[number % len(cores)]), of_worker, str(batch)]
        processes.append(
            subprocess.Popen(  # noqa: S603
                [sys.executable, "-m", "benchmarks.scale", "--work", *arguments],
                env=os.environ
                | {"PYTHONPATH": str(ROOT), "CORPUS_HOME": str(root / (home or f"home-{workers}"))},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                cwd=ROOT,
            )
        )
    for process in processes:
        if process.stdout is None or process.stdout.readline() != "ready\n":
            raise SystemExit(f"a worker of {stage} ended with {process.wait()}")
    begun = time.perf_counter()
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    ends = [process.communicate() for process in processes]
    wall = time.perf_counter() - begun
    told = [json.loads(out) for out, _ in ends]
    return {
        "wall": max(wall if workers > 1 else 0.0, *(one["wall"] for one in told)),
        "cpu": sum(one["cpu"] for one in told),
        "megabytes": max(one["megabytes"] for one in told),
    }


# --- what is reported ----------------------------------------------------------------------------


def megabytes_of(home: Path) -> dict[str, float]:
    """What a workspace takes: chunk sets and ledgers, rows with vectors, indexes, caches."""
    kinds = {"tables": 0, "rows": 0, "indexes": 0, "caches": 0}
    for file in home.rglob("*"):
        parts = file.relative_to(home).parts
        kind = {"tables": "tables", "caches": "caches", "lance": "rows"}.get(parts[0])
        if kind and file.is_file():
            kinds["indexes" if "_indices" in parts else kind] += file.stat().st_size
    return {kind: size / 2**20 for kind, size in kinds.items()}


def exponent(sizes: Sequence[int], seconds: Sequence[float]) -> float:
    """Of the straight line through the logarithms: seconds grow with size to that power."""
    slope, _ = np.polyfit(np.log(sizes), np.log(seconds), 1)
    return float(slope)


def workers_of(size: int, sizes: Sequence[int], chosen: Sequence[int] | None) -> list[int]:
    """How many workers a size is measured with.

    >>> sizes = [1_000, 100_000, 1_000_000]
    >>> workers_of(100_000, sizes, None), workers_of(1_000_000, sizes, None)
    ([1, 2], [1])
    >>> workers_of(1_000_000, sizes, [1, 2])
    [1, 2]
    """
    if chosen:
        return [*chosen]
    return [1] if len(sizes) > 1 and size == max(sizes) else [1, 2]


def report_growth(folder: Path, sizes: Sequence[int], chosen: Sequence[int] | None) -> bool:
    stages = ("parse", "chunk", "write", "search")
    taken: dict[tuple[str, int], dict[int, float]] = {}
    memory: dict[str, float] = {}
    print(f"{'chunks':>10} {'stage':8} {'workers':>7} {'CPU s':>9} {'a second':>10} {'MB':>7}")
    for size in sizes:
        root = folder / str(size)
        write_corpus(root, size, SHARDS)
        workers = workers_of(size, sizes, chosen)
        for count in workers:
            for stage in stages:
                one = together(stage, root, count, SHARDS)
                done = count * QUESTIONS if stage == "search" else size
                taken.setdefault((stage, count), {})[size] = one["wall"] / done * size
                memory[stage] = one["megabytes"]
                print(
                    f"{size:10,} {stage:8} {count:7} {one['cpu']:9.2f} "
                    f"{done / one['wall']:10,.0f} {one['megabytes']:7,.0f}",
                    flush=True,
                )
        disk = megabytes_of(root / f"home-{workers[0]}")
        taken_up = ", ".join(f"{kind} {size:,.1f}" for kind, size in disk.items())
        print(f"{size:10,} MB on disk: {taken_up}", flush=True)
    most = ", ".join(f"{stage} {megabytes:,.0f}" for stage, megabytes in memory.items())
    print(f"MB at most in one process, at {sizes[-1]:,} chunks: {most}")
    for (stage, count), seconds in taken.items():
        if len(seconds) < 2:
            continue
        per_question = 1.0 if stage == "search" else 0.0
        steps = zip(pairwise(seconds), pairwise(seconds.values()), strict=True)
        each = ", ".join(f"{exponent(*step) - per_question:.2f}" for step in steps)
        whole = exponent([*seconds], [*seconds.values()]) - per_question
        print(f"{stage}, {count} workers: seconds grow with size to the power {whole:.2f} ({each})")
    both = [size for size in sizes if {1, 2} <= {*workers_of(size, sizes, chosen)}]
    if not both:
        return True
    gains = {s: taken[s, 1][both[-1]] / taken[s, 2][both[-1]] for s in stages}
    for stage, gain in gains.items():
        print(f"{stage}: two workers do {gain:.2f} times what one does, at {both[-1]:,} chunks")
    return gains["chunk"] >= LEAST_GAIN


def report_embedding(folder: Path, chunks: int) -> bool:
    """The default model, on one core and on two."""
    root = folder / "embedding"
    write_corpus(root, chunks, SHARDS, model="e5-small")
    took: dict[int, float] = {}
    for count in (1, 2, 1, 2):  # in turns: what else the machine does is shared
        home = f"home-{count}-{len(took)}-{time.monotonic_ns()}"
        for stage in ("parse", "chunk"):
            together(stage, root, 1, SHARDS, home=home)
        seconds = together("write", root, count, SHARDS, home=home)["wall"]
        took[count] = min(took.get(count, seconds), seconds)
    gain = took[1] / took[2]
    print(
        f"embedding {chunks:,} chunks with e5-small: {chunks / took[1]:.0f} chunks a second on one "
        f"core; two workers do {gain:.2f} times that"
    )
    return bool(gain >= LEAST_GAIN)


def report_memory(folder: Path, chunks: int, batches: Iterable[int]) -> None:
    """One shard, written with several settings of `embedding.batch_chunks`."""
    root = folder / "one-shard"
    write_corpus(root, chunks, 1)
    whole = chunks * DIMENSIONS * 4 / 2**20
    print(f"one shard of {chunks:,} chunks; its vectors take {whole:,.0f} MB")
    for batch in batches:
        home = f"home-{batch}"
        for stage in ("parse", "chunk"):
            together(stage, root, 1, 1, home=home)
        one = together("write", root, 1, 1, batch, home)
        print(
            f"batch_chunks {batch:>9,}: {one['megabytes']:7,.0f} MB at most, "
            f"{chunks / one['wall']:,.0f} chunks a second",
            flush=True,
        )


def report_ray(folder: Path) -> None:
    """Small cells, in the process of a run and as Ray tasks on a cluster of this machine."""
    root = folder / "cells"
    write_corpus(root, CELLS * CHUNKS_PER_CELL, CELLS)
    # Workers find the model as they would one of another package.
    offered = root / "site" / "scale-1.dist-info"
    offered.mkdir(parents=True)
    (offered / "METADATA").write_text("Metadata-Version: 2.1\nName: scale\nVersion: 1\n")
    (offered / "entry_points.txt").write_text(
        "[chunking_assets.embedding_models]\nscale = benchmarks.scale:ScaleModel\n"
    )
    address = f"127.0.0.1:{RAY_PORT}"
    inherited = {k: v for k, v in os.environ.items() if not k.startswith(("RAY_", "DAGSTER_"))}
    environment = inherited | {
        "PYTHONPATH": f"{ROOT}:{offered.parent}",
        "CORPUS_CONFIG": str(root / "corpus.yaml"),
        "DAGSTER_DISABLE_TELEMETRY": "yes",
        "RAY_ADDRESS": address,
    }
    print(f"{CELLS} cells of {CHUNKS_PER_CELL} chunks, {RAY_CPUS} at a time on Ray")
    alone = built(environment | {"CORPUS_HOME": str(root / "home-alone")})
    on_ray = environment | {"CORPUS_HOME": str(root / "home-ray"), "CORPUS_EXECUTOR": "ray"}
    with (
        TemporaryDirectory(prefix="ray", dir="/tmp") as short,  # sockets are in it
        (root / "cluster.txt").open("w") as log,
    ):
        command = [
            sys.executable, "-m", "dagster_defs.ray_cluster", "--port", str(RAY_PORT),
            "--temp-dir", short, "--num-cpus", str(RAY_CPUS),
        ]  # fmt: skip
        cluster = subprocess.Popen(  # noqa: S603
            command, env=on_ray, cwd=ROOT, stdout=log, stderr=subprocess.STDOUT
        )
        try:
            while "runtime started" not in (root / "cluster.txt").read_text():
                if cluster.poll() is not None:
                    raise SystemExit((root / "cluster.txt").read_text())
                time.sleep(0.2)
            spread = built(on_ray)
        finally:
            cluster.send_signal(signal.SIGTERM)
            cluster.wait(60)
    for stage, seconds in alone.items():
        more = (spread[stage] - seconds) / CELLS
        print(
            f"{stage}: {seconds / CELLS:.2f} s a cell in the process of the run, "
            f"{spread[stage] / CELLS:.2f} s on Ray: {more:+.2f} s, workers' start included"
        )


def built(environment: dict[str, str]) -> dict[str, float]:
    """Build a corpus through Dagster; the seconds of the two stages that go to a cluster."""
    done = subprocess.run(
        [sys.executable, "-m", "dagster_defs.materialize"],
        env=environment, cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    found = re.findall(rf"(chunk_\w+) +{CELLS} built +([\d.]+) s", done.stdout)
    if len(found) != 2:
        raise SystemExit(done.stdout + done.stderr)
    return {stage: float(seconds) for stage, seconds in found}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scale", description=__doc__)
    parser.add_argument("--size", type=int, action="append", help=f"chunks; default {SIZES}")
    parser.add_argument("--workers", type=int, action="append", help="default 1 and 2")
    parser.add_argument("--only", choices=("growth", "embedding", "memory", "ray"))
    parser.add_argument("--batch", type=int, action="append", help="batch_chunks, of --only memory")
    parser.add_argument("--work", nargs=5, metavar="ARGUMENT", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.work:
        stage, root, core, shards, batch = chosen.work
        return work(stage, Path(root), int(core), shards.split(","), int(batch))
    sizes = chosen.size or [*SIZES]
    held = True
    with TemporaryDirectory() as name:
        if chosen.only in (None, "growth"):
            held &= report_growth(Path(name), sizes, chosen.workers)
        if chosen.only in (None, "embedding"):
            held &= report_embedding(Path(name), EMBEDDED)
        if chosen.only in (None, "memory"):
            batches = chosen.batch or [BATCH_CHUNKS, 8 * BATCH_CHUNKS]
            report_memory(Path(name), max(sizes), batches)
        if chosen.only in (None, "ray"):
            report_ray(Path(name))
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main())
