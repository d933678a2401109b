"""Everything that is known of one chunk: where it is from, what made it, who served it, what became
of it.

Read from the tables as they are; nothing is kept for this alone but which chunks went, and when.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import polars as pl

from chunking_assets.build_log import BUILDS
from chunking_assets.chunk_embeddings.build import EMBEDDED_CHUNKS, FINGERPRINTS
from chunking_assets.chunk_embeddings.lance_index import KEY, LanceIndex, sql_literal
from chunking_assets.chunk_embeddings.superseded import SUPERSEDED_CHUNKS
from chunking_assets.chunk_embeddings.version import model_of
from chunking_assets.chunk_sets.build import CHUNKS
from chunking_assets.chunk_sets.settings import all_settings
from chunking_assets.errors import CorpusError
from chunking_assets.live_index.promotion import PROMOTIONS
from chunking_assets.parsed_elements.build import DOCUMENTS, ELEMENTS
from chunking_assets.storage import StorageUnavailable, asking_bucket
from chunking_assets.workspace import Workspace

LEAST_PREFIX = 4
SHOWN_TEXT = 200
Row = Mapping[str, Any]


@dataclass(frozen=True)
class Served:
    """A time in which an index of the chunk's was live; `until` is None where it still is.

    `held` says whether it held the chunk when it went live; None where that state is cleaned.
    """

    strategy: str
    index_version: str
    since: datetime
    until: datetime | None
    held: bool | None


@dataclass(frozen=True)
class Explanation:
    """What is known of a chunk. Of one that is gone, `chunk` is None and `superseded` says which
    document it was of, when it went, and the revision that came (None: the document is gone).

    `document` is a row of `documents` without its text, None if it is gone; `chunker` holds every
    setting, defaults too; `indexes` are rows of
    `embedded_chunks` with the model's recorded declaration; `builds` the last builds that changed
    the partitions it is or was in.
    """

    chunk_id: str
    shard: str
    chunker_version: str
    chunk: Row | None
    superseded: Row | None
    document: Row | None
    elements: tuple[Row, ...]
    chunker: Mapping[str, Any] | None
    indexes: tuple[Row, ...]
    builds: tuple[Row, ...]
    served: tuple[Served, ...]


def explain(workspace: Workspace, chunk_id: str) -> Explanation:
    """Explain a chunk named by its id, or by the beginning of it if no other begins so.

    Raises:
        CorpusError: no chunk, or more than one, begins so.
        StorageUnavailable: the bucket cannot be asked; the message names it.
    """
    if len(chunk_id) < LEAST_PREFIX:
        raise CorpusError(f"{chunk_id!r} is too short: give {LEAST_PREFIX} characters at least.")
    begins = pl.col("chunk_id").str.starts_with(chunk_id)
    present = list(_where(workspace, CHUNKS, begins))
    # One that came back is not superseded; one that went more than once went last.
    known = {row["chunk_id"] for _, row in present}
    past = {r["chunk_id"]: (p, r) for p, r in _where(workspace, SUPERSEDED_CHUNKS, begins)}
    gone = [found for found_id, found in past.items() if found_id not in known]
    ids = sorted({row["chunk_id"] for _, row in (*present, *gone)})
    if not ids:
        raise CorpusError(
            f"no chunk begins with {chunk_id!r}: none that is stored, and none that went since "
            "chunks are remembered. Retired versions and shards are forgotten."
        )
    if len(ids) > 1:
        raise CorpusError(f"{len(ids)} chunks begin with {chunk_id!r}: {', '.join(ids[:5])} …")
    ((partition, row),) = (present or gone)[:1]
    name, shard = partition.split("|")
    return _explanation(workspace, row, name.partition("+")[0], shard, is_present=bool(present))


def _explanation(
    workspace: Workspace, row: Row, version: str, shard: str, *, is_present: bool
) -> Explanation:
    chunk_id, doc_id = row["chunk_id"], row["doc_id"]
    of_document = pl.col("doc_id") == doc_id
    documents = [r for _, r in _where(workspace, DOCUMENTS, of_document, shard)]
    elements = [r for _, r in _where(workspace, ELEMENTS, of_document, shard)]
    stated = [r for _, r in _where(workspace, EMBEDDED_CHUNKS, pl.col("chunk_id") == chunk_id)]
    names = [r["index_version"] for r in stated] or [row.get("index_version")]
    indexes = [name for name in names if name is not None]
    partitions = [
        ("parsed_elements", shard),
        ("chunk_sets", f"{version}|{shard}"),
        *(("chunk_embeddings", f"{index}|{shard}") for index in indexes),
    ]
    return Explanation(
        chunk_id=chunk_id,
        shard=shard,
        chunker_version=version,
        chunk=row if is_present else None,
        superseded=None if is_present else row,
        document={k: v for k, v in documents[0].items() if k != "text"} if documents else None,
        elements=tuple(
            e
            for e in elements
            if is_present and e["start"] < row["end"] and e["end"] > row["start"]
        ),
        chunker=all_settings(workspace.declaration("chunkers", version) or {}) or None,
        indexes=tuple({**r, "model": _model(workspace, r["index_version"])} for r in stated),
        builds=tuple(b for asset, p in partitions if (b := _last_build(workspace, asset, p))),
        served=tuple(_served(workspace, chunk_id, indexes)),
    )


def _where(
    workspace: Workspace, name: str, where: pl.Expr, partition: str | None = None
) -> Iterator[tuple[str, Row]]:
    table = workspace.table(name)
    for here in table.partitions() if partition is None else [partition]:
        manifest = table.manifest(here)
        if manifest is not None:
            for row in table.snapshot(manifest).read(where=where).iter_rows(named=True):
                yield here, row


def _model(workspace: Workspace, index_version: str) -> dict[str, Any]:
    name = model_of(index_version)
    declared = workspace.declaration("embedding_models", name) or {}
    return {"name": name, **declared, **(workspace.declaration(FINGERPRINTS, name) or {})}


def _last_build(workspace: Workspace, asset: str, partition: str) -> Row | None:
    builds = workspace.table(BUILDS).read(f"{asset}|{partition}")
    return None if builds is None else builds.row(builds.height - 1, named=True)


def _served(workspace: Workspace, chunk_id: str, indexes: list[str]) -> Iterator[Served]:
    events = workspace.table(PROMOTIONS).read(columns=["at", "strategy", "declaration"])
    rows = [] if events is None else events.rows()
    ends: list[datetime | None] = [at for at, *_ in rows[1:]]
    for (at, strategy, declared), until in zip(rows, [*ends, None], strict=False):
        index = json.loads(declared)["index_version"]
        if index in indexes:
            yield Served(strategy, index, at, until, _held(workspace, index, chunk_id, at))


def _held(workspace: Workspace, index: str, chunk_id: str, at: datetime) -> bool | None:
    with asking_bucket(f"index {index} of {workspace.place}"):
        try:
            table, _ = LanceIndex(workspace, index).open_at(at)
        except StorageUnavailable:
            raise  # what nobody can look at is not taken for cleaned
        except CorpusError:
            return None
        return bool(table.count_rows(f"{KEY} = {sql_literal(chunk_id)}"))


def in_words(found: Explanation) -> str:
    """An explanation as it is printed, a fact a line."""
    return "\n".join(_lines(found))


def _lines(found: Explanation) -> Iterator[str]:
    chunk, gone, document = found.chunk, found.superseded, found.document
    yield f"chunk      {found.chunk_id}"
    if gone is not None:
        came = (
            "the document is gone"
            if gone["doc_rev"] is None
            else f"revision {gone['doc_rev']} came"
        )
        yield f"           superseded on {_at(gone['at'])}: {came}"
    if chunk is not None:
        yield f"           characters {chunk['start']}-{chunk['end']}, {chunk['n_tokens']} tokens"
        yield f"           {' > '.join(chunk['heading_path'] or ()) or '(no heading)'}"
        text = " ".join((chunk["prefix"] + chunk["text"]).split())
        yield f"           {text[:SHOWN_TEXT]}{' …' if len(text) > SHOWN_TEXT else ''}"
    row = chunk or gone or {}
    yield f"document   {row.get('doc_id')} (shard {found.shard})"
    if document is None:
        yield "           not in the corpus any more"
    else:
        yield f"           revision {document['doc_rev']}, {document['status']}"
        yield f"           {document['media_type']}, read by {document['parser']}"
    for element in found.elements:
        yield f"element    {element['kind']} {element['start']}-{element['end']}"
    yield f"chunker    {found.chunker_version}: {_settings(found.chunker)}"
    for index in found.indexes:
        yield f"index      {index['index_version']}: {_settings(index['model'])}"
        yield f"           vector {index['vec_key'] or 'none: it is read, not searched'}"
    for build in found.builds:
        yield f"build      {build['asset']} on {_at(build['at'])}, run {build['run_id']}"
    for served in found.served:
        until = "now" if served.until is None else _at(served.until)
        held = {True: "", False: ", without this chunk", None: ", that state is cleaned"}
        times = f"{_at(served.since)} until {until}"
        yield f"served     {served.strategy} from {times}{held[served.held]}"


def _settings(declared: Mapping[str, Any] | None) -> str:
    if not declared:
        return "no record"
    return ", ".join(f"{key}={value}" for key, value in declared.items() if value is not None)


def _at(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M:%S} UTC"
