"""A strategy declared inside another one: `{kind: recursive, max_tokens: 200}`.

It only says where to cut. What is put before a chunk, left out of it or counted in its language is
said once, around it.
"""

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import PlainSerializer, PlainValidator, ValidationInfo, WithJsonSchema

from chunking_assets.chunk_sets.chunker import Chunker
from chunking_assets.errors import CorpusError

SAID_AROUND_IT = (
    "tokenizer", "language_budgets", "language_factors", "clean", "neighbours", "context",
)  # fmt: skip


def nested_chunker(given: object, info: ValidationInfo) -> Chunker:
    """The strategy that a mapping with `kind` declares, checked as if it stood by itself.

    Raises:
        ValueError: it is not such a mapping, or says what cannot be meant inside another strategy.
    """
    # The registry knows the strategies that nest others, and so comes after this module.
    from chunking_assets.chunk_sets.late import LateChunker
    from chunking_assets.chunk_sets.registry import chunker_class

    if isinstance(given, Mapping) and "kind" in given:
        settings = {key: value for key, value in given.items() if key != "kind"}
        try:
            kind = chunker_class(str(given["kind"]))
        except CorpusError as error:
            raise ValueError(str(error).rstrip(".")) from error
        given = kind.model_validate(settings, context=info.context)
    if not isinstance(given, Chunker):
        raise ValueError("must be a mapping with the kind of a strategy, and its settings")
    if isinstance(given, LateChunker):
        raise ValueError("late pools what is embedded and cannot stand inside another strategy")
    for key in SAID_AROUND_IT:
        if getattr(given, key) != type(given).model_fields[key].get_default(
            call_default_factory=True
        ):
            raise ValueError(f"{key} belongs to the strategy around this one")
    return given


def as_nested(chunker: Chunker, tokenizer: str | None) -> Chunker:
    """A nested strategy, counting with the `tokenizer` of the one around it."""
    return chunker.model_copy(update={"tokenizer": tokenizer})


def _declaration(chunker: Chunker) -> dict[str, Any]:
    return chunker.declaration()


NestedChunker = Annotated[
    Chunker,
    PlainValidator(nested_chunker),
    PlainSerializer(_declaration),
    WithJsonSchema({"type": "object"}),
]
"""The type of a parameter that holds a strategy; recorded as that strategy's declaration."""
