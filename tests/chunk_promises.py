"""Any chunking strategy with a given budget, and what each promises about any document.

The promises are held against the text, the parsed elements and the tokenizer, never against what
the strategy says of itself.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import regex
from hard_texts import Subwords, Words
from small_corpus import HashEmbedder

from chunking_assets.chat_models.chat import NoEndpoint
from chunking_assets.chunk_sets.chunker import Chunk, Chunker
from chunking_assets.chunk_sets.chunking import chunk, for_language
from chunking_assets.chunk_sets.cleaning import blocks_of, excluded_spans
from chunking_assets.chunk_sets.packing import PREFIX_SHARE, prefix_at
from chunking_assets.chunk_sets.registry import CHUNKERS
from chunking_assets.chunk_sets.routed import measure
from chunking_assets.chunk_sets.spans import Document, ElementSpan, Facts

BASELINES = tuple(kind for kind, c in CHUNKERS.items() if ".adapters." in c.__module__)
"""Other libraries' splitters: exact spans in order are all that is promised of them."""
OWN = tuple(kind for kind in CHUNKERS if kind not in BASELINES)

# What is particular to a kind. A new one that takes the parameters of `Chunker` needs no line.

NOT_TAKEN = {
    "conversation": ("overlap",),
    "late": ("prefix", "neighbours"),
    **dict.fromkeys(BASELINES, ("min_tokens", "prefix", "clean", "neighbours")),
}
"""What a kind refuses by design; it is declared without."""
SIZES = ("max_tokens", "max_chars", "min_tokens", "overlap")
NEEDED = {"llm": {"model": "chosen-by-nobody"}}
"""What a kind cannot be declared without."""
SEES_THE_WHOLE = ("semantic", "cluster", "llm", "routed")
"""Kinds that cut by all of a document: text at its end may move every cut."""
OWN_PREFIXES = {"imports": 2, "signature": 2, "speakers": PREFIX_SHARE}
"""Prefixes only one kind has, and the part of the budget they get at most."""


def declared(kind: str, **parameters: object) -> Chunker:
    """A strategy with these parameters, but those it refuses, and all it needs."""
    given = {k: v for k, v in parameters.items() if k not in NOT_TAKEN.get(kind, ())}
    sizes = {k: v for k, v in given.items() if k in SIZES}
    if kind == "late":
        given = {k: v for k, v in given.items() if k not in SIZES}
        given["spans"] = {"kind": "recursive", **sizes}
    if kind == "multi_granularity":  # of its three sizes, the finest is the one that is asked for
        given |= {k: 4 * v for k, v in sizes.items() if isinstance(v, int)}
    return CHUNKERS[kind].model_validate({**NEEDED.get(kind, {}), **given})


class HashVectors:
    """What strategies use of `Models`, without a disk."""

    def __init__(self) -> None:
        self.declared, self._embedder = {"hash": None}, HashEmbedder(512)

    def vectors(self, name: str, texts: Sequence[str]) -> np.ndarray:
        return self._embedder.embed_queries(texts)


class Nobody:
    """A chat without an endpoint."""

    def ask(self, model, messages, output, check):
        raise NoEndpoint("no_endpoint", "nobody is there")


class EveryThird:
    """A chat model that begins a chunk at every third sentence, for better or worse."""

    def ask(self, model, messages, output, check):
        sentences = messages[-1]["content"].count("\n") - 1
        reply = output(starts=[*range(3, sentences + 1, 3)])
        check(reply)
        return SimpleNamespace(output=reply)


def opened(
    text: str,
    elements: Sequence[ElementSpan],
    tokenizer: Subwords | Words,
    chunker: Chunker | None = None,
    language: str | None = None,
    **differing: object,
) -> Document:
    """A document as a build opens it for a chunker; if that leaves out boilerplate, one block is."""
    clean = chunker.clean if chunker else None
    boilerplate = sorted(blocks_of(text, elements))[:1] if clean and clean.boilerplate else ()
    excluded = excluded_spans(text, elements, clean, boilerplate)
    usual = {
        "excluded": [(e.start, e.end) for e in excluded],
        "form": clean.unicode if clean else "none",
        "facts": Facts(language=language, title="The title"),
        "models": HashVectors(),
        "chat": Nobody(),
    }
    return Document(text, elements, tokenizer, **{**usual, **differing})


def anew(document: Document) -> Document:
    """The same document, of which nothing has been found out yet."""
    return Document(
        document.text,
        document.elements,
        document.tokenizer,
        excluded=document.excluded,
        form=document.form,
        facts=document.facts,
        models=document.models,
        chat=document.chat,
    )


@contextmanager
def looking_at(*what: object) -> Iterator[None]:
    """A failure inside says what was being looked at: one test goes through many texts."""
    try:
        yield
    except Exception as error:
        error.add_note(f"looking at {', '.join(map(str, what))}")
        raise


def promised(document: Document, chunker: Chunker) -> list[Chunk]:
    """The chunks of a document as a build makes them, after seeing every promise kept."""
    chunks = chunk(document, chunker)
    assert chunks == chunk(anew(document), chunker)
    _assert_exact(document, chunks)
    if chunker.kind in BASELINES:
        return chunks
    whole = for_language(chunker, document.facts.language)
    kept_free = whole.max_tokens // PREFIX_SHARE if whole.neighbours is not None else 0
    reduced = whole.within(max(1, whole.max_tokens - kept_free)) if kept_free else whole
    cutting = _that_cuts(document, reduced)
    for level in sorted({c.level for c in chunks}):
        of_level = [c for c in chunks if c.level == level]
        settings = _at(cutting, level)
        most, chars = settings.max_tokens, settings.char_cap
        if kept_free:
            most = most * whole.max_tokens // reduced.max_tokens
            chars = max(chars, whole.char_cap * most // whole.max_tokens)
        _assert_within(document, of_level, most, chars)
        assert all(a.start < b.start and a.end < b.end for a, b in pairwise(of_level))
        _assert_wholes(document, of_level, settings)
        prefix_is_final = chunker.neighbours is None and settings.prefix != "speakers"
        if settings.min_tokens and prefix_is_final:
            _assert_joined(document, of_level, settings)
    if not any(getattr(cutting, f"overlap{of}", 0) for of in ("", "_sentences", "_turns")):
        finest = [c for c in chunks if c.level == 0]
        assert all(a.end <= b.start for a, b in pairwise(finest))
    _assert_family(chunks)
    return chunks


def _that_cuts(document: Document, chunker: Chunker) -> Chunker:
    """What cuts in the end, as others nest or route it."""
    if chunker.kind == "late":
        return chunker.spans
    if chunker.kind == "routed":
        measured = measure(document)
        return chunker.route(measured.structure, chunker.size_for(measured.density))
    return chunker


def _at(chunker: Chunker, level: int) -> Chunker:
    """The settings of a level."""
    if chunker.kind == "hierarchical" and level:
        parents = {"overlap": 0, "prefix": "none", "min_tokens": chunker.min_tokens}
        return chunker.at(min(level, len(chunker.sizes) - 1)).model_copy(update=parents)
    if chunker.kind in ("hierarchical", "multi_granularity"):
        return chunker.at(level)
    return chunker


def _assert_exact(document: Document, chunks: Sequence[Chunk]) -> None:
    """Exact spans in order, nothing lost but white space and what is left out, none blank."""
    text = document.text
    assert [c.text for c in chunks] == [text[c.start : c.end] for c in chunks]
    assert [c.start for c in chunks] == sorted(c.start for c in chunks)
    assert not [c for c in chunks if not c.text.strip() or not c.embed_text.strip()]
    left_out = {at for span in document.excluded for at in range(*span)}
    assert not [c for c in chunks if c.start in left_out or c.end - 1 in left_out]
    covered = 0
    finest = [(c.start, c.end) for c in chunks if c.level == 0]
    for start, end in sorted([*finest, *document.excluded]):
        assert not text[covered:start].strip()
        covered = max(covered, end)
    assert not text[covered:].strip()


@lru_cache(maxsize=64)
def grapheme_ends(text: str) -> frozenset[int]:
    """Where grapheme clusters end, by Unicode Standard Annex 29, and where the first begins."""
    return frozenset((0, *(m.end() for m in regex.finditer(r"\X", text))))


def _assert_within(document: Document, chunks: Sequence[Chunk], most: int, chars: int) -> None:
    """The budget by the real tokenizer and the cap, or one marked grapheme; no cluster divided."""
    ends = grapheme_ends(document.text)
    counts = document.tokenizer.count([c.embed_text for c in chunks])
    for c, count in zip(chunks, counts, strict=True):
        assert {c.start, c.end} <= ends
        assert c.n_tokens == count
        kept = document.kept(c.start, c.end)
        assert (c.text if c.cleaned is None else c.cleaned) == kept
        assert c.budget == most
        assert c.over_budget is (count > most or len(c.text) > chars)
        assert not c.over_budget or regex.fullmatch(r"\X", c.text)
        assert count <= most or not c.prefix
        leading = len(c.text) - len(c.text.lstrip())
        trailing = len(c.text.rstrip())
        assert not any(c.start + at in ends for at in range(1, leading + 1))
        assert not any(c.start + at in ends for at in range(trailing, len(c.text)))


def _assert_wholes(document: Document, chunks: Sequence[Chunk], settings: Chunker) -> None:
    """No chunk begins or ends inside a block of code or row of a table that fits one."""
    offsets = sorted({at for c in chunks for at in (c.start, c.end)})
    cut = [
        (start, end)
        for start, end in document.wholes
        if end - start <= settings.char_cap
        and bisect_right(offsets, start) < bisect_left(offsets, end)
    ]
    kept, room = [document.kept(*span) for span in cut], settings.max_tokens
    if settings.prefix in OWN_PREFIXES:
        room -= room // OWN_PREFIXES[settings.prefix] + 2
    else:
        kept = [
            prefix_at(document, settings, span[0]) + k for span, k in zip(cut, kept, strict=True)
        ]
    assert not [
        span for span, n in zip(cut, document.tokenizer.count(kept), strict=True) if n <= room
    ]


def _assert_joined(document: Document, chunks: Sequence[Chunk], settings: Chunker) -> None:
    """A chunk under the least size has a neighbour only where both are too much for one chunk."""
    pairs = [
        (a, b)
        for a, b in pairwise(chunks)
        if min(a.n_tokens, b.n_tokens) < settings.min_tokens
        and a.parent == b.parent
        and not document.kept(a.end, b.start).strip()
        and b.end - a.start <= settings.char_cap
    ]
    joined = [a.prefix + document.kept(a.start, b.end) for a, b in pairs]
    assert all(n > settings.max_tokens for n in document.tokenizer.count(joined))


def _assert_family(chunks: Sequence[Chunk]) -> None:
    """Parents stand before their children, around them, one of another size, and are not searched."""
    for at, c in enumerate(chunks):
        if c.parent is not None:
            parent = chunks[c.parent]
            assert c.parent < at
            assert parent.start <= c.start < c.end <= parent.end
            assert parent.level > c.level
            assert not parent.searched
    assert all(c.searched for c in chunks if c.level == 0)
