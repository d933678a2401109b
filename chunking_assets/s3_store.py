"""A bucket that many machines share: conditional writes, and fetched copies of what never changes.

Any S3-compatible service that honours If-Match and If-None-Match. Credentials are found by the
client (environment, or the role of the machine or container) and are in no message: of a failed
request only its status and the service's code are told.
"""

import json
import os
import random
import re
import socket
import threading
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import timedelta
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chunking_assets.errors import CorpusError
from chunking_assets.storage import Bucket, Conflict, StorageUnavailable, StoredFile

if TYPE_CHECKING:
    from obstore.store import S3Store as Client

FETCHED = "files"
"""The folder of fetched copies, below the bucket's folder on this machine."""
UNUSED_SECONDS = 3600
"""How long a copy stays that nobody asks for, when another file comes into its folder."""
TOUCHED = ".over"
"""Ends the key of an empty file that says since when the one without this is named no longer."""
KEYS_PER_PAGE = 1000
RETRIES, RETRY_SECONDS = 5, 60
TURN_SECONDS = 30
"""A turn whose file nobody renewed for so long is anybody's; no two clocks are compared."""
TURN_LOOK_SECONDS = 1.0

_Tags = dict[tuple[Bucket, str], str | None]
_read: ContextVar[_Tags | None] = ContextVar("read", default=None)
"""The entity tag of each file the transaction first read; None where there was no file."""


@lru_cache(maxsize=8)
def _client(bucket: Bucket) -> "Client":
    try:
        from obstore.store import S3Store as Client
    except ImportError as error:
        raise CorpusError(
            f"{bucket}: a workspace in a bucket needs obstore: pip install 'chunking-assets[s3]'"
        ) from error
    options: dict[str, Any] = {}
    if bucket.endpoint:
        options["endpoint"] = bucket.endpoint
    if bucket.region:
        options["region"] = bucket.region
    if bucket.allow_http:
        options["client_options"] = {"allow_http": True}
    return Client(
        bucket.name,
        prefix=bucket.prefix or None,
        retry_config={
            "max_retries": RETRIES,
            "retry_timeout": timedelta(seconds=RETRY_SECONDS),
        },
        **options,
    )


@dataclass(frozen=True)
class S3Store:
    """Files below a prefix of a bucket."""

    bucket: Bucket
    machine: Path
    """The folder the bucket has on this machine: who has another is on another."""
    prefix: str = ""
    is_shared: bool = True

    @property
    def here(self) -> Path:
        return self.machine / self.prefix

    @property
    def uri(self) -> str:
        return f"{self.bucket.url}/{self.prefix}".rstrip("/")

    @property
    def options(self) -> dict[str, str]:
        bucket = self.bucket
        told = {"aws_endpoint": bucket.endpoint, "aws_region": bucket.region}
        options = {name: value for name, value in told.items() if value}
        options["client_max_retries"] = str(RETRIES)
        return {**options, "allow_http": "true"} if bucket.allow_http else options

    def below(self, name: str) -> "S3Store":
        return S3Store(self.bucket, self.machine, self._key(name))

    def read(self, key: str) -> bytes | None:
        content, tag = self._get(key)
        seen = _read.get()
        if seen is not None:
            seen.setdefault(self._place(key), tag)
        return content

    def write(self, key: str, content: bytes) -> None:
        import obstore

        with self._asking(f"write {key}", in_bucket=True):
            put = obstore.put(self._client, self._key(key), content)
        self._wrote(key, put["e_tag"])

    def replace(self, key: str, content: bytes) -> None:
        seen = _read.get()
        if seen is None or self._place(key) not in seen:
            with self.transaction():
                self.read(key)
                self.replace(key, content)
            return
        tag = seen[self._place(key)]
        self._write_if(key, content, "create" if tag is None else {"e_tag": tag})

    def write_if_absent(self, key: str, content: bytes) -> None:
        self._write_if(key, content, "create")

    def _write_if(self, key: str, content: bytes, mode: Any) -> None:
        import obstore
        from obstore.exceptions import AlreadyExistsError, PreconditionError

        try:
            with self._asking(f"write {key}", in_bucket=mode == "create"):
                put = obstore.put(self._client, self._key(key), content, mode=mode)
            tag = put["e_tag"]
        except (AlreadyExistsError, PreconditionError, FileNotFoundError):
            tag = self._tag_of_our_own(key, content)
        self._wrote(key, tag)

    def _tag_of_our_own(self, key: str, content: bytes) -> str | None:
        """Of a write that got through although its answer did not, and so was sent twice.

        Raises:
            Conflict: somebody else wrote the file.
        """
        found, tag = self._get(key)
        if found == content:
            return tag
        raise Conflict(
            f"{self.uri}/{key} was written by somebody else meanwhile, and nothing was written "
            "over it. Run again: what was done is kept, and the rest is done on top of theirs."
        )

    def delete(self, keys: Iterable[str]) -> None:
        import obstore

        names = [self._key(key) for key in keys]
        if names:
            with self._asking("delete files", in_bucket=True):
                obstore.delete(self._client, names)
        for name in names:
            self._copy(name).unlink(missing_ok=True)
            self._wrote(name.removeprefix(self.prefix).lstrip("/"), None)

    def delete_below(self, key: str) -> None:
        self.delete([file.key for file in self.files(key)])

    def files(self, key: str = "") -> Iterator[StoredFile]:
        import obstore

        below = self._key(key)
        with self._asking(f"list {below}", in_bucket=True):
            for page in obstore.list(self._client, below or None, chunk_size=KEYS_PER_PAGE):
                for found in page:
                    name = found["path"].removeprefix(self.prefix).lstrip("/")
                    yield StoredFile(name, found["size"], found["last_modified"].timestamp())

    def folders(self) -> list[str]:
        import obstore

        with self._asking(f"list {self.prefix}", in_bucket=True):
            found = obstore.list_with_delimiter(self._client, self.prefix or None)
        return sorted(prefix.rpartition("/")[2] for prefix in found["common_prefixes"])

    def folders_with(self, name: str) -> list[str]:
        paths = (file.key.split("/") for file in self.files())
        return sorted(path[0] for path in paths if path[1:] == [name])

    def draft(self, key: str) -> Path:
        file = self._copy(self._key(key))
        file.parent.mkdir(parents=True, exist_ok=True)
        return file

    def keep(self, key: str) -> None:
        import obstore

        file = self._copy(self._key(key))
        with self._asking(f"write {key}", in_bucket=True):
            obstore.put(self._client, self._key(key), file)
        _drop_unused(file.parent)

    def local(self, key: str, *, checked: bool = False) -> Path:
        file = self._copy(self._key(key))
        if checked and file.exists() and self._size(key) != file.stat().st_size:
            file.unlink()
        try:
            os.utime(file)  # so that it stays for who asks
        except FileNotFoundError:
            self._fetch(key, file)
        return file

    def touch(self, key: str) -> None:
        self.write(f"{key}{TOUCHED}", b"")

    def dropped_since(self, file: StoredFile, beside: Mapping[str, StoredFile]) -> float:
        touched = beside.get(f"{file.key}{TOUCHED}", file)
        return max(file.modified, touched.modified)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        if _read.get() is not None:
            yield
            return
        token = _read.set({})
        try:
            yield
        finally:
            _read.reset(token)

    @contextmanager
    def turn(self, key: str) -> Iterator[None]:
        machine = f"{socket.gethostname()}:{self.machine}"
        said = json.dumps({"machine": machine, "turn": uuid.uuid4().hex}).encode()
        self._take_turn(key, json.dumps({"machine": machine})[:-1].encode(), said)
        over = threading.Event()
        renewing = threading.Thread(target=self._renew_turn, args=(key, said, over), daemon=True)
        renewing.start()
        try:
            yield
        finally:
            over.set()
            renewing.join()
            with suppress(StorageUnavailable):  # said already, and the turn ends by itself
                if (self._get(key)[0] or b"").startswith(said):
                    self.delete([key])

    def _take_turn(self, key: str, ours: bytes, said: bytes) -> None:
        looked: tuple[str | None, float] = None, 0.0
        while True:
            found, tag = self._get(key)
            if tag != looked[0]:
                looked = tag, time.monotonic()
            is_free = found is None or found.startswith(ours)  # the lock of this machine is held
            if is_free or time.monotonic() - looked[1] > TURN_SECONDS:
                with suppress(Conflict):
                    self._write_if(key, said, "create" if found is None else {"e_tag": tag})
                    return
            else:
                time.sleep(TURN_LOOK_SECONDS * random.uniform(0.5, 1))  # noqa: S311

    def _renew_turn(self, key: str, said: bytes, over: threading.Event) -> None:
        """Another file is another tag: JSON minds no space at its end."""
        renewed = said
        while not over.wait(TURN_SECONDS / 4):
            renewed += b" "
            with suppress(Conflict, StorageUnavailable):
                found, tag = self._get(key)
                if not (found or b"").startswith(said):
                    return  # somebody else has it; what is written is checked all the same
                self._write_if(key, renewed, {"e_tag": tag})

    def has_read(self, key: str) -> bool:
        return self._place(key) in (_read.get() or {})

    def forget(self, key: str) -> None:
        (_read.get() or {}).pop(self._place(key), None)

    def check_unchanged(self) -> None:
        import obstore

        for (bucket, name), tag in (_read.get() or {}).items():
            now = None
            with self._asking(f"look at {name}"), suppress(FileNotFoundError):
                now = obstore.head(_client(bucket), name)["e_tag"]
            if now != tag:
                raise Conflict(
                    f"{bucket}/{name} was written by somebody else meanwhile. Nothing of this "
                    "update is served; run it again."
                )

    def _get(self, key: str) -> tuple[bytes | None, str | None]:
        """A file's content and its tag, of which the transaction knows nothing."""
        import obstore

        with self._asking(f"read {key}"), suppress(FileNotFoundError):
            found = obstore.get(self._client, self._key(key))
            return found.bytes().to_bytes(), found.meta["e_tag"]
        return None, None

    @property
    def _client(self) -> "Client":
        return _client(self.bucket)

    def _key(self, key: str) -> str:
        return "/".join(part for part in (self.prefix, key) if part)

    def _place(self, key: str) -> tuple[Bucket, str]:
        return self.bucket, self._key(key)

    def _wrote(self, key: str, tag: str | None) -> None:
        seen = _read.get()
        if seen is not None and self._place(key) in seen:
            seen[self._place(key)] = tag

    def _copy(self, name: str) -> Path:
        return self.machine / FETCHED / name

    def _size(self, key: str) -> int | None:
        import obstore

        with self._asking(f"look at {key}"), suppress(FileNotFoundError):
            return int(obstore.head(self._client, self._key(key))["size"])
        return None

    def _fetch(self, key: str, file: Path) -> None:
        """Whole, then renamed; nothing if it is not there."""
        import obstore

        file.parent.mkdir(parents=True, exist_ok=True)
        _drop_unused(file.parent)
        temporary = file.with_name(f".{file.name}.{uuid.uuid4().hex}.tmp")
        try:
            with self._asking(f"read {key}"), suppress(FileNotFoundError):
                found = obstore.get(self._client, self._key(key))
                with temporary.open("wb") as handle:
                    for piece in found.stream(min_chunk_size=1 << 20):
                        handle.write(piece)
                temporary.replace(file)
        finally:
            temporary.unlink(missing_ok=True)

    @contextmanager
    def _asking(self, what: str, *, in_bucket: bool = False) -> Iterator[None]:
        """`in_bucket` is for what needs nothing but the bucket: where it is not found, that is not.

        Raises:
            StorageUnavailable: the bucket cannot be asked. The client's own words, which may
                quote the request, are not passed on.
        """
        from obstore.exceptions import AlreadyExistsError, BaseError, PreconditionError

        try:
            yield
        except (AlreadyExistsError, PreconditionError):
            raise
        except (BaseError, OSError, ValueError) as error:
            if isinstance(error, FileNotFoundError) and not in_bucket:
                raise
            if isinstance(error, OSError) and error.errno is not None:
                raise  # of this machine's disk
            raise StorageUnavailable(
                f"{self.bucket}: cannot {what} ({_reason(str(error))}). Look at AWS_ENDPOINT_URL, "
                "AWS_REGION and `storage:` in corpus.yaml, and whether the credentials of this "
                "process may read and write there."
            ) from None


def _drop_unused(folder: Path) -> None:
    """Copies and drafts that the file that comes is likely to replace."""
    limit = time.time() - UNUSED_SECONDS
    for file in folder.iterdir():
        with suppress(FileNotFoundError):  # another process was faster
            if file.stat().st_mtime < limit:
                file.unlink()


def _reason(said: str) -> str:
    """The status and the service's code of a failed request.

    >>> _reason("PUT http://x: status code: 403 Forbidden: <Error><Code>AccessDenied</Code>...")
    '403 Forbidden, AccessDenied'
    """
    status = re.search(r"status code: (\d+(?: [A-Z][a-z]+)*)", said)
    code = re.search(r"<Code>(\w+)</Code>", said)
    found = [match[1] for match in (status, code) if match]
    return ", ".join(found) or "no answer"
