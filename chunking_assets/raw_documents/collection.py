"""A collection as declared in corpus.yaml: where its documents are, which files count, and the
shards it is cut into."""

import hashlib
from functools import cached_property
from pathlib import Path
from typing import Literal, Self

import pathspec
from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from chunking_assets.raw_documents.file_list import FileList
from chunking_assets.raw_documents.file_system import LISTING_SECONDS, FileSystem
from chunking_assets.raw_documents.git_revision import GitRevision
from chunking_assets.raw_documents.local_folder import LocalFolder
from chunking_assets.raw_documents.media_type import PDF, PDF_LAYOUTS, type_of_suffix
from chunking_assets.raw_documents.source import Source, has_credentials

GIT = "git+file://"
EVERY_FILE = ("**/*",)


class Collection(BaseModel):
    """One entry of `collections:`.

    `path` is a folder, relative to corpus.yaml, or a URL: `git+file://` with a `revision`, a list
    of files over `http(s)://`, or anything fsspec reads; `include` and `exclude` are globs over the
    POSIX path inside it (`**` spans folders); `read_as` says by such globs, the first that fits,
    which files are read as if their suffix were another, whatever they look like; `pdf_layout` is
    whose layout models read PDFs (None: our own rules do, without models); `shards` cuts the
    collection by hash of the document id; `max_bytes` bounds one file; `settle_seconds` is how long
    a file must have been left alone before it is read; `timeout_seconds` is how long a distant
    source may take to answer, less than the minute that Dagster gives a sensor; `late_after_hours`
    is how long no document may change before that is reported (None: for ever).
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    path: str
    revision: str | None = None
    include: tuple[str, ...] = EVERY_FILE
    exclude: tuple[str, ...] = ()
    read_as: dict[str, str] = Field(default_factory=dict)
    pdf_layout: Literal["docling"] | None = None
    shards: int = Field(default=1, ge=1, le=100)
    max_bytes: int = Field(default=50_000_000, ge=1)
    settle_seconds: float = Field(default=2.0, ge=0)
    timeout_seconds: float = Field(default=LISTING_SECONDS, gt=0, le=40)
    late_after_hours: float | None = Field(default=None, ge=1)

    @field_validator("path")
    @classmethod
    def _without_credentials(cls, path: str) -> str:
        if has_credentials(path) or ("://" in path and "?" in path):
            raise ValueError(
                "a URL here may hold no user, password or query; credentials come from the "
                "environment"
            )
        if path.startswith("git+") and not path.startswith(f"{GIT}/"):
            raise ValueError("only git+file:///folder is read; mirror the repository to a folder")
        return path

    @field_validator("read_as")
    @classmethod
    def _known_suffixes(cls, read_as: dict[str, str]) -> dict[str, str]:
        for pattern, suffix in read_as.items():
            if type_of_suffix(suffix) is None:
                raise ValueError(
                    f"{pattern}: no format has the suffix {suffix}; write md, html, csv, txt or "
                    "another of docs/formats.md, without a dot"
                )
        return read_as

    @model_validator(mode="after")
    def _only_of_git(self) -> Self:
        if self.revision is not None and not self.path.startswith(GIT):
            raise ValueError("revision goes with a path git+file:///folder only")
        return self

    @property
    def is_folder(self) -> bool:
        return "://" not in self.path

    def folder(self, root: Path) -> Path:
        return root / self.path

    def source(self, root: Path) -> Source:
        """Where its files are listed and read.

        Raises:
            CorpusError: the package that reads such a URL is not installed.
        """
        if self.is_folder:
            return LocalFolder(self.folder(root))
        if self.path.startswith(GIT):
            place = self.path.removeprefix(GIT)
            folder, _, revision = (
                place.partition("@") if self.revision is None else (place, "", self.revision)
            )
            return GitRevision(folder, revision or "HEAD")
        if self.path.startswith(("http://", "https://")):
            return FileList(self.path, self.timeout_seconds)
        return FileSystem(self.path, self.timeout_seconds)

    def includes(self, path: str) -> bool:
        """Whether a path inside it is a document's.

        >>> Collection(path="docs", exclude=("drafts/",)).includes("drafts/a.md")
        False
        """
        include, _ = self._patterns
        return (include is None or include.match_file(path)) and not self.excludes(path)

    def excludes(self, path: str) -> bool:
        _, exclude = self._patterns
        return exclude is not None and exclude.match_file(path)

    def type_of(self, path: str) -> str | None:
        """The media type that `read_as` gives a path inside it; None where its content decides.

        >>> Collection(path="docs", read_as={"faq/*.txt": "md"}).type_of("faq/cards.txt")
        'text/markdown'
        """
        for pattern, kind in self._types:
            if pattern.match_file(path):
                return kind
        return None

    def read_by(self, media_type: str) -> str:
        """The media type by which a parser is found for a document of this one.

        >>> Collection(path="docs", pdf_layout="docling").read_by("application/pdf")
        'application/pdf;layout=docling'
        """
        if media_type == PDF and self.pdf_layout is not None:
            return PDF_LAYOUTS[self.pdf_layout]
        return media_type

    @cached_property
    def _types(self) -> list[tuple[pathspec.GitIgnoreSpec, str | None]]:
        return [
            (pathspec.GitIgnoreSpec.from_lines([pattern]), type_of_suffix(suffix))
            for pattern, suffix in self.read_as.items()
        ]

    @cached_property
    def _patterns(self) -> tuple[pathspec.GitIgnoreSpec | None, pathspec.GitIgnoreSpec | None]:
        """What is included and what is excluded; None where that needs no look."""
        return (
            None if self.include == EVERY_FILE else pathspec.GitIgnoreSpec.from_lines(self.include),
            pathspec.GitIgnoreSpec.from_lines(self.exclude) if self.exclude else None,
        )

    def shards_of(self, name: str) -> list[str]:
        """
        >>> Collection(path="docs", shards=2).shards_of("help-center")
        ['help-center-00', 'help-center-01']
        """
        if self.shards == 1:
            return [name]
        return [_shard(name, number) for number in range(self.shards)]

    def shard_of(self, name: str, doc_id: str) -> str:
        """The shard that owns a document, whatever else is in the collection."""
        if self.shards == 1:
            return name
        number = int.from_bytes(hashlib.sha256(doc_id.encode()).digest()[:8], "big") % self.shards
        return _shard(name, number)


def _shard(name: str, number: int) -> str:
    return f"{name}-{number:02d}"
