"""Bring one shard of `documents` and `elements` up to date with the files.

Only documents whose bytes or parser changed are parsed. A document that cannot be parsed is a row
with a status, an error and a cure; its neighbours go on. Elements are written before the documents
that vouch for them by their sha, so a crash between the two is noticed by the next reader.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path

import polars as pl

from chunking_assets.embedding_models.model import Progress
from chunking_assets.keys import digest
from chunking_assets.parsed_elements.document import Element
from chunking_assets.parsed_elements.language import detect_language
from chunking_assets.parsed_elements.parse import (
    ELEMENTS_SCHEMA,
    ParsedDocument,
    elements_frame,
    parse_document,
    parse_key,
)
from chunking_assets.raw_documents.changes import ChangeSet, compare, guard_deletion
from chunking_assets.raw_documents.collection import Collection
from chunking_assets.raw_documents.listing import (
    FileIndex,
    Scan,
    SourceDocument,
    content_version,
    scan_settled,
)
from chunking_assets.raw_documents.media_type import media_type
from chunking_assets.workspace import Workspace

DOCUMENTS, ELEMENTS, TOMBSTONES = "documents", "elements", "tombstones"
HEAD_BYTES = 8192

DOCUMENTS_SCHEMA = pl.Schema(
    {
        "doc_id": pl.String(),
        "collection": pl.String(),
        "path": pl.String(),
        "doc_rev": pl.String(),
        "media_type": pl.String(),
        "size": pl.Int64(),
        "modified_at": pl.Datetime("us", "UTC"),
        "status": pl.String(),
        "error": pl.String(),
        "cure": pl.String(),
        "parser": pl.String(),
        "parse_key": pl.String(),
        "text": pl.String(),
        "text_sha": pl.String(),
        "elements_sha": pl.String(),
        "n_chars": pl.Int64(),
        "n_elements": pl.Int64(),
        "language": pl.String(),
        "language_confidence": pl.Float64(),
    }
)

KNOWN = [
    "doc_id",
    "doc_rev",
    "media_type",
    "status",
    "parse_key",
    "text_sha",
    "elements_sha",
    "language",
]
"""What of the stored rows decides what is done; texts are only read when something is."""

Row = Mapping[str, object]


@dataclass(frozen=True)
class DocumentsUpdate:
    """What one update did. `input_version` names the bytes read, `content_version` the texts,
    elements and languages that came of them; `failed` are documents without a text, `passed_over`
    paths that are not documents, with the reason."""

    shard: str
    changes: ChangeSet
    input_version: str
    content_version: str
    rows: int
    failed: tuple[str, ...]
    held: tuple[str, ...]
    passed_over: tuple[tuple[str, str], ...]


def update_documents(
    workspace: Workspace,
    shard: str,
    name: str,
    collection: Collection,
    root: Path,
    *,
    listing: Scan | None = None,
    confirm_deletions: bool = False,
    progress: Progress | None = None,
) -> DocumentsUpdate:
    """Parse what is new or changed in one shard of collection `name`, drop what is gone.

    Raises:
        DeletionRefused: the listing is empty or lost over 30 % of the shard, unconfirmed.
        CorpusError: the folder cannot be listed.
    """
    with workspace.lock(f"{DOCUMENTS} {shard}"):
        return _update(
            workspace,
            shard,
            name,
            collection,
            listing or scan_settled(name, collection, root),
            confirm_deletions,
            progress,
        )


def _update(
    workspace: Workspace,
    shard: str,
    name: str,
    collection: Collection,
    listing: Scan,
    confirm_deletions: bool,
    progress: Progress | None,
) -> DocumentsUpdate:
    settled = [f for f in listing.files[shard] if f.doc_id not in listing.held]
    documents, unreadable = FileIndex(workspace.caches, shard).revisions(settled)
    before = _known(workspace, shard)
    known = {} if before is None else {r["doc_id"]: r for r in before.iter_rows(named=True)}

    gone = known.keys() - {d.doc_id for d in documents} - listing.held - set(unreadable)
    if not confirm_deletions:
        indexed = {d for d, row in known.items() if row["status"] == "ok"}
        guard_deletion(shard, len(indexed), len(gone & indexed))

    sound = _with_their_elements(workspace, shard)
    redo = [
        d
        for d in documents
        if d.doc_id not in sound or not _is_current(d, known[d.doc_id], collection)
    ]
    parsed: dict[str, tuple[Row, ParsedDocument]] = {}
    for number, document in enumerate(redo, 1):
        try:
            parsed[document.doc_id] = _parse(document, name, collection)
        except OSError:
            unreadable.append(document.doc_id)
        if progress:
            progress(number, len(redo))
    new = {doc_id: row for doc_id, (row, _) in parsed.items()}
    new |= {d: _unreadable(d, name) for d in unreadable if d not in known}
    rows = {d: row for d, row in known.items() if d not in gone} | new
    changes = compare(
        {d: str(r["parse_key"]) for d, r in known.items()},
        {d: str(r["parse_key"]) for d, r in rows.items()},
    )
    if changes or parsed or before is None or len(sound) < len(known):
        _bury(workspace, shard, [known[d] for d in changes.removed])
        elements = {doc_id: document.elements for doc_id, (_, document) in parsed.items()}
        _write(workspace, shard, rows, new, elements)
    return DocumentsUpdate(
        shard=shard,
        changes=changes,
        input_version=content_version(
            {d: str(r["doc_rev"]) for d, r in rows.items() if r["doc_rev"]}
        ),
        content_version=_content_version(rows.values()),
        rows=len(rows),
        failed=tuple(
            sorted(
                {d for d, r in rows.items() if r["status"] not in ("ok", "empty")} | {*unreadable}
            )
        ),
        held=tuple(sorted(d for d in listing.held if collection.shard_of(name, d) == shard)),
        passed_over=tuple(listing.skipped),
    )


def _known(workspace: Workspace, shard: str) -> pl.DataFrame | None:
    """The stored rows without their texts. A column that an earlier release did not store is null:
    its documents have another parse key too, and are parsed again while they can be read."""
    table = workspace.table(DOCUMENTS)
    if table.read(shard, ["doc_id"]) is None:
        return None
    stored = pl.read_parquet_schema(table.files([shard])[0])
    found = table.read(shard, [name for name in KNOWN if name in stored])
    assert found is not None
    return pl.concat([DOCUMENTS_SCHEMA.to_frame().select(KNOWN), found], how="diagonal")


def _with_their_elements(workspace: Workspace, shard: str) -> set[str]:
    """Documents whose stored elements were made with their stored text.

    Not so after a crash between the two tables, or when one of them was removed.
    """
    documents, elements = (workspace.table(t).manifest(shard) for t in (DOCUMENTS, ELEMENTS))
    if documents is None or elements is None:
        return set()
    return {d for d, key in documents.keys.items() if elements.keys.get(d) == key}


def _is_current(document: SourceDocument, row: Row, collection: Collection) -> bool:
    if row["status"] == "too_large" and document.stat.size <= collection.max_bytes:
        return False
    return row["parse_key"] == parse_key(document.doc_rev, str(row["media_type"]))


def _parse(
    document: SourceDocument, name: str, collection: Collection
) -> tuple[Row, ParsedDocument]:
    stat = document.stat
    if stat.size > collection.max_bytes:
        kind, doc_rev = "application/octet-stream", document.doc_rev
        parsed = ParsedDocument.failure(
            "too_large",
            f"{stat.size:,} bytes, the limit is {collection.max_bytes:,}",
            f"Raise collections.{name}.max_bytes, or exclude the file.",
        )
    else:
        data = stat.path.read_bytes()
        doc_rev = sha256(data).hexdigest()
        kind = media_type(data[:HEAD_BYTES], stat.path.name)
        parsed = parse_document(data, stat.path.name, kind)
    row = {
        **_identity(stat.doc_id, name),
        "doc_rev": doc_rev,
        "media_type": kind,
        "size": stat.size,
        "modified_at": datetime.fromtimestamp(stat.modified_ns // 1000 / 1e6, UTC),
        "parse_key": parse_key(doc_rev, kind),
        **_outcome(parsed),
    }
    return row, parsed


def _unreadable(doc_id: str, name: str) -> Row:
    """A row without a key, so that the next run tries again."""
    return {
        **_identity(doc_id, name),
        "doc_rev": "",
        "media_type": "",
        "size": 0,
        "modified_at": None,
        "parse_key": "",
        **_outcome(
            ParsedDocument.failure(
                "unreadable", "the file cannot be read", "Make it readable; it is tried again."
            )
        ),
    }


def _identity(doc_id: str, name: str) -> Row:
    return {"doc_id": doc_id, "collection": name, "path": doc_id.removeprefix(f"{name}/")}


def _outcome(parsed: ParsedDocument) -> Row:
    language = detect_language(parsed.text, parsed.elements)
    return {
        "status": parsed.status,
        "error": parsed.error,
        "cure": parsed.cure,
        "parser": parsed.parser,
        "text": parsed.text,
        "text_sha": parsed.text_sha,
        "elements_sha": parsed.elements_sha,
        "n_chars": len(parsed.text),
        "n_elements": len(parsed.elements),
        "language": language and language.code,
        "language_confidence": language and language.confidence,
    }


def _write(
    workspace: Workspace,
    shard: str,
    rows: Mapping[str, Row],
    new: Mapping[str, Row],
    elements: Mapping[str, Sequence[Element]],
) -> None:
    """Replace both tables: what is `new`, and of the stored rows those still among `rows`."""
    keys = {d: str(row["parse_key"]) for d, row in sorted(rows.items())}
    unchanged = rows.keys() - new.keys()
    frames = {
        ELEMENTS: [
            ELEMENTS_SCHEMA.to_frame(),
            *(elements_frame(doc_id, found) for doc_id, found in elements.items()),
        ],
        DOCUMENTS: [pl.DataFrame(list(new.values()), schema=DOCUMENTS_SCHEMA)],
    }
    details = {"content_version": _content_version(rows.values())}
    for name, order in ((ELEMENTS, ["doc_id", "ordinal"]), (DOCUMENTS, ["doc_id"])):
        table = workspace.table(name)
        stored = table.read(shard)
        if stored is not None:
            frames[name].append(stored.filter(pl.col("doc_id").is_in(unchanged)))
        made, *_ = frames[name]
        whole = pl.concat(frames[name], how="diagonal").select(made.columns)
        table.replace(whole.sort(order), shard, keys=keys, details=details)


def _bury(workspace: Workspace, shard: str, removed: Sequence[Row]) -> None:
    """Remember what was removed and when: one row per document revision."""
    if not removed:
        return
    graves = pl.DataFrame(
        {
            "doc_id": [r["doc_id"] for r in removed],
            "doc_rev": [r["doc_rev"] for r in removed],
            "removed_at": [datetime.now(UTC)] * len(removed),
        }
    )
    table = workspace.table(TOMBSTONES)
    before = table.read(shard)
    if before is not None:
        graves = pl.concat([before, graves])
    graves = graves.unique(["doc_id", "doc_rev"], keep="last", maintain_order=True)
    table.replace(graves, shard, keys={f"{d}@{rev}": str(at) for d, rev, at in graves.iter_rows()})


def _content_version(rows: Iterable[Row]) -> str:
    return digest(
        "parsed_elements",
        sorted(
            (r["doc_id"], r["text_sha"], r["elements_sha"], r["status"], r["language"] or "")
            for r in rows
        ),
    )
