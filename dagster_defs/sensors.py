"""Sensors: one that looks for changed documents, one that keeps the index current."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import dagster as dg

from chunking_assets.chunk_sets.build import CHUNKS
from chunking_assets.config import Config
from chunking_assets.errors import CorpusError
from chunking_assets.keys import digest
from chunking_assets.parsed_elements.build import DOCUMENTS
from chunking_assets.raw_documents.changes import compare
from chunking_assets.raw_documents.collection import Collection
from chunking_assets.raw_documents.listing import FileIndex, Scan, content_version, scan
from chunking_assets.workspace import Workspace
from dagster_defs.assets.summary import document_counts, documents_list
from dagster_defs.inputs import RAW_DOCUMENTS, shards_to_retire
from dagster_defs.jobs import retire_job
from dagster_defs.partitions import corpus_shards
from dagster_defs.resources import Corpus

CHUNKER_VERSIONS = "chunker_versions"


@dg.sensor(
    name="watch_documents",
    minimum_interval_seconds=15,
    default_status=dg.DefaultSensorStatus.RUNNING,
    job=retire_job,
    description=(
        "Reports the shards whose documents changed, and chunker versions declared anew. A file "
        "still being written is waited for; a folder that is gone deletes nothing."
    ),
)
def watch_documents(context: dg.SensorEvaluationContext, corpus: Corpus) -> dg.SensorResult:
    seen: dict[str, dict[str, str]] = json.loads(context.cursor or "{}")
    problems: list[str] = []
    events = list(observe(corpus.config, corpus.workspace, seen, problems))
    for event in events:
        tags = event.tags or {}
        versions = seen.setdefault(event.asset_key.to_user_string(), {})
        versions[str(event.partition)] = tags["dagster/data_version"]
    known = context.instance.get_dynamic_partitions(corpus_shards.name or "")
    new = [shard for shard in corpus.config.shards() if shard not in known]
    retiring = list(_retirement(corpus.config, corpus.workspace))
    quiet = not (events or retiring)
    return dg.SensorResult(
        run_requests=retiring,
        asset_events=events,
        dynamic_partitions_requests=[corpus_shards.build_add_request(new)] if new else [],
        cursor=json.dumps(seen),
        skip_reason="; ".join(problems)
        or ("no document and no declaration changed" if quiet else None),
    )


def _retirement(config: Config, workspace: Workspace) -> Iterator[dg.RunRequest]:
    """A run that drops shards no longer declared, once for what they hold."""
    shards = shards_to_retire(config, workspace)
    if shards:
        held = [
            (p, workspace.table(CHUNKS).manifest(p)) for p in workspace.table(CHUNKS).partitions()
        ]
        versions = [(p, m.version) for p, m in held if m and p.rpartition("|")[2] in shards]
        yield dg.RunRequest(job_name=retire_job.name, run_key=digest("retire", shards, versions))


def observe(
    config: Config,
    workspace: Workspace,
    seen: dict[str, dict[str, str]],
    problems: list[str],
    look: Callable[[str, Collection, Path], Scan] = scan,
) -> Iterator[dg.AssetMaterialization]:
    """One event for every shard and declaration that is not as it was `seen`.

    The stamp of a shard is written with its event: the stages below compare with it. A file still
    being written is left for a later look, and so is a collection that cannot be listed: why is
    added to `problems`.
    """
    for name, collection in config.collections.items():
        try:
            listing = look(name, collection, config.root)
        except CorpusError as error:
            problems.append(str(error))
            continue
        for shard in collection.shards_of(name):
            waiting = [f.doc_id for f in listing.files[shard] if f.doc_id in listing.held]
            problems += [f"{doc_id} is still being written" for doc_id in waiting]
            if not waiting or shard in seen.get(RAW_DOCUMENTS, {}):
                yield from _observe_shard(workspace, shard, listing, seen.get(RAW_DOCUMENTS, {}))
    for version in config.chunker_versions.values():
        if seen.get(CHUNKER_VERSIONS, {}).get(version.name) != version.digest:
            yield dg.AssetMaterialization(
                CHUNKER_VERSIONS,
                partition=version.name,
                metadata={"kind": version.chunker.kind, "max_tokens": version.chunker.max_tokens},
                tags={"dagster/data_version": version.digest},
            )


def _observe_shard(
    workspace: Workspace, shard: str, listing: Scan, seen: dict[str, str]
) -> Iterator[dg.AssetMaterialization]:
    files = listing.files[shard]
    settled = [file for file in files if file.doc_id not in listing.held]
    documents, unreadable = FileIndex(workspace.caches, shard).revisions(settled)
    before = _parsed(workspace, shard)
    kept = {d: before[d] for d in (*listing.held, *unreadable) if d in before}
    now = kept | {d.doc_id: d.doc_rev for d in documents}
    version = content_version(now)
    workspace.stamps.write(RAW_DOCUMENTS, version, shard)
    if seen.get(shard) == version:
        return
    changes = compare(before, now)
    yield dg.AssetMaterialization(
        RAW_DOCUMENTS,
        partition=shard,
        metadata={
            "dagster/row_count": len(now),
            **document_counts(changes),
            "changed": dg.MetadataValue.md(documents_list(changes)),
        },
        tags={"dagster/data_version": version},
    )


def _parsed(workspace: Workspace, shard: str) -> dict[str, str]:
    """The revision of each document as it was last parsed."""
    rows = workspace.table(DOCUMENTS).read(shard, ["doc_id", "doc_rev"])
    return {} if rows is None else {d: rev for d, rev in rows.iter_rows() if rev}


keep_index_current = dg.AutomationConditionSensorDefinition(
    "keep_index_current",
    target="*",
    use_user_code_server=True,  # the condition is our own class
    minimum_interval_seconds=15,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="Starts what is out of date, in batches, once its inputs are settled.",
)
