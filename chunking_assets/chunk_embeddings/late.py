"""Late chunking (Guenther et al. 2024, arXiv:2409.04701): vectors of chunks as parts of windows.

A window is some consecutive chunks of a document, as many as the model reads at once, led by a
little of the text before them. A chunk's vector depends on its window's text alone, so an edit
elsewhere leaves it, and windows are cut where content says, so an edit moves few of them.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, takewhile
from operator import eq

import numpy as np
import polars as pl

from chunking_assets.chunk_embeddings.version import IndexVersion
from chunking_assets.chunk_sets.build import EXCLUDED_SPANS, cell
from chunking_assets.chunk_sets.late import LateChunker
from chunking_assets.chunk_sets.spans import Document
from chunking_assets.embedding_models.model import (
    Embedder,
    ModelIdentity,
    TokenEmbedder,
    Tokenizer,
    TokenProgress,
)
from chunking_assets.embedding_models.vector_cache import (
    CachedVector,
    Embedded,
    VectorCache,
    embed_through_cache,
    vec_key,
)
from chunking_assets.errors import CorpusError
from chunking_assets.keys import digest, text_sha
from chunking_assets.parsed_elements.build import DOCUMENTS
from chunking_assets.workspace import Workspace, one_of

LEAST_FILL = 2
"""A window may end once half of it is full: having a choice is what makes the windows after
an edit fall in with the old ones."""

NO_NEW_HEADING = 1_000
"""Deeper than headings go."""

BATCH = 16
"""Windows embedded between two commits of the cache."""


def check_late(index: IndexVersion) -> None:
    """
    Raises:
        CorpusError: the index pools token vectors, and its model is known to have none of use.
    """
    if isinstance(index.chunker_version.chunker, LateChunker):
        index.model.check_token_vectors()


def span_key(identity: ModelIdentity, window: str, start: int, end: int) -> str:
    """The key of the vector of `[start, end)` of a text that is read as one window."""
    sent = identity.passage_prefix + window
    return digest("vector", identity.fingerprint, "late", sent, start, end)


@dataclass(frozen=True, slots=True)
class ChunkSpan:
    """A chunk's place in its document, and the headings above it."""

    start: int
    end: int
    heading_path: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Window:
    """The text a model reads at once, and which chunks, by position, stand where in it."""

    text: str
    chunks: range
    spans: tuple[tuple[int, int], ...]


def windows_of(
    document: Document,
    chunks: Sequence[ChunkSpan],
    embedder: TokenEmbedder,
    context_tokens: int,
) -> Iterator[Window]:
    """The windows of a document that is counted in the embedder's tokens, in their order.

    `chunks` are in order of their start and may overlap; one that no window holds whole is in
    none. A window begins at a chunk, before which come up to `context_tokens`, but no more than
    half of what the model reads. It ends before one of the chunks in reach: the one under the
    coarsest new heading, or else the one whose text has the least digest.
    """
    planner = _Planner(document, chunks, embedder, context_tokens)
    first = 0
    while first < len(chunks):
        after = planner.end_of(first)
        window = planner.window(first, after)
        while window is None and after > first + 1:
            after -= 1
            window = planner.window(first, after)
        if window is not None:
            yield window
        first = after


class _Planner:
    """The steps of `windows_of`."""

    def __init__(
        self,
        document: Document,
        chunks: Sequence[ChunkSpan],
        embedder: TokenEmbedder,
        context_tokens: int,
    ) -> None:
        self.document, self.chunks, self.embedder = document, chunks, embedder
        # The prefix and the special tokens are read with every window.
        self.room = embedder.identity.max_tokens - embedder.count_tokens([""])[0]
        self.context_tokens = min(context_tokens, self.room // 2)
        self.ranks = [self.rank(position) for position in range(len(chunks))]

    def rank(self, position: int) -> tuple[int, str]:
        """Where to begin a window: the least is best. An edit elsewhere does not change it."""
        chunk, last = self.chunks[position], self.chunks[max(0, position - 1)]
        shared = sum(takewhile(bool, map(eq, chunk.heading_path, last.heading_path)))
        depth = NO_NEW_HEADING if chunk.heading_path == last.heading_path else shared
        return depth, text_sha(self.document.text[chunk.start : chunk.end])

    def end_of(self, first: int) -> int:
        """The chunk before which a window that begins with chunk `first` ends."""
        start, end = self.chunks[first].start, self.chunks[first].end
        budget = self.room - min(self.context_tokens, self.document.count(0, start))
        after = first + 1
        while after < len(self.chunks):
            end = max(end, self.chunks[after].end)
            if self.document.count(start, end) > budget:
                break
            after += 1
        else:
            return after
        enough = [
            position
            for position in range(first + 1, after + 1)
            if LEAST_FILL * self.document.count(start, self.chunks[position].start) >= budget
        ]
        return min(enough, key=self.ranks.__getitem__, default=after)

    def window(self, first: int, after: int) -> Window | None:
        """The chunks `[first, after)` with as much before them as there is room for, or None if
        they are too long even without."""
        chunks = self.chunks[first:after]
        start, end = chunks[0].start, max(chunk.end for chunk in chunks)
        context = min(self.context_tokens, self.room - self.document.count(start, end))
        while context >= 0:
            text, spans = self.read(self.before(start, context), end, chunks)
            # Subword counts are not additive, so the whole window is counted again.
            over = self.embedder.count_tokens([text])[0] - self.embedder.identity.max_tokens
            if over <= 0:
                return Window(text, range(first, after), spans)
            context -= over
        return None

    def before(self, start: int, n_tokens: int) -> int:
        """Where the word begins from which at most `n_tokens` lead to `start`."""
        if n_tokens == 0:
            return start
        at = self.document.back(start, n_tokens)
        found = 0 if at == 0 else self.document.first_boundary(at, start, "word")
        return start if found is None else found

    def read(
        self, start: int, end: int, chunks: Sequence[ChunkSpan]
    ) -> tuple[str, tuple[tuple[int, int], ...]]:
        """What is embedded of `[start, end)`, and where in it the chunks are."""
        edges = sorted({start, end, *(c.start for c in chunks), *(c.end for c in chunks)})
        parts, places = [], {start: 0}
        for a, b in pairwise(edges):
            parts.append(self.document.kept(a, b))
            places[b] = places[a] + len(parts[-1])
        return "".join(parts), tuple((places[c.start], places[c.end]) for c in chunks)


def embed_late(
    workspace: Workspace,
    index: IndexVersion,
    shard: str,
    chunks: pl.DataFrame,
    embedder: Embedder,
    cache: VectorCache,
    progress: TokenProgress | None = None,
) -> tuple[list[str], Embedded]:
    """The keys and vectors of chunks, in their order, computing only what the cache does not hold.

    `chunks` are all searched chunks of some documents of a shard. One that is longer than a window
    is embedded by itself, as under any other strategy. `progress` counts windows. Of the tokens,
    `n_tokens` are what the model reads of each chunk by itself, so that the chunks of all
    strategies are measured alike; `tokens_computed` is what it did read.

    Raises:
        CorpusError: the model has no token vectors, or a document's text is not that of its chunks.
    """
    chunker, identity = index.chunker_version.chunker, embedder.identity
    assert isinstance(chunker, LateChunker)
    if not isinstance(embedder, TokenEmbedder):
        raise CorpusError(
            f"{index.name}: embedding model {index.model_name} gives no vectors per token, which "
            "late chunking pools. Choose another model or chunker."
        )
    texts = chunks["embed_text"].to_list()
    keys = [vec_key(identity, "passage", text) for text in texts]
    windows: dict[str, _Spans] = {}
    for document, rows, places in _documents(workspace, index, shard, chunks, embedder.tokenizer):
        for window in windows_of(document, places, embedder, chunker.context_tokens):
            spans = windows.setdefault(window.text, {})
            for position, span in zip(window.chunks, window.spans, strict=True):
                key = span_key(identity, window.text, *span)
                keys[rows[position]], spans[key] = key, span
    known = cache.get_many([key for spans in windows.values() for key in spans])
    reused, tokens_reused = len(known), sum(vector.n_tokens for vector in known.values())
    tokens_read = 0
    for new, n_tokens in _embed_missing(embedder, cache, windows, known, progress):
        known |= new
        tokens_read += n_tokens
    computed = len(known) - reused
    alone = [text for text, key in zip(texts, keys, strict=True) if key not in known]
    by_itself = embed_through_cache(embedder, cache, alone)
    for text, vector, n_tokens in zip(alone, by_itself.vectors, by_itself.n_tokens, strict=True):
        known[vec_key(identity, "passage", text)] = CachedVector(vector, n_tokens)
    vectors = np.empty((len(keys), identity.dimensions), np.float32)
    for row, key in enumerate(keys):
        vectors[row] = known[key].vector
    return keys, Embedded(
        vectors=vectors,
        n_tokens=[known[key].n_tokens for key in keys],
        computed=computed + by_itself.computed,
        reused=reused + by_itself.reused,
        tokens_computed=tokens_read + by_itself.tokens_computed,
        tokens_reused=tokens_reused + by_itself.tokens_reused,
    )


_Spans = dict[str, tuple[int, int]]
"""Key of the vector → span of the window's text."""


def _embed_missing(
    embedder: TokenEmbedder,
    cache: VectorCache,
    windows: Mapping[str, _Spans],
    known: Mapping[str, CachedVector],
    progress: TokenProgress | None,
) -> Iterator[tuple[dict[str, CachedVector], int]]:
    """The vectors that are not known, stored, batch after batch, and the tokens read for them."""
    missing = [
        (text, absent)
        for text, spans in windows.items()
        if (absent := {key: span for key, span in spans.items() if key not in known})
    ]
    tokens = 0
    for first in range(0, len(missing), BATCH):
        batch = missing[first : first + BATCH]
        found = embedder.embed_spans([(text, list(spans.values())) for text, spans in batch])
        keys = [key for _, spans in batch for key in spans]
        counts = embedder.count_tokens([text[a:b] for text, s in batch for a, b in s.values()])
        vectors = np.concatenate(found)
        cache.put_many(keys, vectors, counts)
        n_tokens = sum(embedder.count_tokens([text for text, _ in batch]))
        tokens += n_tokens
        if progress is not None:
            progress(first + len(batch), len(missing), tokens)
        yield dict(zip(keys, map(CachedVector, vectors, counts), strict=True)), n_tokens


def _documents(
    workspace: Workspace,
    index: IndexVersion,
    shard: str,
    chunks: pl.DataFrame,
    tokenizer: Tokenizer,
) -> Iterator[tuple[Document, list[int], list[ChunkSpan]]]:
    """Each document as it was cut, and its chunks in order of their start: rows and places."""
    version = index.chunker_version
    clean = version.chunker.clean
    table = workspace.table(DOCUMENTS)
    manifest = table.manifest(shard)
    texts: dict[str, str] = {}
    if manifest is not None and not chunks.is_empty():
        is_asked = one_of("doc_id", {*chunks["doc_id"]})
        texts = dict(table.snapshot(manifest).read(["doc_id", "text"], is_asked).iter_rows())
    left_out = workspace.table(EXCLUDED_SPANS).read(cell(version.name, shard)) if clean else None
    excluded = {} if left_out is None else left_out.partition_by("doc_id", as_dict=True)
    by_document = chunks.with_row_index("row").partition_by("doc_id", as_dict=True)
    for (doc_id,), own in by_document.items():
        text = texts.get(doc_id) or ""
        own = own.sort("start", "end")
        if any(text[a:b] != t for a, b, t in own.select("start", "end", "text").iter_rows()):
            raise CorpusError(
                f"{doc_id}: its chunks do not belong to its text (an update was interrupted). "
                f"Build chunk_sets of shard {shard} again."
            )
        spans = excluded.get((doc_id,))
        document = Document(
            text,
            (),
            tokenizer,
            excluded=[] if spans is None else spans.select("start", "end").sort("start").rows(),
            form=clean.unicode if clean else "none",
        )
        places = own.select("start", "end", "heading_path").iter_rows()
        yield document, list(own["row"]), [ChunkSpan(a, b, tuple(path)) for a, b, path in places]
