"""`python -m benchmarks.embedding FOLDER`: embedding beside the bare runtime, and the cache.

FOLDER holds `corpora/*.md` and `questions_df.csv`, as Chroma's chunking_evaluation does. The same
texts go through the product's embedder and straight into onnxruntime, in turns, both with two
workers on two cores: wall seconds of the least round are compared, since using the cores is what is
measured. On a machine that has other work those are chance; CPU seconds are printed beside them.
The vector cache is asked for as many keys as it is given, in CPU seconds. Last, what vectors stored
smaller than float32 would cost: how many of the five chunks nearest to each question stay.
"""

import argparse
import csv
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from chunking_assets.chunk_sets.chunking import chunk
from chunking_assets.chunk_sets.recursive import RecursiveChunker
from chunking_assets.chunk_sets.spans import Document
from chunking_assets.embedding_models.e5_small import E5Small
from chunking_assets.embedding_models.onnx_embedder import OnnxEmbedder
from chunking_assets.embedding_models.vector_cache import VectorCache
from chunking_assets.parsed_elements.markdown import parse_text

TEXTS, ROUNDS, WORKERS = 300, 3, 2
MAX_TOKENS = 400
CACHED, DIMENSIONS = 100_000, 384
NEAREST = 5
TOKENS_ATTENDED = "attention_mask"


def texts_of(folder: Path, models: Path) -> list[str]:
    """Chunks as the product makes them, from all corpora."""
    tokenizer = E5Small().tokenizer(models)
    found: list[str] = []
    for file in sorted((folder / "corpora").glob("*.md")):
        text = file.read_text(encoding="utf-8")[:60_000]
        document = Document(text, parse_text(text).elements, tokenizer)
        found += [c.text for c in chunk(document, RecursiveChunker(max_tokens=MAX_TOKENS))]
    return found[:: max(1, len(found) // TEXTS)][:TEXTS]


def bare(embedder: OnnxEmbedder, texts: Sequence[str]) -> Callable[[], object]:
    """Onnxruntime on the token ids the product would send, and nothing around it."""
    tokenizer, session = embedder.tokenizer, embedder._session
    before, after = tokenizer.special_tokens()
    prefix = embedder.identity.passage_prefix
    batches = []
    for text in texts:
        ids = np.array([[*before, *tokenizer.encode(prefix + text).ids, *after]], np.int64)
        feed = {"input_ids": ids, TOKENS_ATTENDED: np.ones_like(ids)}
        names = {i.name for i in session.get_inputs()}
        if "token_type_ids" in names:
            feed["token_type_ids"] = np.zeros_like(ids)
        batches.append({name: value for name, value in feed.items() if name in names})

    def run() -> None:
        with ThreadPoolExecutor(WORKERS) as pool:
            list(pool.map(lambda feed: session.run(None, feed), batches))

    return run


def least(calls: Sequence[Callable[[], object]], rounds: int = ROUNDS) -> list[tuple[float, float]]:
    """Wall and CPU seconds of the fastest round of each, taken in turns."""
    best = [(float("inf"), float("inf"))] * len(calls)
    for _ in range(rounds):
        for n, call in enumerate(calls):
            wall, cpu = time.perf_counter(), time.process_time()
            call()
            took = time.perf_counter() - wall, time.process_time() - cpu
            best[n] = min(best[n][0], took[0]), min(best[n][1], took[1])
    return best


def cache_seconds(count: int) -> tuple[float, float]:
    """CPU seconds to store `count` vectors and to find all of them again."""
    rng = np.random.default_rng(0)
    vectors = rng.standard_normal((count, DIMENSIONS), np.float32)
    keys = [f"{n:064x}" for n in range(count)]
    with TemporaryDirectory() as folder:
        cache = VectorCache(Path(folder), "benchmark", DIMENSIONS)
        started = time.process_time()
        cache.put_many(keys, vectors, [1] * count)
        stored = time.process_time() - started
        started = time.process_time()
        found = cache.get_many(keys)
        looked_up = time.process_time() - started
    assert len(found) == count
    return stored, looked_up


def kept_when_smaller(passages: np.ndarray, questions: np.ndarray) -> dict[str, float]:
    """The share of each question's `NEAREST` chunks that smaller vectors find too."""

    def nearest(vectors: np.ndarray, asked: np.ndarray) -> np.ndarray:
        units = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
        return np.argsort(-(asked @ units.T), axis=1, kind="stable")[:, :NEAREST]

    exact = nearest(passages, questions)
    scale = np.abs(passages).max(axis=1, keepdims=True) / 127
    half = passages.shape[1] // 2
    smaller = {
        "float16": nearest(passages.astype(np.float16).astype(np.float32), questions),
        "int8": nearest(np.round(passages / scale) * scale, questions),
        f"{half} dimensions": nearest(passages[:, :half], questions[:, :half]),
    }
    return {
        name: float(np.mean([np.isin(a, b).mean() for a, b in zip(found, exact, strict=True)]))
        for name, found in smaller.items()
    }


def questions_of(folder: Path) -> list[str]:
    with (folder / "questions_df.csv").open(encoding="utf-8", newline="") as file:
        return [row["question"] for row in csv.DictReader(file)]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.embedding", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--models", type=Path, default=Path(".corpus/models"))
    options = parser.parse_args()
    texts = texts_of(options.folder, options.models)
    embedder = E5Small().embedder(options.models)
    assert isinstance(embedder, OnnxEmbedder)
    ours, runtime = least([lambda: embedder.embed_passages(texts), bare(embedder, texts)])
    n_tokens = sum(embedder.count_tokens(texts))
    print(f"{len(texts)} chunks, {n_tokens:,} tokens, {WORKERS} workers")
    print(f"product / bare runtime, throughput: {runtime[0] / ours[0]:.2f} (0.85 wanted)")
    print(f"the same by CPU seconds: {runtime[1] / ours[1]:.2f}")
    print(f"tokens a second: {n_tokens / ours[0]:,.0f}")
    stored, looked_up = cache_seconds(CACHED)
    print(f"vector cache, {CACHED:,} keys: found in {looked_up:.2f} CPU s, stored in {stored:.2f}")
    asked = embedder.embed_queries(questions_of(options.folder))
    kept = kept_when_smaller(embedder.embed_passages(texts), asked)
    shown = ", ".join(f"{name} {share:.2%}" for name, share in kept.items())
    print(f"of the {NEAREST} nearest chunks stay, {len(asked)} questions: {shown}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
