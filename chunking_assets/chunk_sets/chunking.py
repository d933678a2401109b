"""From a document to its chunks: the budget for its language, the cuts, what is put before them."""

from collections.abc import Iterator
from dataclasses import replace

from chunking_assets.chunk_sets.chunker import Chunk, Chunker
from chunking_assets.chunk_sets.neighbours import with_neighbours
from chunking_assets.chunk_sets.packing import PREFIX_SHARE
from chunking_assets.chunk_sets.spans import Document
from chunking_assets.errors import CorpusError


def chunk(document: Document, chunker: Chunker) -> list[Chunk]:
    """The chunks of a document as a chunker version declares them, in order of their start.

    Raises:
        CorpusError: a model the strategy asks is missing or fails in a way that nothing replaces.
    """
    chunker = for_language(chunker, document.facts.language)
    reserved = 0
    if chunker.neighbours is not None:
        reserved += chunker.max_tokens // PREFIX_SHARE
    if chunker.context is not None:
        reserved += chunker.context.max_tokens
    cutting = chunker.within(max(1, chunker.max_tokens - reserved)) if reserved else chunker
    chunks = [_with_budget(chunker, cutting, c) for c in _sound(document, cutting)]
    if chunker.neighbours is not None:
        chunks = with_neighbours(document, chunker, chunks)
    if chunker.context is not None:
        from chunking_assets.chunk_sets.context import with_context

        chunks = with_context(document, chunker, chunks)
    return chunks


def _sound(document: Document, chunker: Chunker) -> Iterator[Chunk]:
    """The chunks a strategy gives, held to what all promise; tokens of a foreign one are recounted.

    Raises:
        CorpusError: a chunk is not a slice of the text, empty, or out of order.
    """
    is_own = type(chunker).__module__.startswith("chunking_assets.")
    last_start, last_ends = 0, dict[int, int]()
    for chunk in chunker.chunks(document):
        start, end = chunk.start, chunk.end
        goes_on = last_start <= start < end and last_ends.get(chunk.level, 0) < end
        if not goes_on or document.text[start:end] != chunk.text or not chunk.text.strip():
            raise CorpusError(
                f"kind {chunker.kind!r} gave a chunk [{start}, {end}) that is empty, out of order "
                "or not a slice of the text. Correct that strategy."
            )
        last_start, last_ends[chunk.level] = start, end
        if not is_own:
            n_tokens = document.count_texts([chunk.embed_text])[0]
            over = n_tokens > chunker.max_tokens or len(chunk.text) > chunker.char_cap
            chunk = replace(chunk, n_tokens=n_tokens, over_budget=over)
        yield chunk


def _with_budget(chunker: Chunker, cutting: Chunker, chunk: Chunk) -> Chunk:
    """The chunk with the budget it has when nothing is kept free for a prefix."""
    if chunk.budget and cutting is chunker:
        return chunk
    budget = (chunk.budget or cutting.max_tokens) * chunker.max_tokens // cutting.max_tokens
    most_chars = chunker.char_cap * budget // chunker.max_tokens
    over = chunk.n_tokens > budget or len(chunk.text) > most_chars
    return replace(chunk, budget=budget, over_budget=chunk.over_budget and over)


def for_language(chunker: Chunker, language: str | None) -> Chunker:
    """The chunker with the budget it has for a language: `max_tokens` times its factor."""
    factor = chunker.language_factors.get(language or "", 1.0)
    return chunker if factor == 1.0 else chunker.within(max(1, round(chunker.max_tokens * factor)))
