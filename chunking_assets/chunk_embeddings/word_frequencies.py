"""In how many chunks each word stands: what BM25 needs to know of a whole index, kept beside it.

Counted for each published version of a table, right after it is published, and kept in a file, so
that weighing a question's words asks the index nothing. Of an update only the documents that
changed are counted. The file is derived: where it is missing, as on another machine, the first
question makes it again.
"""

import os
import time
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import regex

from chunking_assets.chunk_embeddings.lance_index import (
    LONGEST_WORD,
    TEXT,
    manifest_file,
    sql_literal,
)
from chunking_assets.keys import digest
from chunking_assets.storage import Store, asking_bucket
from chunking_assets.workspace import CACHES, Workspace

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
_DOCUMENTS_AT_ONCE = 1000
_NOTHING = pl.DataFrame(
    {"word": [""], "n": [0], "words": [0]},
    schema={"word": pl.String, "n": pl.Int64, "words": pl.Int64},
)
"""The counts of no chunk."""
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


@dataclass(frozen=True)
class Update:
    """The LanceDB table as it was `before`, and the documents of which rows changed since."""

    before: Any
    doc_ids: Collection[str]


def count_words(workspace: Workspace, name: str, table: Any, update: Update | None = None) -> Path:
    """The file of a LanceDB table at the version it is opened at, made if it is not there: from
    that of the version before an `update` to it, or by counting all there is."""
    store = workspace.store.below(f"{CACHES}/{WORDS}/{name}")
    key = _key(workspace, name, table)
    file = store.local(key)
    if not file.exists():
        with workspace.lock(f"{WORDS} {name}"):
            file = store.local(key)
            if not file.exists():
                file = store.draft(key)
                before = store.local(_key(workspace, name, update.before)) if update else None
                if update and before and before.exists():
                    rows = _counted_on(pl.read_parquet(before), update, table)
                else:
                    rows = _counted(_texts(table))
                _write(file, rows)
                store.keep(key)
                _forget_old(store, key)
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


def _key(workspace: Workspace, name: str, table: Any) -> str:
    """Named by what the version is and not by its number alone, which a table made anew reuses; to
    list the versions for their times would read them all."""
    store, file = workspace.lance.below(f"{name}.lance"), manifest_file(int(table.version))
    made = sha256(store.read(file) or b"").hexdigest()
    store.forget(file)  # it never changes, and may be cleaned
    with asking_bucket(f"table {name}"):
        rows = table.count_rows()
    return f"{digest('words', VERSION, table.version, made, rows)}.parquet"


def _counted_on(before: pl.DataFrame, update: Update, table: Any) -> pl.DataFrame:
    """What was counted before, without what the changed documents held and with what they hold."""
    gone, new = (_counted(_texts(t, update.doc_ids)) for t in (update.before, table))
    return _with_total(pl.concat([before, new, gone.with_columns(-pl.col("n", "words"))]))


def _counted(texts: Iterable["pa.RecordBatch"]) -> pl.DataFrame:
    """One pass over the texts, a batch at a time. The last row has no word, and how many chunks
    there are with how many words."""
    counts = [_NOTHING]
    for batch in texts:
        found = _words(pl.Series(pl.from_arrow(batch[TEXT])))
        total = {"word": [""], "n": [batch.num_rows], "words": [int(found.list.len().sum())]}
        counts.append(_count(pl.DataFrame({"word": found.list.unique().explode()})))
        counts.append(pl.DataFrame(total, schema=_NOTHING.schema))
        if len(counts) > 20:
            counts = [_sum(counts)]
    return _with_total(pl.concat(counts))


def _with_total(counts: pl.DataFrame) -> pl.DataFrame:
    """One row a word there is, sorted, and the total last."""
    rows = _sum([counts])
    is_total = pl.col("word") == ""
    return pl.concat([rows.filter(~is_total & (pl.col("n") > 0)), rows.filter(is_total)])


def _write(file: Path, rows: pl.DataFrame) -> None:
    unfinished = file.with_suffix(f".{os.getpid()}.tmp")
    rows.write_parquet(unfinished)
    os.replace(unfinished, file)


def _texts(table: Any, doc_ids: Collection[str] | None = None) -> Iterator["pa.RecordBatch"]:
    """Of the searched chunks of these documents (None: of all)."""
    for where in _wheres(doc_ids):
        query = table.search().where(where).select([TEXT]).limit(None)
        with asking_bucket(f"table {table.name}"):
            yield from query.to_batches(batch_size=_BATCH_ROWS)


def _wheres(doc_ids: Collection[str] | None) -> Iterator[str]:
    if doc_ids is None:
        yield "searched"
        return
    listed = [sql_literal(doc_id) for doc_id in sorted(doc_ids)]
    for first in range(0, len(listed), _DOCUMENTS_AT_ONCE):
        yield f"searched AND doc_id IN ({', '.join(listed[first : first + _DOCUMENTS_AT_ONCE])})"


def _words(texts: pl.Series) -> pl.Series:
    return texts.str.to_lowercase().str.normalize("NFC").str.extract_all(_SPELT)


def _folded(words: pl.Expr) -> pl.Expr:
    return words.str.normalize("NFKD").str.replace_all(r"\p{Mn}", "")


def _count(words: pl.DataFrame) -> pl.DataFrame:
    return (
        words.filter(pl.col("word").str.len_bytes().is_between(1, LONGEST_WORD))
        .group_by("word")
        .agg(n=pl.len().cast(pl.Int64))
        .with_columns(words=pl.lit(0, pl.Int64))
    )


def _sum(counts: Iterable[pl.DataFrame]) -> pl.DataFrame:
    return pl.concat(counts).group_by("word").agg(pl.col("n", "words").sum()).sort("word")


def _forget_old(store: Store, key: str) -> None:
    limit = time.time() - _KEPT_SECONDS
    others = (file for file in store.files() if file.key != key)
    store.delete(file.key for file in others if file.modified < limit)
