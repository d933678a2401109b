"""Sensors: one that looks for changed documents, one that keeps the index current.

A look may take longer than a tick has: what it found is kept in the workspace, and the next tick
goes on. The cursor holds one version a shard and one a declaration. A lost one costs nothing: all
is reported once more, and what is built is compared with stamps, not with the cursor.
"""

import json
import time
from collections.abc import Callable, Iterator
from typing import Any

import dagster as dg

from chunking_assets.chunk_sets.build import CHUNKS
from chunking_assets.config import Config
from chunking_assets.errors import CorpusError
from chunking_assets.keys import digest
from chunking_assets.parsed_elements.build import revisions_parsed
from chunking_assets.raw_documents.changes import compare
from chunking_assets.raw_documents.collection import Collection
from chunking_assets.raw_documents.listing import content_version
from chunking_assets.raw_documents.look import Clock, Look, Unfinished, look
from chunking_assets.workspace import Workspace
from dagster_defs.assets.summary import document_counts, documents_list
from dagster_defs.inputs import RAW_DOCUMENTS, shards_to_retire
from dagster_defs.jobs import retire_job
from dagster_defs.partitions import corpus_shards
from dagster_defs.resources import Corpus

CHUNKER_VERSIONS = "chunker_versions"
NEXT = "next"

TICK_SECONDS = 6.0
"""After these a look goes on in the next tick. What was found is then still to be compared and
stored; Dagster kills a tick after 60."""

Seen = dict[str, dict[str, str]]
"""Asset -> partition -> the version reported last."""

LookAt = Callable[[str, Collection], Look | Unfinished]


@dg.sensor(
    name="watch_documents",
    minimum_interval_seconds=15,
    default_status=dg.DefaultSensorStatus.RUNNING,
    job=retire_job,
    description=(
        "Reports the shards whose documents changed, and chunker versions declared anew. A file "
        "still being written is waited for; a source that cannot be listed deletes nothing; a look "
        "that takes longer than a tick goes on in the next."
    ),
)
def watch_documents(context: dg.SensorEvaluationContext, corpus: Corpus) -> dg.SensorResult:
    cursor: dict[str, Any] = json.loads(context.cursor or "{}")
    interrupted: str | None = cursor.pop(NEXT, None)
    seen: Seen = cursor
    problems: list[str] = []
    ticking = Ticking(corpus.config, corpus.workspace)
    events = list(
        observe(corpus.config, corpus.workspace, seen, problems, ticking.look, first=interrupted)
    )
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
        cursor=json.dumps(seen | ({NEXT: ticking.interrupted} if ticking.interrupted else {})),
        skip_reason="; ".join(problems)
        or ("no document and no declaration changed" if quiet else None),
    )


class Ticking:
    """Looks at collections within the seconds of one tick.

    `interrupted` is the collection whose look is not finished; those after it wait with it for the
    next tick, which begins there. So do those after a source that kept the tick waiting in vain.
    """

    def __init__(
        self,
        config: Config,
        workspace: Workspace,
        seconds: float = TICK_SECONDS,
        clock: Clock = time.monotonic,
    ) -> None:
        self._config, self._caches = config, workspace.caches
        self._clock, self._until = clock, clock() + seconds
        self.interrupted: str | None = None
        self._is_over = False

    def look(self, name: str, collection: Collection) -> Look | Unfinished:
        if self._is_over and self.interrupted is None:
            self.interrupted = name
        if self.interrupted is not None:
            return Unfinished(0)
        try:
            found = look(
                name,
                collection,
                self._config.root,
                self._caches,
                until=self._until,
                clock=self._clock,
            )
        except CorpusError:
            self._is_over = self._clock() >= self._until
            raise
        if isinstance(found, Unfinished):
            self.interrupted = name
        return found


def _retirement(config: Config, workspace: Workspace) -> Iterator[dg.RunRequest]:
    """A run that drops shards no longer declared, once for what they hold.

    A run key is remembered for ever, and the same shards may come and go again: it is made of the
    files that hold them, whose names are never used twice.
    """
    shards = shards_to_retire(config, workspace)
    if shards:
        held = [
            (p, workspace.table(CHUNKS).manifest(p)) for p in workspace.table(CHUNKS).partitions()
        ]
        files = [(p, m.files) for p, m in held if m and p.rpartition("|")[2] in shards]
        yield dg.RunRequest(job_name=retire_job.name, run_key=digest("retire", shards, files))


def observe(
    config: Config,
    workspace: Workspace,
    seen: Seen,
    problems: list[str],
    look_at: LookAt,
    first: str | None = None,
) -> Iterator[dg.AssetMaterialization]:
    """One event for every shard and declaration that is not as it was `seen`.

    The stamp of a shard is written with its event: the stages below compare with it. Collections
    are looked at in turn, beginning with `first`. A file still being written is left for a later
    look, and so is a collection that cannot be listed, or not in time: why is added to `problems`.
    """
    names = list(config.collections)
    begin = names.index(first) if first in names else 0
    for name in names[begin:] + names[:begin]:
        collection = config.collections[name]
        try:
            found = look_at(name, collection)
        except CorpusError as error:
            problems.append(str(error))
            continue
        if isinstance(found, Unfinished):
            problems.append(
                f"{name}: {found.files:,} files looked at so far; the next tick goes on"
            )
            continue
        problems += [f"{doc_id} is still being written" for doc_id in sorted(found.held)]
        waiting = {collection.shard_of(name, doc_id) for doc_id in found.held}
        for shard in collection.shards_of(name):
            if shard not in waiting or shard in seen.get(RAW_DOCUMENTS, {}):
                yield from _observe_shard(workspace, shard, found, seen.get(RAW_DOCUMENTS, {}))
    for version in config.chunker_versions.values():
        if seen.get(CHUNKER_VERSIONS, {}).get(version.name) != version.digest:
            yield dg.AssetMaterialization(
                CHUNKER_VERSIONS,
                partition=version.name,
                metadata={"kind": version.chunker.kind, "max_tokens": version.chunker.max_tokens},
                tags={"dagster/data_version": version.digest},
            )


def _observe_shard(
    workspace: Workspace, shard: str, found: Look, seen: dict[str, str]
) -> Iterator[dg.AssetMaterialization]:
    absent = found.held | found.unreadable
    before = revisions_parsed(workspace, shard) if absent else {}
    now = {**{d: before[d] for d in absent if d in before}, **found.revisions[shard]}
    version = content_version(now)
    workspace.stamps.write(RAW_DOCUMENTS, version, shard)
    if seen.get(shard) == version:
        return
    changes = compare(before or revisions_parsed(workspace, shard), now)
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


keep_index_current = dg.AutomationConditionSensorDefinition(
    "keep_index_current",
    target="*",
    use_user_code_server=True,  # the condition is our own class
    minimum_interval_seconds=15,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="Starts what is out of date, in batches, once its inputs are settled.",
)
