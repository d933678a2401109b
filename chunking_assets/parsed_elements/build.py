"""Bring one shard of `documents` and `elements` up to date with its source.

Only documents whose bytes or parser changed are parsed, and bytes parsed before under any name are
not. A document that cannot be parsed is a row with a status, an error and a cure; one that could be
before keeps its text, marked as stale. Its neighbours go on. Elements are written before the
documents that vouch for them by their sha, so a crash between the two is noticed.
"""

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

import polars as pl

from chunking_assets.embedding_models.model import Progress
from chunking_assets.keys import digest
from chunking_assets.parsed_elements.document import Element
from chunking_assets.parsed_elements.language import detect_language
from chunking_assets.parsed_elements.limits import DEFAULTS, Limits
from chunking_assets.parsed_elements.parse import (
    ELEMENTS_SCHEMA,
    READABLE,
    ParsedDocument,
    elements_frame,
    outcome_key,
    parse_document,
    parse_key,
)
from chunking_assets.parsed_elements.reuse import DOCUMENTS as DOCUMENTS
from chunking_assets.parsed_elements.reuse import ELEMENTS as ELEMENTS
from chunking_assets.parsed_elements.reuse import ParsedBefore, Place
from chunking_assets.raw_documents.changes import ChangeSet, compare, guard_deletion, moves
from chunking_assets.raw_documents.collection import Collection
from chunking_assets.raw_documents.listing import (
    FileIndex,
    ListedFile,
    Scan,
    content_version,
    scan_settled,
)
from chunking_assets.raw_documents.media_type import BINARY, media_type
from chunking_assets.workspace import Workspace

TOMBSTONES = "tombstones"
HEAD_BYTES = 8192
READ_AHEAD = 32
"""Files of a distant source that are held in memory before they are parsed."""

RETRIED = ("unreadable", "crashed", "timeout")
"""Statuses that the same bytes need not have again: they are of the moment, or of the machine."""

TO_RETRY = "to_retry"
"""How many documents of a shard are worth another try, in the details of its manifest."""

ARRIVED = "arrived"
"""Documents that a shard took from others, with the path each had there, in the details of its
manifest: a shard that is read later, after a crash or in its own run, learns where they went."""

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
        "stale_since": pl.Datetime("us", "UTC"),
        "newest_rev": pl.String(),
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
    "size",
    "status",
    "error",
    "cure",
    "stale_since",
    "newest_rev",
    "parse_key",
    "text_sha",
    "elements_sha",
    "language",
]
"""What of the stored rows decides what is done; texts are only read when something is."""

OWN = [
    "doc_id",
    "collection",
    "path",
    "doc_rev",
    "media_type",
    "size",
    "modified_at",
    "stale_since",
    "newest_rev",
    "parse_key",
]
"""What a document has of its own where its text was made for another path."""

OF_CONTENT = ["status", "error", "cure", "text_sha", "elements_sha", "language"]

SHOWN = ["parse_key", "status", "error", "newest_rev"]
"""What makes another version of the tables, so that it is published."""

REPLACES = (*READABLE, "empty")
"""Statuses of content that takes the place of what was there; any other is a failure to read it."""

REFUSED_CURE = "Rename it, put the file itself there, or exclude it."

MARKS = ["error", "cure", "stale_since", "newest_rev"]
"""What says that a row is of an earlier revision than the file is now."""

TOMBSTONES_SCHEMA = pl.Schema(
    {
        "doc_id": pl.String(),
        "doc_rev": pl.String(),
        "removed_at": pl.Datetime("us", "UTC"),
        "reason": pl.String(),
        "moved_to": pl.String(),
    }
)

Row = Mapping[str, Any]


@dataclass(frozen=True)
class DocumentsUpdate:
    """What one update did. `input_version` names the bytes read, `content_version` the texts,
    elements and languages that came of them; `failed` are documents without a text of their
    present bytes, of which the `stale` are served as they were before; `parsed` counts the calls
    of a parser, `reused` the results taken over from the same bytes under another path;
    `passed_over` are paths that are not documents, with the reason."""

    shard: str
    changes: ChangeSet
    input_version: str
    content_version: str
    rows: int
    failed: tuple[str, ...]
    held: tuple[str, ...]
    passed_over: tuple[tuple[str, str], ...]
    stale: tuple[str, ...] = ()
    parsed: int = 0
    reused: int = 0


def update_documents(
    workspace: Workspace,
    shard: str,
    name: str,
    collection: Collection,
    root: Path,
    *,
    limits: Limits = DEFAULTS,
    listing: Scan | None = None,
    parsed_before: ParsedBefore | None = None,
    confirm_deletions: bool = False,
    progress: Progress | None = None,
) -> DocumentsUpdate:
    """Parse what is new or changed in one shard of collection `name`, drop what is gone.

    `parsed_before` is made once for a run over several shards, so that documents that moved from
    one to another are found in both orders.

    Raises:
        DeletionRefused: the listing is empty or lost over 30 % of the shard, unconfirmed.
        CorpusError: the source cannot be listed.
    """
    with workspace.lock(f"{DOCUMENTS} {shard}"):
        return _Update(
            workspace,
            shard,
            name,
            collection,
            limits,
            listing or scan_settled(name, collection, root),
            parsed_before or ParsedBefore(workspace),
        ).run(confirm_deletions, progress)


class _Update:
    """The steps of `update_documents`."""

    def __init__(
        self,
        workspace: Workspace,
        shard: str,
        name: str,
        collection: Collection,
        limits: Limits,
        listing: Scan,
        parsed_before: ParsedBefore,
    ) -> None:
        self.workspace, self.shard, self.name, self.collection = workspace, shard, name, collection
        self.limits, self.listing, self.parsed_before = limits, listing, parsed_before
        self.index = FileIndex(workspace.caches, shard)
        before = _known(workspace, shard)
        self.is_first = before is None
        self.known: dict[str, Row] = (
            {} if before is None else {r["doc_id"]: r for r in before.iter_rows(named=True)}
        )
        self.sound = _with_their_elements(workspace, shard)
        skipped = {f"{name}/{path}": reason for path, reason in listing.skipped}
        for file in listing.files[shard]:
            skipped.pop(file.doc_id, None)
        self.refused = {
            d: why for d, why in skipped.items() if collection.shard_of(name, d) == shard
        }
        self.new: dict[str, Row] = {}
        """Whole rows, by document; of those taken over, only what decides."""
        self.elements: dict[str, Sequence[Element]] = {}
        self.taken: dict[str, Place] = {}
        self.marks: dict[str, Row] = {}
        self.parsed = 0

    def run(self, confirm_deletions: bool, progress: Progress | None) -> DocumentsUpdate:
        files, held = self.listing.files[self.shard], self.listing.held
        gone = self.known.keys() - {f.doc_id for f in files} - held - self.still_refused()
        moved, saved = self.elsewhere(gone)
        excluded = {d for d in gone if not self.includes(d)}
        if not confirm_deletions:
            self.guard(gone, saved, excluded)
        self.read([f for f in files if f.doc_id not in held and not self.is_current(f)], progress)
        self.refuse()
        rows = {d: row for d, row in self.known.items() if d not in gone} | self.new
        rows |= {d: {**rows[d], **mark} for d, mark in self.marks.items()}
        changes = compare(_keys(self.known), _keys(rows))
        changes = replace(
            changes,
            moved=tuple(sorted(moved.items())),
            excluded=tuple(sorted(excluded.intersection(changes.removed))),
        )
        if changes or self.new or self.marks or self.is_first or len(self.sound) < len(self.known):
            self.bury(changes)
            self.write(rows)
        self.index.save({f.doc_id for f in files})
        return self.update(changes, rows)

    def includes(self, doc_id: str) -> bool:
        return self.collection.includes(doc_id.removeprefix(f"{self.name}/"))

    def guard(self, gone: Set[str], saved: Set[str], excluded: Set[str]) -> None:
        indexed = {d for d, row in self.known.items() if row["status"] in READABLE}
        guard_deletion(
            self.shard,
            len(indexed),
            len((gone & indexed) - saved - excluded),
            len(excluded & indexed),
            nothing_listed=not any(self.listing.files.values()),
        )

    def elsewhere(self, gone: Set[str]) -> tuple[dict[str, str], Set[str]]:
        """Of the documents that are gone, those that moved with the path they have now, and those
        whose bytes are anywhere in the collection.

        Only files of the same size are hashed for it, where their hash is not known.
        """
        lost = {d: str(self.known[d]["doc_rev"]) for d in gone if self.known[d]["doc_rev"]}
        sizes = {self.known[d]["size"] for d in lost}
        found: dict[str, str] = {}
        new: dict[str, str] = {}
        for shard, files in self.listing.files.items():
            alike = [f for f in files if f.file.size in sizes and f.doc_id not in self.listing.held]
            if not alike:
                continue
            index = self.index if shard == self.shard else FileIndex(self.workspace.caches, shard)
            for file in alike:
                try:
                    found[file.doc_id] = index.known(file) or sha256(file.read()).hexdigest()
                except OSError:
                    continue  # said of it where it is parsed
            known, arrived = self.parsed_before.documents(shard), _arrived(self.workspace, shard)
            new |= {
                d: found[d]
                for f in alike
                if (d := f.doc_id) in found and (d not in known or arrived.get(d) in lost)
            }
        revisions = {*found.values()}
        return moves(lost, new), {d for d, doc_rev in lost.items() if doc_rev in revisions}

    def is_current(self, file: ListedFile) -> bool:
        """Whether the stored row is of the file's content, as far as that is known unread."""
        row = self.known.get(file.doc_id)
        if row is None or file.doc_id not in self.sound or row["stale_since"] is not None:
            return False
        if file.size > self.collection.max_bytes:
            return bool(row["doc_rev"] == file.unread_revision)
        return self.index.known(file) == row["doc_rev"] and self.would_come_out_the_same(row)

    def would_come_out_the_same(self, row: Row) -> bool:
        """Whether the bytes of a stored row are not worth another try."""
        if row["status"] == "too_large" and row["media_type"] == BINARY:  # never looked into
            return bool(row["size"] > self.collection.max_bytes)
        if self.told(row["doc_id"]) not in (None, row["media_type"]):
            return False
        kind = self.collection.read_by(row["media_type"])
        key = outcome_key(row["status"], row["doc_rev"], kind, self.limits)
        return row["status"] not in RETRIED and bool(
            row["parse_key"] == self.own_key(row["doc_id"], key)
        )

    def told(self, doc_id: str) -> str | None:
        """The media type that the collection gives a document, whatever it looks like."""
        return self.collection.type_of(doc_id.removeprefix(f"{self.name}/"))

    def own_key(self, doc_id: str, key: str) -> str:
        """Another key for what is read as it was told to be: untold, its content is asked anew."""
        return digest("read as", key) if self.told(doc_id) else key

    def read(self, files: Sequence[ListedFile], progress: Progress | None) -> None:
        contents = _contents(files, self.collection.max_bytes)
        for number, (file, content, read_at_ns) in enumerate(contents, 1):
            self.take(file, content, read_at_ns)
            if progress:
                progress(number, len(files))

    def take(self, file: ListedFile, content: bytes | OSError | None, read_at_ns: int) -> None:
        """Note what a file's content comes to; None is one too large to be read."""
        if isinstance(content, OSError):
            # As a look names what it does not read: at the next one it is no news.
            is_named = not file.source.is_local and file.file.mark is not None
            doc_rev = file.unread_revision if is_named else ""
            self.keep_or_add(file, _unreadable(content), doc_rev, "")
            return
        if content is None or len(content) > self.collection.max_bytes:
            size = file.size if content is None else len(content)
            doc_rev = file.unread_revision if content is None else sha256(content).hexdigest()
            self.keep_or_add(file, self.too_large(size), doc_rev, BINARY, size)
            return
        doc_rev = sha256(content).hexdigest()
        self.index.learn(file, doc_rev, read_at_ns)
        kind = self.told(file.doc_id) or media_type(content[:HEAD_BYTES], file.name)
        row = self.known.get(file.doc_id)
        if (
            row is not None
            and file.doc_id in self.sound
            and row["stale_since"] is None
            and (row["doc_rev"], row["media_type"]) == (doc_rev, kind)
            and self.would_come_out_the_same(row)
        ):
            return  # touched, not changed
        if self.take_over(file, doc_rev, kind, len(content)):
            return
        self.parsed += 1
        parsed = parse_document(content, file.name, self.collection.read_by(kind), self.limits)
        self.keep_or_add(file, parsed, doc_rev, kind, len(content))

    def take_over(self, file: ListedFile, doc_rev: str, kind: str, size: int) -> bool:
        """Use what the same bytes came to under another path."""
        key = self.own_key(file.doc_id, parse_key(doc_rev, self.collection.read_by(kind)))
        found = self.parsed_before.find(key, OF_CONTENT)
        if found is None or found[0] == Place(self.shard, file.doc_id):
            return False
        place, facts = found
        self.taken[file.doc_id] = place
        self.new[file.doc_id] = {**facts, **self.identity(file, doc_rev, kind, size)}
        return True

    def keep_or_add(
        self, file: ListedFile, parsed: ParsedDocument, doc_rev: str, kind: str, size: int = 0
    ) -> None:
        """A new row; or, where there is no text now and was one before, a mark on the old row."""
        row = self.known.get(file.doc_id)
        is_sound = file.doc_id in self.sound
        is_failure = parsed.status not in REPLACES
        if row is not None and is_sound and row["status"] in READABLE and is_failure:
            mark = {
                "error": f"{parsed.error}; what is served is its last revision that could be read",
                "cure": parsed.cure,
                "stale_since": row["stale_since"] or datetime.now(UTC),
                "newest_rev": doc_rev or None,
            }
            if any(row[column] != mark[column] for column in MARKS):
                self.marks[file.doc_id] = mark
            return
        outcome = _outcome(parsed, self.workspace.models)
        new = {**self.identity(file, doc_rev, kind, size), **outcome}
        if doc_rev:
            read_by = self.collection.read_by(kind)
            key = outcome_key(parsed.status, doc_rev, read_by, self.limits)
            new["parse_key"] = self.own_key(file.doc_id, key)
        if row is None or not is_sound or any(row[column] != new[column] for column in KNOWN):
            self.new[file.doc_id], self.elements[file.doc_id] = new, parsed.elements

    def too_large(self, size: int) -> ParsedDocument:
        return ParsedDocument.failure(
            "too_large",
            f"{size:,} bytes, the limit is {self.collection.max_bytes:,}",
            f"Raise collections.{self.name}.max_bytes, or exclude the file.",
        )

    def identity(self, file: ListedFile, doc_rev: str, kind: str, size: int) -> Row:
        modified_ns, read_by = file.file.modified_ns, self.collection.read_by(kind)
        return {
            **_identity(file.doc_id, self.name),
            "doc_rev": doc_rev,
            "media_type": kind,
            "size": size,
            "modified_at": modified_ns and datetime.fromtimestamp(modified_ns // 1000 / 1e6, UTC),
            "parse_key": self.own_key(file.doc_id, parse_key(doc_rev, read_by)) if doc_rev else "",
        }

    def still_refused(self) -> set[str]:
        return {d for d in self.refused if d in self.known and self.known[d]["status"] == "refused"}

    def refuse(self) -> None:
        """A row for each path that is passed over, so that it is seen why it is in no index."""
        for doc_id, reason in self.refused.items():
            row = self.known.get(doc_id, {})
            if (row.get("status"), row.get("error")) != ("refused", reason):
                outcome = _outcome(
                    ParsedDocument.failure("refused", reason, REFUSED_CURE), self.workspace.models
                )
                self.new[doc_id] = {**_identity(doc_id, self.name), **outcome}
                self.elements[doc_id] = ()

    def bury(self, changes: ChangeSet) -> None:
        """Remember what was removed, when and why: one row per document revision."""
        removed = [d for d in changes.removed if self.known[d]["doc_rev"]]
        if not removed:
            return
        moved = dict(changes.moved)
        reasons = {**dict.fromkeys(moved, "moved"), **dict.fromkeys(changes.excluded, "excluded")}
        new = pl.DataFrame(
            {
                "doc_id": removed,
                "doc_rev": [self.known[d]["doc_rev"] for d in removed],
                "removed_at": [datetime.now(UTC)] * len(removed),
                "reason": [reasons.get(d, "gone") for d in removed],
                "moved_to": [moved.get(d) for d in removed],
            },
            schema=TOMBSTONES_SCHEMA,
        )
        table = self.workspace.table(TOMBSTONES)
        before = table.read(self.shard)
        graves = new if before is None else pl.concat([before, new], how="diagonal")
        graves = graves.unique(["doc_id", "doc_rev"], keep="last", maintain_order=True)
        named = graves.select("doc_id", "doc_rev", "removed_at").iter_rows()
        table.replace(graves, self.shard, keys={f"{d}@{rev}": str(at) for d, rev, at in named})

    def write(self, rows: Mapping[str, Row]) -> None:
        """Replace both tables: what is new, and of the stored rows those still among `rows`."""
        new = [row for doc_id, row in self.new.items() if doc_id not in self.taken]
        made = {
            ELEMENTS: [
                *(
                    elements_frame(doc_id, self.new[doc_id]["text"], found)
                    for doc_id, found in self.elements.items()
                ),
                *self.parsed_before.rows(ELEMENTS, self.taken),
            ],
            DOCUMENTS: [pl.DataFrame(new, schema=DOCUMENTS_SCHEMA), *self.taken_over()],
        }
        schemas = {ELEMENTS: ELEMENTS_SCHEMA, DOCUMENTS: DOCUMENTS_SCHEMA}
        version = digest({d: [r[column] for column in SHOWN] for d, r in rows.items()})
        arrived = self.arrived(rows.keys())
        for name, order in ((ELEMENTS, ["doc_id", "ordinal"]), (DOCUMENTS, ["doc_id"])):
            frames = [schemas[name].to_frame(), *made[name]]
            stored = self.workspace.table(name).read(self.shard)
            if stored is not None:
                kept = stored.filter(pl.col("doc_id").is_in(rows.keys() - self.new.keys()))
                frames.append(self.marked(kept) if name == DOCUMENTS else kept)
            whole = pl.concat(frames, how="diagonal").select(schemas[name].names()).sort(order)
            self.workspace.table(name).replace(
                whole,
                self.shard,
                keys=_keys(rows),
                version=version,
                details={
                    "content_version": _content_version(rows.values()),
                    TO_RETRY: sum(_is_to_retry(row) for row in rows.values()),
                    ARRIVED: arrived,
                },
            )

    def arrived(self, doc_ids: Set[str]) -> dict[str, str]:
        """What came from a shard whose table still holds it under its old path."""
        shards = self.listing.files
        listed = {file.doc_id for files in shards.values() for file in files}
        came = _arrived(self.workspace, self.shard) | {
            d: place.doc_id
            for d, place in self.taken.items()
            if place.shard in shards and place.shard != self.shard
        }
        return {
            d: origin
            for d, origin in came.items()
            if d in doc_ids
            and origin not in listed
            and origin in self.parsed_before.documents(self.collection.shard_of(self.name, origin))
        }

    def taken_over(self) -> Iterator[pl.DataFrame]:
        """The documents whose text was made for another path, with what is their own."""
        own = [{column: self.new[d][column] for column in OWN} for d in self.taken]
        identities = pl.DataFrame(own, schema={c: DOCUMENTS_SCHEMA[c] for c in OWN})
        for rows in self.parsed_before.rows(DOCUMENTS, self.taken):
            yield rows.drop(OWN[1:], strict=False).join(identities, on="doc_id")

    def marked(self, stored: pl.DataFrame) -> pl.DataFrame:
        if not self.marks:
            return stored
        marks = pl.DataFrame(
            [{"doc_id": doc_id, **mark} for doc_id, mark in self.marks.items()],
            schema={column: DOCUMENTS_SCHEMA[column] for column in ("doc_id", *MARKS)},
        )
        whole = pl.concat([DOCUMENTS_SCHEMA.to_frame(), stored], how="diagonal")
        return whole.update(marks, on="doc_id", include_nulls=True)

    def update(self, changes: ChangeSet, rows: Mapping[str, Row]) -> DocumentsUpdate:
        shard_of = self.collection.shard_of
        stale = {d for d, row in rows.items() if row["stale_since"] is not None}
        without_text = {d for d, row in rows.items() if row["status"] not in (*REPLACES, "refused")}
        return DocumentsUpdate(
            shard=self.shard,
            changes=changes,
            input_version=content_version(_revisions(rows)),
            content_version=_content_version(rows.values()),
            rows=len(rows),
            failed=tuple(sorted(without_text | stale)),
            held=tuple(
                d for d in sorted(self.listing.held) if shard_of(self.name, d) == self.shard
            ),
            passed_over=tuple(self.listing.skipped),
            stale=tuple(sorted(stale)),
            parsed=self.parsed,
            reused=len(self.taken),
        )


def _arrived(workspace: Workspace, shard: str) -> dict[str, str]:
    manifest = workspace.table(DOCUMENTS).manifest(shard)
    found = manifest.details.get(ARRIVED) if manifest else None
    return found if isinstance(found, dict) else {}


def revisions_parsed(workspace: Workspace, shard: str) -> dict[str, str]:
    """The revision of each document that was last read, whether it could be parsed or not."""
    known = _known(workspace, shard)
    if known is None:
        return {}
    read = known.select("doc_id", pl.coalesce("newest_rev", "doc_rev"))
    return {doc_id: doc_rev for doc_id, doc_rev in read.iter_rows() if doc_rev}


def has_documents_to_retry(workspace: Workspace, shard: str) -> bool:
    """Whether a run over the shard might read more than the last one did, of the same bytes."""
    manifest = workspace.table(DOCUMENTS).manifest(shard)
    return manifest is not None and bool(manifest.details.get(TO_RETRY))


def _is_to_retry(row: Row) -> bool:
    return row["status"] in RETRIED or row["stale_since"] is not None


def _revisions(rows: Mapping[str, Row]) -> dict[str, str]:
    read = {doc_id: row["newest_rev"] or row["doc_rev"] for doc_id, row in rows.items()}
    return {doc_id: doc_rev for doc_id, doc_rev in read.items() if doc_rev}


def _keys(rows: Mapping[str, Row]) -> dict[str, str]:
    return {doc_id: str(row["parse_key"]) for doc_id, row in sorted(rows.items())}


Content = tuple[ListedFile, bytes | OSError | None, int]


def _contents(files: Sequence[ListedFile], max_bytes: int) -> Iterator[Content]:
    """Each file, what is in it (None: more than is read) and when that was asked for (ns).

    Files of a distant source are read several at a time, and a few ahead.
    """

    def read(file: ListedFile) -> Content:
        now_ns = time.time_ns()
        try:
            return file, None if file.size > max_bytes else file.read(), now_ns
        except OSError as error:
            return file, error, now_ns

    readers = max((file.source.readers for file in files), default=1)
    if readers == 1:
        yield from map(read, files)
        return
    with ThreadPoolExecutor(readers) as pool:
        for first in range(0, len(files), READ_AHEAD):
            yield from pool.map(read, files[first : first + READ_AHEAD])


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


def _unreadable(error: OSError) -> ParsedDocument:
    reason = error.strerror or str(error) or type(error).__name__
    return ParsedDocument.failure(
        "unreadable",
        f"the file cannot be read ({reason})",
        "Make it readable; the next run tries again.",
    )


def _identity(doc_id: str, name: str) -> Row:
    """A row without a revision and a key, so that the next run tries again."""
    return {
        "doc_id": doc_id,
        "collection": name,
        "path": doc_id.removeprefix(f"{name}/"),
        "doc_rev": "",
        "media_type": "",
        "size": 0,
        "modified_at": None,
        "stale_since": None,
        "newest_rev": None,
        "parse_key": "",
    }


def _outcome(parsed: ParsedDocument, models_folder: Path) -> Row:
    language = detect_language(parsed.text, parsed.elements, models_folder)
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


def _content_version(rows: Iterable[Row]) -> str:
    return digest(
        "parsed_elements",
        sorted(
            (r["doc_id"], r["text_sha"], r["elements_sha"], r["status"], r["language"] or "")
            for r in rows
        ),
    )
