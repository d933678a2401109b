"""A collection as declared in corpus.yaml, and the shards it is cut into."""

import hashlib
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field


class Collection(BaseModel):
    """One entry of `collections:`.

    `path` is a folder, relative to corpus.yaml; `include` and `exclude` are globs over the POSIX
    path inside it (`**` spans folders); `shards` cuts the collection by hash of the document
    id; `max_bytes` bounds one file;
    `settle_seconds` is how long a file must have been left alone before it is read.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    path: str
    include: tuple[str, ...] = ("**/*",)
    exclude: tuple[str, ...] = ()
    shards: int = Field(default=1, ge=1, le=100)
    max_bytes: int = Field(default=50_000_000, ge=1)
    settle_seconds: float = Field(default=2.0, ge=0)

    def folder(self, root: Path) -> Path:
        return root / self.path

    def shards_of(self, name: str) -> list[str]:
        """
        >>> Collection(path="docs", shards=2).shards_of("help-center")
        ['help-center-00', 'help-center-01']
        """
        if self.shards == 1:
            return [name]
        return [f"{name}-{number:02d}" for number in range(self.shards)]

    def shard_of(self, name: str, doc_id: str) -> str:
        """The shard that owns a document, whatever else is in the collection."""
        number = int.from_bytes(hashlib.sha256(doc_id.encode()).digest()[:8], "big") % self.shards
        return self.shards_of(name)[number]
