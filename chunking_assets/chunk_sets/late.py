"""The chunks of any strategy, each embedded as part of the long text around it."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from pydantic import Field, StrictInt, ValidationInfo, model_validator

from chunking_assets.chunk_sets.chunker import Chunk, Chunker
from chunking_assets.chunk_sets.nested import NestedChunker, as_nested, nested_chunker
from chunking_assets.chunk_sets.spans import Document

SIZES = ("max_tokens", "max_chars", "min_tokens", "overlap")


class LateChunker(Chunker):
    """The chunks of `spans`, embedded after Guenther et al. ("Late chunking", 2024,
    arXiv:2409.04701): the model reads a window of consecutive chunks at once, and the vector of a
    chunk is the mean of its own token vectors, which attention has told of the rest.

    Helps where chunks lean on what came before: pronouns, "the product", a name only the title
    says; and only with some models. The paper has gains with models of long context; with
    `e5-small` the chunks of a window become so much alike that recall falls
    (docs/configuration.md has numbers). Costs `context_tokens` per window more than embedding the
    text. A chunk has no prefix, for the window is its context. The model must give a vector per
    token and be trained for their mean.

    Windows are as long as the model reads, and each is led by the end of the text before it
    ("long late chunking"). Where one ends is decided by headings and content and not by counting
    from the start, so that after an edit the windows soon fall in with the old ones
    (`chunk_embeddings/late.py`). `implementation` covers that rule too.

    Parameters: `spans`, the declaration of any other strategy without prefix, which also says the
    sizes; `context_tokens` in tokens of the embedding model (default 64); of those of `Chunker`
    `tokenizer`, `language_budgets`, `language_factors` and `clean`.
    """

    kind = "late"

    spans: NestedChunker
    context_tokens: StrictInt = Field(default=64, ge=0, le=100_000)

    @model_validator(mode="before")
    @classmethod
    def _sized_as_its_spans(cls, given: Any, info: ValidationInfo) -> Any:
        if not isinstance(given, dict):
            return given
        try:
            spans = nested_chunker(given.get("spans"), info)
        except ValueError:
            return given  # refused with the field's own message
        for size in SIZES:
            if size in given:
                raise ValueError(f"{size} belongs to spans")
        return {**given, "spans": spans, **{size: getattr(spans, size) for size in SIZES}}

    @model_validator(mode="after")
    def _the_window_is_the_context(self) -> "LateChunker":
        for key in ("prefix", "neighbours", "context"):
            if getattr(self, key) not in (None, "none"):
                raise ValueError(f"the window is the context of a chunk: leave out {key}")
        if self.spans.prefix != "none":
            raise ValueError("the window is the context of a chunk: give spans prefix: none")
        return self

    def within(self, max_tokens: int) -> "LateChunker":
        spans = self.spans.within(max_tokens)
        return self.model_copy(update={"spans": spans, **{s: getattr(spans, s) for s in SIZES}})

    def models_asked(self) -> tuple[str | None, ...]:
        return self.spans.models_asked()

    def asks_chat(self) -> bool:
        return self.spans.asks_chat()

    def chunks(self, document: Document) -> Iterator[Chunk]:
        for chunk in as_nested(self.spans, self.tokenizer).chunks(document):
            if chunk.prefix:  # of code or a table, whose strategy was not asked for one
                n_tokens = document.count_exactly([("", chunk.start, chunk.end)])[0]
                chunk = replace(chunk, prefix="", n_tokens=n_tokens)
            yield chunk
