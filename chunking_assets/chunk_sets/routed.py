"""Each document by the strategy that suits what it is, in a size that suits how dense it is."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

from pydantic import Field, ValidationError, field_validator, model_validator

from chunking_assets.chunk_sets.chunker import Chunk, Chunker
from chunking_assets.chunk_sets.spans import Document
from chunking_assets.errors import CorpusError

Structure = Literal["code", "conversation", "tables", "sections", "unspaced", "prose"]

ROUTES: dict[Structure, str] = {
    "code": "code",
    "conversation": "conversation",
    "tables": "element",
    "sections": "heading",
    "unspaced": "sentence",
    "prose": "recursive",
}
"""The kind that cuts each structure, unless `routes` says otherwise."""

_DEFINITIONS = frozenset(("import", "class", "function", "method"))
_UNSPACED = frozenset(("zh", "ja", "th", "lo", "km", "my"))
"""Languages that put no space between words: only their sentences can be told from afar."""
LEAST_HEADINGS = 3
ANSWER_SHARE = {"short": 0.5, "mixed": 0.75, "long": 1.0}
DENSE_SHARE = 0.5
"""A text of nothing but code and tables gets chunks of half the size: they say more per token."""
LEAST_TOKENS = 64


class RoutedChunker(Chunker):
    """Measures each document and hands it to the strategy that suits it: source code to `code`,
    turns to `conversation`, documents that are a third or more tables to `element`, documents with
    sections to `heading`, languages without spaces to `sentence`, everything else to `recursive`.

    Helps with mixed collections, where any one strategy is wrong for some files; each chunk's
    remark says which strategy cut it. `answers` says how long the answers are that questions look
    for: `short` (facts, names, numbers) halves the chunks, `long` (explanations, procedures) uses
    the whole budget. Text dense with code and tables gets smaller chunks, down to half. Query and
    document features as the key to chunk size: Bhat et al., "Rethinking chunk size for
    long-document retrieval" (2025, arXiv:2505.21700).

    Parameters: those of `Chunker`, `max_tokens` being the largest size; `answers` (default
    `mixed`: three quarters of it); `routes`, structure to kind, for those that differ from the
    above: `{prose: semantic}`.
    """

    kind = "routed"

    answers: Literal["short", "mixed", "long"] = "mixed"
    routes: dict[Structure, str] = Field(default_factory=dict)

    @field_validator("routes")
    @classmethod
    def _kinds_exist(cls, routes: dict[Structure, str]) -> dict[Structure, str]:
        for kind in routes.values():
            if kind == cls.kind:
                raise ValueError("a route cannot lead to routed again")
            try:
                _class_of(kind)
            except CorpusError as error:
                raise ValueError(str(error).rstrip(".")) from error
        return {place: kind for place, kind in routes.items() if kind != ROUTES[place]}

    @model_validator(mode="after")
    def _routes_can_be_taken(self) -> "RoutedChunker":
        """A route is made when a document takes it; that it can be is found out now."""
        for structure in get_args(Structure):
            try:
                self.route(structure, self.max_tokens)
            except ValidationError as error:
                problems = "; ".join(
                    f"{'.'.join(map(str, e['loc']))} {e['msg']}" for e in error.errors()
                )
                raise ValueError(
                    f"{structure} cannot be cut as {self.kinds()[structure]}: {problems}"
                ) from error
        return self

    def declaration(self) -> dict[str, Any]:
        routes = {s: self.route(s, self.max_tokens).declaration() for s in get_args(Structure)}
        return {**super().declaration(), "routes": routes}

    def kinds(self) -> dict[Structure, str]:
        return {**ROUTES, **self.routes}

    def models_asked(self) -> tuple[str | None, ...]:
        routes = [self.route(structure, self.max_tokens) for structure in get_args(Structure)]
        return tuple({model for route in routes for model in route.models_asked()})

    def asks_chat(self) -> bool:
        routes = [self.route(structure, self.max_tokens) for structure in get_args(Structure)]
        return super().asks_chat() or any(route.asks_chat() for route in routes)

    def chunks(self, document: Document) -> Iterator[Chunk]:
        measured = measure(document)
        size = self.size_for(measured.density)
        route = self.route(measured.structure, size)
        remark = f"cut as {route.kind}, {size} tokens ({measured.structure})"
        for chunk in route.chunks(document):
            yield replace(chunk, remark=chunk.remark or remark)

    def size_for(self, density: float) -> int:
        share = ANSWER_SHARE[self.answers] * (1 - DENSE_SHARE * density)
        return max(min(LEAST_TOKENS, self.max_tokens), round(self.max_tokens * share))

    def route(self, structure: Structure, max_tokens: int) -> Chunker:
        """The strategy for a structure, with what this one declares about every chunk."""
        common = self.model_dump(include=set(Chunker.model_fields) & self.model_fields_set)
        chosen = _class_of(self.kinds()[structure])
        for key in ("clean", "neighbours", "context", "language_budgets", "language_factors"):
            common.pop(key, None)  # are seen to before and after
        sized = self.within(max_tokens)
        common |= {"max_tokens": max_tokens, "min_tokens": sized.min_tokens}
        if "overlap" in common:
            common["overlap"] = sized.overlap
        if chosen.kind == "conversation":
            common.pop("overlap", None)  # whole turns are repeated in its place
        return chosen.model_validate(common)


@dataclass(frozen=True)
class Measured:
    """What a document is made of; `density` is the share of code and tables, 0 to 1."""

    structure: Structure
    density: float


def measure(document: Document) -> Measured:
    """The structure of a document, from its elements and its language."""
    chars: Counter[str] = Counter()
    for element in document.elements:
        chars[element.kind] += element.end - element.start
    total = max(1, chars.total())
    definitions = sum(chars[kind] for kind in _DEFINITIONS) / total
    density = min(1.0, definitions + (chars["code"] + chars["table"]) / total)
    structure: Structure = "prose"
    if definitions >= 0.5:
        structure = "code"
    elif chars["turn"] / total >= 0.5:
        structure = "conversation"
    elif chars["table"] / total >= 1 / 3:
        structure = "tables"
    elif len(document.sections) >= LEAST_HEADINGS:
        structure = "sections"
    elif document.facts.language in _UNSPACED:
        structure = "unspaced"
    return Measured(structure, density)


def _class_of(kind: str) -> type[Chunker]:
    from chunking_assets.chunk_sets.registry import chunker_class

    return chunker_class(kind)
