"""Where the bytes of a workspace are: a folder of this machine, or a bucket that many share.

Everything above asks a `Store`, so no stage knows which it is. A folder has one writer at a time,
who holds a lock; across machines no lock holds, and a file that was read is replaced only if it is
still the one that was read (`Conflict` otherwise). Large files never change under their name: of
a bucket they are fetched once, and read from this machine as those of a folder are.
"""

import os
import re
import shutil
import uuid
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple, Protocol
from urllib.parse import urlsplit

from chunking_assets.errors import CorpusError

LOCAL_VARIABLE = "CORPUS_LOCAL"
SCHEME = "s3://"


class Conflict(CorpusError):
    """Another machine wrote what this one was about to replace; run again, on top of it."""


class StorageUnavailable(CorpusError):
    """The bucket cannot be asked; the message names it, the reason and the cure."""


@dataclass(frozen=True)
class Bucket:
    """A workspace below `url`, s3://bucket/prefix, and how to reach it; never with credentials.

    What is None is taken from the environment (`AWS_ENDPOINT_URL`, `AWS_REGION`, ...). `allow_http`
    is for endpoints without TLS. `upload_database` puts the analysts' file there too.
    """

    url: str
    endpoint: str | None = None
    region: str | None = None
    allow_http: bool = False
    upload_database: bool = False

    def __post_init__(self) -> None:
        parts = urlsplit(self.url)
        is_plain = "@" not in parts.netloc and not parts.query and not parts.fragment
        if parts.scheme != "s3" or not parts.netloc or not is_plain:
            raise CorpusError("a workspace in a bucket is called s3://bucket/prefix, nothing more.")
        object.__setattr__(self, "url", self.url.rstrip("/"))

    def __str__(self) -> str:
        return self.url

    @property
    def name(self) -> str:
        return urlsplit(self.url).netloc

    @property
    def prefix(self) -> str:
        return urlsplit(self.url).path.strip("/")

    @property
    def local(self) -> Path:
        """The folder for what stays on this machine: models, caches, locks, fetched files.

        Below `CORPUS_LOCAL`, or the user's cache folder; named by URL and endpoint.
        """
        if base := os.environ.get(LOCAL_VARIABLE):
            folder = Path(base)
        else:
            caches = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
            folder = Path(caches) / "chunking-assets"
        readable = re.sub(r"[^A-Za-z0-9.-]+", "-", self.url.removeprefix(SCHEME))[:60]
        asked = self.endpoint or os.environ.get("AWS_ENDPOINT_URL") or ""
        named = f"{readable}-{sha256(f'{self.url} {asked}'.encode()).hexdigest()[:8]}"
        return folder.absolute() / named


Place = Path | Bucket
"""Where a workspace is."""


def place_of(place: "Place | str") -> Place:
    """
    >>> str(place_of("s3://team/corpus/")), place_of(".corpus").name
    ('s3://team/corpus', '.corpus')
    """
    if isinstance(place, Bucket):
        return place
    if isinstance(place, str) and place.startswith(SCHEME):
        return Bucket(place)
    if str(place).startswith("s3:"):
        raise CorpusError(f"{place} is taken for a folder. Give the URL as text: '{SCHEME}...'.")
    return Path(place)


class StoredFile(NamedTuple):
    """`key` is the path below the store that was asked, `size` in bytes, `modified` in seconds
    since 1970."""

    key: str
    size: int
    modified: float


class Store(Protocol):
    """Files by their path (`key`, with slashes) below one place."""

    @property
    def here(self) -> Path:
        """The folder on this machine for what is nobody else's."""

    @property
    def uri(self) -> str:
        """The place as engines that read it themselves are told it."""

    @property
    def options(self) -> dict[str, str]:
        """How those engines reach it; they find the credentials where this process does."""

    @property
    def is_shared(self) -> bool:
        """Whether other machines write here, whom no lock of this one keeps out."""

    def below(self, name: str) -> "Store": ...

    def read(self, key: str) -> bytes | None:
        """A small file that may be replaced; None if it is not there."""

    def write(self, key: str, content: bytes) -> None:
        """Whole or not at all, whatever was there."""

    def replace(self, key: str, content: bytes) -> None:
        """As `write`, if the file is still the one that was first read in this transaction.

        Raises:
            Conflict: it is not. Nothing was written.
        """

    def write_if_absent(self, key: str, content: bytes) -> None:
        """
        Raises:
            Conflict: it is there. Nothing was written.
        """

    def delete(self, keys: Iterable[str]) -> None:
        """Those that are there."""

    def delete_below(self, key: str) -> None:
        """Everything below a key."""

    def files(self, key: str = "") -> Iterator[StoredFile]:
        """Every file below a key, in no order."""

    def folders(self) -> list[str]:
        """The names of the folders directly here, sorted."""

    def folders_with(self, name: str) -> list[str]:
        """The folders directly here that hold a file of this name, sorted."""

    def draft(self, key: str) -> Path:
        """Where to write a file that is to be stored under a new key and will never change."""

    def keep(self, key: str) -> None:
        """Store what was written to the draft of a key."""

    def local(self, key: str, *, checked: bool = False) -> Path:
        """A file on this machine with what is stored under a key; if nothing is, there is none.

        `checked` asks whether it still is, where a copy would hide that it is lost.
        """

    def touch(self, key: str) -> None:
        """Begin the time a file has left, which is about to be named no longer."""

    def dropped_since(self, file: StoredFile, beside: Mapping[str, StoredFile]) -> float:
        """When a file that is not named was written or touched; `beside` are the files of its
        folder, by key."""

    def transaction(self) -> AbstractContextManager[None]:
        """What is first read in here is what `replace` expects to find; inner ones join."""

    def turn(self, key: str) -> AbstractContextManager[None]:
        """Wait until no other machine is at what the key names, so as not to be in its way.

        One that is lost for long, or killed, is waited for half a minute. Nothing rests on it.
        """

    def has_read(self, key: str) -> bool:
        """Whether the transaction rests on a file."""

    def forget(self, key: str) -> None:
        """Let the transaction read a file anew."""

    def check_unchanged(self) -> None:
        """
        Raises:
            Conflict: a file that the transaction rests on was replaced by somebody else.
        """


def store_of(place: Place) -> Store:
    """Nothing is opened before it is asked."""
    if isinstance(place, Bucket):
        from chunking_assets.s3_store import S3Store

        return S3Store(place, place.local)
    return FolderStore(place)


@dataclass(frozen=True)
class FolderStore:
    """A folder. Who writes holds a lock, so nothing is checked twice."""

    here: Path
    is_shared: bool = False

    @property
    def uri(self) -> str:
        return str(self.here)

    @property
    def options(self) -> dict[str, str]:
        return {}

    def below(self, name: str) -> "FolderStore":
        return FolderStore(self.here / name)

    def read(self, key: str) -> bytes | None:
        try:
            return (self.here / key).read_bytes()
        except FileNotFoundError:
            return None

    def write(self, key: str, content: bytes) -> None:
        write_atomically(self.here / key, content)

    def replace(self, key: str, content: bytes) -> None:
        self.write(key, content)

    def write_if_absent(self, key: str, content: bytes) -> None:
        if (self.here / key).exists():
            raise Conflict(f"{self.here / key} is there already.")
        self.write(key, content)

    def delete(self, keys: Iterable[str]) -> None:
        for key in keys:
            (self.here / key).unlink(missing_ok=True)

    def delete_below(self, key: str) -> None:
        if (self.here / key).is_dir():
            shutil.rmtree(self.here / key)

    def files(self, key: str = "") -> Iterator[StoredFile]:
        folders = [os.path.join(self.here, key)]
        while folders:
            with suppress(FileNotFoundError), os.scandir(folders.pop()) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(entry.path)
                        continue
                    with suppress(FileNotFoundError):  # deleted meanwhile
                        found = entry.stat(follow_symlinks=False)
                        name = os.path.relpath(entry.path, self.here)
                        yield StoredFile(name, found.st_size, found.st_mtime)

    def folders(self) -> list[str]:
        return sorted(folder.name for folder in self.here.glob("*/"))

    def folders_with(self, name: str) -> list[str]:
        return sorted(file.parent.name for file in self.here.glob(f"*/{name}"))

    def draft(self, key: str) -> Path:
        file = self.here / key
        file.parent.mkdir(parents=True, exist_ok=True)
        return file

    def keep(self, key: str) -> None:
        """It was written where it stays."""

    def local(self, key: str, *, checked: bool = False) -> Path:
        return self.here / key

    def touch(self, key: str) -> None:
        with suppress(FileNotFoundError):
            os.utime(self.here / key)

    def dropped_since(self, file: StoredFile, beside: Mapping[str, StoredFile]) -> float:
        return file.modified

    def transaction(self) -> AbstractContextManager[None]:
        return nullcontext()

    def turn(self, key: str) -> AbstractContextManager[None]:
        return nullcontext()

    def has_read(self, key: str) -> bool:
        return False

    def forget(self, key: str) -> None:
        """Nothing is remembered."""

    def check_unchanged(self) -> None:
        """The lock says so."""


def write_atomically(file: Path, content: bytes) -> None:
    """Write beside the target, flush to disk, rename over it."""
    file.parent.mkdir(parents=True, exist_ok=True)
    temporary = file.with_name(f".{file.name}.{uuid.uuid4().hex}.tmp")
    try:
        with temporary.open("wb") as handle:
            handle.write(content)
            handle.flush()
            os.fsync(handle.fileno())
        temporary.replace(file)
    finally:
        temporary.unlink(missing_ok=True)


_SECRETS = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")
_SIGNED = re.compile(
    r"(<(AWSAccessKeyId|StringToSign|StringToSignBytes|SignatureProvided|CanonicalRequest"
    r"|Token-\d)>)[^<]*"
    r"|(X-Amz-[A-Za-z-]+=|Credential=)[^&\s\"']*"
)
_UNANSWERED = re.compile(
    r"Error performing |RetryError|Generic S3 error: (?!Range)|The operation lacked "
)
_NOT_THERE = re.compile(r"404 Not Found|status: 404|[Nn]ot found: ")


def without_credentials(text: str, environment: Mapping[str, str] = os.environ) -> str:
    """What an engine said of a failed request, without what it was signed with.

    >>> without_credentials("<Code>ExpiredToken</Code><Token-0>FwoG</Token-0>")
    '<Code>ExpiredToken</Code><Token-0>***</Token-0>'
    >>> without_credentials("403 <AWSAccessKeyId>AKIA1</AWSAccessKeyId> for AKIA2",
    ...                     {"AWS_ACCESS_KEY_ID": "AKIA2"})
    '403 <AWSAccessKeyId>***</AWSAccessKeyId> for ***'
    """
    for name in _SECRETS:
        if secret := environment.get(name):
            text = text.replace(secret, "***")
    return _SIGNED.sub(lambda found: f"{found[1] or found[3]}***", text)


@contextmanager
def asking_bucket(what: str, how: str = "read") -> Iterator[None]:
    """Around what an engine reads or writes: a request that failed says nothing of what is stored.

    Raises:
        StorageUnavailable: a request got no answer, or one that refuses it.
    """
    try:
        yield
    except (ValueError, OSError, RuntimeError) as error:
        said = str(error)
        if not _UNANSWERED.search(said) or _NOT_THERE.search(said):
            raise
        raise StorageUnavailable(
            f"{what} cannot be {how}, for its bucket does not answer as it should "
            f"({without_credentials(said)}). What is served stays as it was. Run it again."
        ) from None
