"""What strategies share that cut one text in several sizes: which sizes, and settings for each.

`max_tokens` stays the budget of what is searched, so that everything that asks a chunker for it is
right: it follows from `sizes`, or `sizes` from it, and both are recorded.
"""

from itertools import pairwise
from typing import Annotated, Any, ClassVar, Self

from pydantic import Field, StrictInt, model_validator

from chunking_assets.chunk_sets.chunker import Chunker

Size = Annotated[StrictInt, Field(ge=1, le=1_000_000)]


class SizesChunker(Chunker):
    """A strategy with `sizes`, coarse to fine, in tokens; level 0 is the finest.

    What is measured against `max_tokens` (`max_chars`, `overlap`, `min_tokens`) goes along in
    proportion where a size is another.
    """

    largest_searched: ClassVar[int]
    """The position in `sizes` of the one that is `max_tokens`."""

    sizes: tuple[Size, ...] = Field(max_length=16)

    @model_validator(mode="before")
    @classmethod
    def _sizes_and_max_tokens_agree(cls, given: Any) -> Any:
        if not isinstance(given, dict):
            return given
        sizes, max_tokens = given.get("sizes"), given.get("max_tokens")
        if isinstance(sizes, list | tuple):
            if len(sizes) < 2:
                raise ValueError("sizes must be at least two, coarse to fine")
            return {"max_tokens": sizes[cls.largest_searched], **given}
        if sizes is None and type(max_tokens) is int and max_tokens >= 1:
            default: tuple[int, ...] = cls.model_fields["sizes"].default
            usual: int = cls.model_fields["max_tokens"].default
            return {**given, "sizes": tuple(dict.fromkeys(_scaled(default, usual, max_tokens)))}
        return given  # right as it is, or refused with the field's own message

    @model_validator(mode="after")
    def _coarse_to_fine(self) -> Self:
        listed = ", ".join(map(str, self.sizes))
        if any(coarse <= fine for coarse, fine in pairwise(self.sizes)):
            raise ValueError(f"sizes ({listed}) must go from coarse to fine, each smaller")
        if self.max_tokens != self.sizes[self.largest_searched]:
            place = "first" if self.largest_searched == 0 else "last"
            raise ValueError(
                f"max_tokens ({self.max_tokens}) must be the {place} of sizes ({listed}), or left "
                "out"
            )
        return self

    def within(self, max_tokens: int) -> Self:
        sizes = _scaled(self.sizes, self.max_tokens, max_tokens)
        return super().within(max_tokens).model_copy(update={"sizes": sizes})  # type: ignore[return-value]

    def size_of(self, level: int) -> int:
        """The budget of a chunk of that level, in tokens."""
        return self.sizes[-1 - level]

    def at(self, level: int) -> Self:
        """The settings that cut one level."""
        size, whole = self.size_of(level), self.max_tokens
        chars = None if self.max_chars is None else max(1, self.max_chars * size // whole)
        return self.model_copy(
            update={
                "max_tokens": size,
                "max_chars": chars,
                "overlap": self.overlap * size // whole,
                "min_tokens": self.min_tokens * size // whole,
            }
        )


def _scaled(sizes: tuple[int, ...], whole: int, other: int) -> tuple[int, ...]:
    """The sizes in proportion.

    >>> _scaled((512, 256, 128), 512, 100)
    (100, 50, 25)
    """
    return tuple(max(1, size * other // whole) for size in sizes)
