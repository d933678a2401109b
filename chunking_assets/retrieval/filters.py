"""Which documents and sections may answer: conditions that the store applies before it searches.

What is known of documents is in their table and changes without a chunk changing, so conditions
on it become the list of documents they name; those on the index's own columns go to it as they
are. No value ever becomes syntax: all are literals, and what looks like SQL is a strange name.
"""

from collections.abc import Collection, Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

import polars as pl
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, NaiveDatetime

from chunking_assets.chunk_embeddings.lance_index import sql_literal
from chunking_assets.errors import CorpusError
from chunking_assets.parsed_elements.reuse import DOCUMENTS
from chunking_assets.workspace import Workspace

NOT_KNOWN_OF_DOCUMENTS = frozenset(("text", "error", "cure"))
METADATA = "metadata"
"""A column of documents with further fields, if their table has one."""

Value = str | int | float | bool


class Filters(BaseModel):
    """`filters:` of a profile, or those of one question; all given must hold.

    `collection`, `language` (ISO 639-1) and `media_type` are lists of which one must be the
    document's. `path` holds patterns as in `.gitignore` over the path in its collection; one must
    match. `heading` holds headings of which one must stand above the chunk or begin it, to the
    letter. `modified_from` (included) and `modified_before` (not) bound the file's date; without
    an offset they are UTC. `metadata` says which value any other column of `documents`, or field
    of its `metadata`, must have.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    collection: tuple[str, ...] = ()
    language: tuple[str, ...] = ()
    path: tuple[str, ...] = ()
    heading: tuple[str, ...] = ()
    media_type: tuple[str, ...] = ()
    modified_from: AwareDatetime | NaiveDatetime | None = None
    modified_before: AwareDatetime | NaiveDatetime | None = None
    metadata: dict[str, Value] = Field(default_factory=dict)

    def __hash__(self) -> int:
        return hash(self.model_dump_json())

    def also(self, other: "Filters") -> "Filters":
        """Both: what the profile says holds for every question.

        Raises:
            CorpusError: both speak of one thing; which was meant cannot be told.
        """
        ours, theirs = self._given(), other._given()
        if both := sorted(ours.keys() & theirs.keys()):
            raise CorpusError(
                f"the profile filters by {', '.join(both)} already. Leave it out of the question."
            )
        return Filters(**ours, **theirs)

    def _given(self) -> dict[str, Any]:
        return {key: getattr(self, key) for key in self.model_fields_set if getattr(self, key)}


def where(filters: Filters, workspace: Workspace) -> str | None:
    """The condition as the store's SQL; None if there is none.

    Raises:
        CorpusError: `metadata` names what no document has.
    """
    conditions = []
    if filters.heading:
        headings = [f"array_has(heading_path, {sql_literal(name)})" for name in filters.heading]
        conditions.append(f"({' OR '.join(headings)})")
    of_documents = filters.model_copy(update={"heading": ()})
    if of_documents != Filters():
        conditions.append(_among(_documents(workspace), of_documents))
    return " AND ".join(conditions) or None


def _documents(workspace: Workspace) -> pl.DataFrame:
    """What is known of every document: one row each, without what it says."""
    table = workspace.table(DOCUMENTS)
    frames = []
    for partition in table.partitions():
        manifest = table.manifest(partition)
        if manifest is not None and manifest.files:
            snapshot = table.snapshot(manifest)
            schema = pl.scan_parquet([*snapshot.files], glob=False).collect_schema()
            frames.append(snapshot.read([c for c in schema if c not in NOT_KNOWN_OF_DOCUMENTS]))
    return pl.concat(frames, how="diagonal_relaxed") if frames else pl.DataFrame({"doc_id": []})


def _among(documents: pl.DataFrame, filters: Filters) -> str:
    named = documents.filter(_holds(documents, filters))["doc_id"].to_list()
    if filters.path:
        import pathspec

        patterns = pathspec.GitIgnoreSpec.from_lines(filters.path)
        named = [doc_id for doc_id in named if patterns.match_file(doc_id.partition("/")[2])]
    return among(named, documents["doc_id"].to_list())


def among(doc_ids: Collection[str], every: Iterable[str]) -> str:
    """That a chunk is of one of these documents, of every one there is, by the shorter list.

    >>> among(["a", "b"], ["a", "b", "c"])
    "doc_id NOT IN ('c')"
    """
    named, others = {*doc_ids}, {*every}.difference(doc_ids)
    if not named:
        return "false"
    if len(others) < len(named):  # a document that is not in the table is new
        return f"doc_id NOT IN ({_listed(others)})" if others else "true"
    return f"doc_id IN ({_listed(named)})"


def _listed(values: Iterable[str]) -> str:
    return ", ".join(map(sql_literal, sorted(values)))


def _holds(documents: pl.DataFrame, filters: Filters) -> pl.Expr:
    conditions = [pl.lit(True)]
    conditions += [
        pl.col(column).is_in([*wanted])
        for column in ("collection", "language", "media_type")
        if (wanted := getattr(filters, column))
    ]
    modified = pl.col("modified_at")
    if filters.modified_from is not None:
        conditions.append(modified >= _utc(filters.modified_from))
    if filters.modified_before is not None:
        conditions.append(modified < _utc(filters.modified_before))
    conditions += [_metadata(documents, key, value) for key, value in filters.metadata.items()]
    return pl.all_horizontal(conditions).fill_null(False)


def _metadata(documents: pl.DataFrame, key: str, value: Value) -> pl.Expr:
    """Compared as text, which is how configuration and question mean it."""
    if key in documents.columns and key != METADATA:
        return _as_text(pl.col(key)) == _text(value)
    fields = documents.schema.get(METADATA)
    if isinstance(fields, pl.Struct) and key in {field.name for field in fields.fields}:
        return _as_text(pl.col(METADATA).struct.field(key)) == _text(value)
    if fields == pl.String:
        return pl.col(METADATA).map_elements(
            lambda stored: _text(_field(stored, key)) == _text(value), return_dtype=pl.Boolean
        )
    known = sorted({*documents.columns} - NOT_KNOWN_OF_DOCUMENTS)
    raise CorpusError(f"no document has {key!r} to filter by. Known: {', '.join(known)}.")


def _field(stored: str, key: str) -> object:
    import json

    try:
        fields = json.loads(stored)
    except ValueError:
        return None
    return fields.get(key) if isinstance(fields, Mapping) else None


def _as_text(column: pl.Expr) -> pl.Expr:
    return column.cast(pl.String)


def _text(value: object) -> str | None:
    if isinstance(value, bool):
        return str(value).lower()
    return None if value is None else str(value)


def _utc(moment: datetime) -> datetime:
    return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
