"""Jupyter notebooks, written as Markdown: text cells as they are, code and outputs in fences.

Outputs are evidence of what the code does, but one can be larger than all the rest: each is cut,
and says so. Pictures are left out; they are no text.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from chunking_assets.parsed_elements import html, markdown
from chunking_assets.parsed_elements.decoding import decode, storable
from chunking_assets.parsed_elements.document import HeadingStack, ParsedText, Refused
from chunking_assets.parsed_elements.markdown_writer import MarkdownWriter

VERSION = 1
LIBRARIES = (*markdown.LIBRARIES, *html.LIBRARIES)

OUTPUT_CHARS = 2_000
"""Most that is kept of one cell's output."""

_ANSI = re.compile(r"\x1b\[[0-9;?]{0,20}[A-Za-z]")
_BROKEN = "Save the notebook again in Jupyter, or exclude the file"


def parse(data: bytes) -> ParsedText:
    return parse_text(decode(data))


def parse_text(text: str) -> ParsedText:
    """
    Raises:
        Refused: this is no notebook.
    """
    try:
        notebook = json.loads(text)
    except (json.JSONDecodeError, RecursionError) as error:
        raise Refused("failed", f"the notebook is no valid JSON ({error})", _BROKEN) from error
    cells = _cells(notebook)
    if cells is None:
        raise Refused("failed", "there are no cells in it", _BROKEN)
    language = _language(notebook)
    writer, cut = MarkdownWriter(), 0
    for number, cell in enumerate(cells, 1):
        source = _text(cell.get("source", cell.get("input")))
        match cell.get("cell_type"):
            case "markdown":
                writer.add(markdown.parse_text(source), cell=number)
            case "heading":  # of notebooks before format 4
                line = f"{'#' * int(cell.get('level', 1))} {source}"
                writer.add(markdown.parse_text(line), cell=number)
            case "code":
                writer.code(source, language, cell=number)
                cut += _write_output(writer, cell, number)
            case _:
                writer.code(source, cell=number)
    _join_headings(writer)
    parsed = writer.parsed()
    warning = f"{cut} outputs are cut to {OUTPUT_CHARS} characters" if cut else None
    return ParsedText(parsed.text, parsed.elements, warning)


def _cells(notebook: Any) -> Sequence[Mapping[str, Any]] | None:
    if not isinstance(notebook, dict):
        return None
    cells = notebook.get("cells")
    if cells is None:  # before format 4
        cells = [c for sheet in notebook.get("worksheets", []) for c in sheet.get("cells", [])]
    if not isinstance(cells, list) or "nbformat" not in notebook:
        return None
    return [cell for cell in cells if isinstance(cell, dict)]


def _language(notebook: Mapping[str, Any]) -> str | None:
    told = notebook.get("metadata") or {}
    name = (told.get("language_info") or {}).get("name") or (told.get("kernelspec") or {}).get(
        "language"
    )
    return name if isinstance(name, str) and name.isidentifier() else None


def _write_output(writer: MarkdownWriter, cell: Mapping[str, Any], number: int) -> bool:
    """Whether the output was cut."""
    outputs = [_shown(o) for o in cell.get("outputs") or [] if isinstance(o, dict)]
    text = "\n".join(filter(None, (output.strip("\n") for output in outputs)))
    kept = text[:OUTPUT_CHARS]
    if kept != text:
        kept += f"\n… {len(text) - OUTPUT_CHARS} more characters of output"
    writer.code(kept, cell=number, output=True)
    return len(text) > OUTPUT_CHARS


def _shown(output: Mapping[str, Any]) -> str:
    data = output.get("data") or output  # before format 4 the forms stand in the output itself
    if "traceback" in output:
        return _ANSI.sub("", "\n".join(map(str, output["traceback"])))
    for form in ("text/markdown", "text/plain", "text"):
        if form in data:
            return _ANSI.sub("", _text(data[form]))
    if "text/html" in data:
        return html.parse_text(_text(data["text/html"])).text
    return ""


def _text(source: Any) -> str:
    """A notebook holds text as a string or as its lines."""
    text = "".join(map(str, source)) if isinstance(source, list) else str(source or "")
    return storable(text)  # JSON can escape what UTF-8 cannot hold


def _join_headings(writer: MarkdownWriter) -> None:
    """A heading in one cell is above the cells that follow."""
    stack = HeadingStack()
    for at, element in enumerate(writer.elements):
        if element.kind == "heading" and element.heading_path:
            path = stack.enter(element.level, element.heading_path[-1])
        else:
            path = stack.path
        writer.elements[at] = replace(element, heading_path=path)
