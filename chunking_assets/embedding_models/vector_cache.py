"""Vectors by content: the same text under any strategy, collection or run is embedded once.

One SQLite file per model holds every vector ever computed with it. A batch is committed as soon as
it is embedded, or with others that together took a second, so a killed run loses a second's work
and a batch at most. A damaged row is a miss, never a vector.
"""

import sqlite3
import time
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from chunking_assets.embedding_models.model import (
    Batch,
    BatchEmbedder,
    Embedder,
    ModelIdentity,
    Role,
    TokenProgress,
)
from chunking_assets.errors import CorpusError
from chunking_assets.keys import digest
from chunking_assets.shared_cache import segments_of
from chunking_assets.workspace import Workspace

VECTORS = "vectors"
"""The folder of the caches, below the workspace's."""

BATCH = 64
"""Texts embedded at a time."""
SECONDS_PER_COMMIT = 1.0
"""Batches that took less are committed together: a commit costs as much as embedding many texts
with a fast model. What an endpoint sends is paid for, and is committed as it comes."""
KEYS_PER_QUERY = 500
GIVEN_AT_LEAST = 1024
"""Vectors given to other machines at a time, while more are being computed."""
PAGE_BYTES = 16_384
"""Several vectors fit a page, and a commit, which writes whole pages, stays small."""
BUSY_SECONDS = 60
SCHEMA = """
create table vectors (
    vec_key text primary key,
    n_tokens integer not null,
    vector blob not null,
    checksum integer not null,
    used_on integer not null default 0
)
"""
"""`used_on` is the day of the last use, counted from 1970 on. Vectors lie in the order they came:
in that of their keys, which is none, each would rewrite a page of others. Files of earlier releases
are so, and are used on."""
SECONDS_PER_DAY = 86_400


def vec_key(identity: ModelIdentity, role: Role, text: str) -> str:
    """The key of a text's vector: the text as sent, the model, the side it is on."""
    prefix = identity.query_prefix if role == "query" else identity.passage_prefix
    return digest("vector", identity.fingerprint, role, prefix + text)


def _today() -> int:
    return int(time.time() // SECONDS_PER_DAY)


@dataclass(frozen=True, slots=True)
class CachedVector:
    """A vector and the tokens the model read for it."""

    vector: np.ndarray
    n_tokens: int


class VectorCache:
    """The vectors of one model, in one SQLite file; safe for threads and processes."""

    def __init__(
        self, folder: Path, fingerprint: str, dimensions: int, *, gives: bool = True
    ) -> None:
        """`fingerprint` is the model identity's; vectors have `dimensions` float32 values. Who may
        only read the workspace's bucket `gives` nothing to other machines."""
        self.file = folder / f"{fingerprint}.sqlite"
        self._dimensions, self._gives = dimensions, gives
        if not self.file.exists():
            with Workspace(folder).lock(fingerprint):
                if not self.file.exists():
                    self._create()
        self._add_day_of_use()
        self._segments = segments_of(self.file, "vectors", "vec_key")

    def get_many(self, keys: Sequence[str]) -> dict[str, CachedVector]:
        """What is stored under these keys, here or by another machine of the workspace; a missing
        or damaged row is left out."""
        found = self._get_many(keys)
        if self._segments and len(found) < len({*keys}) and self._segments.take():
            found |= self._get_many([key for key in keys if key not in found])
        return found

    def _get_many(self, keys: Sequence[str]) -> dict[str, CachedVector]:
        found, today, unused = {}, _today(), []
        with self._connection() as connection:
            for first in range(0, len(keys), KEYS_PER_QUERY):
                some = keys[first : first + KEYS_PER_QUERY]
                rows = connection.execute(
                    "select vec_key, n_tokens, vector, checksum, used_on from vectors"  # noqa: S608
                    f" where vec_key in ({','.join('?' * len(some))})",
                    some,
                )
                whole = [row for row in rows.fetchall() if self._is_whole(row[2], row[3])]
                joined = np.frombuffer(b"".join(row[2] for row in whole), "<f4")
                vectors = joined.reshape(-1, self._dimensions)
                finite = np.isfinite(vectors).all(axis=1)
                for (key, n_tokens, _, _, used_on), vector, usable in zip(
                    whole, vectors, finite, strict=True
                ):
                    if usable:
                        found[key] = CachedVector(vector, n_tokens)
                    if used_on < today:
                        unused.append((today, key))
            update = "update vectors set used_on = ? where vec_key = ?"
            connection.executemany(update, unused)
        return found

    def put_many(self, keys: Sequence[str], vectors: np.ndarray, n_tokens: Sequence[int]) -> None:
        """Store vectors (len(keys), dimensions) in one transaction; a stored key is replaced."""
        blobs = [vector.tobytes() for vector in np.asarray(vectors, "<f4")]
        rows = [
            (key, int(tokens), blob, zlib.crc32(blob), _today())
            for key, tokens, blob in zip(keys, n_tokens, blobs, strict=True)
        ]
        with self._connection() as connection:
            connection.executemany("insert or replace into vectors values (?, ?, ?, ?, ?)", rows)
        self.give(GIVEN_AT_LEAST)

    def give(self, at_least: int = 1) -> None:
        """Let other machines of the workspace have what is new here, if it is so much."""
        if self._segments and self._gives:
            self._segments.give(at_least)

    def prune(self, days: float, keep: Iterable[str]) -> int:
        """Forget the vectors that nobody asked for in so many days, except those under the keys
        to `keep`; how many there were. The file gets smaller."""
        with self._connection() as connection:
            connection.execute("create temp table kept (vec_key text primary key) without rowid")
            connection.executemany("insert or ignore into kept values (?)", ((k,) for k in keep))
            deleted = connection.execute(
                "delete from vectors where used_on <= ? and vec_key not in (select * from kept)",
                [_today() - days],
            ).rowcount
        if deleted:
            with self._connection() as connection:
                connection.execute("vacuum")
        if self._segments:
            self._segments.rewrite()
        return int(deleted)

    def _add_day_of_use(self) -> None:
        """To a file of an earlier release, as if everything in it had been used today."""
        with self._connection() as connection:
            columns = [row[1] for row in connection.execute("pragma table_info(vectors)")]
        if "used_on" not in columns:
            with Workspace(self.file.parent).lock(self.file.stem), self._connection() as connection:
                columns = [row[1] for row in connection.execute("pragma table_info(vectors)")]
                if "used_on" not in columns:
                    connection.execute(
                        "alter table vectors add column used_on integer not null "
                        f"default {_today()}"
                    )

    def _is_whole(self, blob: bytes, checksum: int) -> bool:
        return len(blob) == 4 * self._dimensions and zlib.crc32(blob) == checksum

    def _create(self) -> None:
        """Whole, then renamed: nobody sees a file without its table."""
        new = self.file.with_suffix(".new")
        new.unlink(missing_ok=True)
        with closing(sqlite3.connect(new)) as connection:
            connection.execute(f"pragma page_size = {PAGE_BYTES}")
            connection.execute("pragma journal_mode = wal")
            connection.execute(SCHEMA)
        new.rename(self.file)

    @contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        """A connection of its own for every use, so that none crosses a thread or a fork."""
        try:
            with closing(sqlite3.connect(self.file, timeout=BUSY_SECONDS)) as connection:
                # With WAL, NORMAL survives a killed process; power loss costs the last commits.
                connection.execute("pragma synchronous = normal")
                with connection:
                    yield connection
        except sqlite3.Error as error:
            raise CorpusError(
                f"the vector cache {self.file} cannot be used ({error}). If it is damaged, "
                "remove it: its vectors will be computed again."
            ) from error


@dataclass(frozen=True)
class Embedded:
    """Vectors of texts in their order, and what they cost.

    `vectors` is float32 (texts, dimensions); `n_tokens` the tokens the model reads for each text;
    `computed` and `reused` count distinct texts; `tokens_computed` are the tokens of those
    computed, `tokens_reused` of those the cache held.
    """

    vectors: np.ndarray
    n_tokens: list[int]
    computed: int
    reused: int
    tokens_computed: int
    tokens_reused: int = 0


def embed_through_cache(
    embedder: Embedder,
    cache: VectorCache,
    texts: Sequence[str],
    role: Role = "passage",
    progress: TokenProgress | None = None,
) -> Embedded:
    """The vectors of `texts`, computing only those that the cache does not hold.

    `progress` counts distinct texts to compute. Tokens of queries are counted as if they were
    passages.
    """
    if role == "passage" and isinstance(embedder, BatchEmbedder):
        for earlier, vectors in embedder.collect_earlier():
            cache.put_many(
                [vec_key(embedder.identity, role, text) for text in earlier],
                vectors,
                embedder.count_tokens(earlier),
            )
    keys = [vec_key(embedder.identity, role, text) for text in texts]
    known: dict[str, CachedVector] = cache.get_many(list(dict.fromkeys(keys)))
    reused, tokens_reused = len(known), sum(vector.n_tokens for vector in known.values())
    missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in known}
    order, done, tokens = list(missing), 0, 0
    with _Commits(cache, 0 if isinstance(embedder, BatchEmbedder) else SECONDS_PER_COMMIT) as kept:
        for positions, computed in _batches(embedder, list(missing.values()), role):
            batch = [order[at] for at in positions]
            n_tokens = embedder.count_tokens([missing[key] for key in batch])
            kept.add(batch, computed, n_tokens)
            known |= {
                key: CachedVector(vector, n)
                for key, vector, n in zip(batch, computed, n_tokens, strict=True)
            }
            done, tokens = done + len(batch), tokens + sum(n_tokens)
            if progress is not None:
                progress(done, len(order), tokens)
    vectors = np.empty((len(keys), embedder.identity.dimensions), np.float32)
    for row, key in enumerate(keys):
        vectors[row] = known[key].vector
    return Embedded(
        vectors=vectors,
        n_tokens=[known[key].n_tokens for key in keys],
        computed=len(order),
        reused=reused,
        tokens_computed=sum(known[key].n_tokens for key in order),
        tokens_reused=tokens_reused,
    )


class _Commits:
    """Batches on their way into a cache, those of `seconds` in one commit; what was computed before
    an error is kept too."""

    def __init__(self, cache: VectorCache, seconds: float) -> None:
        self._cache, self._seconds, self._last = cache, seconds, time.monotonic()
        self._keys: list[str] = []
        self._vectors: list[np.ndarray] = []
        self._n_tokens: list[int] = []

    def add(self, keys: Sequence[str], vectors: np.ndarray, n_tokens: Sequence[int]) -> None:
        self._keys += keys
        self._vectors.append(vectors)
        self._n_tokens += n_tokens
        if time.monotonic() - self._last >= self._seconds:
            self._commit()

    def _commit(self) -> None:
        keys, vectors, n_tokens = self._keys, self._vectors, self._n_tokens
        self._keys, self._vectors, self._n_tokens = [], [], []
        if keys:
            self._cache.put_many(keys, np.concatenate(vectors), n_tokens)
        self._last = time.monotonic()

    def __enter__(self) -> "_Commits":
        return self

    def __exit__(self, *error: object) -> None:
        self._commit()


class CachedQueries:
    """An embedder that keeps the vectors of questions too: every strategy asks the same ones."""

    def __init__(self, embedder: Embedder, folder: Path, *, gives: bool = True) -> None:
        """As of `VectorCache`."""
        self._embedder, self.identity = embedder, embedder.identity
        fingerprint, dimensions = self.identity.fingerprint, self.identity.dimensions
        self._cache = VectorCache(folder, fingerprint, dimensions, gives=gives)
        self.count_tokens, self.embed_passages = embedder.count_tokens, embedder.embed_passages

    def embed_queries(self, texts: Sequence[str]) -> np.ndarray:
        return embed_through_cache(self._embedder, self._cache, texts, "query").vectors


def _batches(embedder: Embedder, texts: Sequence[str], role: Role) -> Iterator[Batch]:
    if isinstance(embedder, BatchEmbedder):
        yield from embedder.embed_batches(texts, role)
        return
    embed = embedder.embed_queries if role == "query" else embedder.embed_passages
    for first in range(0, len(texts), BATCH):
        batch = texts[first : first + BATCH]
        yield range(first, first + len(batch)), embed(batch)
