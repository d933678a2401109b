"""One document's bytes to text and elements, whatever the bytes are.

A bad document is a result with a status, an error and a cure, never an exception: its neighbours
go on, and the row says what to do. `parse_key` names what a result was made from, so that only
changed bytes or a changed parser are parsed again.
"""

import json
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import cast

import polars as pl

from chunking_assets.errors import CorpusError
from chunking_assets.keys import digest, text_sha
from chunking_assets.parsed_elements import guard
from chunking_assets.parsed_elements.document import (
    Element,
    ParsedText,
    Refused,
    check_spans,
    line_starts,
    parents,
)
from chunking_assets.parsed_elements.limits import DEFAULTS, Limits
from chunking_assets.parsed_elements.registry import (
    GUARDED,
    PARSERS,
    Parser,
    parser_fingerprint,
    parser_name,
)
from chunking_assets.raw_documents.media_type import BINARY, LFS_POINTER, OLE2

_COLUMNS: dict[str, pl.DataType | type[pl.DataType]] = {
    "doc_id": pl.String,
    "ordinal": pl.Int64,
    "kind": pl.String,
    "level": pl.Int64,
    "start": pl.Int64,
    "end": pl.Int64,
    "heading_path": pl.List(pl.String),
    "language": pl.String,
    "attributes": pl.String,
    "parent": pl.Int64,
    "line": pl.Int64,
}
ELEMENTS_SCHEMA = pl.Schema(_COLUMNS)
_STORED = [name for name in _COLUMNS if name not in ("ordinal", "parent", "line")]
"""What an element is made of again; the others follow from these and the text."""

READABLE = ("ok", "partial")
"""The statuses of documents that have a text."""

STATUSES = {
    "ok": "all of it is read",
    "partial": "read, but for what its error names",
    "empty": "there is nothing to read in it",
    "needs_ocr": "its pages are pictures of text",
    "encrypted": "it asks for a password",
    "unsupported": "no parser reads its format, or the parser's package is not installed",
    "too_large": "more bytes, pages or memory than the limits allow",
    "suspicious": "built like what is made to take a reader down",
    "timeout": "reading it took longer than the limit; the next run tries again",
    "crashed": "its parser was killed or died; the next run tries again",
    "failed": "damaged, or not what it says it is",
    "unreadable": "the file cannot be opened; the next run tries again",
    "refused": "its name cannot be a document's, or it is no file: a link, a device",
}


def elements_sha(elements: Sequence[Element]) -> str:
    """Equal for equal elements: what chunking reads besides the text."""
    return digest("elements", [asdict(element) for element in elements])


@dataclass(frozen=True, slots=True)
class ParsedDocument:
    """What parsing a document came to.

    `status` is one of `STATUSES`. Unless it is `READABLE` the text is "", and `error` and `cure`
    say why and what to do; a partial document has both for what is missing, and an ok one may, as
    a warning.
    """

    status: str
    error: str | None
    cure: str | None
    parser: str
    text: str
    elements: tuple[Element, ...]
    text_sha: str
    elements_sha: str

    @classmethod
    def failure(cls, status: str, error: str, cure: str, parser: str = "") -> "ParsedDocument":
        error = error.encode("utf-8", "backslashreplace").decode()  # a parser may quote anything
        return cls(status, error, cure, parser, "", (), text_sha(""), elements_sha(()))


def parse_document(
    data: bytes, name: str, media_type: str, limits: Limits = DEFAULTS
) -> ParsedDocument:
    """Parse a document called `name`; every outcome is a `ParsedDocument`, none is raised.

    >>> parse_document(b"# Hello", "a.md", "text/markdown").status
    'ok'
    >>> parse_document(b"PNG", "a.png", "image/png").status
    'unsupported'
    """
    parser = PARSERS.get(media_type)
    if parser is None:
        return _unsupported(data, name, media_type)
    used = parser_name(parser)
    try:
        if not data.strip(_BLANK):
            parsed = ParsedText("", ())
        elif media_type in GUARDED:
            parsed = guard.parse(data, media_type, limits)
        else:
            parsed = cast(Parser, parser).parse(data)
        check_spans(parsed)
        shas = text_sha(parsed.text), elements_sha(parsed.elements)
    except Refused as error:
        return ParsedDocument.failure(error.status, f"{name}: {error.error}", error.cure, used)
    except CorpusError as error:
        return ParsedDocument.failure("failed", f"{name}: {error}", _RETRIED, used)
    except Exception as error:  # one document must not stop its shard
        reason = f"{type(error).__name__}: {error}"[:500]
        return ParsedDocument.failure("failed", f"{name}: parser {used}: {reason}", _RETRIED, used)
    if not parsed.elements:
        why = parsed.missing or "nothing to read in it"
        return ParsedDocument.failure(
            "empty", f"{name}: {why}", "Add text, or exclude the file.", used
        )
    remark = "; ".join(filter(None, (parsed.missing, parsed.warning)))
    cure = "Correct the document if it should be read otherwise."
    if parsed.missing:
        cure = "Put what is missing into a document of its own, or leave it at that."
    return ParsedDocument(
        status="partial" if parsed.missing else "ok",
        error=f"{name}: {remark}" if remark else None,
        cure=cure if remark else None,
        parser=used,
        text=parsed.text,
        elements=parsed.elements,
        text_sha=shas[0],
        elements_sha=shas[1],
    )


_BLANK = b" \t\r\n\x0b\x0c\xef\xbb\xbf"
"""White space and the mark of UTF-8: a file of nothing else is empty, whatever its format."""

_RETRIED = "Correct the document, convert it to Markdown, or exclude it; a changed file is retried."


_ENCRYPTED = "EncryptedPackage".encode("utf-16-le")
"""In the directory of what Office writes in place of a document with a password."""
_SAVE_AS = {
    "application/msword": "Save it as DOCX with an office program",
    "application/vnd.ms-powerpoint": "Save it as PPTX with an office program",
    "application/vnd.ms-outlook": "Save the message as .eml, as other mail programs do",
    "application/xml": "Save what people read in it as HTML or Markdown, its records as JSON",
    "application/zip": "Unpack it into the collection",
}


def _unsupported(data: bytes, name: str, media_type: str) -> ParsedDocument:
    if _ENCRYPTED in data and data.startswith(OLE2):
        return ParsedDocument.failure(
            "encrypted", f"{name}: it asks for a password", "Save it without a password."
        )
    if media_type == LFS_POINTER:
        return ParsedDocument.failure(
            "unsupported",
            f"{name}: a pointer of Git LFS, not the file itself",
            "Fetch it with `git lfs pull`; of a git+file:// collection, read a checkout instead.",
        )
    what = "binary content" if media_type == BINARY else f"no parser for {media_type}"
    to = "Convert it to Markdown, HTML, PDF or an office format (docs/formats.md has all)"
    if media_type.startswith("image/"):
        to = "If it shows text, make a PDF with a text layer of it with an OCR program"
    cure = f"{_SAVE_AS.get(media_type, to)}, or exclude it."
    if media_type == BINARY:
        cure = f"If it is text, save it as UTF-8. {cure}"
    return ParsedDocument.failure("unsupported", f"{name}: {what}", cure)


def parse_key(doc_rev: str, media_type: str) -> str:
    """Names what a text is made from: the bytes, and how this media type is parsed."""
    return digest("parse", doc_rev, parser_fingerprint(media_type))


def outcome_key(status: str, doc_rev: str, media_type: str, limits: Limits) -> str:
    """The `parse_key` a document is stored under: as long as it is the same, the outcome stands.

    Of what has no whole text the limits are part, so that others are tried.

    >>> outcome_key("ok", "rev", "application/pdf", DEFAULTS) == parse_key("rev", "application/pdf")
    True
    """
    key = parse_key(doc_rev, media_type)
    return key if status in ("ok", "empty") else digest(key, limits.model_dump())


def elements_frame(doc_id: str, text: str, elements: Sequence[Element]) -> pl.DataFrame:
    """A document's rows of the elements table.

    `parent` is the ordinal of the element it stands under (see `parents`), `line` the line of
    `text` that it begins on, from 1: for a format that is text, that of the file itself.
    """
    starts = line_starts(text)[:-1]
    columns = {
        "doc_id": [doc_id] * len(elements),
        "ordinal": range(len(elements)),
        "kind": [e.kind for e in elements],
        "level": [e.level for e in elements],
        "start": [e.start for e in elements],
        "end": [e.end for e in elements],
        "heading_path": [list(e.heading_path) for e in elements],
        "language": [e.language for e in elements],
        "attributes": [json.dumps(dict(e.attributes), ensure_ascii=False) for e in elements],
        "parent": parents(elements),
        "line": [bisect_right(starts, e.start) for e in elements],
    }
    return pl.DataFrame(columns, schema=ELEMENTS_SCHEMA)


def elements_by_document(frame: pl.DataFrame) -> dict[str, tuple[Element, ...]]:
    """The elements of each document back from its rows of the elements table, in their order."""
    found: dict[str, list[Element]] = {}
    columns = frame.select(_STORED)
    for doc_id, kind, level, start, end, path, language, attributes in columns.iter_rows():
        known = tuple(json.loads(attributes).items())
        element = Element(kind, start, end, level, tuple(path), language, known)
        found.setdefault(doc_id, []).append(element)
    return {doc_id: tuple(elements) for doc_id, elements in found.items()}
