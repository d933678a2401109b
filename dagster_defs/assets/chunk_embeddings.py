"""Asset: vectors of every chunk in one LanceDB table per index version, one partition a cell."""

import time
from collections.abc import Iterator, Sequence
from typing import Any

import dagster as dg

from chunking_assets.build_log import record_build
from chunking_assets.chunk_embeddings.build import (
    IndexUpdate,
    ledger,
    update_index,
)
from chunking_assets.chunk_embeddings.version import IndexVersion
from chunking_assets.chunk_sets.build import cell
from chunking_assets.config import Config
from chunking_assets.cost_ledger import Entry, record_costs
from chunking_assets.execution import Claim
from chunking_assets.keys import digest
from dagster_defs.assets.sources import OWNERS
from dagster_defs.assets.summary import document_counts
from dagster_defs.automation import when_out_of_date
from dagster_defs.cells import Built, Run, patient, report
from dagster_defs.inputs import begin, is_unsound
from dagster_defs.partitions import CHUNKER_VERSION, cell_parts, cells, cells_by
from dagster_defs.pools import VECTOR_TABLES
from dagster_defs.progress import logged
from dagster_defs.ray_tasks import attempt_cells
from dagster_defs.resources import Corpus
from dagster_defs.tables import table_metadata

NAME = "chunk_embeddings"


@dg.asset(
    name=NAME,
    partitions_def=cells,
    deps=["chunk_sets"],
    group_name="index",
    kinds={"lancedb", "huggingface"},
    owners=OWNERS,
    code_version="1",
    backfill_policy=dg.BackfillPolicy.single_run(),
    automation_condition=when_out_of_date(),
    pool=VECTOR_TABLES,
    metadata=table_metadata("embedded_chunks"),
    description=(
        "The vectors of a cell, with every model its strategies need. A text embedded before, "
        "under any version, is not embedded again. Nothing is served before every shard of the "
        "run is complete and compared with its chunks; readers follow the tag."
    ),
)
@patient
def chunk_embeddings(
    context: dg.AssetExecutionContext, corpus: Corpus
) -> Iterator[dg.MaterializeResult[Any] | dg.AssetMaterialization]:
    keys = [str(key) for key in context.partition_keys]
    outcomes = attempt_cells(
        context,
        corpus,
        _build,
        here=cells_by(CHUNKER_VERSION, keys),
        tasks=[[key] for key in keys],
        claim=_claim,
    )
    yield from report(context, outcomes)


def _claim(config: Config, keys: Sequence[str]) -> Claim:
    version = cell_parts(keys[0])[0]
    models = {index.model_name for index in config.indexes_of(version)}
    return config.execution.ray.of([version], models)


def _build(run: Run, corpus: Corpus, keys: Sequence[str]) -> dict[str, Built]:
    """Every shard of one version."""
    version, shards = cell_parts(keys[0])[0], [cell_parts(key)[1] for key in keys]
    workspace = corpus.workspace
    stamps = {s: begin(corpus.config, workspace, NAME, cell(version, s)) for s in shards}
    updates: dict[str, list[IndexUpdate]] = {shard: [] for shard in shards}
    for index in corpus.config.indexes_of(version):
        for update in _update(run, corpus, index, shards):
            updates[update.shard].append(update)
    built: dict[str, Built] = {}
    for shard, done in updates.items():
        stamp = stamps[shard]
        if stamp is not None:
            workspace.stamps.write(NAME, stamp, cell(version, shard))
        built[cell(version, shard)] = Built(
            digest(sorted((u.index_version, u.content_version) for u in done)), _metadata(done)
        )
    return built


def _update(run: Run, corpus: Corpus, index: IndexVersion, shards: list[str]) -> list[IndexUpdate]:
    def spending(shard: str, entry: Entry) -> None:
        partition = ledger(index.name, shard)
        prices = corpus.config.prices
        record_costs(corpus.workspace, prices, NAME, partition, run.run_id, [entry])

    version, started = index.chunker_version.name, time.monotonic()
    updates = update_index(
        corpus.workspace,
        index,
        shards,
        corpus.models.embedder,
        logged(run.log, f"{index.name}: embedded", "chunks"),
        spending,
        batch_chunks=corpus.config.embedding.batch_chunks,
        repair=any(is_unsound(corpus.workspace, NAME, cell(version, s)) for s in shards),
    )
    seconds = (time.monotonic() - started) / len(updates)
    for update in updates:
        if update.changes:
            counts = {
                **document_counts(update.changes),
                "rows": update.chunks,
                **_vectors([update]),
            }
            key = f"{update.index_version}|{update.shard}"
            record_build(corpus.workspace, NAME, key, run.run_id, seconds, counts)
    return updates


def _vectors(updates: list[IndexUpdate]) -> dict[str, int]:
    return {
        "vectors_embedded": sum(u.vectors_embedded for u in updates),
        "vectors_reused": sum(u.vectors_reused for u in updates),
        "tokens_embedded": sum(u.tokens_embedded for u in updates),
    }


def _metadata(updates: list[IndexUpdate]) -> dict[str, Any]:
    vectors = _vectors(updates)
    asked = vectors["vectors_embedded"] + vectors["vectors_reused"]
    return {
        "dagster/row_count": sum(u.chunks for u in updates),
        "indexes": ", ".join(u.index_version for u in updates) or "no strategy needs this version",
        **vectors,
        **({"cache_hit_rate": vectors["vectors_reused"] / asked} if asked else {}),
        **(document_counts(updates[0].changes) if updates else {}),
        "chunks_healed": sum(len({*u.healed.missing, *u.healed.wrong}) for u in updates),
        "chunks_beyond_model_limit": sum(len(u.windowed) for u in updates),
    }
