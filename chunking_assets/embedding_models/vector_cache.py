"""Vectors by content: the same text under any strategy, collection or run is embedded once.

One SQLite file per model holds every vector ever computed with it. Each batch is committed as soon
as it is embedded, so a killed run loses one batch at most. A damaged row is a miss, never a vector.
"""

import sqlite3
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from chunking_assets.embedding_models.model import Embedder, ModelIdentity, Progress
from chunking_assets.errors import CorpusError
from chunking_assets.keys import digest
from chunking_assets.workspace import Workspace

VECTORS = "vectors"
"""The folder of the caches, below the workspace's."""

Role = Literal["passage", "query"]
BATCH = 64
"""Texts embedded between two commits."""
KEYS_PER_QUERY = 500
BUSY_SECONDS = 60
SCHEMA = """
create table vectors (
    vec_key text primary key,
    n_tokens integer not null,
    vector blob not null,
    checksum integer not null
) without rowid
"""


def vec_key(identity: ModelIdentity, role: Role, text: str) -> str:
    """The key of a text's vector: the text as sent, the model, the side it is on."""
    prefix = identity.query_prefix if role == "query" else identity.passage_prefix
    return digest("vector", identity.fingerprint, role, prefix + text)


@dataclass(frozen=True, slots=True)
class CachedVector:
    """A vector and the tokens the model read for it."""

    vector: np.ndarray
    n_tokens: int


class VectorCache:
    """The vectors of one model, in one SQLite file; safe for threads and processes."""

    def __init__(self, folder: Path, fingerprint: str, dimensions: int) -> None:
        """`fingerprint` is the model identity's; vectors have `dimensions` float32 values."""
        self.file = folder / f"{fingerprint}.sqlite"
        self._dimensions = dimensions
        if not self.file.exists():
            with Workspace(folder).lock(fingerprint):
                if not self.file.exists():
                    self._create()

    def get_many(self, keys: Sequence[str]) -> dict[str, CachedVector]:
        """What is stored under these keys; a missing or damaged row is left out."""
        found = {}
        with self._connection() as connection:
            for first in range(0, len(keys), KEYS_PER_QUERY):
                some = keys[first : first + KEYS_PER_QUERY]
                rows = connection.execute(
                    "select vec_key, n_tokens, vector, checksum from vectors"  # noqa: S608
                    f" where vec_key in ({','.join('?' * len(some))})",
                    some,
                )
                for key, n_tokens, blob, checksum in rows:
                    vector = self._vector(blob, checksum)
                    if vector is not None:
                        found[key] = CachedVector(vector, n_tokens)
        return found

    def put_many(self, keys: Sequence[str], vectors: np.ndarray, n_tokens: Sequence[int]) -> None:
        """Store vectors (len(keys), dimensions) in one transaction; a stored key is replaced."""
        blobs = [vector.tobytes() for vector in np.asarray(vectors, "<f4")]
        rows = [
            (key, int(tokens), blob, zlib.crc32(blob))
            for key, tokens, blob in zip(keys, n_tokens, blobs, strict=True)
        ]
        with self._connection() as connection:
            connection.executemany("insert or replace into vectors values (?, ?, ?, ?)", rows)

    def _vector(self, blob: bytes, checksum: int) -> np.ndarray | None:
        if len(blob) != 4 * self._dimensions or zlib.crc32(blob) != checksum:
            return None
        vector = np.frombuffer(blob, "<f4")
        return vector if np.isfinite(vector).all() else None

    def _create(self) -> None:
        """Whole, then renamed: nobody sees a file without its table."""
        new = self.file.with_suffix(".new")
        new.unlink(missing_ok=True)
        with closing(sqlite3.connect(new)) as connection:
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
    `computed` and `reused` count distinct texts; `tokens_computed` the tokens of those computed.
    """

    vectors: np.ndarray
    n_tokens: list[int]
    computed: int
    reused: int
    tokens_computed: int


def embed_through_cache(
    embedder: Embedder,
    cache: VectorCache,
    texts: Sequence[str],
    role: Role = "passage",
    progress: Progress | None = None,
) -> Embedded:
    """The vectors of `texts`, computing only those that the cache does not hold.

    `progress` counts distinct texts to compute. Tokens of queries are counted with the passage
    prefix, which is as long.
    """
    keys = [vec_key(embedder.identity, role, text) for text in texts]
    known: dict[str, CachedVector] = cache.get_many(list(dict.fromkeys(keys)))
    reused = len(known)
    missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in known}
    order = list(missing)
    for first in range(0, len(order), BATCH):
        batch = order[first : first + BATCH]
        known |= _embed_batch(embedder, {key: missing[key] for key in batch}, role)
        new = [known[key] for key in batch]
        cache.put_many(batch, np.stack([n.vector for n in new]), [n.n_tokens for n in new])
        if progress is not None:
            progress(first + len(batch), len(order))
    vectors = np.empty((len(keys), embedder.identity.dimensions), np.float32)
    for row, key in enumerate(keys):
        vectors[row] = known[key].vector
    return Embedded(
        vectors=vectors,
        n_tokens=[known[key].n_tokens for key in keys],
        computed=len(order),
        reused=reused,
        tokens_computed=sum(known[key].n_tokens for key in order),
    )


class CachedQueries:
    """An embedder that keeps the vectors of questions too: every strategy asks the same ones."""

    def __init__(self, embedder: Embedder, folder: Path) -> None:
        self._embedder, self.identity = embedder, embedder.identity
        self._cache = VectorCache(folder, self.identity.fingerprint, self.identity.dimensions)
        self.count_tokens, self.embed_passages = embedder.count_tokens, embedder.embed_passages

    def embed_queries(self, texts: Sequence[str]) -> np.ndarray:
        return embed_through_cache(self._embedder, self._cache, texts, "query").vectors


def _embed_batch(
    embedder: Embedder, texts: Mapping[str, str], role: Role
) -> dict[str, CachedVector]:
    batch = list(texts.values())
    embed = embedder.embed_queries if role == "query" else embedder.embed_passages
    return {
        key: CachedVector(vector, n_tokens)
        for key, vector, n_tokens in zip(
            texts, embed(batch), embedder.count_tokens(batch), strict=True
        )
    }
