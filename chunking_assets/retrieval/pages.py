"""The printed page a chunk begins on: known of the elements of formats that have pages.

Elements change with their document, and a changed document is published anew, so what was read is
kept as long as one version of the index is served.
"""

import json
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import replace
from threading import Lock

import polars as pl

from chunking_assets.parsed_elements.reuse import ELEMENTS
from chunking_assets.retrieval.hit import Hit
from chunking_assets.workspace import Workspace, one_of

PAGE = '"page"'
MOST_DOCUMENTS = 10_000
"""Whose pages are kept."""


class Pages:
    """The pages of documents, read when first asked for; safe for threads."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._known: dict[str, tuple[list[int], list[int]]] = {}
        self._lock = Lock()

    def of(self, hits: Sequence[Hit]) -> list[Hit]:
        """The hits with their pages."""
        with self._lock:
            if len(self._known) > MOST_DOCUMENTS:
                self._known.clear()
            unknown = {hit.doc_id for hit in hits} - self._known.keys()
            if unknown:
                self._read(unknown)
            known = {hit.doc_id: self._known[hit.doc_id] for hit in hits}
        return [_with_page(hit, *known[hit.doc_id]) for hit in hits]

    def _read(self, doc_ids: set[str]) -> None:
        self._known |= {doc_id: ([], []) for doc_id in doc_ids}
        table = self._workspace.table(ELEMENTS)
        for partition in table.partitions():
            manifest = table.manifest(partition)
            if manifest is None or not manifest.files:
                continue
            rows = table.snapshot(manifest).read(
                ["doc_id", "start", "attributes"],
                one_of("doc_id", doc_ids) & pl.col("attributes").str.contains(PAGE, literal=True),
            )
            for doc_id, start, attributes in rows.sort("doc_id", "start").iter_rows():
                starts, pages = self._known[doc_id]
                page = json.loads(attributes).get("page")
                if str(page).isdecimal():
                    starts.append(start)
                    pages.append(int(page))


def _with_page(hit: Hit, starts: list[int], pages: list[int]) -> Hit:
    """The page of the last element that begins at or before the chunk does."""
    at = bisect_right(starts, hit.start)
    if not starts:
        return hit
    return replace(hit, page=pages[max(0, at - 1)])
