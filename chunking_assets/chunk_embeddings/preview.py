"""What embedding would send: the texts a model has no vector for yet, counted and not computed.

The cache is opened so that even SQLite writes nothing. A model that was never used has no vectors,
so it is not loaded either, and its tokens are those of its tokenizer alone.
"""

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from urllib.parse import quote

import numpy as np

from chunking_assets.chunk_embeddings.build import (
    BATCH_CHUNKS,
    FINGERPRINTS,
    in_batches,
    stale_documents,
)
from chunking_assets.chunk_embeddings.version import IndexVersion
from chunking_assets.chunk_sets.build import CHUNKS, cell
from chunking_assets.chunk_sets.late import LateChunker
from chunking_assets.chunk_sets.rows import EMBED_TEXT
from chunking_assets.embedding_models.loaded import Models
from chunking_assets.embedding_models.model import Embedder, Tokenizer
from chunking_assets.embedding_models.remote_embedder import RemoteEmbedder
from chunking_assets.embedding_models.vector_cache import KEYS_PER_QUERY, VECTORS, vec_key
from chunking_assets.keys import digest
from chunking_assets.workspace import Workspace


@dataclass(frozen=True)
class Preview:
    """What an update of one index version would do: documents put in anew and removed, distinct
    texts to embed, the tokens of those, and texts whose vector is there.

    `tokens_by_jobs` are the tokens that would be sent by jobs of a batch API. `pending` counts
    further distinct texts: those in jobs that were sent and not collected yet.

    `is_estimate` where the tokens are not those the model would read: special tokens are left out,
    or chunks would be read in a window around them.
    """

    documents: int
    removed: int
    texts: int
    tokens: int
    tokens_by_jobs: int
    reused: int
    pending: int
    is_estimate: bool

    @property
    def changes_anything(self) -> bool:
        return bool(self.documents or self.removed)


@dataclass
class Previewing:
    """Looks at one index version after the other: a text that one needs is there for the next.

    `caches` is the folder of the caches to look into, `models` load what must be loaded, and
    `batch_chunks` is how many chunks an update looks at together.
    """

    workspace: Workspace
    caches: Path
    models: Models
    batch_chunks: int = BATCH_CHUNKS
    needed: dict[str, set[str]] = field(default_factory=dict)

    def of(self, index: IndexVersion, shards: Sequence[str]) -> Preview:
        """What bringing an index version up to date with the chunk sets there are would do."""
        batches: list[list[str]] = []
        documents = removed = 0
        for shard in shards:
            changes = stale_documents(self.workspace, index, shard)
            documents, removed = documents + len(changes.redo), removed + len(changes.removed)
            if changes.redo:
                batches += self._searched(index, shard, changes.redo)
        found = self.of_texts(index.model_name, batches)
        is_late = isinstance(index.chunker_version.chunker, LateChunker)
        return replace(
            found,
            documents=documents,
            removed=removed,
            is_estimate=found.is_estimate or (is_late and bool(found.texts)),
        )

    def of_texts(self, model: str, batches: Sequence[Sequence[str]]) -> Preview:
        """What embedding these texts with a model would do, those of a batch together."""
        needed = self.needed.setdefault(model, set())
        key, held, count = self._known(model) if any(batches) else (str, _nothing_held, None)
        by_key = {key(text): text for batch in batches for text in batch}
        new = by_key.keys() - needed
        new -= held(sorted(new))
        needed |= new
        pending = set[str]()
        if isinstance(count, RemoteEmbedder):
            pending = {*map(key, count.in_jobs([by_key[k] for k in sorted(new)]))}
        new -= pending
        order = sorted(new)
        missing = [by_key[k] for k in order]
        tokens = dict(zip(order, self._tokens(model, count, missing), strict=True))
        by_jobs = self._by_jobs(model, [{*map(key, batch)} for batch in batches], new)
        return Preview(
            documents=0,
            removed=0,
            texts=len(missing),
            tokens=sum(tokens.values()),
            tokens_by_jobs=sum(tokens[k] for k in by_jobs),
            reused=len(by_key) - len(missing) - len(pending),
            pending=len(pending),
            is_estimate=bool(missing) and count is None,
        )

    def _searched(
        self, index: IndexVersion, shard: str, doc_ids: Sequence[str]
    ) -> Iterator[list[str]]:
        """The texts of these documents, those that are looked at together in one list."""
        table = self.workspace.table(CHUNKS)
        manifest = table.manifest(cell(index.chunker_version.name, shard))
        assert manifest is not None
        for batch in in_batches(table.snapshot(manifest), doc_ids, self.batch_chunks):
            yield batch.filter("searched").select(embed_text=EMBED_TEXT)["embed_text"].to_list()

    def _by_jobs(self, model: str, batches: Sequence[set[str]], new: set[str]) -> set[str]:
        """The new texts that jobs would embed: those of batches with enough of them."""
        least = self.models.declared[model].jobs_from()
        found, seen = set[str](), set[str]()
        if least is None:
            return found
        for batch in batches:
            here = (batch & new) - seen
            seen |= here
            found |= here if len(here) >= least else set()
        return found

    def _known(
        self, model: str
    ) -> tuple[Callable[[str], str], Callable[[Sequence[str]], set[str]], Embedder | None]:
        """How a text's vector is named and looked up; without a record of the model there is
        none."""
        if self.workspace.declaration(FINGERPRINTS, model) is None:
            return digest, _nothing_held, None
        embedder = self.models.embedder(model)
        file = self.caches / VECTORS / f"{embedder.identity.fingerprint}.sqlite"
        return (
            lambda text: vec_key(embedder.identity, "passage", text),
            lambda keys: vectors_held(file, keys),
            embedder,
        )

    def _tokens(self, model: str, embedder: Embedder | None, texts: Sequence[str]) -> list[int]:
        if not texts:
            return []
        if embedder is not None:
            return embedder.count_tokens(texts)
        return self.models.tokenizer(model).count(texts)


class CountedModels(Models):
    """The models of another, asked in vain for vectors: what was asked is kept in `asked`, by
    model, and the vectors given are all equal. For strategies that embed before they cut."""

    def __init__(self, models: Models) -> None:
        super().__init__(models.declared, models.workspace)
        self._models = models
        self.asked: dict[str, list[Sequence[str]]] = {}

    def tokenizer(self, name: str) -> Tokenizer:
        return self._models.tokenizer(name)

    def vectors(self, name: str, texts: Sequence[str]) -> np.ndarray:
        self.asked.setdefault(name, []).append(texts)
        return np.ones((len(texts), 1), np.float32)


def vectors_held(file: Path, keys: Sequence[str]) -> set[str]:
    """Those of the keys that a vector cache has a row for. Nothing is written, beside it neither.

    Rows are not checked, so a damaged one counts.
    """
    if not file.exists():
        return set()
    log = file.with_name(f"{file.name}-wal")
    in_use = log.exists() and log.stat().st_size > 0
    mode = "mode=ro" if in_use else "immutable=1"
    held: set[str] = set()
    with closing(sqlite3.connect(f"file:{quote(str(file))}?{mode}", uri=True)) as connection:
        for first in range(0, len(keys), KEYS_PER_QUERY):
            some = keys[first : first + KEYS_PER_QUERY]
            rows = connection.execute(
                "select vec_key from vectors"  # noqa: S608
                f" where vec_key in ({','.join('?' * len(some))})",
                some,
            )
            held |= {key for (key,) in rows}
    return held


def _nothing_held(keys: Sequence[str]) -> set[str]:
    return set()
