"""Keep the workspace from growing: compact, forget what nobody reads, say what takes the space.

Nothing that is served, and nothing that a reader may still hold, is touched; what is removed can
be computed again, or is older than the configuration says it is worth keeping.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from pydantic import BaseModel, ConfigDict, Field

from chunking_assets.chat_models.response_cache import ResponseCache
from chunking_assets.chunk_embeddings.build import EMBEDDED_CHUNKS
from chunking_assets.chunk_embeddings.lance_index import LanceIndex, stored_indexes
from chunking_assets.chunk_embeddings.superseded import forget_superseded
from chunking_assets.chunk_sets.build import CHUNKS, EXCLUDED_SPANS
from chunking_assets.embedding_models.vector_cache import VECTORS, VectorCache
from chunking_assets.errors import CorpusError
from chunking_assets.live_index.promotion import PROMOTIONS
from chunking_assets.workspace import Workspace, disk_bytes


class MaintenanceSettings(BaseModel):
    """`maintenance:`: how long what is no longer served is kept.

    A version of an index stays for `reader_grace_hours` after another took its place, for readers
    that hold it; the last of each day for `keep_days`, and those that a promotion went live with
    for `keep_promotions_days`, to look back. Vectors that no index holds, and replies of models,
    are forgotten once nobody asked for them in `unused_vectors_days` and `unused_replies_days`;
    what became of a chunk after `superseded_chunks_days`. Files that no manifest names go after
    `unnamed_files_hours`.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)
    reader_grace_hours: float = Field(default=24, ge=0)
    keep_days: float = Field(default=7, ge=0)
    keep_promotions_days: float = Field(default=90, ge=0)
    unused_vectors_days: float = Field(default=90, ge=0)
    unused_replies_days: float = Field(default=365, ge=0)
    superseded_chunks_days: float = Field(default=365, ge=0)
    unnamed_files_hours: float = Field(default=24, ge=1)


@dataclass(frozen=True)
class IndexSize:
    """Bytes on disk of one index version; its chunks are those of all indexes of its chunker."""

    index_version: str
    table: int
    chunks: int
    ledger: int


@dataclass(frozen=True)
class Upkeep:
    """What maintenance removed, what it could not look at, and what is there now.

    Bytes freed: `tables` of versions, `files` that no manifest named. `caches` are bytes by the
    name of the folder or file below the workspace's caches; `total` those of the workspace.
    """

    tables: int
    files: int
    vectors: int
    replies: int
    problems: tuple[str, ...]
    sizes: tuple[IndexSize, ...]
    caches: dict[str, int]
    total: int


def maintain(
    workspace: Workspace, settings: MaintenanceSettings, now: datetime | None = None
) -> Upkeep:
    """Compact and clean every index, prune the caches, drop files that nobody names."""
    now = now or datetime.now(UTC)
    grace, keep = timedelta(hours=settings.reader_grace_hours), timedelta(days=settings.keep_days)
    problems: list[str] = []
    tables = 0
    for index in stored_indexes(workspace):
        since = now - timedelta(days=settings.keep_promotions_days)
        pinned = [at for at, promoted in _promotions(workspace) if promoted == index and at > since]
        try:
            tables += LanceIndex(workspace, index).maintain(grace, keep, pinned, now)
        except CorpusError as error:
            problems.append(str(error))
    files = _drop_unnamed(workspace, settings.unnamed_files_hours, problems)
    forget_superseded(workspace, now - timedelta(days=settings.superseded_chunks_days))
    vectors = _prune_vectors(workspace, settings.unused_vectors_days)
    replies = _prune_replies(workspace, settings.unused_replies_days)
    return Upkeep(
        tables=tables,
        files=files,
        vectors=vectors,
        replies=replies,
        problems=tuple(problems),
        sizes=tuple(index_sizes(workspace)),
        caches={path.name: disk_bytes(path) for path in sorted(workspace.caches.glob("*"))},
        total=stored_bytes(workspace),
    )


def index_sizes(workspace: Workspace) -> Iterator[IndexSize]:
    """What each stored index version takes."""
    for index in stored_indexes(workspace):
        version = index.partition("+")[0]
        yield IndexSize(
            index_version=index,
            table=LanceIndex(workspace, index).disk_bytes(),
            chunks=sum(
                workspace.table(table).size(f"{version}|") for table in (CHUNKS, EXCLUDED_SPANS)
            ),
            ledger=workspace.table(EMBEDDED_CHUNKS).size(f"{index}|"),
        )


def report(upkeep: Upkeep) -> str:
    """As it is printed, and shown in the UI: Markdown."""
    lines = ["| index version | table | chunks | ledger |", "|---|--:|--:|--:|"]
    lines += [
        f"| {s.index_version} | {_mb(s.table)} | {_mb(s.chunks)} | {_mb(s.ledger)} |"
        for s in upkeep.sizes
    ]
    lines += ["", "| cache | size |", "|---|--:|"]
    lines += [f"| {name} | {_mb(size)} |" for name, size in upkeep.caches.items()]
    freed = _mb(upkeep.tables + upkeep.files)
    lines += [
        "",
        f"The workspace takes {_mb(upkeep.total)}. Freed: {freed} of old versions and files, "
        f"{upkeep.vectors} vectors, {upkeep.replies} replies.",
        *(f"Not looked at: {problem}" for problem in upkeep.problems),
    ]
    return "\n".join(lines)


def _mb(size: int) -> str:
    return f"{size / 1e6:,.1f} MB"


def stored_bytes(workspace: Workspace) -> int:
    """What a workspace takes: its folder, or what it has in its bucket."""
    if workspace.store.is_shared:
        return sum(file.size for file in workspace.store.files())
    return disk_bytes(workspace.root)


def _promotions(workspace: Workspace) -> list[tuple[datetime, str]]:
    """When which index version went live."""
    events = workspace.table(PROMOTIONS).read(columns=["at", "declaration"])
    rows = [] if events is None else events.rows()
    return [(at, json.loads(declared)["index_version"]) for at, declared in rows]


def _drop_unnamed(workspace: Workspace, hours: float, problems: list[str]) -> int:
    freed = 0
    for table in workspace.tables():
        try:
            freed += table.drop_unnamed(hours * 3600)
        except CorpusError as error:
            problems.append(str(error))
    return freed


def _prune_vectors(workspace: Workspace, days: float) -> int:
    stated = workspace.table(EMBEDDED_CHUNKS).read_all(columns=["vec_key"])
    held = [] if stated is None else stated["vec_key"].drop_nulls().unique().to_list()
    # The size of the vectors is nothing that forgetting them asks for.
    files = sorted((workspace.caches / VECTORS).glob("*.sqlite"))
    return sum(VectorCache(f.parent, f.stem, dimensions=0).prune(days, held) for f in files)


def _prune_replies(workspace: Workspace, days: float) -> int:
    pruned = 0
    for file in sorted(workspace.caches.glob("*.sqlite")):
        with ResponseCache(file) as replies:
            pruned += replies.prune(days)
    return pruned
