"""`python -m benchmarks.question_languages`: recall on the sample corpus by a question's language.

The chunks and the profile of the strategy `heading-400-multilingual`, with more and fewer hits of
other languages. How many was chosen on the first half of the questions, halved as those of
`benchmarks.retrieval` are. A question is `foreign` if some of its evidence has to be read in
another language than it is asked in.
"""

import argparse
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.chunking import MODEL
from benchmarks.retrieval import HALVES, half_of
from chunking_assets import config as configuration
from chunking_assets.chunk_embeddings.build import update_index
from chunking_assets.chunk_sets.build import update_chunk_sets
from chunking_assets.config import Config
from chunking_assets.embedding_models.loaded import Models
from chunking_assets.embedding_models.vector_cache import VECTORS, CachedQueries
from chunking_assets.errors import CorpusError
from chunking_assets.parsed_elements.build import update_documents
from chunking_assets.retrieval.open import open_index
from chunking_assets.retrieval.other_languages import Languages
from chunking_assets.workspace import Workspace
from evals.gold_questions.build import Gold, read_gold, update_gold_questions
from evals.retrieval_scores.build import spans_of
from evals.retrieval_scores.score import evidence_by_question, score_question
from evals.retrieval_scores.spans import AnyOf, Slot

ROOT = Path(__file__).parents[1]
STRATEGY = "heading-400-multilingual"
OTHER_LANGUAGES = (None, 1, 2, 3)


@dataclass(frozen=True)
class Asked:
    """A question with what it needs: `foreign` evidence is not in its language."""

    text: str
    language: str
    evidence: Sequence[Slot]
    foreign: bool


def index(config: Config, workspace: Workspace, models: Models) -> Gold:
    """The sample corpus under the strategy's chunker version, and its questions."""
    version = config.strategies[STRATEGY].index
    shards = config.shards()
    for shard, name in shards.items():
        update_documents(workspace, shard, name, config.collections[name], config.root)
        update_chunk_sets(workspace, shard, [version.chunker_version], models)
    update_index(workspace, version, list(shards), models.embedder)
    update_gold_questions(workspace, config.question_files(), config.root, list(shards))
    return read_gold(workspace)


def asked(gold: Gold, workspace: Workspace) -> list[Asked]:
    languages = Languages(workspace).by_document
    evidence = evidence_by_question(gold.evidence)
    rows = gold.questions.filter(gold.questions["status"] == "active")
    return [
        Asked(
            text,
            language,
            evidence[question],
            any(not _in_language(slot, language, languages) for slot in evidence[question]),
        )
        for question, text, language in rows.select(
            "question_id", "question", "language"
        ).iter_rows()
    ]


def _in_language(slot: Slot, language: str, languages: Mapping[str, str]) -> bool:
    """Source code is in no language and counts as English, as its comments are."""
    ways = slot.alternatives if isinstance(slot, AnyOf) else [slot]
    return any(languages.get(span.doc_id, "en") == language for way in ways for span in way)


def measure(
    config: Config, workspace: Workspace, models: Models, questions: Sequence[Asked]
) -> Iterable[tuple[int | None, np.ndarray]]:
    """Of each setting: recall (0 to 1) and context tokens by question, (questions, 2)."""
    strategy = config.strategies[STRATEGY]
    for most in OTHER_LANGUAGES:
        reader = open_index(
            workspace,
            strategy.index.name,
            MODEL,
            strategy.index.model,
            strategy.profile.model_copy(update={"other_languages": most}),
            lambda: CachedQueries(models.embedder(MODEL), workspace.caches / VECTORS),
        )
        rows = []
        for question in questions:
            hits = reader.chosen(reader.rank(question.text))
            scores = score_question({"": spans_of(hits)}, question.evidence)
            rows.append((scores["recall", ""], scores["context_tokens", ""]))
        yield most, np.array(rows)


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.question_languages", description=__doc__
    )
    parser.add_argument("--workspace", type=Path, default=Path(".corpus/benchmarks/languages"))
    workspace = Workspace(parser.parse_args().workspace)
    try:
        config = configuration.load(ROOT / "corpus.yaml")
        models = Models(config.embedding_models, workspace)
        questions = asked(index(config, workspace, models), workspace)
        _print(questions, measure(config, workspace, models, questions))
    except CorpusError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


def _print(questions: Sequence[Asked], found: Iterable[tuple[int | None, np.ndarray]]) -> None:
    groups: dict[str, list[int]] = defaultdict(list)
    for number, question in enumerate(questions):
        for name in ("all", HALVES[half_of(question.text)], _kind(question)):
            groups[f"{question.language}, {name}"].append(number)
    settings = dict(found)
    table = Table(title=f"{STRATEGY}: recall, percent, by other_languages", title_justify="left")
    for column in ("questions", "n", *map(str, settings)):
        table.add_column(column, justify="left" if column == "questions" else "right")
    for name, members in sorted(groups.items()):
        recall = [f"{100 * values[members, 0].mean():.1f}" for values in settings.values()]
        table.add_row(name, str(len(members)), *recall)
    table.add_section()
    tokens = [f"{values[:, 1].mean():.0f}" for values in settings.values()]
    table.add_row("context tokens", str(len(questions)), *tokens)
    Console().print(table)


def _kind(question: Asked) -> str:
    return "foreign evidence" if question.foreign else "own evidence"


if __name__ == "__main__":
    sys.exit(main())
