"""Bytes to text, once and for every format that is text.

A Unicode mark decides, then valid UTF-8, then what the document declares, then a guess from
its bytes. Line ends stay as they are. What cannot be stored (NUL, lone surrogates) or decoded
becomes U+FFFD, so that a broken character costs one character and never the document.
"""

import codecs
import re

from chunking_assets.errors import CorpusError
from chunking_assets.raw_documents.media_type import unicode_encoding

VERSION = 2

_HEAD = 8192
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
_VALID_PER_BROKEN = 4
"""UTF-8 sequences per broken byte above which a text is damaged UTF-8 rather than another code."""

_COHERENCE_MARGIN = 0.1
_NOT_FOR_DOCUMENTS = {"punycode", "idna", "utf-7", "unicode-escape", "raw-unicode-escape"}


class Undecodable(CorpusError):
    """The bytes are no text in any encoding that could be named."""


def decode(data: bytes, declared: str | None = None) -> str:
    r"""The text of `data`, without byte-order mark, with its line ends as they are.

    `declared` is the encoding the document itself names; it yields to a byte-order mark and to
    bytes that are valid UTF-8 beyond ASCII, because pages are re-saved more often than corrected.

    >>> decode(b"\xef\xbb\xbfcaf\xc3\xa9\r\n")
    'café\r\n'
    >>> decode(b"caf\xe9", declared="latin-1")
    'café'

    Raises:
        Undecodable: no encoding fits.
    """
    if encoding := unicode_encoding(data[:_HEAD]):
        text = data.decode(encoding, errors="replace").removeprefix("\ufeff")
    else:
        text = _unmarked(data, _usable(declared))
    return storable(text)


def storable(text: str) -> str:
    r"""The text with U+FFFD for each character that no table and no UTF-8 can hold.

    >>> storable("a\x00b\ud800")
    'a�b�'
    """
    return _UNSTORABLE.sub("\ufffd", text)


def _unmarked(data: bytes, declared: str | None) -> str:
    if declared and data.isascii():
        return data.decode(declared, errors="replace")  # 7-bit codes such as ISO-2022-JP
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        pass
    if declared and declared != "utf-8":
        return data.decode(declared, errors="replace")
    damaged = data.decode("utf-8", errors="replace")
    broken = damaged.count("\ufffd")
    valid = sum(1 for char in damaged if char > "\x7f") - broken
    if valid >= _VALID_PER_BROKEN * broken:
        return damaged
    return _guess(data)


def _guess(data: bytes) -> str:
    from charset_normalizer import from_bytes

    matches = from_bytes(data.replace(b"\0", b" "))  # in which it sees no text at all
    best = matches.best()
    if best is None:
        raise Undecodable(
            "the bytes are no text in any known encoding. Save the document as UTF-8, "
            "or give the file the extension of its real format."
        )
    for match in matches:  # short western texts fit a dozen codes: take the one in use
        fits = match.chaos <= best.chaos and match.coherence >= best.coherence - _COHERENCE_MARGIN
        if fits and "cp1252" in match.could_be_from_charset:
            return data.decode("cp1252", errors="replace")
    return data.decode(best.encoding, errors="replace")


def _usable(declared: str | None) -> str | None:
    """Python's name of a declared encoding; None if it names none that documents are written in."""
    try:
        name = codecs.lookup(declared or "").name
        "".encode(name)
    except (LookupError, ValueError):
        return None
    if name in _NOT_FOR_DOCUMENTS:
        return None
    if name in {"iso8859-1", "ascii"}:
        return "cp1252"  # what browsers read under these names
    return "utf-8" if name.startswith(("utf-16", "utf-32", "utf-8")) else name
