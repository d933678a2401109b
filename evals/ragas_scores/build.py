"""Judge what a strategy served for the gold questions, and keep what was judged before."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from chunking_assets.chat_models.endpoint import endpoint_from_environment
from chunking_assets.cost_ledger import Entry
from chunking_assets.embedding_models.model import Progress
from chunking_assets.errors import CorpusError
from chunking_assets.keys import digest, file_sha
from chunking_assets.workspace import Manifest, Workspace
from evals.coverage import Coverage, covered_by_metric, is_asked
from evals.gold_questions.build import Gold, read_gold
from evals.ragas_scores import answers
from evals.ragas_scores.abstention import ABSTENTION, abstention_scores
from evals.ragas_scores.agreement import (
    Agreement,
    JudgedLabel,
    agreement_frame,
    agreements,
    judge_labels,
)
from evals.ragas_scores.extractive import EXTRACTIVE
from evals.ragas_scores.flags import FLAGS_VERSION
from evals.ragas_scores.frames import JudgedFrames, JudgedQuestion, JudgeSummary
from evals.ragas_scores.instructions import read_instructions
from evals.ragas_scores.labels import load_labels
from evals.ragas_scores.lexical_support import LEXICAL_VERSION
from evals.ragas_scores.metrics.registry import METRICS
from evals.ragas_scores.question_vectors import QuestionVectors
from evals.ragas_scores.score import judge_strategy
from evals.retrieval_scores.build import RETRIEVAL_SCORES, SERVED_PASSAGES

if TYPE_CHECKING:
    from chunking_assets.config import JudgeSettings

ANSWERS, RAGAS_SCORES, RAGAS_STATEMENTS = "answers", "ragas_scores", "ragas_statements"
JUDGE_AGREEMENT = "judge_agreement"
CACHE = "judge"
"""The folder of the judge's replies, below the workspace's caches."""

JUDGED = (*METRICS, *ABSTENTION)
"""What is scored of answers, by a judge or by whether they were given at all."""

_NO_MATTER = {"concurrency", "timeout", "judge_labels", "judge_instructions"}
"""Settings that change no row; what the instructions say does, wherever they are."""


@dataclass(frozen=True)
class JudgedUpdate:
    """How many rows have which status, and the means with what they are means of.

    `requests` were sent and `adaptations` made to what the server accepts, model by model, in this
    update; `costs` are its entries in the ledger; `stopped` says what made the endpoint useless for
    good, if anything did. `answered` counts answers, `abstained` those among them that say the
    passages do not answer, `flagged` those with a wrong citation or something that is not in the
    passages.
    """

    strategy: str
    version: str
    rows: int
    statuses: Mapping[str, int]
    coverage: Mapping[str, Coverage] = field(default_factory=dict)
    answered: int = 0
    abstained: int = 0
    flagged: int = 0
    requests: int = 0
    adaptations: Mapping[str, Sequence[str]] = field(default_factory=dict)
    costs: Sequence[Entry] = ()
    stopped: str | None = None

    @property
    def means(self) -> dict[str, float]:
        """The mean of each metric that has a value."""
        return {
            metric: covered.mean_scored
            for metric, covered in self.coverage.items()
            if covered.mean_scored is not None
        }


@dataclass(frozen=True)
class Judged:
    """The judged scores of one strategy, as a comparison takes them, and how they were measured.

    `retrieval` is the version of the retrieval scores whose passages were judged, `identity` that
    of settings and endpoint (`judge_identity`); `judges` names the judge of each metric and
    `answerer` who answered, None where there was none.
    """

    version: str
    retrieval: str
    identity: str
    judges: Mapping[str, str | None]
    answerer: str | None
    scores: pl.DataFrame

    def differs(self, baseline: "Judged | None", metric: str) -> tuple[str, ...]:
        """What of the measurement of a metric is another one than the baseline's."""
        if baseline is None:
            return ()
        judges = {self.judges.get(metric), baseline.judges.get(metric)} - {None}
        reads_answer = metric in ABSTENTION or "answer" in METRICS[metric].reads
        answerers = {self.answerer, baseline.answerer} - {None} if reads_answer else set()
        return ("judge",) * (len(judges) > 1) + ("answerer",) * (len(answerers) > 1)


def read_judged(workspace: Workspace, strategy: str, gold: Gold) -> Judged | None:
    """What is stored of one strategy; None if nothing is.

    Stale questions are left out. What nobody asked for (`coverage.is_asked`) reads
    `not_applicable`. `judge_variance` is how far a value would vary if it were judged again: 0
    where it is so by definition, null where it was judged once.
    """
    table = workspace.table(RAGAS_SCORES)
    manifest, scores = table.manifest(strategy), table.read(strategy)
    if manifest is None or scores is None:
        return None
    answered = workspace.table(ANSWERS)
    of_run = answered.manifest(strategy)
    rows = answered.read(strategy) if of_run and of_run.version == manifest.version else None
    judges = scores.group_by("metric").agg(pl.col("judge").drop_nulls().unique().sort())
    answerers = [] if rows is None else rows["answerer"].drop_nulls().unique().sort().to_list()
    abstentions = [] if rows is None else [abstention_scores(rows, gold.questions)]
    return Judged(
        version=manifest.version,
        retrieval=str(manifest.details.get("retrieval")),
        identity=str(manifest.details.get("judge")),
        judges={metric: "; ".join(names) or None for metric, names in judges.iter_rows()},
        answerer="; ".join(answerers) or None,
        scores=pl.concat([scores, *abstentions], how="diagonal")
        .join(gold.questions.select("question_id"), on="question_id", how="semi")
        .filter(pl.col("status") != "stale")
        .select(
            "question_id",
            "metric",
            "value",
            "error_kind",
            "judge_key",
            strategy=pl.lit(strategy),
            cutoff=pl.lit(""),
            status=pl.when(is_asked()).then("status").otherwise(pl.lit("not_applicable")),
            judge_variance=pl.when(pl.col("n_judgements").is_null() & pl.col("value").is_not_null())
            .then(0.0)
            .otherwise(pl.col("variance") / pl.col("n_judgements")),
        ),
    )


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

    Files the settings name start at `root`; `vectors` are needed for `answer_relevancy`, and what
    they took since they were made is counted as this strategy's.

    Raises:
        CorpusError: the strategy's retrieval was not scored yet, or the instructions do not fit.
    """
    gold = read_gold(workspace)
    retrieval = workspace.table(RETRIEVAL_SCORES).manifest(strategy)
    if retrieval is None:
        raise CorpusError(f"{strategy} has no retrieval scores yet. Build retrieval_scores first.")
    identity = judge_identity(settings, root)
    inputs = digest("ragas_scores", retrieval.version, identity, vectors and vectors.identity)
    details = {"inputs": inputs, "retrieval": retrieval.version, "judge": identity}
    table = workspace.table(RAGAS_SCORES)
    manifest, before = table.manifest(strategy), table.read(strategy)
    summary = JudgeSummary()
    if (
        manifest is None
        or before is None
        or manifest.details != details
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
        manifest = _write(workspace, strategy, judged, details)
    scores, answered = table.read(strategy), workspace.table(ANSWERS).read(strategy)
    assert scores is not None
    assert answered is not None
    answered = answered.filter(pl.col("status") == "ok")
    return JudgedUpdate(
        strategy=strategy,
        version=manifest.version,
        rows=scores.height,
        statuses=dict(scores.group_by("status").len().iter_rows()),
        coverage=covered_by_metric(scores),
        answered=answered.height,
        abstained=answered.filter("abstained").height,
        flagged=answered.filter(
            pl.any_horizontal(pl.col(c).list.len().fill_null(0) > 0 for c in _FLAGS)
        ).height,
        requests=summary.requests,
        adaptations=summary.adaptations,
        costs=(*summary.costs, *(vectors.costs_of(strategy) if vectors else ())),
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
    inputs = labels_identity(settings, root)
    if inputs is None:
        return []
    table = workspace.table(JUDGE_AGREEMENT)
    manifest, before = table.manifest(), table.read()
    if (
        manifest is None
        or before is None
        or manifest.version != inputs
        or before["error_kind"].null_count() < before.height
    ):
        return measure_agreement(workspace, settings, root)[0]
    return [Agreement(**row) for row in before.iter_rows(named=True)]


def measure_agreement(
    workspace: Workspace, settings: "JudgeSettings", root: Path
) -> tuple[list[Agreement], list[JudgedLabel]]:
    """Put the labels of people to the judge, and write the table `judge_agreement`.

    Raises:
        CorpusError: there are no labels, or the instructions do not fit.
    """
    file = settings.labels_file(root)
    if file is None:
        raise CorpusError("no labels are named. Name a file under ragas.judge_labels.")
    instructions = read_instructions(settings.instructions_file(root))
    judge, judged = judge_labels(
        load_labels(file), settings, workspace.caches / CACHE, instructions
    )
    rows = agreements(judge, file_sha(file), judged)
    version = labels_identity(settings, root)
    workspace.table(JUDGE_AGREEMENT).replace(agreement_frame(rows), version=version)
    return rows, judged


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


def _write(
    workspace: Workspace, strategy: str, judged: JudgedFrames, details: Mapping[str, object]
) -> Manifest:
    """The scores last: they vouch for the others."""
    columns = ["question_id", "metric", "status", "value", "judge_key", "error_kind"]
    described = ["question_id", "status", "answer_key", "answer", "lexical_support", *_FLAGS]
    content = digest(
        "judged", judged.scores.select(columns).rows(), judged.answers.select(described).rows()
    )
    workspace.table(ANSWERS).replace(judged.answers, strategy, version=content)
    workspace.table(RAGAS_STATEMENTS).replace(judged.statements, strategy, version=content)
    return workspace.table(RAGAS_SCORES).replace(
        judged.scores, strategy, version=content, details=details
    )
