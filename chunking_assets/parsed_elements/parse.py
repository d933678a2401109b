"""One document's bytes to text and elements, whatever the bytes are.

A bad document is a result with a status, an error and a cure, never an exception: its neighbours
go on, and the row says what to do. `parse_key` names what a result was made from, so that only
changed bytes or a changed parser are parsed again.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass

import polars as pl

from chunking_assets.errors import CorpusError
from chunking_assets.keys import digest, text_sha
from chunking_assets.parsed_elements.document import Element, check_spans
from chunking_assets.parsed_elements.registry import PARSERS, parser_fingerprint, parser_name
from chunking_assets.raw_documents.media_type import BINARY

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
}
ELEMENTS_SCHEMA = pl.Schema(_COLUMNS)


def elements_sha(elements: Sequence[Element]) -> str:
    """Equal for equal elements: what chunking reads besides the text."""
    return digest("elements", [asdict(element) for element in elements])


@dataclass(frozen=True, slots=True)
class ParsedDocument:
    """What parsing a document came to.

    `status` is ok, empty (nothing to read in it), unsupported (no parser for its format) or
    failed; a caller adds its own, such as too_large. Unless ok, the text is "" and `error` and
    `cure` say why and what to do; an ok document may carry both too, as a warning.
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


def parse_document(data: bytes, name: str, media_type: str) -> ParsedDocument:
    """Parse a document called `name`; every outcome is a `ParsedDocument`, none is raised.

    >>> parse_document(b"# Hello", "a.md", "text/markdown").status
    'ok'
    >>> parse_document(b"%PDF-1.7", "a.pdf", "application/pdf").status
    'unsupported'
    """
    parser = PARSERS.get(media_type)
    if parser is None:
        return _unsupported(name, media_type)
    used = parser_name(parser)
    try:
        parsed = parser.parse(data)
        check_spans(parsed)
    except CorpusError as error:
        return ParsedDocument.failure("failed", f"{name}: {error}", _RETRIED, used)
    except Exception as error:  # one document must not stop its shard
        reason = f"{type(error).__name__}: {error}"[:500]
        return ParsedDocument.failure("failed", f"{name}: parser {used}: {reason}", _RETRIED, used)
    if not parsed.elements:
        return ParsedDocument.failure(
            "empty", f"{name}: nothing to read in it", "Add text, or exclude the file.", used
        )
    return ParsedDocument(
        status="ok",
        error=f"{name}: {parsed.warning}" if parsed.warning else None,
        cure="Correct the document if it should be read otherwise." if parsed.warning else None,
        parser=used,
        text=parsed.text,
        elements=parsed.elements,
        text_sha=text_sha(parsed.text),
        elements_sha=elements_sha(parsed.elements),
    )


_RETRIED = "Correct the document, convert it to Markdown, or exclude it; a changed file is retried."


def _unsupported(name: str, media_type: str) -> ParsedDocument:
    supported = ", ".join(sorted(PARSERS))
    what = "binary content" if media_type == BINARY else f"no parser for {media_type}"
    cure = f"Convert it to one of {supported}, or exclude it."
    if media_type == BINARY:
        cure = f"If it is text, save it as UTF-8. {cure}"
    return ParsedDocument.failure("unsupported", f"{name}: {what}", cure)


def parse_key(doc_rev: str, media_type: str) -> str:
    """Names what a result is made from: the bytes, and how this media type is parsed."""
    return digest("parse", doc_rev, parser_fingerprint(media_type))


def elements_frame(doc_id: str, elements: Sequence[Element]) -> pl.DataFrame:
    """A document's rows of the elements table."""
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
    }
    return pl.DataFrame(columns, schema=ELEMENTS_SCHEMA)


def elements_by_document(frame: pl.DataFrame) -> dict[str, tuple[Element, ...]]:
    """The elements of each document back from its rows of the elements table, in their order."""
    found: dict[str, list[Element]] = {}
    columns = frame.select(ELEMENTS_SCHEMA.names())
    for doc_id, _, kind, level, start, end, path, language, attributes in columns.iter_rows():
        known = tuple(json.loads(attributes).items())
        element = Element(kind, start, end, level, tuple(path), language, known)
        found.setdefault(doc_id, []).append(element)
    return {doc_id: tuple(elements) for doc_id, elements in found.items()}
