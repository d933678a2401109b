"""PDF by docling's models: layout, tables and, where they are there, OCR.

What docling makes of a document is written as Markdown here, block after block, so that offsets are
exact as in any other format. Models are read from a folder that a person filled and are never
fetched: what parses untrusted files does not ask the network. They are loaded before the limits of
a file begin to count, because they cost more than most files.
"""

import os
from collections.abc import Iterator
from functools import cache, lru_cache
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from typing import Any

from chunking_assets.errors import CorpusError
from chunking_assets.keys import digest
from chunking_assets.parsed_elements import pdf
from chunking_assets.parsed_elements.document import Kind, ParsedText, Refused
from chunking_assets.parsed_elements.limits import Limits
from chunking_assets.parsed_elements.markdown_writer import MarkdownWriter

VERSION = 1
LIBRARIES = (
    "docling-slim", "docling-core", "docling-ibm-models", "docling-parse", "rapidocr", "pypdfium2",
)  # fmt: skip

MODELS_FOLDER = "DOCLING_ARTIFACTS_PATH"
"""The environment variable that names the folder of models, docling's own."""
SAMPLED_BYTES = 1_000_000
"""Read from the start and the end of a file of weights to tell it from another of its size."""

_OUT_OF_MEMORY = ("Unable to allocate", "bad allocation", "bad_alloc", "MemoryError", "alloc_cpu")
_OCR = "RapidOcr"
"""The folder of the models that read pictures of text, as docling names it."""
_FETCH = "docling-tools models download layout tableformer rapidocr -o FOLDER"


def parse(data: bytes, limits: Limits) -> ParsedText:
    """
    Raises:
        Refused: encrypted, needs_ocr where there are no models for it, or unsupported where there
            are none at all.
        CorpusError: it cannot be opened as PDF, or docling gives it up.
        ModuleNotFoundError: docling is not installed.
    """
    with pdf.opened(data) as document:
        n_pages = len(document)
        result = _converter(_models()).convert(
            _stream(data), raises_on_error=False, page_range=(1, limits.pages)
        )
        errors = "; ".join(dict.fromkeys(str(e.error_message) for e in result.errors))[:500]
        if any(word in errors for word in _OUT_OF_MEMORY):
            raise MemoryError(errors)  # told apart by its text only: a model's own error
        if result.status.value not in ("success", "partial_success"):
            raise CorpusError(f"docling cannot read it: {errors or result.status.value}")
        writer = written(result.document)
        read = {element.attribute("page") for element in writer.elements}
        unread = [n for n in range(1, min(n_pages, limits.pages) + 1) if n not in read]
        lacks = {n: lack for n in unread if (lack := pdf.page_lacks(document, n))}
    missing = pdf.missing(data, n_pages, limits, lacks, bool(writer.elements))
    return writer.parsed(missing="; ".join(filter(None, (missing, errors))) or None)


def prepare() -> None:
    """Load the models.

    Raises:
        Refused, ModuleNotFoundError: as `parse`.
    """
    _converter(_models())


def models_version() -> str:
    """Another one for other models: they decide what is read as much as the code does."""
    folder = os.environ.get(MODELS_FOLDER)
    if not folder or not Path(folder).is_dir():
        return "none"
    files = (f for f in sorted(Path(folder).rglob("*")) if f.is_file() and ".cache" not in f.parts)
    stats = ((f, f.stat()) for f in files)
    return _sampled(tuple((folder, f, s.st_size, s.st_mtime_ns) for f, s in stats))


@lru_cache(maxsize=4)
def _sampled(files: tuple[tuple[str, Path, int, int], ...]) -> str:
    found = []
    for folder, path, size, _ in files:
        with path.open("rb") as file:
            shown = sha256(file.read(SAMPLED_BYTES))
            file.seek(max(size - SAMPLED_BYTES, 0))
            shown.update(file.read(SAMPLED_BYTES))
        found.append((path.relative_to(folder).as_posix(), size, shown.hexdigest()))
    return digest("models", found)


def _models() -> Path:
    import docling  # noqa: F401  the package is asked for before its models

    folder = os.environ.get(MODELS_FOLDER)
    if folder and Path(folder).is_dir():
        return Path(folder)
    raise _without_models(
        f"the folder {folder} of {MODELS_FOLDER} is not there"
        if folder
        else f"the environment variable {MODELS_FOLDER} names no folder of them"
    )


def _without_models(why: str) -> Refused:
    return Refused(
        "unsupported",
        f"it is to be read with docling, whose models are missing: {why}",
        f"Fetch them with `{_FETCH}`, where there is a network, and set {MODELS_FOLDER}=FOLDER for "
        "what parses; or take pdf_layout out of the collection.",
    )


@cache
def _converter(models: Path) -> Any:
    from docling.datamodel.base_models import InputFormat
    from docling.document_converter import DocumentConverter, PdfFormatOption

    converter = DocumentConverter(
        allowed_formats=[InputFormat.PDF],
        format_options={InputFormat.PDF: PdfFormatOption(pipeline_options=_options(models))},
    )
    try:
        converter.initialize_pipeline(InputFormat.PDF)
    except (OSError, RuntimeError, ValueError) as error:
        raise _without_models(str(error).partition("\n")[0]) from error
    return converter


def _options(models: Path) -> Any:
    from docling.datamodel.pipeline_options import (
        HeadingHierarchyOptions,
        PdfPipelineOptions,
        RapidOcrOptions,
    )

    return PdfPipelineOptions(
        artifacts_path=models,
        do_ocr=(models / _OCR).is_dir(),
        ocr_options=RapidOcrOptions(backend="onnxruntime"),
        heading_hierarchy_options=HeadingHierarchyOptions(enabled=True),
    )


def _stream(data: bytes) -> Any:
    from docling.datamodel.base_models import DocumentStream

    return DocumentStream(name="document.pdf", stream=BytesIO(data))


# A docling document as Markdown

_KINDS: dict[str, Kind] = {
    "caption": "caption",
    "page_header": "furniture",
    "page_footer": "furniture",
}
_MARKS = {"checkbox_selected": "[x] ", "checkbox_unselected": "[ ] "}
_LISTS = {"list", "ordered_list"}
_UNKNOWN_LANGUAGE = "unknown"


def written(document: Any) -> MarkdownWriter:
    """A `DoclingDocument` as text and elements, in its reading order.

    What stands in a picture is marked by its `part`; a cell that spans columns or rows is repeated
    in each of them, as of other formats.
    """
    from docling_core.types.doc import (  # type: ignore[attr-defined, unused-ignore]
        ContentLayer,
        TableItem,
    )

    writer = MarkdownWriter()
    layers = {ContentLayer.BODY, ContentLayer.FURNITURE}
    in_cells: set[str] = set()
    for item, _ in document.iterate_items(traverse_pictures=True, included_content_layers=layers):
        if item.self_ref in in_cells:
            continue
        if isinstance(item, TableItem):
            beside = {ref.cref for ref in (*item.captions, *item.footnotes)}
            below = (child.self_ref for child in _below(item, document))
            in_cells.update(ref for ref in below if ref not in beside)
            _table(writer, item, document)
        else:
            _text(writer, item, document)
    return writer


def _text(writer: MarkdownWriter, item: Any, document: Any) -> None:
    text = getattr(item, "text", "") or getattr(item, "orig", "")
    label = item.label.value
    facts = _facts(item)
    if item.content_layer.value == "furniture":
        writer.paragraph(text, "furniture", **facts)
    elif label == "title":
        writer.heading(text, 1, **facts)
    elif label == "section_header":
        writer.heading(text, item.level + 1, **facts)
    elif label == "list_item":
        above = [place.label.value for place in _above(item, document)]
        marker = item.marker if item.enumerated and item.marker else "-"
        level = max(1, sum(label in _LISTS for label in above))
        writer.list_item(text, level, marker, **facts)
    elif label == "code":
        language = item.code_language.value.lower()
        writer.code(text, None if language == _UNKNOWN_LANGUAGE else language, **facts)
    else:
        if label == "footnote":
            facts["part"] = "footnote"
        elif label != "caption" and any(p.label.value == "picture" for p in _above(item, document)):
            facts["part"] = "drawing"
        kind = _KINDS.get(label, "paragraph")
        writer.paragraph(_MARKS.get(label, "") + text if text else "", kind, **facts)


def _table(writer: MarkdownWriter, item: Any, document: Any) -> None:
    data = item.data
    rows = [[""] * data.num_cols for _ in range(data.num_rows)]
    header = [False] * data.num_rows
    for cell in data.table_cells:
        inside = getattr(cell, "ref", None)
        text = cell.text
        if inside is not None:
            place = inside.resolve(document)
            texts = (getattr(i, "text", "") for i in (place, *_below(place, document)))
            text = " ".join(filter(None, texts)) or text
        for number in range(cell.start_row_offset_idx, cell.end_row_offset_idx):
            header[number] = header[number] or cell.column_header
            for column in range(cell.start_col_offset_idx, cell.end_col_offset_idx):
                rows[number][column] = text
    n_header = next((n for n, is_header in enumerate(header) if not is_header), len(header))
    writer.table(rows, n_header, **_facts(item))


def _facts(item: Any) -> dict[str, Any]:
    pages = [place.page_no for place in getattr(item, "prov", ())]
    if not pages:
        return {}
    return {"page": pages[0], "page_end": pages[-1] if pages[-1] != pages[0] else None}


def _above(item: Any, document: Any) -> Iterator[Any]:
    """What an item stands in, innermost first, without the body itself."""
    while item.parent is not None:
        item = item.parent.resolve(document)
        if item.parent is None:
            return
        yield item


def _below(item: Any, document: Any) -> Iterator[Any]:
    rest = list(item.children)
    while rest:
        child = rest.pop(0).resolve(document)
        yield child
        rest = [*child.children, *rest]
