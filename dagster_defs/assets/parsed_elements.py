"""Asset: canonical text and typed elements of every document, one partition a shard."""

import time
from collections.abc import Iterator
from typing import Any

import dagster as dg
from pydantic import Field

from chunking_assets.build_log import record_build
from chunking_assets.parsed_elements.build import DocumentsUpdate, update_documents
from chunking_assets.parsed_elements.reuse import ParsedBefore
from chunking_assets.raw_documents.listing import Scan, scan_settled
from dagster_defs.assets.sources import OWNERS, raw_documents
from dagster_defs.assets.summary import document_counts, documents_list
from dagster_defs.automation import when_out_of_date
from dagster_defs.cells import Built, attempt_each, patient, report
from dagster_defs.inputs import RAW_DOCUMENTS, begin, parsed_from
from dagster_defs.partitions import corpus_shards
from dagster_defs.progress import logged
from dagster_defs.resources import Corpus
from dagster_defs.tables import table_metadata

NAME = "parsed_elements"


class ParsedElementsConfig(dg.Config):
    """`confirm_deletions`: shards whose documents may all go, as listed now."""

    confirm_deletions: list[str] = Field(default_factory=list)


@dg.asset(
    name=NAME,
    partitions_def=corpus_shards,
    deps=[raw_documents],
    group_name="documents",
    kinds={"python", "parquet"},
    owners=OWNERS,
    code_version="1",
    backfill_policy=dg.BackfillPolicy.single_run(),
    automation_condition=when_out_of_date(),
    metadata=table_metadata("documents"),
    description=(
        "One canonical text per document and typed, non-overlapping spans over it. Only new and "
        "changed documents are parsed; what cannot be parsed is a row with a status, an error and "
        "a cure, and where it could be before, its last text stays, marked as stale. Absence "
        "deletes, unless over 30 % of a shard is gone: then a person must confirm."
    ),
)
@patient
def parsed_elements(
    context: dg.AssetExecutionContext, config: ParsedElementsConfig, corpus: Corpus
) -> Iterator[dg.MaterializeResult[Any] | dg.AssetMaterialization]:
    shards = corpus.config.shards()
    scans: dict[str, Scan] = {}
    parsed_before = ParsedBefore(corpus.workspace)

    def build(shard: str) -> Built:
        if shard not in shards:
            raise dg.Failure(f"{shard} is no shard of corpus.yaml: {', '.join(shards)}")
        collection = corpus.config.collections[shards[shard]]
        if shards[shard] not in scans:
            scans[shards[shard]] = scan_settled(shards[shard], collection, corpus.config.root)
        observed = corpus.workspace.stamps.read(RAW_DOCUMENTS, shard)
        begin(corpus.config, corpus.workspace, NAME, shard)
        started = time.monotonic()
        update = update_documents(
            corpus.workspace,
            shard,
            shards[shard],
            collection,
            corpus.config.root,
            limits=corpus.config.parsing,
            listing=scans[shards[shard]],
            parsed_before=parsed_before,
            confirm_deletions=shard in config.confirm_deletions,
            progress=logged(context.log, f"{shard}: parsed", "documents"),
        )
        _record(context, corpus, update, time.monotonic() - started)
        # A look may not know what was read here. What it saw since then is not overwritten.
        if corpus.workspace.stamps.read(RAW_DOCUMENTS, shard) == observed:
            corpus.workspace.stamps.write(RAW_DOCUMENTS, update.input_version, shard)
        made_from = parsed_from(update.input_version, collection, corpus.config.parsing)
        corpus.workspace.stamps.write(NAME, made_from, shard)
        return Built(update.content_version, _metadata(update))

    yield from report(context, attempt_each(context.partition_keys, build))


def _record(
    context: dg.AssetExecutionContext, corpus: Corpus, update: DocumentsUpdate, seconds: float
) -> None:
    if update.changes:
        counts = document_counts(update.changes)
        counts |= {"documents_failed": len(update.failed), "rows": update.rows}
        record_build(corpus.workspace, NAME, update.shard, context.run_id, seconds, counts)


def _metadata(update: DocumentsUpdate) -> dict[str, Any]:
    return {
        "dagster/row_count": update.rows,
        **document_counts(update.changes),
        "documents_moved": len(update.changes.moved),
        "documents_failed": len(update.failed),
        "documents_stale": len(update.stale),
        "parsed": update.parsed,
        "reused": update.reused,
        "changed": dg.MetadataValue.md(documents_list(update.changes)),
        **(
            {"failed": dg.MetadataValue.md("\n".join(f"- `{d}`" for d in update.failed[:50]))}
            if update.failed
            else {}
        ),
        **(
            {
                "passed_over": dg.MetadataValue.md(
                    "\n".join(f"- `{path}`: {reason}" for path, reason in update.passed_over[:50])
                )
            }
            if update.passed_over
            else {}
        ),
    }
