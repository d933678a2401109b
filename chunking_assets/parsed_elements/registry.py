"""Which parser reads which media type.

A parser is a module, or an object like one: one file here, one line below, one test. Text formats
without a parser of their own whose source is made for people to read go to plain text; data formats
do not, because a table cut like prose answers nothing.
"""

import platform
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Protocol

from chunking_assets.keys import digest
from chunking_assets.parsed_elements import (
    decoding,
    html,
    language,
    markdown,
    plain_text,
    python_source,
    source_code,
)
from chunking_assets.parsed_elements.document import ParsedText
from chunking_assets.raw_documents import media_type as detection


class Parser(Protocol):
    """What a parser holds.

    `VERSION` is raised whenever the same bytes would give another text or other elements;
    `LIBRARIES` are the distributions (or "python") whose release can change them too.
    """

    @property
    def __name__(self) -> str: ...

    @property
    def VERSION(self) -> int: ...

    @property
    def LIBRARIES(self) -> tuple[str, ...]: ...

    def parse(self, data: bytes) -> ParsedText:
        """The canonical text of a document and its elements.

        Raises:
            CorpusError: the bytes cannot be read as this format; says why and what to do.
        """


PARSERS: dict[str, Parser] = {
    "text/markdown": markdown,
    "text/html": html,
    "text/plain": plain_text,
    "text/x-rst": plain_text,
    "text/x-org": plain_text,
    "text/asciidoc": plain_text,
    "text/vtt": plain_text,
    "text/x-python": python_source,
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


def parser_name(parser: Parser) -> str:
    return parser.__name__.rpartition(".")[2]


def parser_fingerprint(media_type: str) -> str:
    """Equal as long as the same bytes of this media type give the same text, elements, language."""
    parser = PARSERS.get(media_type)
    if parser is None:
        return digest("no parser", media_type, detection.VERSION)
    libraries = {name: _release(name) for name in (*parser.LIBRARIES, *language.LIBRARIES)}
    versions = parser.VERSION, decoding.VERSION, detection.VERSION, language.VERSION
    return digest("parser", parser_name(parser), versions, libraries)


@cache
def _release(library: str) -> str:
    if library == "python":
        return ".".join(platform.python_version_tuple()[:2])
    try:
        return version(library)
    except PackageNotFoundError:
        return "not installed"  # its parser does without, and reads otherwise once it is there
