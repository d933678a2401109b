"""The texts of documents as their files are now, before anything is built.

`make check` and whoever writes questions must not wait for a pipeline: files are read here. What
the workspace parsed already from the same bytes is taken from there.
"""

from collections.abc import Iterable, Mapping
from functools import cached_property
from hashlib import sha256
from pathlib import Path

import polars as pl

from chunking_assets.parsed_elements.build import DOCUMENTS, HEAD_BYTES
from chunking_assets.parsed_elements.parse import READABLE, parse_document, parse_key
from chunking_assets.raw_documents.collection import Collection
from chunking_assets.raw_documents.listing import ListedFile, scan
from chunking_assets.raw_documents.media_type import media_type
from chunking_assets.workspace import Workspace, one_of

SCHEMA = pl.Schema({"doc_id": pl.String, "text": pl.String, "status": pl.String})


class Documents:
    """The documents of the declared collections; relative folders start at `root`.

    Nothing is read before it is asked for, and nothing is written.
    """

    def __init__(
        self, collections: Mapping[str, Collection], root: Path, workspace: Workspace
    ) -> None:
        self._collections, self._root, self._workspace = collections, root, workspace

    @cached_property
    def files(self) -> dict[str, ListedFile]:
        """Every document by its id, sorted.

        Raises:
            CorpusError: a collection's folder cannot be listed.
        """
        found = {
            file.doc_id: file
            for name, collection in self._collections.items()
            for files in scan(name, collection, self._root).files.values()
            for file in files
        }
        return dict(sorted(found.items()))

    def read(self, doc_ids: Iterable[str]) -> pl.DataFrame:
        """`doc_id`, `text` and `status` of those that exist, as the `documents` table has them."""
        wanted = [doc_id for doc_id in dict.fromkeys(doc_ids) if doc_id in self.files]
        stored = self._stored(wanted)
        rows = [(doc_id, *self._read(self.files[doc_id], stored)) for doc_id in wanted]
        return pl.DataFrame(rows, schema=SCHEMA, orient="row")

    def texts(self, doc_ids: Iterable[str]) -> dict[str, str]:
        """The texts of those that have one."""
        read = self.read(doc_ids).filter(pl.col("status").is_in(READABLE))
        return dict(read.select("doc_id", "text").iter_rows())

    def _read(self, file: ListedFile, stored: Mapping[str, str]) -> tuple[str, str]:
        name, _, path = file.doc_id.partition("/")
        collection = self._collections[name]
        if file.size > collection.max_bytes:
            return "", "too_large"
        try:
            data = file.read()
        except OSError:
            return "", "unreadable"
        kind = collection.type_of(path) or media_type(data[:HEAD_BYTES], file.name)
        kind = collection.read_by(kind)
        key = parse_key(sha256(data).hexdigest(), kind)
        if key in stored:
            return stored[key], "ok"
        parsed = parse_document(data, file.name, kind)
        return parsed.text, parsed.status

    def _stored(self, doc_ids: Iterable[str]) -> dict[str, str]:
        """Texts the workspace has of these documents, by what they were parsed from."""
        wanted, table = list(doc_ids), self._workspace.table(DOCUMENTS)
        if not wanted:
            return {}
        manifests = [m for p in table.partitions() if (m := table.manifest(p)) is not None]
        found = [
            table.snapshot(manifest).read(
                ["parse_key", "text"], one_of("doc_id", wanted) & (pl.col("status") == "ok")
            )
            for manifest in manifests
        ]
        return {key: text for frame in found for key, text in frame.iter_rows()}
