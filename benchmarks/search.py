"""`python -m benchmarks.search`: what a question costs, beside a bare LanceDB query.

A table of made-up chunks: vectors around common centres, as those of texts on common subjects are,
and words as frequent as words are. Printed are ratios within one run, since seconds are of the
machine: a hybrid question through the reader to a bare hybrid query, exact vectors to the ANN index
at growing sizes (where that pays is `ann.ANN_FROM`), and how much of the exact result that finds.
Some documents are said to be in other languages, so few that a profile with `other_languages` has
to ask for them at nearly every question: what that costs at most. `--precision float16` asks the
same of vectors stored so; those stored as int8, which need no index, stand beside them. `--parents`
puts parents of ten chunks in the table, and trims them.
"""

import argparse
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from chunking_assets.chunk_embeddings import ann
from chunking_assets.chunk_embeddings.lance_index import LanceIndex
from chunking_assets.embedding_models.model import ModelIdentity, Progress
from chunking_assets.parsed_elements.reuse import DOCUMENTS
from chunking_assets.retrieval.profile import RetrievalProfile
from chunking_assets.retrieval.reader import Reader
from chunking_assets.retrieval.search import Question, SearchArms
from chunking_assets.workspace import Workspace

DIMENSIONS, VOCABULARY, WORDS, SUBJECTS = 384, 60_000, 100, 2_000
CHUNKS_PER_DOCUMENT = 50
SIZES = (5_000, 20_000, 50_000, 100_000)
QUESTIONS, CLOSEST = 200, 10
INDEX = "made-up-100@1+made-up"
INT8 = f"{INDEX}+int8"
LANGUAGES = ("pt", "fr", *["en"] * 18)
"""Of every twenty documents, in turn."""
CHILDREN = 10
"""Chunks in one parent, where there are parents."""
SEED = 20_260_101

PROFILES = {
    "hybrid": RetrievalProfile(search="hybrid"),
    "hybrid, other languages": RetrievalProfile(search="hybrid", other_languages=20),
    "hybrid, smoothed and expanded": RetrievalProfile.model_validate(
        {"search": "hybrid", "smooth": 0.2, "cut": 0.8}
        | {"expand": {"before": 2, "after": 2, "share": 0.6}}
    ),
    "hybrid, smoothed and trimmed": RetrievalProfile.model_validate(
        {"search": "hybrid", "vector_weight": 0.4, "bm25": {"stem": True}}
        | {"smooth": 0.1, "cut": 0.75, "trim": 0.7}
    ),
}
"""The last only where there are parents."""


class Given:
    """An embedder that knows the questions' vectors beforehand: what is measured is search."""

    identity = ModelIdentity("made-up", "1", DIMENSIONS, 512, "", "", "mean", normalised=True)

    def __init__(self, vectors: dict[str, np.ndarray]) -> None:
        self._vectors = vectors

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        return [WORDS] * len(texts)

    def embed_passages(self, texts: Sequence[str], progress: Progress | None = None) -> np.ndarray:
        raise NotImplementedError

    def embed_queries(self, texts: Sequence[str]) -> np.ndarray:
        return np.array([self._vectors[text] for text in texts])


class Corpus:
    """`size` chunks and the questions asked of them."""

    def __init__(self, size: int, *, parents: bool = False) -> None:
        rng = np.random.default_rng(SEED)
        self.size, self.parents = size, parents
        centres = rng.normal(size=(SUBJECTS, DIMENSIONS)).astype(np.float32)
        subject = rng.integers(0, SUBJECTS, size)
        self.vectors = _unit(centres[subject] + _noise(rng, size))
        frequency = 1 / np.arange(1, VOCABULARY + 1)
        ids = rng.choice(VOCABULARY, (size, WORDS), p=frequency / frequency.sum())
        self.texts = [" ".join(f"w{word}" for word in row) for row in ids.tolist()]
        asked = rng.integers(0, size, QUESTIONS)
        words = [rng.choice(ids[row], 10, replace=False) for row in asked]
        listed = [" ".join(f"w{word}" for word in row) for row in words]
        self.questions = [f"what is said of {these} and where is it" for these in listed]
        self.queries = _unit(self.vectors[asked] + 0.5 * _noise(rng, QUESTIONS) / DIMENSIONS**0.5)

    def rows(self, first: int, last: int) -> pa.Table:
        numbers = range(first, last)
        documents = [f"made-up/{n // CHUNKS_PER_DOCUMENT}.md" for n in numbers]
        places = [n % CHUNKS_PER_DOCUMENT for n in numbers]
        ordinals = [n + n // CHILDREN + 1 for n in places] if self.parents else places
        parents = [f"parent {n // CHILDREN:08}" if self.parents else None for n in numbers]
        texts = self.texts[first:last]
        flat = pa.array(self.vectors[first:last].reshape(-1))
        rows = pa.table(
            {
                "chunk_id": [f"{n:08}" for n in numbers],
                "shard": ["made-up"] * len(texts),
                "doc_id": documents,
                "ordinal": ordinals,
                "start": [1000 * n for n in places],
                "end": [1000 * n + len(t) for n, t in zip(places, texts, strict=True)],
                "prefix": [""] * len(texts),
                "text": texts,
                "embed_text": texts,
                "heading_path": pa.array([[]] * len(texts), pa.list_(pa.string())),
                "level": [0] * len(texts),
                "parent_id": pa.array(parents, pa.string()),
                "searched": [True] * len(texts),
                "n_tokens": [WORDS] * len(texts),
                "vec_key": [f"{n:08}" for n in numbers],
                "vector": pa.FixedSizeListArray.from_arrays(flat, DIMENSIONS),
            }
        )
        return pa.concat_tables([rows, *_parents(rows)]) if self.parents else rows


def _parents(rows: pa.Table) -> Iterator[pa.Table]:
    for first in range(0, rows.num_rows, CHILDREN):
        children = rows.slice(first, CHILDREN).to_pylist()
        text = "\n".join(child["text"] for child in children)
        parent = {
            "chunk_id": children[0]["parent_id"],
            "ordinal": children[0]["ordinal"] - 1,
            "end": children[-1]["end"],
            "text": text,
            "embed_text": text,
            "level": 1,
            "searched": False,
            "n_tokens": WORDS * len(children),
        }
        unsearched = {"parent_id": None, "vec_key": None, "vector": None}
        yield pa.Table.from_pylist([children[0] | parent | unsearched], schema=rows.schema)


def _noise(rng: np.random.Generator, size: int) -> np.ndarray:
    return rng.normal(size=(size, DIMENSIONS)).astype(np.float32)


def _unit(vectors: np.ndarray) -> np.ndarray:
    unit: np.ndarray = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return unit.astype(np.float32)


def build(workspace: Workspace, corpus: Corpus, name: str = INDEX) -> None:
    """The table without an ANN index, published."""
    ann.ANN_FROM = sys.maxsize
    index = LanceIndex(workspace, name, DIMENSIONS)
    step = 10_000
    for first in range(0, corpus.size, step):
        last = min(corpus.size, first + step)
        rows = corpus.rows(first, last)
        index.replace_documents(rows, "made-up", sorted({*rows["doc_id"].to_pylist()}))
    index.publish()
    paths = [f"made-up/{n}.md" for n in range(-(-corpus.size // CHUNKS_PER_DOCUMENT))]
    languages = [LANGUAGES[n % len(LANGUAGES)] for n in range(len(paths))]
    documents = pl.DataFrame({"doc_id": paths, "language": languages})
    workspace.table(DOCUMENTS).replace(documents, "made-up", version="made up")


def milliseconds(ways: Sequence[Callable[[int], object]]) -> list[np.ndarray]:
    """Of each way to ask and question, in turns: whatever else the machine does is shared."""
    spent = np.zeros((len(ways), QUESTIONS))
    for number in range(-5, QUESTIONS):  # a few to warm up
        for way, ask in enumerate(ways):
            started = time.perf_counter()
            ask(number)
            spent[way, max(0, number)] = 1000 * (time.perf_counter() - started)
    return [*spent]


def closest(arms: SearchArms, queries: np.ndarray) -> list[set[str]]:
    hits = [arms.vector(Question(query, None), CLOSEST) for query in queries]
    return [{hit.chunk_id for hit in found} for found in hits]


def _nearest(arms: SearchArms, corpus: Corpus, number: int) -> object:
    return arms.vector(Question(corpus.queries[number], None), 100)


def _recall(found: Sequence[set[str]], exact: Sequence[set[str]]) -> float:
    return float(np.mean([len(a & b) / len(b) for a, b in zip(found, exact, strict=True)]))


def bare_hybrid(table: Any, corpus: Corpus) -> Callable[[int], object]:
    """LanceDB's own hybrid search, as its documentation has it: ten rows, its default reranker."""
    from lancedb.rerankers import RRFReranker

    reranker = RRFReranker()

    def ask(number: int) -> object:
        search = table.search(query_type="hybrid", vector_column_name="vector")
        search = search.vector(corpus.queries[number]).text(corpus.questions[number])
        return search.rerank(reranker).limit(10).to_arrow()

    return ask


def measure(size: int, name: str, *, whole: bool, parents: bool) -> None:
    corpus = Corpus(size, parents=parents)
    with TemporaryDirectory() as folder:
        workspace = Workspace(Path(folder))
        build(workspace, corpus, name)
        build(workspace, corpus, INT8)
        int8_arms = SearchArms(LanceIndex(workspace, INT8).open_served())
        table = LanceIndex(workspace, name).open_served()
        exact_arms = SearchArms(table)
        exact = closest(exact_arms, corpus.queries)
        newest: Any = LanceIndex(workspace, name, DIMENSIONS)._open()
        started = time.process_time()
        ann.create_ann_index(newest, 1)
        building = time.process_time() - started
        every = exact_arms, SearchArms(newest), int8_arms
        of_exact, of_ann, of_int8 = milliseconds([partial(_nearest, a, corpus) for a in every])
        found, found_int8 = (closest(arms, corpus.queries) for arms in every[1:])
        print(
            f"{size:>8,} chunks: exact / ANN "
            f"median {np.median(of_exact) / np.median(of_ann):.2f}, "
            f"p95 {_p95(of_exact) / _p95(of_ann):.2f}; ANN recall@{CLOSEST} "
            f"{_recall(found, exact):.4f}; "
            f"built in {building:.0f} CPU seconds (exact {np.median(of_exact):.1f} ms)\n"
            f"{'int8 / ANN':>24} median {np.median(of_int8) / np.median(of_ann):.2f}, "
            f"p95 {_p95(of_int8) / _p95(of_ann):.2f}; "
            f"recall@{CLOSEST} {_recall(found_int8, exact):.4f}"
        )
        if whole:
            newest.tags.update("served", newest.version)
            _measure_reader(workspace, newest, corpus, name)


def _measure_reader(workspace: Workspace, table: Any, corpus: Corpus, name: str) -> None:
    vectors = dict(zip(corpus.questions, corpus.queries, strict=True))
    profiles = {n: p for n, p in PROFILES.items() if corpus.parents or p.trim is None}
    readers = [Reader(workspace, name, p, lambda: Given(vectors)) for p in profiles.values()]
    readers.append(Reader(workspace, INT8, PROFILES["hybrid"], lambda: Given(vectors)))
    ways = [partial(_ask, reader, corpus) for reader in readers]
    bare, *ours = milliseconds([bare_hybrid(table, corpus), *ways])
    print(f"bare LanceDB hybrid query: median {np.median(bare):.1f} ms, p95 {_p95(bare):.1f} ms")
    for profile, spent in zip(
        [*(f"{p}, ANN" for p in profiles), "hybrid, int8"], ours, strict=True
    ):
        print(
            f"{profile}: {np.median(spent) / np.median(bare):.2f} of its median, "
            f"{_p95(spent) / _p95(bare):.2f} of its p95 ({_p95(spent):.1f} ms)"
        )


def _ask(reader: Reader, corpus: Corpus, number: int) -> object:
    return reader.search(corpus.questions[number])


def _p95(values: np.ndarray) -> float:
    return float(np.quantile(values, 0.95))


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.search", description=__doc__)
    parser.add_argument("--size", type=int, action="append", help=f"chunks; default {SIZES}")
    parser.add_argument("--precision", choices=["float32", "float16"], default="float32")
    parser.add_argument("--parents", action="store_true")
    options = parser.parse_args()
    name = INDEX if options.precision == "float32" else f"{INDEX}+{options.precision}"
    sizes = options.size or [*SIZES]
    for size in sizes:
        measure(size, name, whole=size == max(sizes), parents=options.parents)
    return 0


if __name__ == "__main__":
    sys.exit(main())
