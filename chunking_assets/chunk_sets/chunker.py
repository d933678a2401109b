"""What a chunking strategy is: immutable settings that know where a document may be cut."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

if TYPE_CHECKING:
    from chunking_assets.chunk_sets.spans import Document

CHARS_PER_TOKEN_CAP = 8


@dataclass(frozen=True, slots=True)
class Chunk:
    """A span of the canonical text, and what is put before it for retrieval.

    `text == canonical[start:end]` always (code points, half-open); `n_tokens` counts
    `prefix + text` in the chunker's tokenizer, without special tokens; `over_budget` marks the one
    grapheme that alone exceeds the budget and is emitted all the same.
    """

    start: int
    end: int
    text: str
    prefix: str
    n_tokens: int
    heading_path: tuple[str, ...] = ()
    over_budget: bool = False


class Chunker(BaseModel):
    """One entry of `chunkers:` in corpus.yaml; a subclass per strategy adds its parameters.

    `max_tokens` bounds `prefix + text` in tokens of `tokenizer` (an embedding model's name; the
    first declared model if left out); `max_chars` bounds the text in code points (8 per token if
    left out), because one enormous word can be a single unknown token; `overlap` repeats that
    many tokens of the previous chunk; `prefix` says what is put before the text for retrieval.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)
    kind: ClassVar[str]
    implementation: ClassVar[int] = 1
    """Raised when the same settings would cut the same text elsewhere."""

    max_tokens: int = Field(default=400, ge=1, le=1_000_000)
    max_chars: int | None = Field(default=None, ge=1)
    overlap: int = Field(default=0, ge=0)
    tokenizer: str | None = None
    prefix: Literal["none", "breadcrumb"] = "none"

    @model_validator(mode="after")
    def _overlap_is_smaller(self) -> "Chunker":
        if self.overlap >= self.max_tokens:
            raise ValueError(
                f"overlap ({self.overlap}) must be smaller than max_tokens ({self.max_tokens})"
            )
        return self

    @property
    def char_cap(self) -> int:
        return self.max_chars or CHARS_PER_TOKEN_CAP * self.max_tokens

    def declaration(self) -> dict[str, object]:
        """What is recorded at first use and may not change under the same `name@n`."""
        return {
            "kind": self.kind,
            "implementation": self.implementation,
            **self.model_dump(mode="json"),
        }

    def chunks(self, document: "Document") -> Iterator[Chunk]:
        """The document's chunks in order of their start. Never empty, never only white space."""
        raise NotImplementedError
