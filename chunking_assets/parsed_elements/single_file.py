"""One file as the pipeline would parse it, outside of any collection."""

from pathlib import Path

from chunking_assets.errors import CorpusError
from chunking_assets.parsed_elements.build import HEAD_BYTES
from chunking_assets.parsed_elements.parse import ParsedDocument, parse_document
from chunking_assets.raw_documents.media_type import PDF, PDF_LAYOUTS, media_type


def parse_file(file: Path, pdf_layout: str | None = None) -> tuple[str, ParsedDocument]:
    """The file's media type, and what parsing it came to; `pdf_layout` as of a collection.

    Raises:
        CorpusError: it cannot be opened.
    """
    try:
        data = file.read_bytes()
    except OSError as error:
        raise CorpusError(f"{file} cannot be read ({error.strerror}). Name a file.") from error
    kind = media_type(data[:HEAD_BYTES], file.name)
    if kind == PDF and pdf_layout:
        kind = PDF_LAYOUTS[pdf_layout]
    return kind, parse_document(data, file.name, kind)
