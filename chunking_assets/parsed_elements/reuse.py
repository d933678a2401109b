"""Results of parsing, by what they were made from: the same bytes under another path, in this
shard or another, are taken over and not parsed again.

The manifests are read when this is made, and the files they name outlive their replacement for an
hour: a document that moved is found even where its old shard was updated first.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

import polars as pl

from chunking_assets.workspace import Manifest, Workspace, one_of

DOCUMENTS, ELEMENTS = "documents", "elements"


@dataclass(frozen=True, slots=True)
class Place:
    """Where a result is stored: a shard, and the document it was made for."""

    shard: str
    doc_id: str


class ParsedBefore:
    """What every shard holds of documents that were read whole and without a remark."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._shards: dict[str, tuple[Manifest, Manifest]] = {}
        for shard in workspace.table(DOCUMENTS).partitions():
            documents, elements = (
                workspace.table(name).manifest(shard) for name in (DOCUMENTS, ELEMENTS)
            )
            if documents and elements:
                self._shards[shard] = documents, elements
        self._facts: dict[str, dict[str, dict[str, object]]] = {}

    @cached_property
    def _places(self) -> dict[str, Place]:
        return {
            key: Place(shard, doc_id)
            for shard, (documents, elements) in self._shards.items()
            for doc_id, key in documents.keys.items()
            if key and elements.keys.get(doc_id) == key
        }

    def documents(self, shard: str) -> Collection[str]:
        """The documents a shard had."""
        return self._shards[shard][0].keys.keys() if shard in self._shards else ()

    def find(self, parse_key: str, columns: list[str]) -> tuple[Place, Mapping[str, object]] | None:
        """A stored result of this key, and these columns of its row."""
        place = self._places.get(parse_key)
        if place is None:
            return None
        if place.shard not in self._facts:
            snapshot = self._workspace.table(DOCUMENTS).snapshot(self._shards[place.shard][0])
            if not all(file.exists() for file in snapshot.files):
                return None
            sound = (pl.col("status") == "ok") & pl.col("error").is_null()
            rows = snapshot.read(["doc_id", *columns], sound)
            self._facts[place.shard] = {row["doc_id"]: row for row in rows.iter_rows(named=True)}
        facts = self._facts[place.shard].get(place.doc_id)
        return None if facts is None else (place, facts)

    def rows(self, table: str, wanted: Mapping[str, Place]) -> Iterable[pl.DataFrame]:
        """Rows of `documents` or `elements`, under the names of the documents that take them."""
        for shard in sorted({place.shard for place in wanted.values()}):
            names = pl.DataFrame(
                [(p.doc_id, doc_id) for doc_id, p in wanted.items() if p.shard == shard],
                schema={"doc_id": pl.String, "taken_by": pl.String},
                orient="row",
            )
            manifest = self._shards[shard][0 if table == DOCUMENTS else 1]
            stored = self._workspace.table(table).snapshot(manifest)
            rows = stored.read(None, one_of("doc_id", names["doc_id"].unique()))
            yield rows.join(names, on="doc_id").drop("doc_id").rename({"taken_by": "doc_id"})
