"""Asset: answers over the retrieved passages, judged by RAGAS; or rows that say why not."""

from collections.abc import Iterator
from typing import Any

import dagster as dg

from chunking_assets.cost_ledger import record_costs
from chunking_assets.embedding_models.vector_cache import VECTORS
from chunking_assets.errors import CorpusError
from chunking_assets.keys import digest
from dagster_defs.assets.sources import OWNERS
from dagster_defs.automation import when_out_of_date
from dagster_defs.cells import Built, attempt_each, patient, report
from dagster_defs.inputs import begin
from dagster_defs.partitions import chunker_versions
from dagster_defs.pools import MODEL_ENDPOINT
from dagster_defs.progress import logged
from dagster_defs.resources import Corpus
from dagster_defs.tables import table_metadata
from evals.ragas_scores.build import (
    JudgedUpdate,
    labels_identity,
    update_judge_agreement,
    update_ragas_scores,
)
from evals.ragas_scores.question_vectors import QuestionVectors

NAME = "ragas_scores"


@dg.asset(
    name=NAME,
    partitions_def=chunker_versions,
    deps=["retrieval_scores"],
    group_name="evaluation",
    kinds={"openai", "parquet"},
    owners=OWNERS,
    code_version="2",
    backfill_policy=dg.BackfillPolicy.single_run(),
    automation_condition=when_out_of_date(),
    pool=MODEL_ENDPOINT,
    metadata=table_metadata("ragas_scores"),
    description=(
        "RAGAS metrics over answers from an OpenAI-compatible endpoint (OPENAI_BASE_URL, "
        "OPENAI_API_KEY). Without one every score reads skipped / no_judge; a failed, refused or "
        "truncated judgement is a row with a status and no value. With labels of people, how far "
        "the judge agrees with them is said beside its scores."
    ),
)
@patient
def ragas_scores(
    context: dg.AssetExecutionContext, corpus: Corpus
) -> Iterator[dg.MaterializeResult[Any] | dg.AssetMaterialization]:
    def build(version: str) -> Built:
        config, workspace = corpus.config, corpus.workspace
        stamp = begin(config, workspace, NAME, version)
        updates = [
            update_ragas_scores(
                workspace,
                strategy.name,
                config.ragas,
                config.root,
                _vectors(corpus),
                logged(context.log, f"{strategy.name}: judged", "questions"),
            )
            for strategy in config.strategies_of(version)
        ]
        for update in updates:
            record_costs(
                workspace, config.prices, NAME, update.strategy, context.run_id, update.costs
            )
        stopped = [f"{u.strategy}: {u.stopped}" for u in updates if u.stopped]
        if stopped:
            raise CorpusError("the endpoint cannot be used; " + "; ".join(stopped))
        agreement = update_judge_agreement(workspace, config.ragas, config.root)
        if stamp is not None:
            workspace.stamps.write(NAME, stamp, version)
        return Built(
            digest(
                sorted((u.strategy, u.version) for u in updates),
                labels_identity(config.ragas, config.root),
            ),
            {
                "dagster/row_count": sum(u.rows for u in updates),
                "requests": sum(u.requests for u in updates),
                "adaptations": dg.MetadataValue.json(
                    {u.strategy: dict(u.adaptations) for u in updates if u.adaptations}
                ),
                "agreement_with_people": dg.MetadataValue.md(
                    "\n".join(f"- {row}" for row in agreement) or "no `judge_labels` are configured"
                ),
                **{name: value for update in updates for name, value in _counts(update)},
                **{
                    f"{update.strategy}: {metric}": value
                    for update in updates
                    for metric, value in update.means.items()
                },
            },
        )

    yield from report(context, attempt_each(context.partition_keys, build))


def _vectors(corpus: Corpus) -> QuestionVectors:
    """The embedding model that compares questions; loaded only by a metric that does."""
    config = corpus.config
    name = config.ragas.embedding_model or next(iter(config.embedding_models))
    return QuestionVectors(
        name,
        config.embedding_models[name].declaration(),
        lambda: corpus.models.embedder(name),
        corpus.workspace.caches / VECTORS,
    )


def _counts(update: JudgedUpdate) -> Iterator[tuple[str, Any]]:
    """What the means of a strategy are means of; a mean alone says nothing of what is missing."""
    strategy = update.strategy
    yield from ((f"{strategy}: {status}", count) for status, count in update.statuses.items())
    yield f"{strategy}: answers", update.answered
    yield f"{strategy}: abstained", update.abstained
    yield f"{strategy}: flagged", update.flagged
    yield from ((f"{strategy}: {m}, coverage", str(c)) for m, c in update.coverage.items())
