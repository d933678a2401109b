"""Judge what a strategy served for the gold questions, and keep what was judged before."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from chunking_assets.chat_models.endpoint import endpoint_from_environment
from chunking_assets.embedding_models.model import Progress
from chunking_assets.errors import CorpusError
from chunking_assets.keys import digest, file_sha
from chunking_assets.workspace import Manifest, Workspace
from evals.gold_questions.build import Gold, read_gold
from evals.ragas_scores import answers
from evals.ragas_scores.agreement import Agreement, agreement_frame, agreements, judge_labels
from evals.ragas_scores.coverage import Coverage, coverage
from evals.ragas_scores.extractive import EXTRACTIVE
from evals.ragas_scores.flags import FLAGS_VERSION
from evals.ragas_scores.frames import JudgedFrames, JudgedQuestion, JudgeSummary
from evals.ragas_scores.instructions import read_instructions
from evals.ragas_scores.labels import load_labels
from evals.ragas_scores.lexical_support import LEXICAL_VERSION
from evals.ragas_scores.question_vectors import QuestionVectors
from evals.ragas_scores.score import judge_strategy
from evals.retrieval_scores.build import RETRIEVAL_SCORES, SERVED_PASSAGES

if TYPE_CHECKING:
    from chunking_assets.config import JudgeSettings

ANSWERS, RAGAS_SCORES, RAGAS_STATEMENTS = "answers", "ragas_scores", "ragas_statements"
JUDGE_AGREEMENT = "judge_agreement"
CACHE = "judge"
"""The folder of the judge's replies, below the workspace's caches."""

_NO_MATTER = {"concurrency", "timeout", "judge_labels", "judge_instructions"}
"""Settings that change no row; what the instructions say does, wherever they are."""


@dataclass(frozen=True)
class JudgedUpdate:
    """How many rows have which status, and the means with what they are means of.

    `requests` were sent and `adaptations` made to what the server accepts, model by model, in this
    update; `stopped` says what made the endpoint useless for good, if anything did. `answered`
    counts answers, `abstained` those among them that say the passages do not answer, `flagged`
    those with a wrong citation or something that is not in the passages.
    """

    strategy: str
    version: str
    rows: int
    statuses: Mapping[str, int]
    coverage: Sequence[Coverage] = ()
    answered: int = 0
    abstained: int = 0
    flagged: int = 0
    requests: int = 0
    adaptations: Mapping[str, Sequence[str]] = field(default_factory=dict)
    stopped: str | None = None

    @property
    def means(self) -> dict[str, float]:
        """The mean of each metric that has a value."""
        return {c.metric: c.mean for c in self.coverage if c.mean is not None}


def judge_identity(settings: "JudgeSettings", root: Path) -> str:
    """Equal while the same rows would be judged in the same way: settings, endpoint, prompts.

    Files the settings name start at `root`.
    """
    endpoint = endpoint_from_environment()
    instructions = settings.instructions_file(root)
    return digest(
        settings.model_dump(mode="json", exclude=_NO_MATTER),
        instructions and file_sha(instructions),
        (answers.PROMPT_VERSION, EXTRACTIVE, FLAGS_VERSION, LEXICAL_VERSION),
        answers.INSTRUCTIONS,
        endpoint.base_url if endpoint else None,
        _installed_ragas(),
    )


def labels_identity(settings: "JudgeSettings", root: Path) -> str | None:
    """Equal while the same judge would be compared with the same labels; None without labels."""
    file = settings.labels_file(root)
    return None if file is None else digest(judge_identity(settings, root), file_sha(file))


def _installed_ragas() -> str | None:
    try:
        return version("ragas")
    except PackageNotFoundError:
        return None


def update_ragas_scores(
    workspace: Workspace,
    strategy: str,
    settings: "JudgeSettings",
    root: Path,
    vectors: QuestionVectors | None = None,
    progress: Progress | None = None,
) -> JudgedUpdate:
    """Judge one strategy's answers, unless nothing changed and no row failed for want of a judge.

    Files the settings name start at `root`; `vectors` are needed for `answer_relevancy`.

    Raises:
        CorpusError: the strategy's retrieval was not scored yet, or the instructions do not fit.
    """
    gold = read_gold(workspace)
    retrieval = workspace.table(RETRIEVAL_SCORES).manifest(strategy)
    if retrieval is None:
        raise CorpusError(f"{strategy} has no retrieval scores yet. Build retrieval_scores first.")
    inputs = digest(
        "ragas_scores",
        retrieval.version,
        judge_identity(settings, root),
        vectors and vectors.identity,
    )
    table = workspace.table(RAGAS_SCORES)
    manifest, before = table.manifest(strategy), table.read(strategy)
    summary = JudgeSummary()
    if (
        manifest is None
        or before is None
        or manifest.details.get("inputs") != inputs
        or "error" in before["status"]
        or "ragas_unavailable" in before["error_kind"]
    ):
        judged = judge_strategy(
            strategy,
            _questions(workspace, strategy, gold),
            settings,
            workspace.caches / CACHE,
            _previous(workspace, strategy),
            progress,
            instructions=read_instructions(settings.instructions_file(root)),
            vectors=vectors,
        )
        summary = judged.summary
        manifest = _write(workspace, strategy, judged, inputs)
    scores, answered = table.read(strategy), workspace.table(ANSWERS).read(strategy)
    assert scores is not None
    assert answered is not None
    answered = answered.filter(pl.col("status") == "ok")
    return JudgedUpdate(
        strategy=strategy,
        version=manifest.version,
        rows=scores.height,
        statuses=dict(scores.group_by("status").len().iter_rows()),
        coverage=coverage(scores),
        answered=answered.height,
        abstained=answered.filter("abstained").height,
        flagged=answered.filter(
            pl.any_horizontal(pl.col(c).list.len().fill_null(0) > 0 for c in _FLAGS)
        ).height,
        requests=summary.requests,
        adaptations=summary.adaptations,
        stopped=summary.stopped,
    )


_FLAGS = ("issues", "numbers_not_in_context", "names_not_in_context", "quotes_not_in_context")


def update_judge_agreement(
    workspace: Workspace, settings: "JudgeSettings", root: Path
) -> list[Agreement]:
    """Compare the judge with the labels of people, unless it was; empty without labels.

    Raises:
        CorpusError: the labels are no labels, or the instructions do not fit.
    """
    file, inputs = settings.labels_file(root), labels_identity(settings, root)
    if file is None or inputs is None:
        return []
    table = workspace.table(JUDGE_AGREEMENT)
    manifest, before = table.manifest(), table.read()
    if (
        manifest is None
        or before is None
        or manifest.version != inputs
        or before["error_kind"].null_count() < before.height
    ):
        instructions = read_instructions(settings.instructions_file(root))
        judge, judged = judge_labels(
            load_labels(file), settings, workspace.caches / CACHE, instructions
        )
        rows = agreements(judge, file_sha(file), judged)
        table.replace(agreement_frame(rows), version=inputs)
        return rows
    return [Agreement(**row) for row in before.iter_rows(named=True)]


def _questions(workspace: Workspace, strategy: str, gold: Gold) -> list[JudgedQuestion]:
    """The gold questions with the passages that were served for them, best first."""
    served = workspace.table(SERVED_PASSAGES).read(strategy)
    assert served is not None
    contexts = dict(
        served.sort("question_id", "rank")
        .group_by("question_id", maintain_order=True)
        .agg("text")
        .iter_rows()
    )
    return [
        JudgedQuestion(
            question_id=row["question_id"],
            question=row["question"],
            reference_answer=row["answer"],
            status="ok" if row["status"] == "active" else row["status"],
            contexts=contexts.get(row["question_id"], []),
            language=row["language"] or "",
        )
        for row in gold.questions.iter_rows(named=True)
    ]


def _previous(workspace: Workspace, strategy: str) -> JudgedFrames | None:
    """The rows of the last run, if it wrote all three tables."""
    tables = [workspace.table(name) for name in (ANSWERS, RAGAS_SCORES, RAGAS_STATEMENTS)]
    versions = {m.version if (m := table.manifest(strategy)) else None for table in tables}
    answered, scores, statements = (table.read(strategy) for table in tables)
    if answered is None or scores is None or statements is None or len(versions) > 1:
        return None
    return JudgedFrames(answered, scores, statements)


def _write(workspace: Workspace, strategy: str, judged: JudgedFrames, inputs: str) -> Manifest:
    """The scores last: they vouch for the others."""
    columns = ["question_id", "metric", "status", "value", "judge_key", "error_kind"]
    described = ["question_id", "status", "answer_key", "answer", "lexical_support", *_FLAGS]
    content = digest(
        "judged", judged.scores.select(columns).rows(), judged.answers.select(described).rows()
    )
    workspace.table(ANSWERS).replace(judged.answers, strategy, version=content)
    workspace.table(RAGAS_STATEMENTS).replace(judged.statements, strategy, version=content)
    return workspace.table(RAGAS_SCORES).replace(
        judged.scores, strategy, version=content, details={"inputs": inputs}
    )
