"""In how many chunks each word stands: what BM25 needs to know of a whole index, kept beside it.

Counted once for each published version of a table, right after it is published, and kept in a
file, so that weighing a question's words asks the index nothing. The file is derived: where it is
missing, as on another machine, the first question makes it again.
"""

import os
import time
import unicodedata
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import regex

from chunking_assets.chunk_embeddings.lance_index import LONGEST_WORD, TEXT
from chunking_assets.keys import digest
from chunking_assets.workspace import Workspace

if TYPE_CHECKING:
    import pyarrow as pa

WORDS = "words"
"""The folder among the workspace's caches."""

VERSION = 1
"""Raised when the same text would be taken for other words."""

_SPELT = r"[\p{Alphabetic}\p{N}\p{Mn}]+"
_SPACED = bytes(b if chr(b).isalnum() and b < 128 else 32 for b in range(256))
_TYPOGRAPHY = "\u2018\u2019\u201c\u201d\u2013\u2014\u2026\u2022\u00a0"
"""Signs that are in most texts and in no word."""
_BATCH_ROWS = 20_000
_KEPT_SECONDS = 86_400
"""How long the file of a version no longer served is kept, for readers that still hold it."""


def words_of(text: str) -> list[str]:
    """The words of a text as the full-text index tells them apart: runs of letters and digits in
    lower case, accents left out.

    >>> words_of("L'été à São_Paulo, 2024")
    ['l', 'ete', 'a', 'sao', 'paulo', '2024']
    """
    for mark in _TYPOGRAPHY:
        text = text.replace(mark, " ")
    if text.isascii():  # most English text is then, and this is several times as fast
        return text.lower().encode().translate(_SPACED).decode().split()
    return [plain for word in spelt_words(text) if (plain := _without_accents(word))]


def spelt_words(text: str) -> list[str]:
    """The words of a text in lower case as they are written, for what knows languages.

    >>> spelt_words("L'été à São_Paulo")
    ['l', 'été', 'à', 'são', 'paulo']
    """
    return list(regex.findall(_SPELT, unicodedata.normalize("NFC", text.lower())))


@lru_cache(maxsize=100_000)
def _without_accents(text: str) -> str:
    if text.isascii():
        return text
    plain = unicodedata.normalize("NFKD", text)
    return "".join(c for c in plain if unicodedata.category(c) != "Mn")


@dataclass(frozen=True)
class WordFrequencies:
    """`chunks` searched chunks hold `words` words in all; `spelt` says for each word, as it is
    written, how many of them it stands in, `chunks_with` for each as it is searched."""

    chunks: int
    words: int
    spelt: Mapping[str, int]
    chunks_with: Mapping[str, int]

    @property
    def words_per_chunk(self) -> float:
        return self.words / max(1, self.chunks)


def count_words(workspace: Workspace, name: str, table: Any) -> Path:
    """The file of a LanceDB table at the version it is opened at, made if it is not there."""
    file = _file(workspace, name, table)
    if not file.exists():
        with workspace.lock(f"{WORDS} {name}"):
            if not file.exists():
                _write(file, table)
                _forget_old(file)
    return file


def word_frequencies(workspace: Workspace, name: str, table: Any) -> WordFrequencies:
    """Those of a LanceDB table at the version it is opened at, from the file or counted now."""
    rows = pl.read_parquet(count_words(workspace, name, table))
    totals = rows.row(rows.height - 1)  # the last row: no word, and what is counted of all
    counted = rows.head(-1)
    # Two spellings of a word seldom stand in one chunk: their sum is near enough.
    searched = counted.group_by(word=_folded(pl.col("word"))).agg(pl.col("n").sum())
    return WordFrequencies(
        chunks=totals[1],
        words=totals[2],
        spelt=dict(counted.select("word", "n").iter_rows()),
        chunks_with=dict(searched.iter_rows()),
    )


def _file(workspace: Workspace, name: str, table: Any) -> Path:
    """Named by what the version is and not by its number alone, which a table made anew reuses."""
    made = next(
        (v["timestamp"] for v in table.list_versions() if v["version"] == table.version), ""
    )
    version = digest("words", VERSION, table.version, str(made), table.count_rows())
    return workspace.caches / WORDS / name / f"{version}.parquet"


def _write(file: Path, table: Any) -> None:
    """One pass over the texts, a batch at a time."""
    chunks = words = 0
    counts: list[pl.DataFrame] = []
    for batch in _texts(table):
        found = _words(pl.Series(pl.from_arrow(batch[TEXT])))
        chunks += batch.num_rows
        words += int(found.list.len().sum())
        counts.append(_count(pl.DataFrame({"word": found.list.unique().explode()})))
        if len(counts) > 20:
            counts = [_sum(counts)]
    total = pl.DataFrame({"word": [""], "n": [chunks], "words": [words]})
    rows = pl.concat([_sum(counts).with_columns(words=pl.lit(0, pl.Int64)), total])
    file.parent.mkdir(parents=True, exist_ok=True)
    unfinished = file.with_suffix(f".{os.getpid()}.tmp")
    rows.write_parquet(unfinished)
    os.replace(unfinished, file)


def _texts(table: Any) -> Iterator["pa.RecordBatch"]:
    query = table.search().where("searched").select([TEXT]).limit(None)
    yield from query.to_batches(batch_size=_BATCH_ROWS)


def _words(texts: pl.Series) -> pl.Series:
    return texts.str.to_lowercase().str.normalize("NFC").str.extract_all(_SPELT)


def _folded(words: pl.Expr) -> pl.Expr:
    return words.str.normalize("NFKD").str.replace_all(r"\p{Mn}", "")


def _count(words: pl.DataFrame) -> pl.DataFrame:
    return (
        words.filter(pl.col("word").str.len_bytes().is_between(1, LONGEST_WORD))
        .group_by("word")
        .agg(n=pl.len().cast(pl.Int64))
    )


def _sum(counts: list[pl.DataFrame]) -> pl.DataFrame:
    empty = pl.DataFrame(schema={"word": pl.String, "n": pl.Int64})
    return pl.concat([empty, *counts]).group_by("word").agg(pl.col("n").sum()).sort("word")


def _forget_old(file: Path) -> None:
    for other in file.parent.iterdir():
        if other != file:
            with suppress(FileNotFoundError):  # another process was faster
                if time.time() - other.stat().st_mtime > _KEPT_SECONDS:
                    other.unlink()
