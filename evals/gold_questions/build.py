"""Locate the gold questions' evidence in the documents as they are now."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from chunking_assets.errors import CorpusError
from chunking_assets.keys import digest
from chunking_assets.parsed_elements.build import DOCUMENTS
from chunking_assets.workspace import Workspace
from evals.gold_questions.load import load_questions
from evals.gold_questions.resolve import golden_version, resolve

GOLD_QUESTIONS, GOLD_EVIDENCE = "gold_questions", "gold_evidence"


@dataclass(frozen=True)
class GoldUpdate:
    """How many questions can be scored, and which cannot (with the reason)."""

    version: str
    total: int
    active: int
    unanswerable: int
    stale: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Gold:
    """The questions and their evidence as they were resolved together.

    `version` is that of what is scored: equal, and scores compare. `content` changes with every
    word of the files, a tag or an unanswerable question included.
    """

    questions: pl.DataFrame
    evidence: pl.DataFrame
    version: str
    content: str


def update_gold_questions(
    workspace: Workspace, question_files: Sequence[Path], root: Path, shards: Sequence[str]
) -> GoldUpdate:
    """Read the files, locate every quote, and replace both tables if anything moved.

    Files are named relative to `root`. `version` is that of the active questions and their spans:
    scores made under two versions are not comparable.

    Raises:
        CorpusError: a question file says something that cannot be meant.
    """
    documents = workspace.table(DOCUMENTS).read_all(shards, ["doc_id", "text", "status"])
    if documents is None:
        raise CorpusError("no shard has been parsed yet. Build parsed_elements first.")
    questions, evidence = resolve(load_questions(question_files, root), documents)
    version = golden_version(questions, evidence)
    content = digest("gold", questions.write_json(), evidence.write_json())
    for name, rows in ((GOLD_EVIDENCE, evidence), (GOLD_QUESTIONS, questions)):
        table = workspace.table(name)
        manifest = table.manifest()
        if manifest is None or manifest.details.get("content") != content:
            details = {"content": content, "golden_version": version}
            table.replace(rows, version=content, details=details)
    stale = questions.filter(pl.col("status") == "stale").select("question_id", "reason")
    return GoldUpdate(
        version=version,
        total=questions.height,
        active=questions.filter(pl.col("status") == "active").height,
        unanswerable=questions.filter(pl.col("status") == "unanswerable").height,
        stale=tuple(stale.iter_rows()),
    )


def read_gold(workspace: Workspace) -> Gold:
    """The gold questions last resolved.

    Raises:
        CorpusError: there are none, or an update was interrupted between the two tables.
    """
    tables = [workspace.table(name) for name in (GOLD_QUESTIONS, GOLD_EVIDENCE)]
    manifests = [table.manifest() for table in tables]
    questions, evidence = (table.read() for table in tables)
    if questions is None or evidence is None or manifests[0] is None or manifests[1] is None:
        raise CorpusError("the gold questions were not resolved yet. Build gold_questions first.")
    if manifests[0].version != manifests[1].version:
        raise CorpusError(
            "the gold questions and their evidence differ (an update was interrupted). "
            "Build gold_questions again."
        )
    version = str(manifests[0].details["golden_version"])
    return Gold(questions, evidence, version, manifests[0].version)
