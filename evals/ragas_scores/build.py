"""Judge what a strategy served for the gold questions, and keep what was judged before."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING

import polars as pl

from chunking_assets.embedding_models.model import Progress
from chunking_assets.errors import CorpusError
from chunking_assets.keys import digest
from chunking_assets.workspace import Manifest, Workspace
from evals.gold_questions.build import Gold, read_gold
from evals.ragas_scores import answers
from evals.ragas_scores.availability import endpoint_from_environment
from evals.ragas_scores.frames import JudgedFrames, JudgedQuestion, JudgeSummary
from evals.ragas_scores.score import judge_strategy
from evals.retrieval_scores.build import RETRIEVAL_SCORES, SERVED_PASSAGES

if TYPE_CHECKING:
    from chunking_assets.config import JudgeSettings

ANSWERS, RAGAS_SCORES, RAGAS_STATEMENTS = "answers", "ragas_scores", "ragas_statements"


@dataclass(frozen=True)
class JudgedUpdate:
    """How many rows have which status, and the means of what was scored.

    `requests` were sent and `adaptations` made to what the server accepts, model by model, in this
    update; `stopped` says what made the endpoint useless for good, if anything did.
    """

    strategy: str
    version: str
    rows: int
    statuses: Mapping[str, int]
    means: Mapping[str, float] = field(default_factory=dict)
    requests: int = 0
    adaptations: Mapping[str, Sequence[str]] = field(default_factory=dict)
    stopped: str | None = None


def judge_identity(settings: "JudgeSettings") -> str:
    """Equal while the same rows would be judged in the same way: settings, endpoint, prompts."""
    endpoint = endpoint_from_environment()
    return digest(
        settings.model_dump(mode="json"),
        answers.PROMPT_VERSION,
        answers.INSTRUCTIONS,
        endpoint.base_url if endpoint else None,
        _installed_ragas(),
    )


def _installed_ragas() -> str | None:
    try:
        return version("ragas")
    except PackageNotFoundError:
        return None


def update_ragas_scores(
    workspace: Workspace,
    strategy: str,
    settings: "JudgeSettings",
    progress: Progress | None = None,
) -> JudgedUpdate:
    """Judge one strategy's answers, unless nothing changed and no row failed for want of a judge.

    Raises:
        CorpusError: the strategy's retrieval was not scored yet.
    """
    gold = read_gold(workspace)
    retrieval = workspace.table(RETRIEVAL_SCORES).manifest(strategy)
    if retrieval is None:
        raise CorpusError(f"{strategy} has no retrieval scores yet. Build retrieval_scores first.")
    inputs = digest("ragas_scores", retrieval.version, judge_identity(settings))
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
            workspace.caches / "judge",
            _previous(workspace, strategy),
            progress,
        )
        summary = judged.summary
        manifest = _write(workspace, strategy, judged, inputs)
    scores = table.read(strategy)
    assert scores is not None
    return JudgedUpdate(
        strategy=strategy,
        version=manifest.version,
        rows=scores.height,
        statuses=dict(scores.group_by("status").len().iter_rows()),
        means=dict(
            scores.filter(pl.col("status") == "ok")
            .group_by("metric")
            .agg(pl.col("value").mean())
            .iter_rows()
        ),
        requests=summary.requests,
        adaptations=summary.adaptations,
        stopped=summary.stopped,
    )


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
    content = digest("judged", judged.scores.select(columns).rows())
    workspace.table(ANSWERS).replace(judged.answers, strategy, version=content)
    workspace.table(RAGAS_STATEMENTS).replace(judged.statements, strategy, version=content)
    return workspace.table(RAGAS_SCORES).replace(
        judged.scores, strategy, version=content, details={"inputs": inputs}
    )
