"""An index version: chunker version × embedding model × how vectors are stored, one LanceDB table.

Embedding gives float32, and the vector cache keeps that; an index may keep less of it. What it
keeps is in its name, so that two of them are compared as any two are, and neither embeds anew.
"""

from dataclasses import dataclass
from typing import Literal, cast

from chunking_assets.chunk_sets.version import ChunkerVersion
from chunking_assets.embedding_models.model import EmbeddingModel

Precision = Literal["float32", "float16", "int8"]
FULL: Precision = "float32"


@dataclass(frozen=True)
class IndexVersion:
    """What a vector index is built from, and the `precision` its vectors are stored with."""

    chunker_version: ChunkerVersion
    model_name: str
    model: EmbeddingModel
    precision: Precision = FULL

    @property
    def name(self) -> str:
        """As it is written everywhere: `recursive-400@1+e5-small`, and `+float16` or `+int8`
        after it where vectors are stored so."""
        parts = [self.chunker_version.name, self.model_name]
        return "+".join(parts if self.precision == FULL else [*parts, self.precision])


def model_of(index_version: str) -> str:
    """
    >>> model_of("recursive-400@1+e5-small+float16")
    'e5-small'
    """
    return index_version.split("+")[1]


def precision_of(index_version: str) -> Precision:
    """
    >>> precision_of("recursive-400@1+e5-small"), precision_of("recursive-400@1+e5-small+float16")
    ('float32', 'float16')
    """
    return cast("Precision", [*index_version.split("+"), FULL][2])
