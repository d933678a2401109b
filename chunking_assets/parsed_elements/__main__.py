"""`python -m chunking_assets.parsed_elements FILE --html elements.html`.

Prints what the pipeline would read of one file: its canonical text and its elements, or why there
are none. Nothing is stored.
"""

import argparse
import sys
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Column, Table

from chunking_assets.errors import CorpusError
from chunking_assets.parsed_elements.language import detect_language
from chunking_assets.parsed_elements.page import elements_page, facts
from chunking_assets.parsed_elements.parse import READABLE, ParsedDocument
from chunking_assets.parsed_elements.single_file import parse_file
from chunking_assets.raw_documents.media_type import PDF_LAYOUTS
from chunking_assets.workspace import write_atomically

LEAST_WIDTH = 100
SHOWN_CHARS = 60


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m chunking_assets.parsed_elements",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("file", type=Path)
    parser.add_argument("--html", type=Path, help="write the page here")
    parser.add_argument("--text", action="store_true", help="the canonical text alone")
    parser.add_argument("--pdf-layout", choices=PDF_LAYOUTS, help="whose models read a PDF")
    arguments = parser.parse_args()
    try:
        media_type, parsed = parse_file(arguments.file, arguments.pdf_layout)
        notes = _notes(media_type, parsed)
        if arguments.html:
            page = elements_page(arguments.file.name, parsed.text, parsed.elements, notes)
            write_atomically(arguments.html.absolute(), page.encode())
    except (CorpusError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(parsed.text, end="")
    if arguments.text:
        return 0 if parsed.status in READABLE else 1
    if parsed.elements:
        console = Console(width=max(Console().width, LEAST_WIDTH))
        console.print(_table(parsed))
    print(f"\n{notes}")
    if arguments.html:
        print(f"{arguments.html}: open it in a browser")
    return 0 if parsed.status in READABLE else 1


def _table(parsed: ParsedDocument) -> Table:
    table = Table(Column("", justify="right"), "kind", "span", "text", "facts", box=None)
    for number, element in enumerate(parsed.elements, 1):
        text = " ".join(parsed.text[element.start : element.end][: 2 * SHOWN_CHARS].split())
        table.add_row(
            str(number),
            element.kind,
            f"{element.start}–{element.end}",
            escape(text if len(text) <= SHOWN_CHARS else text[: SHOWN_CHARS - 1] + "…"),
            escape(facts(element)),
        )
    return table


def _notes(media_type: str, parsed: ParsedDocument) -> str:
    language = detect_language(parsed.text, parsed.elements)
    spoken = f", {language.code} ({language.confidence:.2f})" if language else ""
    said = f"{parsed.status}: {media_type}, {len(parsed.text):,} characters{spoken}."
    return f"{said} {parsed.error.rstrip('.')}. {parsed.cure}" if parsed.error else said


if __name__ == "__main__":
    sys.exit(main())
