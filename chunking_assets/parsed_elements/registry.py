"""Which parser reads which media type.

A parser is a module, or an object like one: one file here, one line below, one test. Text formats
without a parser of their own whose source is made for people to read go to plain text; data formats
do not, because a table cut like prose answers nothing.
"""

import platform
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Protocol, cast

from chunking_assets.keys import digest
from chunking_assets.parsed_elements import (
    archive,
    decoding,
    delimited,
    docling_pdf,
    docx,
    email_message,
    epub,
    html,
    json_data,
    json_lines,
    language,
    markdown,
    mdx,
    notebook,
    odt,
    pdf,
    plain_text,
    pptx,
    python_source,
    restructured_text,
    rtf,
    source_code,
    subtitles,
    xlsx,
)
from chunking_assets.parsed_elements.document import ParsedText, Refused
from chunking_assets.parsed_elements.limits import Limits
from chunking_assets.raw_documents import media_type as detection
from chunking_assets.raw_documents.media_type import PDF, PDF_LAYOUTS


class _Described(Protocol):
    """What any parser says of itself.

    `VERSION` is raised whenever the same bytes would give another text or other elements;
    `LIBRARIES` are the distributions (or "python") whose release can change them too.
    """

    @property
    def __name__(self) -> str: ...

    @property
    def VERSION(self) -> int: ...

    @property
    def LIBRARIES(self) -> tuple[str, ...]: ...


class Parser(_Described, Protocol):
    """A parser of a format that is text."""

    def parse(self, data: bytes) -> ParsedText:
        """The canonical text of a document and its elements.

        Raises:
            CorpusError: the bytes cannot be read as this format; says why and what to do.
        """


class BoundedParser(_Described, Protocol):
    """A parser of a binary format: it always runs under `guard`, and is told its limits.

    `LIBRARIES` outside the core are those of the extra `office`, or of the one in `EXTRAS`.
    """

    def parse(self, data: bytes, limits: Limits) -> ParsedText:
        """As `Parser.parse`.

        Raises:
            Refused: encrypted, needs_ocr, suspicious, too_large or unsupported.
            CorpusError: the bytes cannot be read as this format.
        """


class ModelParser(BoundedParser, Protocol):
    """One that reads with models: a process of its own loads them before the first file."""

    def prepare(self) -> None: ...

    def models_version(self) -> str:
        """Another one for other models."""


_OPENXML = "application/vnd.openxmlformats-officedocument"
_OPENDOCUMENT = "application/vnd.oasis.opendocument"

MODELS: dict[str, ModelParser] = {PDF_LAYOUTS["docling"]: docling_pdf}
EXTRAS = {PDF_LAYOUTS["docling"]: "docling"}
BOUNDED: dict[str, BoundedParser] = {
    PDF: pdf,
    **MODELS,
    f"{_OPENXML}.wordprocessingml.document": docx,
    f"{_OPENXML}.presentationml.presentation": pptx,
    f"{_OPENXML}.spreadsheetml.sheet": xlsx,
    "application/vnd.ms-excel": xlsx,
    f"{_OPENDOCUMENT}.spreadsheet": xlsx,
    f"{_OPENDOCUMENT}.text": odt,
    f"{_OPENDOCUMENT}.presentation": odt,
    "application/epub+zip": epub,
    "application/rtf": rtf,
}
_CODE: dict[str, Parser] = {
    "text/javascript": source_code.JAVASCRIPT,
    "text/typescript": source_code.TYPESCRIPT,
    "text/typescript-jsx": source_code.TSX,
    "text/x-java": source_code.JAVA,
    "text/x-go": source_code.GO,
    "text/x-rust": source_code.RUST,
    "text/x-c": source_code.C,
    "text/x-c++": source_code.CPP,
    "text/x-ruby": source_code.RUBY,
    "application/sql": source_code.SQL,
    "text/x-shellscript": source_code.SHELL,
}
_TEXT: dict[str, Parser] = {
    "text/markdown": markdown,
    "text/mdx": mdx,
    "text/html": html,
    "text/plain": plain_text,
    "text/x-rst": restructured_text,
    "text/x-org": plain_text,
    "text/asciidoc": plain_text,
    "text/vtt": subtitles,
    "application/x-subrip": subtitles,
    "text/csv": delimited,
    "text/tab-separated-values": delimited,
    "application/json": json_data,
    "application/x-ndjson": json_lines,
    "application/x-ipynb+json": notebook,
    "message/rfc822": email_message,
    "text/x-python": python_source,
}
PARSERS: dict[str, Parser | BoundedParser] = {**_TEXT, **_CODE, **BOUNDED}

_PAGES = {"text/html", "message/rfc822", "application/x-ipynb+json"}
"""What is, or may hold, a web page."""
GUARDED = {*_CODE, *_PAGES, *BOUNDED}
"""What is parsed by native code that a hostile file can take down: see `guard`."""


def read(data: bytes, media_type: str, limits: Limits) -> ParsedText:
    """What the parser of a media type makes of the bytes, in this very process."""
    if media_type not in BOUNDED:
        parser = cast(Parser, PARSERS[media_type])
        return parser.parse(data)
    try:
        return BOUNDED[media_type].parse(data, limits)
    except ModuleNotFoundError as error:
        raise Refused(
            "unsupported",
            f"{media_type} is read with the package {error.name}, which is not installed",
            f"Install it with pip install 'chunking-assets[{EXTRAS.get(media_type, 'office')}]'.",
        ) from error


def prepare(media_type: str) -> None:
    """Load what reading any file of this media type takes, if that is much."""
    if media_type in MODELS:
        MODELS[media_type].prepare()


def parser_name(parser: _Described) -> str:
    return parser.__name__.rpartition(".")[2]


def parser_fingerprint(media_type: str) -> str:
    """Equal as long as the same bytes of this media type give the same text, elements, language."""
    parser = PARSERS.get(media_type)
    if parser is None:
        return digest("no parser", media_type, detection.VERSION)
    libraries = {name: _release(name) for name in (*parser.LIBRARIES, *language.LIBRARIES)}
    versions = [parser.VERSION, decoding.VERSION, detection.VERSION, language.VERSION]
    if media_type in BOUNDED:
        versions.append(archive.VERSION)
    if media_type in MODELS:
        return digest(
            "parser", parser_name(parser), versions, libraries, MODELS[media_type].models_version()
        )
    return digest("parser", parser_name(parser), versions, libraries)


@cache
def _release(library: str) -> str:
    if library == "python":
        return ".".join(platform.python_version_tuple()[:2])
    try:
        return version(library)
    except PackageNotFoundError:
        return "not installed"  # its parser does without, and reads otherwise once it is there
