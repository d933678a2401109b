"""What a chunking strategy is: immutable settings that know where a document may be cut."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictInt, field_validator, model_validator

if TYPE_CHECKING:
    from chunking_assets.chunk_sets.spans import Document

CHARS_PER_TOKEN_CAP = 8
SHARED = 1
"""Raised when what all strategies share would cut the same text elsewhere: packing, boundaries,
sentence ends, cleaning, neighbours."""
CONTEXT_PROMPT = 1
"""Raised when a chat model is asked otherwise for the context of a chunk."""
SETTINGS = ConfigDict(extra="forbid", frozen=True)


@dataclass(frozen=True, slots=True)
class Chunk:
    """A span of the canonical text, and what is put before it for retrieval.

    `text == canonical[start:end]` always (code points, half-open). `cleaned` is what is embedded of
    the text where cleaning left something out, else None. `n_tokens` counts `embed_text` in the
    chunker's tokenizer, without special tokens; `over_budget` marks the one grapheme that alone
    exceeds the budget and is emitted all the same. `budget` is the most tokens it could have had,
    in its language, at its level, on its route.

    Where a text is cut in several sizes, `level` is 0 for the finest, `parent` the position of the
    chunk one level up among the document's chunks, and `searched` false for what is only read when
    its children were found. `remark` says what came out otherwise than declared, and why; a
    `provisional` chunk did so because a model did not answer, and is made anew by the next build.
    """

    start: int
    end: int
    text: str
    prefix: str
    n_tokens: int
    heading_path: tuple[str, ...] = ()
    over_budget: bool = False
    cleaned: str | None = None
    level: int = 0
    parent: int | None = None
    searched: bool = True
    budget: int = 0
    remark: str | None = None
    provisional: bool = False

    @property
    def embed_text(self) -> str:
        """What is embedded and searched."""
        return self.prefix + (self.text if self.cleaned is None else self.cleaned)


class Cleaning(BaseModel):
    """What is left out of what is embedded. The canonical text and every offset stay as they are.

    `boilerplate` leaves out blocks that stand in at least that share of a shard's documents (and
    in at least 3): navigation, legal notices, signatures; `blank_lines` folds several blank lines
    into one; `invisible` leaves out soft hyphens, zero-width spaces and control characters;
    `unicode` normalises what is embedded, so that equal words are equal to full-text search.
    """

    model_config = SETTINGS
    boilerplate: float | None = Field(default=None, gt=0, le=1)
    blank_lines: bool = False
    invisible: bool = False
    unicode: Literal["none", "NFC", "NFKC"] = "none"


class Neighbours(BaseModel):
    """The text around a chunk as part of its prefix: what a pronoun at its edge refers to.

    `before` and `after` count `unit`s (sentences or characters, whole words), together at most a
    quarter of the budget in tokens.
    """

    model_config = SETTINGS
    unit: Literal["sentences", "characters"] = "sentences"
    before: StrictInt = Field(default=1, ge=0, le=2000)
    after: StrictInt = Field(default=0, ge=0, le=2000)

    @model_validator(mode="after")
    def _something(self) -> "Neighbours":
        if self.before == self.after == 0:
            raise ValueError("before and after are both 0; leave neighbours out instead")
        return self


class Context(BaseModel):
    """One or two sentences by a chat model that place a chunk in its document, as its prefix.

    "Contextual retrieval" (Anthropic, 2024). `model` is asked through the endpoint of the
    environment; `max_tokens` bounds the sentences, in tokens of the chunker's tokenizer, and is
    kept free of the chunk's budget. A document of at most `document_tokens` is shown to the model
    whole, a longer one by as many tokens of its beginning, its headings, and the text around the
    chunk.
    """

    model_config = SETTINGS
    model: str = Field(min_length=1)
    max_tokens: StrictInt = Field(default=80, ge=8, le=1000)
    document_tokens: StrictInt = Field(default=6000, ge=200, le=1_000_000)


class Chunker(BaseModel):
    """One entry of `chunkers:` in corpus.yaml; a subclass per strategy adds its parameters.

    `max_tokens` bounds `prefix + text` in tokens of `tokenizer` (an embedding model's name; the
    first declared model if left out); `max_chars` bounds the text in code points (8 per token if
    left out), because one enormous word can be a single unknown token; `min_tokens` joins a smaller
    chunk with a neighbour where both fit; `overlap` repeats that many tokens of the previous chunk;
    `prefix` says what is put before the text for retrieval.

    `language_budgets: measured` gives a language whose words are more tokens to this tokenizer as
    many more of them, so that chunks hold about as much in every language (`language_factors` in
    place of the measured ones). `clean`, `neighbours` and `context` are explained where they are
    declared.
    """

    model_config = SETTINGS
    kind: ClassVar[str]
    implementation: ClassVar[int] = 1
    """Raised when the same settings would cut the same text elsewhere, or a default changes."""

    max_tokens: StrictInt = Field(default=400, ge=1, le=1_000_000)
    max_chars: StrictInt | None = Field(default=None, ge=1)
    min_tokens: StrictInt = Field(default=0, ge=0)
    overlap: StrictInt = Field(default=0, ge=0)
    tokenizer: str | None = None
    prefix: Literal["none", "breadcrumb", "title"] = "none"
    language_budgets: Literal["none", "measured"] = "none"
    language_factors: dict[str, float] = Field(default_factory=dict)
    clean: Cleaning | None = None
    neighbours: Neighbours | None = None
    context: Context | None = None

    @model_validator(mode="after")
    def _sizes_fit_each_other(self) -> "Chunker":
        if self.overlap >= self.max_tokens:
            raise ValueError(
                f"overlap ({self.overlap}) must be smaller than max_tokens ({self.max_tokens})"
            )
        if self.min_tokens > self.max_tokens // 2:
            raise ValueError(
                f"min_tokens ({self.min_tokens}) must be at most half of max_tokens "
                f"({self.max_tokens})"
            )
        if self.context is not None and self.context.max_tokens > self.max_tokens // 2:
            raise ValueError(
                f"context.max_tokens ({self.context.max_tokens}) must be at most half of "
                f"max_tokens ({self.max_tokens})"
            )
        return self

    @field_validator("language_factors")
    @classmethod
    def _factors_are_positive(cls, factors: dict[str, float]) -> dict[str, float]:
        for language, factor in factors.items():
            if not re.fullmatch("[a-z]{2}", language):
                raise ValueError(f"{language!r} is not an ISO 639-1 code, such as tr")
            if not 0.1 <= factor <= 20:
                raise ValueError(f"the factor of {language} ({factor}) must be from 0.1 to 20")
        return factors

    @property
    def char_cap(self) -> int:
        return self.max_chars or CHARS_PER_TOKEN_CAP * self.max_tokens

    def within(self, max_tokens: int) -> "Chunker":
        """The same strategy with another budget; what is measured against it shrinks along."""

        def in_proportion(size: int) -> int:
            return size * max_tokens // self.max_tokens

        changed = {
            "max_tokens": max_tokens,
            "overlap": in_proportion(self.overlap),
            "min_tokens": in_proportion(self.min_tokens),
            "max_chars": self.max_chars and max(1, in_proportion(self.max_chars)),
        }
        if self.context is None:
            return self.model_copy(update=changed)
        context = {"max_tokens": min(self.context.max_tokens, max_tokens // 2)}
        return self.model_copy(
            update={**changed, "context": self.context.model_copy(update=context)}
        )

    def declaration(self) -> dict[str, Any]:
        """What is recorded at first use and may not change under the same `name@n`.

        Defaults are left out, so that a later release may add a parameter.
        """
        settings = self.model_dump(mode="json", exclude_defaults=True)
        if self.context is not None:
            settings["context"]["prompt"] = CONTEXT_PROMPT
        declared = {"kind": self.kind, "implementation": self.implementation, "shared": SHARED}
        if not type(self).__module__.startswith("chunking_assets."):
            from chunking_assets.chunk_sets.registry import package_of

            declared["package"] = package_of(self.kind)
        return {**declared, **settings}

    def models_asked(self) -> tuple[str | None, ...]:
        """The embedding models that decide where this strategy cuts; None is the one that counts
        its tokens."""
        return ()

    def asks_chat(self) -> bool:
        """Whether a chat model decides something about the chunks."""
        return self.context is not None

    def chunks(self, document: "Document") -> Iterator[Chunk]:
        """The document's chunks in order of their start. Never empty, never only white space."""
        raise NotImplementedError
