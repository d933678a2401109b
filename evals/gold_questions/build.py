"""Locate the gold questions' evidence in the documents as they are now."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from chunking_assets.errors import CorpusError
from chunking_assets.keys import digest
from chunking_assets.parsed_elements.build import DOCUMENTS
from chunking_assets.workspace import Manifest, Workspace
from evals.gold_questions.load import load_questions
from evals.gold_questions.resolve import golden_version, resolve, scored_content

GOLD_QUESTIONS, GOLD_EVIDENCE = "gold_questions", "gold_evidence"


@dataclass(frozen=True, slots=True)
class LostQuote:
    """A quote its document no longer says; `diff` is what its passage has become, if known."""

    question_id: str
    doc_id: str
    quote: str
    diff: str | None


@dataclass(frozen=True)
class GoldUpdate:
    """How many questions can be scored, and which cannot (with the reason).

    `lost` are the quotes that are not found, those of drafts and those whose question has another
    alternative among them.
    """

    version: str
    total: int
    active: int
    unanswerable: int
    drafts: int
    stale: tuple[tuple[str, str], ...]
    lost: tuple[LostQuote, ...]


@dataclass(frozen=True)
class Gold:
    """The approved questions and their evidence as they were resolved together.

    `version` is that of what is scored: equal, and scores compare. `content` changes with every
    word of the questions, a tag or an unanswerable question included; not with drafts.
    """

    questions: pl.DataFrame
    evidence: pl.DataFrame
    version: str
    content: str


def update_gold_questions(
    workspace: Workspace, question_files: Sequence[Path], root: Path, shards: Sequence[str]
) -> GoldUpdate:
    """Read the files, locate every quote, and replace both tables if anything changed.

    Files are named relative to `root`. `version` is that of the active questions and their spans:
    scores made under two versions are not comparable.

    Raises:
        CorpusError: a question file says something that cannot be meant.
    """
    questions, evidence = _resolved(workspace, question_files, root, shards)
    version = golden_version(questions, evidence)
    rows = digest("gold", questions.write_json(), evidence.write_json())
    details = {"content": scored_content(questions, evidence), "golden_version": version}
    for name, frame in ((GOLD_EVIDENCE, evidence), (GOLD_QUESTIONS, questions)):
        table = workspace.table(name)
        manifest = table.manifest()
        if manifest is None or manifest.version != rows:
            table.replace(frame, version=rows, details=details)
    counts = dict(questions.group_by("status").len().iter_rows())
    stale = questions.filter(pl.col("status") == "stale").select("question_id", "reason")
    return GoldUpdate(
        version=version,
        total=questions.height,
        active=counts.get("active", 0),
        unanswerable=counts.get("unanswerable", 0),
        drafts=counts.get("draft", 0),
        stale=tuple(stale.iter_rows()),
        lost=lost_quotes(evidence),
    )


def content_now(
    workspace: Workspace, question_files: Sequence[Path], root: Path, shards: Sequence[str]
) -> str:
    """The `content` that gold questions resolved from the files as they are now would have;
    nothing is written.

    Raises:
        CorpusError: a question file says something that cannot be meant.
    """
    return scored_content(*_resolved(workspace, question_files, root, shards))


def _resolved(
    workspace: Workspace, question_files: Sequence[Path], root: Path, shards: Sequence[str]
) -> tuple[pl.DataFrame, pl.DataFrame]:
    documents = workspace.table(DOCUMENTS).read_all(shards, ["doc_id", "text", "status"])
    if documents is None:
        raise CorpusError("no shard has been parsed yet. Build parsed_elements first.")
    before = workspace.table(GOLD_EVIDENCE).read()
    return resolve(load_questions(question_files, root), documents, before)


def lost_quotes(evidence: pl.DataFrame) -> tuple[LostQuote, ...]:
    """The quotes of `gold_evidence` rows that are not found, in their order."""
    lost = evidence.filter(pl.col("start").is_null())
    columns = lost.select("question_id", "doc_id", "quote", "diff")
    return tuple(LostQuote(*row) for row in columns.iter_rows())


def scored_version(manifest: Manifest) -> str:
    """What scores depend on, by a manifest of the gold questions. An earlier release had no drafts
    and named it by the version."""
    return str(manifest.details.get("content", manifest.version))


def read_gold(workspace: Workspace) -> Gold:
    """The approved gold questions last resolved.

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
    approved = questions.filter(pl.col("status") != "draft")
    return Gold(
        questions=approved,
        evidence=evidence.join(
            approved.select("question_id"), on="question_id", how="semi", maintain_order="left"
        ),
        version=str(manifests[0].details["golden_version"]),
        content=scored_version(manifests[0]),
    )
