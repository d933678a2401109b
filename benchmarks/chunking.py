"""`python -m benchmarks.chunking FOLDER`: our strategies on a public chunking benchmark.

FOLDER has the layout of Chroma's chunking_evaluation: `corpora/*.md` and `questions_df.csv` with
gold excerpts by offset. The product's own stages, index, retrieval and scorer do the work; the
published rows stand beside ours, scored with the published tool's convention where they are
compared (it counts ranges that merely touch as overlapping; ours are half-open).
"""

import argparse
import json
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import yaml
from rich.console import Console
from rich.progress import Progress as Bar
from rich.table import Table

from chunking_assets import config as configuration
from chunking_assets.chunk_embeddings.build import update_index
from chunking_assets.chunk_embeddings.version import IndexVersion
from chunking_assets.chunk_sets.build import CHUNKS, cell, update_chunk_sets
from chunking_assets.config import Config
from chunking_assets.embedding_models.loaded import Models
from chunking_assets.errors import CorpusError
from chunking_assets.parsed_elements.build import update_documents
from chunking_assets.retrieval.open import open_strategy
from chunking_assets.retrieval.strategy import Strategy
from chunking_assets.workspace import Workspace
from evals.retrieval_scores.build import hits_within, spans_of
from evals.retrieval_scores.published import precision_omega
from evals.retrieval_scores.score import score_question
from evals.retrieval_scores.spans import Convention, Passage, Span

COLLECTION = "corpora"
RESAMPLES, SEED = 10_000, 20_260_101
LEAST_WIDTH = 120
MODEL = "e5-small"
CONVENTIONS: tuple[Convention, ...] = ("half-open", "touching")

PUBLISHED = [
    ("token splitter", 86.7, None),
    ("recursive 200/0", 88.5, 7.0),
    ("cluster 200", 89.0, 6.7),
    ("LLM", 91.7, 3.9),
]
"""Recall and precision in percent with text-embedding-3-large, 5 chunks retrieved: Smith and
Troynikov, "Evaluating Chunking Strategies for Retrieval", Chroma, 2024."""

CONFIGURATION: dict[str, dict[str, dict[str, Any]]] = {
    "embedding_models": {MODEL: {"kind": "e5-small"}},
    "chunkers": {
        "fixed-200@1": {"kind": "fixed", "max_tokens": 200},
        "recursive-200@1": {"kind": "recursive", "max_tokens": 200},
        "recursive-400@1": {"kind": "recursive", "max_tokens": 400},
        "heading-400@1": {"kind": "heading", "max_tokens": 400},
    },
    "retrieval_profiles": {
        "vector": {"search": "vector", "k": 5, "merge": False},
        "bm25": {"search": "bm25", "k": 5, "merge": False},
        "hybrid": {"search": "hybrid", "k": 5, "merge": False},
        "lean": {"search": "hybrid", "k": 5, "cut": 0.7},
    },
}


@dataclass(frozen=True)
class Question:
    """A question and its gold excerpts: spans of one corpus, each with one occurrence."""

    text: str
    evidence: list[list[Span]]


@dataclass
class Seconds:
    """Wall time by stage."""

    by_stage: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        started = time.monotonic()
        yield
        self.by_stage[name] = self.by_stage.get(name, 0) + time.monotonic() - started


def public_benchmark(folder: str) -> Path:
    """The folder named on a command line, if it has the layout told above.

    Raises:
        ArgumentTypeError: it has another.
    """
    found = Path(folder)
    if not (found / "questions_df.csv").is_file():
        raise argparse.ArgumentTypeError(f"{found} has no questions_df.csv")
    return found


def read_questions(folder: Path) -> list[Question]:
    """The benchmark's questions, offsets as code points of the corpus files."""
    rows = pl.read_csv(folder / "questions_df.csv").iter_rows(named=True)
    return [
        Question(
            row["question"],
            [
                [Span(f"{COLLECTION}/{row['corpus_id']}.md", r["start_index"], r["end_index"])]
                for r in json.loads(row["references"])
            ],
        )
        for row in rows
    ]


def configure(folder: Path, workspace: Path, chunkers: Sequence[str]) -> Config:
    """A configuration over the benchmark's corpora: every chunker with every profile."""
    chosen = {n: c for n, c in CONFIGURATION["chunkers"].items() if not chunkers or n in chunkers}
    content = {
        **CONFIGURATION,
        "workspace": str(workspace.absolute()),
        "chunkers": chosen,
        "collections": {COLLECTION: {"path": str((folder / "corpora").absolute())}},
        "strategies": {
            f"{chunker.partition('@')[0]}-{profile}": {
                "chunker": chunker,
                "model": MODEL,
                "profile": profile,
            }
            for chunker in chosen
            for profile in CONFIGURATION["retrieval_profiles"]
        },
    }
    workspace.mkdir(parents=True, exist_ok=True)
    file = workspace / "corpus.yaml"
    file.write_text(yaml.safe_dump(content), encoding="utf-8")
    return configuration.load(file)


class Run:
    """The corpora indexed under every chunker, ready to be asked."""

    def __init__(self, config: Config, seconds: Seconds, bar: Bar) -> None:
        self.config, self.workspace = config, Workspace(config.home)
        self.seconds, self.bar = seconds, bar
        self.models = Models(config.embedding_models, self.workspace)

    def index(self) -> None:
        config, collection = self.config, self.config.collections[COLLECTION]
        with self.seconds.stage("load the model"):
            self.models.tokenizer(MODEL)
            self.models.embedder(MODEL)
        with self.seconds.stage("parse"):
            update_documents(self.workspace, COLLECTION, COLLECTION, collection, config.root)
        for version in config.chunker_versions.values():
            with self.seconds.stage(f"chunk {version.name}"):
                update_chunk_sets(self.workspace, COLLECTION, [version], self.models)
            for index in config.indexes_of(version.name):
                self._embed(index)

    def _embed(self, index: IndexVersion) -> None:
        task = self.bar.add_task(f"embed {index.name}")

        def progress(done: int, total: int, tokens: int) -> None:
            self.bar.update(task, completed=done, total=total)

        with self.seconds.stage(f"embed {index.name}"):
            update_index(self.workspace, index, [COLLECTION], self.models.embedder, progress)
        self.bar.remove_task(task)

    def chunks(self, version: str) -> pl.DataFrame:
        found = self.workspace.table(CHUNKS).read(cell(version, COLLECTION))
        assert found is not None
        return found

    def ask(
        self, strategy: Strategy, questions: Sequence[Question], convention: Convention
    ) -> dict[str, np.ndarray]:
        """Each metric at the profile's own limits, per question."""
        reader = open_strategy(self.workspace, strategy, lambda: self.models.embedder(MODEL))
        task = self.bar.add_task(f"ask {strategy.name}", total=len(questions))
        values: dict[str, list[float]] = {}
        with self.seconds.stage(f"ask {strategy.name}"):
            for question in questions:
                hits = hits_within(reader, reader.rank(question.text), "served")
                scores = score_question({"served": spans_of(hits)}, question.evidence, convention)
                for (metric, _), value in scores.items():
                    values.setdefault(metric, []).append(value)
                self.bar.advance(task)
        self.bar.remove_task(task)
        return {metric: np.asarray(v) for metric, v in values.items()}


def precision_omegas(
    chunks: pl.DataFrame, questions: Sequence[Question], convention: Convention
) -> float:
    """Mean of the best precision a perfect retriever could reach with these chunks, 0 to 1."""
    spans: dict[str, list[Passage]] = {}
    for doc_id, start, end in chunks.select("doc_id", "start", "end").iter_rows():
        spans.setdefault(doc_id, []).append(Passage(doc_id, start, end, 0))
    best = [
        precision_omega(
            [s for doc_id in {e[0].doc_id for e in q.evidence} for s in spans.get(doc_id, [])],
            q.evidence,
            convention,
        )
        for q in questions
    ]
    return sum(best) / len(best)


def interval(values: np.ndarray) -> tuple[float, float]:
    """95 % percentile bootstrap interval of the mean over questions."""
    rng = np.random.default_rng(SEED)
    means = np.array(
        [values[rng.integers(0, len(values), len(values))].mean() for _ in range(RESAMPLES)]
    )
    low, high = np.quantile(means, [0.025, 0.975])
    return float(low), float(high)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.chunking", description=__doc__)
    parser.add_argument("folder", type=public_benchmark)
    parser.add_argument("--workspace", type=Path, default=Path(".corpus/benchmarks/chunking"))
    parser.add_argument("--chunker", action="append", default=[], help="only this one; repeatable")
    parser.add_argument("--limit", type=int, help="only the first questions, for a quick look")
    parser.add_argument(
        "--convention",
        choices=CONVENTIONS,
        default="half-open",
        help="touching: as the published tool counts",
    )
    arguments = parser.parse_args()
    console, seconds = Console(), Seconds()
    console.width = max(console.width, LEAST_WIDTH)
    try:
        config = configure(arguments.folder, arguments.workspace, arguments.chunker)
        questions = read_questions(arguments.folder)[: arguments.limit]
        with Bar(console=console, transient=True) as bar:
            run = Run(config, seconds, bar)
            run.index()
            scores = {
                name: run.ask(strategy, questions, arguments.convention)
                for name, strategy in config.strategies.items()
            }
    except CorpusError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    _print_strategies(console, run, scores, len(questions), arguments.convention)
    _print_chunk_sets(console, run, questions)
    for stage, spent in seconds.by_stage.items():
        console.print(f"{spent:8.1f} s  {stage}", highlight=False)
    return 0


def _print_strategies(
    console: Console,
    run: Run,
    scores: dict[str, dict[str, np.ndarray]],
    n_questions: int,
    convention: Convention,
) -> None:
    table = Table(
        title=f"{n_questions} questions, at most 5 chunks, {convention} spans, percent",
        title_justify="left",
    )
    columns = "recall [95 %]", "precision [95 %]", "IoU", "chunks", "tokens/chunk", "context"
    table.add_column("strategy", no_wrap=True)
    for column in columns:
        table.add_column(column, justify="right", no_wrap=True)
    for name, metrics in scores.items():
        version = run.config.strategies[name].index.chunker_version.name
        chunks = run.chunks(version)
        table.add_row(
            name,
            _with_interval(metrics["recall"]),
            _with_interval(metrics["precision"]),
            f"{100 * metrics['iou'].mean():.1f}",
            f"{chunks.height}",
            f"{sum(chunks['n_tokens']) / max(1, chunks.height):.0f}",
            f"{metrics['context_tokens'].mean():.0f}",
        )
    table.add_section()
    for name, recall, precision in PUBLISHED:
        table.add_row(
            f"published: {name}", f"{recall:.1f}", "" if precision is None else f"{precision:.1f}"
        )
    console.print(table)
    console.print(
        "Budgets and context in tokens of e5-small; the published budgets are in tokens of "
        "cl100k, of which English text has about a fifth fewer.",
        highlight=False,
    )


def _print_chunk_sets(console: Console, run: Run, questions: Sequence[Question]) -> None:
    """The best precision the chunks allow; the conventions differ here and in no score above."""
    table = Table(title="Precision a perfect retriever could reach, percent", title_justify="left")
    table.add_column("chunker version", no_wrap=True)
    for convention in CONVENTIONS:
        table.add_column(convention, justify="right")
    for version in run.config.chunker_versions:
        chunks = run.chunks(version)
        best = [precision_omegas(chunks, questions, convention) for convention in CONVENTIONS]
        table.add_row(version, *(f"{100 * value:.1f}" for value in best))
    console.print(table)


def _with_interval(values: np.ndarray) -> str:
    low, high = interval(values)
    return f"{100 * values.mean():.1f} [{100 * low:.1f}, {100 * high:.1f}]"


if __name__ == "__main__":
    sys.exit(main())
