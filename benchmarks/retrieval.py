"""`python -m benchmarks.retrieval FOLDER`: our retrieval profiles on a public benchmark.

FOLDER is as `benchmarks.chunking` wants it. The questions are split in two halves by a hash of
their text. Every parameter of the profiles below was chosen on the first half (`--tune` shows what
there was to choose from and looks at no other); the second half was used for nothing but the
numbers this prints. Questions are answered by the product's own reader, from its own index.
"""

import argparse
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from rich.console import Console
from rich.progress import Progress as Bar
from rich.table import Table

from benchmarks.chunking import (
    COLLECTION,
    MODEL,
    PUBLISHED,
    Question,
    Run,
    Seconds,
    interval,
    public_benchmark,
    read_questions,
)
from chunking_assets import config as configuration
from chunking_assets.config import Config
from chunking_assets.embedding_models.vector_cache import VECTORS, CachedQueries
from chunking_assets.errors import CorpusError
from chunking_assets.retrieval.open import open_index
from chunking_assets.retrieval.profile import RetrievalProfile
from chunking_assets.retrieval.reader import Reader
from evals.retrieval_scores.build import spans_of
from evals.retrieval_scores.score import score_question

HALVES = ("chosen on", "held out")
WIDTH = 130

CHUNKERS: dict[str, dict[str, Any]] = {
    "recursive-100@1": {"kind": "recursive", "max_tokens": 100},
    "recursive-200@1": {"kind": "recursive", "max_tokens": 200},
    "tree-200@1": {"kind": "hierarchical", "sizes": [1600, 200]},
}

PROFILES: dict[str, tuple[str, dict[str, Any], str]] = {
    "default": (
        "recursive-200@1",
        {
            "search": "hybrid",
            "vector_weight": 0.3,
            "smooth": 0.2,
            "cut": 0.8,
            "expand": {"before": 2, "after": 2, "share": 0.6},
        },
        "recall 93 and precision 7.5 with five passages",
    ),
    "thorough": (
        "recursive-200@1",
        {
            "search": "hybrid",
            "vector_weight": 0.4,
            "smooth": 0.2,
            "cut": 0.7,
            "expand": {"before": 3, "after": 3, "share": 0.5},
        },
        "recall 96",
    ),
    "lean": (
        "recursive-100@1",
        {
            "search": "hybrid",
            "vector_weight": 0.4,
            "cut": 0.8,
            "expand": {"before": 3, "after": 3, "share": 0.5},
        },
        "recall 86 and precision 13",
    ),
    "five chunks": (
        "tree-200@1",
        {
            "search": "hybrid",
            "vector_weight": 0.4,
            "bm25": {"stem": True},
            "smooth": 0.1,
            "cut": 0.75,
            "trim": 0.7,
        },
        "recall 93 and precision 7.5 with five chunks",
    ),
}
"""Name -> chunker version, profile, and what it is to reach, in percent."""

GRID: dict[str, Sequence[Any]] = {
    "vector_weight": (0.3, 0.4, 0.5),
    "smooth": (None, 0.1, 0.2, 0.3),
    "stem": (False, True),
    "cut": (0.5, 0.6, 0.7, 0.75, 0.8),
    "share": (0.3, 0.5, 0.6),
    "reach": (1, 2, 3),
    "trim": (0.6, 0.65, 0.7, 0.75),
}


@dataclass(frozen=True)
class Scores:
    """Per question: recall and precision (0 to 1), and what the answer holds."""

    recall: np.ndarray
    precision: np.ndarray
    passages: np.ndarray
    chunks: np.ndarray
    tokens: np.ndarray


def half_of(question: str) -> int:
    """0: parameters are chosen on it. 1: held out.

    >>> half_of("What is a shard?"), half_of("What is a chunk?")
    (1, 0)
    """
    return int(sha256(question.encode()).hexdigest(), 16) % 2


def configure(folder: Path, workspace: Path) -> Config:
    """A configuration over the benchmark's corpora with every chunker version named above."""
    versions = sorted({version for version, _, _ in PROFILES.values()})
    content = {
        "workspace": str(workspace.absolute()),
        "collections": {COLLECTION: {"path": str((folder / "corpora").absolute())}},
        "embedding_models": {MODEL: {"kind": "e5-small"}},
        "chunkers": {version: CHUNKERS[version] for version in versions},
        "retrieval_profiles": {_name(n): profile for n, (_, profile, _) in PROFILES.items()},
        "strategies": {
            _name(name): {"chunker": version, "model": MODEL, "profile": _name(name)}
            for name, (version, _, _) in PROFILES.items()
        },
    }
    workspace.mkdir(parents=True, exist_ok=True)
    file = workspace / "corpus.yaml"
    file.write_text(yaml.safe_dump(content), encoding="utf-8")
    return configuration.load(file)


def _name(profile: str) -> str:
    return profile.replace(" ", "-")


def open_reader(run: Run, version: str, profile: RetrievalProfile) -> Reader:
    index = next(i for i in run.config.index_versions.values() if i.chunker_version.name == version)
    return open_index(
        run.workspace,
        index.name,
        MODEL,
        index.model,
        profile,
        lambda: CachedQueries(run.models.embedder(MODEL), run.workspace.caches / VECTORS),
    )


def score(reader: Reader, questions: Sequence[Question]) -> Scores:
    """What the reader hands on, scored as its chunks are: text handed on twice counts twice."""
    rows = []
    for question in questions:
        hits = reader.chosen(reader.rank(question.text))
        scores = score_question({"served": spans_of(hits)}, question.evidence)
        rows.append(
            (
                scores["recall", "served"],
                scores["precision", "served"],
                len(reader.passages(hits)),
                len(hits),
                scores["context_tokens", "served"],
            )
        )
    return Scores(*np.array(rows).T)


def tune(run: Run, questions: Sequence[Question]) -> Iterable[tuple[str, Scores]]:
    """Every setting of the grid on the half it may be chosen on."""
    for version in run.config.chunker_versions:
        settings = [*_last_steps(version)]
        for weight, smooth, stem in product(GRID["vector_weight"], GRID["smooth"], GRID["stem"]):
            base = {
                "search": "hybrid",
                "vector_weight": weight,
                "smooth": smooth,
                "bm25": {"stem": stem},
            }
            reach = max(GRID["reach"])
            ranker = open_reader(run, version, _profile(base, expand=_expand(reach, 0.5)))
            ranked = [ranker.rank(question.text) for question in questions]
            for steps in settings:
                reader = open_reader(run, version, _profile(base, **steps))
                rows = []
                for question, ranking in zip(questions, ranked, strict=True):
                    hits = reader.chosen(ranking)
                    scores = score_question({"": spans_of(hits)}, question.evidence)
                    tokens = scores["context_tokens", ""]
                    values = scores["recall", ""], scores["precision", ""], 0, len(hits), tokens
                    rows.append(values)
                yield f"{version} {base} {steps}", Scores(*np.array(rows).T)


def _last_steps(version: str) -> Iterable[dict[str, Any]]:
    """What is done with a ranking: its chunks trimmed where they have parents, else expanded."""
    if CHUNKERS[version]["kind"] == "hierarchical":
        for cut, trim in product(GRID["cut"], GRID["trim"]):
            yield {"cut": cut, "trim": trim}
        return
    for cut, share, reach in product(GRID["cut"], GRID["share"], GRID["reach"]):
        yield {"cut": cut, "expand": _expand(reach, share)}


def _expand(reach: int, share: float) -> dict[str, Any]:
    return {"before": reach, "after": reach, "share": share}


def _profile(base: dict[str, Any], **steps: Any) -> RetrievalProfile:
    return RetrievalProfile.model_validate({**base, **steps})


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.retrieval", description=__doc__)
    parser.add_argument("folder", type=public_benchmark)
    parser.add_argument("--workspace", type=Path, default=Path(".corpus/benchmarks/retrieval"))
    parser.add_argument("--tune", action="store_true", help="the grid, on the first half only")
    arguments = parser.parse_args()
    console = Console()
    console.width = max(console.width, WIDTH)
    questions = read_questions(arguments.folder)
    halves = [[q for q in questions if half_of(q.text) == half] for half in (0, 1)]
    try:
        config = configure(arguments.folder, arguments.workspace)
        with Bar(console=console, transient=True) as bar:
            run = Run(config, Seconds(), bar)
            run.index()
            if arguments.tune:
                _print_grid(console, tune(run, halves[0]))
                return 0
            readers = {
                name: open_reader(run, version, config.retrieval_profiles[_name(name)])
                for name, (version, _, _) in PROFILES.items()
            }
            scores = {n: [score(reader, half) for half in halves] for n, reader in readers.items()}
    except CorpusError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    _print(console, scores, [len(half) for half in halves])
    return 0


def _print_grid(console: Console, results: Iterable[tuple[str, Scores]]) -> None:
    """The settings that no other beats in both."""
    best = 0.0
    for name, found in sorted(results, key=lambda r: -r[1].recall.mean()):
        if found.precision.mean() > best:
            best = found.precision.mean()
            console.print(
                f"{100 * found.recall.mean():5.1f} {100 * best:6.2f}  {name}", highlight=False
            )


def _print(console: Console, scores: dict[str, list[Scores]], sizes: list[int]) -> None:
    table = Table(
        title=f"{sizes[0]} questions that parameters were chosen on, {sizes[1]} held out; percent",
        title_justify="left",
    )
    columns = (
        "half",
        "recall [95 %]",
        "precision [95 %]",
        "passages",
        "most",
        "chunks",
        "most",
        "tokens",
    )
    table.add_column("profile", no_wrap=True)
    for column in columns:
        table.add_column(column, justify="right", no_wrap=True)
    for name, halves in scores.items():
        for half, found in zip(HALVES, halves, strict=True):
            table.add_row(
                name if half == HALVES[0] else "",
                half,
                _with_interval(found.recall),
                _with_interval(found.precision),
                f"{found.passages.mean():.1f}",
                f"{found.passages.max():.0f}",
                f"{found.chunks.mean():.1f}",
                f"{found.chunks.max():.0f}",
                f"{found.tokens.mean():.0f}",
            )
        table.add_section()
    for name, recall, precision in PUBLISHED:
        table.add_row(
            f"published: {name}",
            "all",
            f"{recall:.1f}",
            "" if precision is None else f"{precision:.1f}",
            "5",
            "5",
            "5",
            "5",
        )
    console.print(table)
    for name, (version, _, wanted) in PROFILES.items():
        console.print(f"{name}: {version}; to reach: {wanted}", highlight=False)
    console.print(
        "Passages are what is handed on: chunks that follow each other are one. Tokens are those "
        "of e5-small, about a fifth more than of cl100k.",
        highlight=False,
    )


def _with_interval(values: np.ndarray) -> str:
    low, high = interval(values)
    return f"{100 * values.mean():.1f} [{100 * low:.1f}, {100 * high:.1f}]"


if __name__ == "__main__":
    sys.exit(main())
