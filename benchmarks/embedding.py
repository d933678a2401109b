"""`python -m benchmarks.embedding FOLDER`: embedding beside the bare runtime, and the cache.

FOLDER holds `corpora/*.md` and `questions_df.csv`, as Chroma's chunking_evaluation does. The same
texts go through the product's embedder and straight into onnxruntime, in turns, both with two
workers on two cores. Of each pair of turns the wall seconds are compared, since using the cores is
what is measured, and the median of many short pairs is told: other work of the machine meets both.
The vector cache is asked for as many keys as it is given, in CPU seconds. Last, what vectors stored
smaller than float32 cost: how many of the five chunks nearest to each question stay, and what an
index of made-up chunks takes on disk.
"""

import argparse
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from benchmarks.chunking import public_benchmark, read_questions
from benchmarks.search import INDEX, INT8, Corpus, build, closest
from chunking_assets.chunk_embeddings.int8 import as_int8
from chunking_assets.chunk_embeddings.lance_index import LanceIndex
from chunking_assets.chunk_sets.chunking import chunk
from chunking_assets.chunk_sets.recursive import RecursiveChunker
from chunking_assets.chunk_sets.spans import Document
from chunking_assets.embedding_models.e5_small import E5Small
from chunking_assets.embedding_models.onnx_embedder import OnnxEmbedder
from chunking_assets.embedding_models.vector_cache import VectorCache
from chunking_assets.parsed_elements.markdown import parse_text
from chunking_assets.retrieval.search import SearchArms
from chunking_assets.workspace import Workspace

TEXTS, WORKERS = 300, 2
ROUNDS, TEXTS_A_ROUND = 15, 40
MAX_TOKENS = 400
CACHED, DIMENSIONS = 100_000, 384
STORED = 20_000
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


def in_turns(calls: Sequence[Callable[[], object]], rounds: int = ROUNDS) -> np.ndarray:
    """Wall and CPU seconds of each call: (rounds, calls, 2). Who begins alternates, too."""
    spent = np.zeros((rounds, len(calls), 2))
    for number in range(rounds):
        for n in range(len(calls))[:: -1 if number % 2 else 1]:
            wall, cpu = time.perf_counter(), time.process_time()
            calls[n]()
            spent[number, n] = time.perf_counter() - wall, time.process_time() - cpu
    return spent


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
    half = passages.shape[1] // 2
    smaller = {
        "float16": nearest(passages.astype(np.float16).astype(np.float32), questions),
        "int8": nearest(as_int8(passages).astype(np.float32), questions),
        f"{half} dimensions": nearest(passages[:, :half], questions[:, :half]),
    }
    return {
        name: float(np.mean([np.isin(a, b).mean() for a, b in zip(found, exact, strict=True)]))
        for name, found in smaller.items()
    }


def as_stored(size: int = STORED) -> Iterator[str]:
    """What indexes of the same made-up chunks take, and how many of the nearest chunks stay."""
    corpus, exact = Corpus(size), None
    for name in (INDEX, f"{INDEX}+float16", INT8):
        with TemporaryDirectory() as folder:
            workspace = Workspace(Path(folder))
            build(workspace, corpus, name)
            index = LanceIndex(workspace, name)
            found = closest(SearchArms(index.open_served()), corpus.queries)
            exact = exact or found
            kept = np.mean([len(a & b) / len(b) for a, b in zip(found, exact, strict=True)])
            yield f"{name}: {index.disk_bytes() / size:,.0f} bytes a chunk, {kept:.2%} stay"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.embedding", description=__doc__)
    parser.add_argument("folder", type=public_benchmark)
    parser.add_argument("--models", type=Path, default=Path(".corpus/models"))
    options = parser.parse_args()
    texts = texts_of(options.folder, options.models)
    embedder = E5Small().embedder(options.models)
    assert isinstance(embedder, OnnxEmbedder)
    some = texts[:: -(-len(texts) // TEXTS_A_ROUND)]
    spent = in_turns([lambda: embedder.embed_passages(some), bare(embedder, some)])
    n_tokens = sum(embedder.count_tokens(some))
    wall, cpu = np.median(spent[:, 1] / spent[:, 0], axis=0)
    low, high = np.quantile(spent[:, 1, 0] / spent[:, 0, 0], [0.25, 0.75])
    print(f"{len(some)} chunks, {n_tokens:,} tokens, {WORKERS} workers, {ROUNDS} rounds in turns")
    print(
        f"product / bare runtime, throughput: {wall:.2f} (0.85 wanted), median of the rounds; "
        f"quartiles {low:.2f} and {high:.2f}; by CPU seconds {cpu:.2f}"
    )
    print(f"tokens a second: {n_tokens / np.median(spent[:, 0, 0]):,.0f}")
    stored, looked_up = cache_seconds(CACHED)
    print(f"vector cache, {CACHED:,} keys: found in {looked_up:.2f} CPU s, stored in {stored:.2f}")
    asked = embedder.embed_queries([q.text for q in read_questions(options.folder)])
    kept = kept_when_smaller(embedder.embed_passages(texts), asked)
    shown = ", ".join(f"{name} {share:.2%}" for name, share in kept.items())
    print(f"of the {NEAREST} nearest of {len(texts)} chunks stay, {len(asked)} questions: {shown}")
    print("\n".join(as_stored()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
