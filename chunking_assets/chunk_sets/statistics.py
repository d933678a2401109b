"""What a chunk set is like, in numbers computed from its stored columns.

Sizes are those of searched chunks: what is only read when its children were found is no part of
what an index is searched for.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl

from chunking_assets.chunk_sets.build import CHUNKS, EXCLUDED_SPANS, cell
from chunking_assets.chunk_sets.page import AT_THE_CAP
from chunking_assets.chunk_sets.version import ChunkerVersion
from chunking_assets.parsed_elements.build import DOCUMENTS
from chunking_assets.parsed_elements.parse import READABLE
from chunking_assets.workspace import Manifest, Workspace


@dataclass(frozen=True)
class ChunkSetStatistics:
    """One cell in numbers; shares are from 0 to 1, and 0 where there is nothing.

    `documents` are all with a text, `most_of_a_document` the chunks of the one with the most.
    `tokens` are the sizes of searched chunks, `budget` the most that any of them may have, and
    `variation` their standard deviation as a share of their mean; `at_the_cap` have 95 % of their
    own budget or more. `duplicates` share their embedded text with another chunk of their level.
    `excluded` is the share of all characters that cleaning leaves out. `beyond` are the chunk_ids
    that exceed their budget and are not marked as indivisible. `remarks` and `levels` count chunks.
    """

    chunks: int
    documents: int
    most_of_a_document: int
    tokens: pl.Series
    budget: int
    mean_tokens: float
    variation: float
    at_the_cap: float
    duplicates: float
    excluded: float
    beyond: tuple[str, ...]
    remarks: Mapping[str, int]
    levels: Mapping[int, int]

    @property
    def chunks_per_document(self) -> float:
        return self.chunks / self.documents if self.documents else 0.0


def chunk_set_statistics(
    workspace: Workspace, version: ChunkerVersion, shard: str
) -> ChunkSetStatistics | None:
    """The numbers of a stored cell; None if it, or what it was made of, is not there."""
    partition = cell(version.name, shard)
    columns = ["chunk_id", "doc_id", "n_tokens", "level", "searched", "remark"]
    chunks = workspace.table(CHUNKS).read(partition, [*columns, "budget", "over_budget"])
    documents = workspace.table(DOCUMENTS).read(shard, ["doc_id", "status", "n_chars"])
    if chunks is None or documents is None:
        return None
    documents = documents.filter(pl.col("status").is_in(READABLE))
    size, budget = pl.col("n_tokens"), pl.col("budget")
    searched = chunks.filter("searched")
    found = searched.select(
        mean=size.mean(),
        deviation=size.std(ddof=0),
        at_the_cap=(size >= AT_THE_CAP * budget).mean(),
        budget=budget.max(),
    ).row(0, named=True)
    return ChunkSetStatistics(
        chunks=chunks.height,
        documents=documents.height,
        most_of_a_document=max(chunks["doc_id"].value_counts()["count"], default=0),
        tokens=searched["n_tokens"],
        budget=found["budget"] or version.chunker.max_tokens,
        mean_tokens=found["mean"] or 0.0,
        variation=found["deviation"] / found["mean"] if found["mean"] else 0.0,
        at_the_cap=found["at_the_cap"] or 0.0,
        duplicates=_duplicates(workspace, partition),
        excluded=_excluded(workspace, version, partition) / max(1, int(documents["n_chars"].sum())),
        beyond=tuple(chunks.filter((size > budget) & ~pl.col("over_budget"))["chunk_id"]),
        remarks=dict(chunks["remark"].drop_nulls().value_counts(sort=True).iter_rows()),
        levels=dict(chunks["level"].value_counts().sort("level").iter_rows()),
    )


def _duplicates(workspace: Workspace, partition: str) -> float:
    texts = workspace.table(CHUNKS).read(partition, ["level", "text_sha"])
    if texts is None or texts.is_empty():
        return 0.0
    return texts.filter(texts.is_duplicated()).height / texts.height


def _excluded(workspace: Workspace, version: ChunkerVersion, partition: str) -> int:
    if version.chunker.clean is None:
        return 0
    spans = workspace.table(EXCLUDED_SPANS).read(partition, ["start", "end"])
    return 0 if spans is None else int((spans["end"] - spans["start"]).sum())


@dataclass(frozen=True)
class Compared:
    """How many chunks two versions make of the documents that both have."""

    previous: str
    documents: int
    chunks: int
    chunks_before: int

    @property
    def ratio(self) -> float:
        """1 if there is nothing to compare."""
        return self.chunks / self.chunks_before if self.chunks_before else 1.0


def compared_with_previous(workspace: Workspace, name: str, shard: str) -> Compared | None:
    """A chunk set beside that of the version before it, the last `name@m` below `name@n` stored
    over the same shard; None if there is none."""
    table = workspace.table(CHUNKS)
    family, number = _parts(name)
    stored = [p.rpartition("|")[0] for p in table.partitions() if p.endswith(f"|{shard}")]
    earlier = [v for v in stored if _parts(v)[0] == family and _parts(v)[1] < number]
    previous = max(earlier, key=_parts, default="")
    now, before = table.manifest(cell(name, shard)), table.manifest(cell(previous, shard))
    if now is None or before is None:
        return None
    common = now.keys.keys() & before.keys.keys()

    def count(manifest: Manifest) -> int:
        doc_ids = table.snapshot(manifest).read(["doc_id"])["doc_id"]
        return doc_ids.filter(doc_ids.is_in([*common])).len()

    return Compared(previous, len(common), count(now), count(before))


def _parts(version: str) -> tuple[str, int]:
    family, _, number = version.rpartition("@")
    return family, int(number)
