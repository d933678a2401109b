"""The chain of content keys: each names exactly what a result was made from.

A key that is equal means work that need not be done again; a key that differs means a result
that must not be served. Keys are therefore injective (canonical JSON, not joined strings) and
hold content and versions only, never times, paths of this machine or process ids.
"""

import hashlib
import json
from pathlib import Path

_READ_BYTES = 1 << 20


def digest(*parts: object) -> str:
    """128 bits of sha256 over the canonical JSON of `parts`, as 32 hex digits.

    >>> digest("ab", "c") == digest("a", "bc")
    False
    >>> digest({"b": 1, "a": 2}) == digest({"a": 2, "b": 1})
    True
    """
    text = json.dumps(parts, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def text_sha(text: str) -> str:
    """sha256 of a text's UTF-8 bytes, as 64 hex digits."""
    return hashlib.sha256(text.encode()).hexdigest()


def file_sha(path: Path) -> str:
    """sha256 of a file's bytes, as 64 hex digits, read in pieces."""
    sha = hashlib.sha256()
    with path.open("rb") as file:
        while piece := file.read(_READ_BYTES):
            sha.update(piece)
    return sha.hexdigest()
