"""Some documents of a shard, chunked under every version that needs them: the unit of memory.

A batch is read from Parquet where it is chunked, in whatever process, and comes back as rows. A
document is tokenized once for all versions that see the same of it.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from pathlib import PurePosixPath

import polars as pl

from chunking_assets.chat_models.chat import Chat
from chunking_assets.chat_models.chat_endpoint import Message, Output, Reply
from chunking_assets.chat_models.metered import asked_for
from chunking_assets.chunk_sets.chunker import Chunk
from chunking_assets.chunk_sets.chunking import chunk
from chunking_assets.chunk_sets.cleaning import Excluded, blocks_of, excluded_spans
from chunking_assets.chunk_sets.processes import in_order
from chunking_assets.chunk_sets.rows import chunk_rows, excluded_rows
from chunking_assets.chunk_sets.spans import Document, Facts
from chunking_assets.chunk_sets.version import ChunkerVersion
from chunking_assets.embedding_models.loaded import Models
from chunking_assets.parsed_elements.document import Element
from chunking_assets.parsed_elements.parse import elements_by_document
from chunking_assets.workspace import Snapshot, one_of

CONVERSATIONS = 32
"""Documents chunked at the same time where a chat model is waited for; the endpoint's own limit
says how many requests are in flight."""


def batches(sizes: Mapping[str, int], most: int) -> Iterator[list[str]]:
    """Documents in order, in batches of at most `most` characters, or of one document.

    >>> list(batches({"c": 9, "a": 2, "b": 2}, 4))
    [['a', 'b'], ['c']]
    """
    batch: list[str] = []
    chars = 0
    for doc_id, size in sorted(sizes.items()):
        if batch and chars + size > most:
            yield batch
            batch, chars = [], 0
        batch.append(doc_id)
        chars += size
    if batch:
        yield batch


@dataclass(frozen=True)
class Batch:
    """Documents to chunk: for each, the key of its chunks under every version that needs it.

    `boilerplate` are the blocks a version leaves out, as `cleaning` names them.
    """

    keys: Mapping[str, Mapping[str, str]]
    boilerplate: Mapping[str, frozenset[str]] = field(default_factory=dict)

    def __str__(self) -> str:
        first, last = min(self.keys), max(self.keys)
        return first if first == last else f"{len(self.keys)} documents, {first} to {last}"


@dataclass(frozen=True)
class NewRows:
    """What one version made of a batch, in order; `provisional` documents are to be made anew."""

    chunks: pl.DataFrame
    excluded: pl.DataFrame
    provisional: tuple[str, ...]


@dataclass(frozen=True)
class SourceDocument:
    """A parsed document as it is stored."""

    doc_id: str
    text: str
    elements: tuple[Element, ...]
    facts: Facts


@dataclass(frozen=True)
class Chunking:
    """The documents of a shard at one moment, and what is made of them. Can be pickled."""

    documents: Snapshot
    elements: Snapshot
    versions: Sequence[ChunkerVersion]
    models: Models
    chat: Chat | None = None

    def read(self, doc_ids: Iterable[str]) -> Iterator[SourceDocument]:
        """These documents, sorted."""
        where = one_of("doc_id", doc_ids)
        columns = ["doc_id", "text", "media_type", "language"]
        elements = elements_by_document(self.elements.read(where=where))
        for doc_id, text, media_type, language in (
            self.documents.read(columns, where).sort("doc_id").iter_rows()
        ):
            found = elements.pop(doc_id, ())
            facts = Facts(media_type, language, title_of(doc_id, found))
            yield SourceDocument(doc_id, text, found, facts)

    def blocks(self, doc_ids: Sequence[str]) -> pl.DataFrame:
        """One row for each block of each of these documents: `doc_id`, `block`."""
        found = [(d.doc_id, list(blocks_of(d.text, d.elements))) for d in self.read(doc_ids)]
        schema = pl.Schema({"doc_id": pl.String(), "block": pl.List(pl.String)})
        return pl.DataFrame(found, schema, orient="row").explode("block").drop_nulls()

    def chunk(self, batch: Batch) -> dict[str, NewRows]:
        """The rows of a batch under each version.

        Raises:
            CorpusError: a model a strategy asks is missing, or a stored table is damaged.
        """
        return self._rows(batch, [self._made(batch, d) for d in self.read(batch.keys)])

    def stream(
        self, work: Sequence[Batch], step: Callable[[], None]
    ) -> Iterator[dict[str, NewRows]]:
        """As `chunk` for one batch after the other, in this process; `step` is called after each
        document. Where a chat model is waited for, many documents are begun, in threads."""
        asking = _Asking(self.chat) if self.chat else None
        chunking = replace(self, chat=asking)
        jobs: Iterator[Callable[[], _Made]] = (
            partial(chunking._made, batch, document)
            for batch in work
            for document in self.read(batch.keys)
        )
        pool = ThreadPoolExecutor(CONVERSATIONS, thread_name_prefix="chunk")
        try:
            every = in_order(pool, jobs, CONVERSATIONS) if asking else (job() for job in jobs)
            for batch in work:
                made = []
                for result in islice(every, len(batch.keys)):
                    made.append(result)
                    step()
                yield self._rows(batch, made)
        finally:
            if asking:
                asking.is_over = True
            pool.shutdown(wait=False, cancel_futures=True)

    def _made(self, batch: Batch, document: SourceDocument) -> "_Made":
        views = _Views(document, self.models, self.chat)
        needed = batch.keys[document.doc_id]
        return document.doc_id, {
            version.name: views.chunked(version, batch.boilerplate.get(version.name, frozenset()))
            for version in self.versions
            if version.name in needed
        }

    def _rows(self, batch: Batch, made: Sequence["_Made"]) -> dict[str, NewRows]:
        rows = {}
        for version in self.versions:
            name = version.name
            found = [(doc_id, *by_name[name]) for doc_id, by_name in made if name in by_name]
            rows[name] = NewRows(
                chunk_rows(name, [(d, batch.keys[d][name], chunks) for d, chunks, _ in found]),
                excluded_rows(name, [(d, excluded) for d, _, excluded in found]),
                tuple(d for d, chunks, _ in found if any(c.provisional for c in chunks)),
            )
        return rows


_Made = tuple[str, dict[str, tuple[list[Chunk], list[Excluded]]]]
"""A document, and what each version made of it."""


class _Asking(Chat):
    """A chat for documents that may be given up: from then on it is not asked any more."""

    def __init__(self, chat: Chat) -> None:
        self.chat, self.is_over = chat, False

    def ask(
        self,
        model: str,
        messages: Sequence[Message],
        output: type[Output],
        check: Callable[[Output], None],
    ) -> Reply[Output]:
        if self.is_over:
            raise CancelledError
        return self.chat.ask(model, messages, output, check)


def title_of(doc_id: str, elements: Sequence[Element]) -> str:
    """What a document is called: its first heading, or else its file's name."""
    headings = (e.heading_path[-1] for e in elements if e.kind == "heading" and e.heading_path)
    return next(headings, PurePosixPath(doc_id).stem)


class _Views:
    """One document as chunkers see it: one tokenization for all that can share it."""

    def __init__(self, source: SourceDocument, models: Models, chat: Chat | None) -> None:
        self.source, self.models, self.chat = source, models, chat
        self.views: dict[object, Document] = {}

    def chunked(
        self, version: ChunkerVersion, boilerplate: frozenset[str]
    ) -> tuple[list[Chunk], list[Excluded]]:
        source, clean = self.source, version.chunker.clean
        excluded = excluded_spans(source.text, source.elements, clean, boilerplate)
        form = clean.unicode if clean else "none"
        shared = (version.tokenizer_model, form, tuple(excluded))
        try:
            if shared not in self.views:
                self.views[shared] = Document(
                    source.text,
                    source.elements,
                    self.models.tokenizer(version.tokenizer_model),
                    excluded=[(e.start, e.end) for e in excluded],
                    form=form,
                    facts=source.facts,
                    models=self.models,
                    chat=self.chat,
                )
            with asked_for(version.name):
                return chunk(self.views[shared], version.chunker), excluded
        except Exception as error:
            error.add_note(f"It was {source.doc_id} under {version.name}.")
            raise
