"""`python -m benchmarks.question_languages`: recall on the sample corpus by a question's language.

`heading` chunks of two sizes and the profile `multilingual` of corpus.yaml, with more and fewer
hits of other languages, found by the question's vector or by its words translated. Size and number
were chosen on the first half of the questions, halved as those of `benchmarks.retrieval` are. A
question is `foreign` if some of its evidence has to be read in another language than it is asked
in. Differences to English come with the 95 % interval of a bootstrap that draws the questions of
each language anew.
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

from benchmarks.chunking import MODEL, RESAMPLES, SEED
from benchmarks.retrieval import HALVES, half_of
from chunking_assets import config as configuration
from chunking_assets.chunk_embeddings.build import update_index
from chunking_assets.chunk_embeddings.version import IndexVersion
from chunking_assets.chunk_sets.build import update_chunk_sets
from chunking_assets.chunk_sets.heading import HeadingChunker
from chunking_assets.chunk_sets.version import ChunkerVersion
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
PROFILE = "multilingual"
Setting = tuple[int, int | None, bool]
"""Tokens of a chunk, `other_languages`, and `translate`."""

SETTINGS: tuple[Setting, ...] = (
    *((400, None, False), (400, 4, False), (400, 2, True), (400, 4, True)),
    *((200, None, False), (200, 6, False), (200, 4, True)),
)

Found = dict[Setting, np.ndarray]
"""By setting: recall (0 to 1) and context tokens by question, (questions, 2)."""


@dataclass(frozen=True)
class Asked:
    """A question with what it needs: `foreign` evidence is not in its language."""

    text: str
    language: str
    evidence: Sequence[Slot]
    foreign: bool


def index_versions(config: Config) -> dict[int, IndexVersion]:
    """By tokens of a chunk."""
    model = config.embedding_models[MODEL]
    return {
        tokens: IndexVersion(
            ChunkerVersion(
                f"heading-{tokens}@1",
                HeadingChunker(max_tokens=tokens),
                MODEL,
                model.tokenizer_fingerprint(),
            ),
            MODEL,
            model,
        )
        for tokens, *_ in SETTINGS
    }


def index(
    config: Config, workspace: Workspace, models: Models, versions: Iterable[IndexVersion]
) -> Gold:
    """The sample corpus under these versions, and its questions."""
    versions, shards = [*versions], config.shards()
    for shard, name in shards.items():
        update_documents(workspace, shard, name, config.collections[name], config.root)
        update_chunk_sets(workspace, shard, [v.chunker_version for v in versions], models)
    for version in versions:
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
    config: Config,
    workspace: Workspace,
    models: Models,
    versions: Mapping[int, IndexVersion],
    questions: Sequence[Asked],
) -> Found:
    profile, found = config.retrieval_profiles[PROFILE], {}
    for tokens, most, translate in SETTINGS:
        reader = open_index(
            workspace,
            versions[tokens].name,
            MODEL,
            versions[tokens].model,
            profile.model_copy(update={"other_languages": most, "translate": translate}),
            lambda: CachedQueries(models.embedder(MODEL), workspace.caches / VECTORS),
        )
        rows = []
        for question in questions:
            hits = reader.chosen(reader.rank(question.text))
            scores = score_question({"": spans_of(hits)}, question.evidence)
            rows.append((scores["recall", ""], scores["context_tokens", ""]))
        found[tokens, most, translate] = np.array(rows)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.question_languages", description=__doc__
    )
    parser.add_argument("--workspace", type=Path, default=Path(".corpus/benchmarks/languages"))
    workspace = Workspace(parser.parse_args().workspace)
    try:
        config = configuration.load(ROOT / "corpus.yaml")
        models = Models(config.embedding_models, workspace)
        versions = index_versions(config)
        questions = asked(index(config, workspace, models, versions.values()), workspace)
        _print(questions, measure(config, workspace, models, versions, questions))
    except CorpusError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


def difference(recall: np.ndarray, of_english: np.ndarray) -> tuple[float, float, float]:
    """How much higher the mean recall is than that of English questions, with its interval."""
    random = np.random.default_rng(SEED)
    drawn, drawn_english = (
        values[random.integers(0, len(values), (RESAMPLES, len(values)))].mean(axis=1)
        for values in (recall, of_english)
    )
    low, high = np.quantile(drawn - drawn_english, [0.025, 0.975])
    return float(recall.mean() - of_english.mean()), float(low), float(high)


def _print(questions: Sequence[Asked], settings: Found) -> None:
    groups: dict[tuple[str, str], list[int]] = defaultdict(list)
    for number, question in enumerate(questions):
        for name in ("all", HALVES[half_of(question.text)], _kind(question)):
            groups[question.language, name].append(number)
    table = Table(
        title="Recall, percent: tokens of a chunk, other_languages, translate", title_justify="left"
    )
    for column in ("questions", "n", *map(_name, settings)):
        left = column == "questions"
        table.add_column(column, justify="left" if left else "right", no_wrap=True)
    for (language, name), members in sorted(groups.items()):
        recall = [f"{100 * values[members, 0].mean():.1f}" for values in settings.values()]
        table.add_row(f"{language}, {name}", str(len(members)), *recall)
    table.add_section()
    for (language, name), members in sorted(groups.items()):
        if language == "en" or name not in ("all", *HALVES):
            continue
        differences = [
            difference(values[members, 0], values[groups["en", name], 0])
            for values in settings.values()
        ]
        cells = [f"{100 * d:+.1f} [{100 * lo:.0f}, {100 * hi:.0f}]" for d, lo, hi in differences]
        table.add_row(f"{language} less en, {name}", str(len(members)), *cells)
    table.add_section()
    tokens = [f"{values[:, 1].mean():.0f}" for values in settings.values()]
    table.add_row("context tokens", str(len(questions)), *tokens)
    console = Console()
    console.width = max(console.width, 160)
    console.print(table)


def _name(setting: Setting) -> str:
    tokens, most, translate = setting
    return f"{tokens}, {most or 0}" + ("\ntranslated" if translate else "")


def _kind(question: Asked) -> str:
    return "foreign evidence" if question.foreign else "own evidence"


if __name__ == "__main__":
    sys.exit(main())
