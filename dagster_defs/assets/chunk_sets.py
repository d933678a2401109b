"""Asset: the chunks of every document under every chunker version, one partition a cell."""

import time
from collections.abc import Iterator, Sequence
from typing import Any

import dagster as dg

from chunking_assets.build_log import record_build
from chunking_assets.chat_models.metered import MeteredChat
from chunking_assets.chunk_sets.build import CHUNKS, ChunkSetUpdate, cell, update_chunk_sets
from chunking_assets.chunk_sets.sample_pages import write_sample_pages
from chunking_assets.chunk_sets.statistics import chunk_set_statistics
from chunking_assets.config import Config
from chunking_assets.cost_ledger import Entry, record_costs
from chunking_assets.embedding_models.metered import MeteredModels
from chunking_assets.execution import Claim
from dagster_defs.assets.sources import OWNERS, declared_versions
from dagster_defs.assets.summary import counted, document_counts, documents_list, histogram
from dagster_defs.automation import when_out_of_date
from dagster_defs.cells import Built, Run, patient, report
from dagster_defs.inputs import begin, is_unsound
from dagster_defs.partitions import (
    CONFIG,
    CORPUS_SHARD,
    by_shard,
    by_version,
    cell_parts,
    cells,
    cells_by,
)
from dagster_defs.pools import MODEL_ENDPOINT
from dagster_defs.progress import logged
from dagster_defs.ray_tasks import attempt_cells
from dagster_defs.resources import Corpus
from dagster_defs.tables import table_metadata

NAME = "chunk_sets"
ASKS_CHAT = any(version.chunker.asks_chat() for version in CONFIG.chunker_versions.values())


@dg.asset(
    name=NAME,
    partitions_def=cells,
    deps=[
        dg.AssetDep("parsed_elements", partition_mapping=by_shard),
        dg.AssetDep(declared_versions, partition_mapping=by_version),
    ],
    group_name="chunks",
    kinds={"python", "parquet"},
    owners=OWNERS,
    code_version="1",
    backfill_policy=dg.BackfillPolicy.single_run(),
    automation_condition=when_out_of_date(),
    pool=MODEL_ENDPOINT if ASKS_CHAT else None,
    metadata=table_metadata("chunks"),
    description=(
        "Exact spans of the canonical text: `text == canonical[start:end]` for every chunk, and "
        "`prefix + text` within the version's token budget. Only documents whose text or elements "
        "changed are chunked again; all versions of a run share one tokenization of a document."
    ),
)
@patient
def chunk_sets(
    context: dg.AssetExecutionContext, corpus: Corpus
) -> Iterator[dg.MaterializeResult[Any] | dg.AssetMaterialization]:
    shards = cells_by(CORPUS_SHARD, context.partition_keys)
    outcomes = attempt_cells(context, corpus, _build, here=shards, tasks=shards, claim=_claim)
    yield from report(context, outcomes)


def _claim(config: Config, keys: Sequence[str]) -> Claim:
    versions = [cell_parts(key)[0] for key in keys]
    models = {model for name in versions for model in config.chunker_versions[name].models_asked}
    return config.execution.ray.of(versions, models)


def _build(run: Run, corpus: Corpus, keys: Sequence[str]) -> dict[str, Built]:
    """Every version of one shard."""
    shard, names = cell_parts(keys[0])[1], [cell_parts(key)[0] for key in keys]
    config, workspace = corpus.config, corpus.workspace
    versions = [config.chunker_versions[name] for name in names]
    for version in versions:
        workspace.record_declaration("chunkers", version.name, version.declaration)
        if is_unsound(workspace, NAME, cell(version.name, shard)):
            workspace.table(CHUNKS).remove(cell(version.name, shard))
    stamps = {name: begin(config, workspace, NAME, cell(name, shard)) for name in names}
    started, chat, models = time.monotonic(), MeteredChat(corpus.chat), MeteredModels(corpus.models)
    try:
        updates = update_chunk_sets(
            workspace,
            shard,
            versions,
            models,
            chat,
            logged(run.log, f"{shard}: chunked", "documents"),
            workers=config.chunking.workers or corpus.cores,
            batch_mb=config.chunking.batch_mb,
        )
    finally:
        for (version_name, model), spent in chat.spent.items():
            entry = Entry.of_calls("chunk", model, spent)
            key = cell(version_name, shard)
            record_costs(workspace, config.prices, NAME, key, run.run_id, [entry])
        for version_name, entries in models.spent.items():
            key = cell(version_name, shard)
            record_costs(workspace, config.prices, NAME, key, run.run_id, entries)
    seconds = (time.monotonic() - started) / len(updates)
    pages = {
        f"page of {doc_id}": dg.MetadataValue.path(str(page))
        for doc_id, page in write_sample_pages(
            workspace, shard, list(config.chunker_versions.values())
        ).items()
    }
    built: dict[str, Built] = {}
    for update in updates:
        key = cell(update.chunker_version, shard)
        if update.changes:
            counts = document_counts(update.changes)
            counts |= {"rows": update.chunks, "chunks_redone": update.chunks_redone}
            record_build(workspace, NAME, key, run.run_id, seconds, counts)
        stamp = stamps[update.chunker_version]
        if stamp is not None:
            workspace.stamps.write(NAME, stamp, key)
        built[key] = Built(update.content_version, {**_metadata(corpus, update), **pages})
    return built


def _metadata(corpus: Corpus, update: ChunkSetUpdate) -> dict[str, Any]:
    version = corpus.config.chunker_versions[update.chunker_version]
    numbers = chunk_set_statistics(corpus.workspace, version, update.shard)
    assert numbers is not None
    levels = {f"chunks_of_level_{level}": count for level, count in numbers.levels.items()}
    return {
        "dagster/row_count": update.chunks,
        **document_counts(update.changes),
        "chunks_redone": update.chunks_redone,
        "mean_tokens": numbers.mean_tokens,
        "variation_of_tokens": numbers.variation,
        "share_at_the_cap": numbers.at_the_cap,
        "chunks_per_document": numbers.chunks_per_document,
        "most_chunks_of_a_document": numbers.most_of_a_document,
        "share_of_duplicates": numbers.duplicates,
        "share_of_text_excluded": numbers.excluded,
        "chunks_with_a_remark": sum(numbers.remarks.values()),
        "remarks": dg.MetadataValue.md(counted(numbers.remarks)),
        **(levels if len(levels) > 1 else {}),
        "sizes": dg.MetadataValue.md(histogram(numbers.tokens, numbers.budget, "tokens")),
        "changed": dg.MetadataValue.md(documents_list(update.changes)),
    }
