"""PDF by docling's models: what its documents are written as, and what is said where it cannot run.

The documents are made with docling's own classes; the models themselves are not here.
"""

import os
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest
from docling_core.types.doc import (
    BoundingBox,
    ContentLayer,
    DocItemLabel,
    DoclingDocument,
    GroupLabel,
    ProvenanceItem,
    RichTableCell,
    TableCell,
    TableData,
)
from docling_core.types.doc.labels import CodeLanguageLabel
from written_files import column, pdf

from chunking_assets.parsed_elements import docling_pdf
from chunking_assets.parsed_elements.build import DOCUMENTS, update_documents
from chunking_assets.parsed_elements.document import ParsedText, check_spans
from chunking_assets.parsed_elements.registry import parser_fingerprint
from chunking_assets.raw_documents.collection import Collection
from chunking_assets.raw_documents.media_type import PDF_LAYOUTS
from chunking_assets.workspace import Workspace

DOCLING = PDF_LAYOUTS["docling"]
PAGE = pdf([column(["Refunds take five working days to arrive."])])


def on(page: int) -> ProvenanceItem:
    return ProvenanceItem(page_no=page, bbox=BoundingBox(l=0, t=1, r=1, b=0), charspan=(0, 1))


def read(document: DoclingDocument) -> ParsedText:
    parsed = docling_pdf.written(document).parsed()
    check_spans(parsed)
    return parsed


def shown(parsed: ParsedText) -> list[tuple[str, str]]:
    return [(e.kind, parsed.text[e.start : e.end]) for e in parsed.elements]


def cell(row: int, column: int, text: str, *, header: bool = False, to: int = 0) -> TableCell:
    return TableCell(
        text=text,
        start_row_offset_idx=row,
        end_row_offset_idx=row + 1,
        start_col_offset_idx=column,
        end_col_offset_idx=to or column + 1,
        column_header=header,
    )


def test_headings_paragraphs_and_code_keep_their_page_level_and_language():
    document = DoclingDocument(name="a")
    document.add_title("Guide", prov=on(1))
    document.add_heading("Refunds", level=1, prov=on(1))
    document.add_heading("By card", level=2, prov=on(2))
    over = document.add_text(DocItemLabel.TEXT, "Five\nworking days.", prov=on(2))
    over.prov.append(on(3))
    document.add_code("def pay():\n    ...", code_language=CodeLanguageLabel.PYTHON, prov=on(3))
    document.add_code("pay --now", prov=on(3))
    parsed = read(document)
    assert shown(parsed) == [
        ("heading", "# Guide"),
        ("heading", "## Refunds"),
        ("heading", "### By card"),
        ("paragraph", "Five\nworking days."),
        ("code", "```python\ndef pay():\n    ...\n```"),
        ("code", "```\npay --now\n```"),
    ]
    assert [e.attributes for e in parsed.elements[2:5]] == [
        (("page", 2),), (("page", 2), ("page_end", 3)), (("page", 3),),
    ]  # fmt: skip
    assert parsed.elements[3].heading_path == ("Guide", "Refunds", "By card")
    assert [e.language for e in parsed.elements[4:]] == ["python", None]


def test_lists_keep_their_markers_and_levels():
    document = DoclingDocument(name="a")
    outer = document.add_list_group()
    document.add_list_item("Pack", parent=outer, prov=on(1))
    second = document.add_list_item("Send", parent=outer, prov=on(1))
    inner = document.add_list_group(parent=second)
    document.add_list_item("by post", enumerated=True, marker="1.", parent=inner, prov=on(1))
    parsed = read(document)
    assert parsed.text == "- Pack\n- Send\n  1. by post\n"
    assert [e.level for e in parsed.elements] == [1, 1, 2]


def test_a_table_keeps_its_header_rows_spans_caption_and_notes():
    document = DoclingDocument(name="a")
    data = TableData(
        num_rows=3,
        num_cols=3,
        table_cells=[
            cell(0, 0, "", header=True), cell(0, 1, "Fee", header=True, to=3),
            cell(1, 0, "Country", header=True), cell(1, 1, "low", header=True),
            cell(1, 2, "high | top", header=True), cell(2, 0, "France"), cell(2, 2, "9"),
        ],
    )  # fmt: skip
    table = document.add_table(data, prov=on(4))
    caption = document.add_text(DocItemLabel.CAPTION, "Table 1: Fees", prov=on(4), parent=table)
    note = document.add_text(DocItemLabel.FOOTNOTE, "in euros", prov=on(4), parent=table)
    table.captions.append(caption.get_ref())
    table.footnotes.append(note.get_ref())
    parsed = read(document)
    body = "|  | Fee | Fee |\n| Country | low | high \\| top |\n| --- | --- | --- |\n"
    assert shown(parsed) == [
        ("table", f"{body}| France |  | 9 |"),
        ("caption", "Table 1: Fees"),
        ("paragraph", "in euros"),
    ]
    assert parsed.elements[0].attribute("header_end") == len(body)
    assert parsed.elements[0].attribute("page") == 4
    assert parsed.elements[2].attribute("part") == "footnote"


def test_what_stands_in_a_cell_or_a_picture_is_written_once():
    document = DoclingDocument(name="a")
    data = TableData(num_rows=1, num_cols=2, table_cells=[cell(0, 0, "a")])
    table = document.add_table(data, prov=on(1))
    inside = document.add_group(label=GroupLabel.UNSPECIFIED, parent=table)
    document.add_text(DocItemLabel.TEXT, "first", parent=inside, prov=on(1))
    document.add_text(DocItemLabel.TEXT, "second", parent=inside, prov=on(1))
    rich = RichTableCell(**cell(0, 1, "first second").model_dump(), ref=inside.get_ref())
    document.add_table_cell(table, rich)
    picture = document.add_picture(prov=on(1))
    document.add_text(DocItemLabel.TEXT, "an axis", parent=picture, prov=on(1))
    parsed = read(document)
    assert shown(parsed) == [
        ("table", "| a | first second |\n| --- | --- |"),
        ("paragraph", "an axis"),
    ]
    assert parsed.elements[1].attribute("part") == "drawing"


def test_running_headers_and_footers_are_furniture():
    document = DoclingDocument(name="a")
    for label, text in (
        (DocItemLabel.PAGE_HEADER, "Terms"),
        (DocItemLabel.TEXT, "Clause 1."),
        (DocItemLabel.CHECKBOX_SELECTED, "I agree"),
        (DocItemLabel.PAGE_FOOTER, "1 of 4"),
    ):
        layer = ContentLayer.FURNITURE if text in ("Terms", "1 of 4") else ContentLayer.BODY
        document.add_text(label, text, prov=on(1), content_layer=layer)
    assert shown(read(document)) == [
        ("furniture", "Terms"), ("paragraph", "Clause 1."), ("paragraph", "[x] I agree"),
        ("furniture", "1 of 4"),
    ]  # fmt: skip


def test_a_document_without_anything_is_empty():
    assert read(DoclingDocument(name="a")) == ParsedText("", ())


# Where it cannot run


def statuses(workspace: Workspace, *columns: str) -> list[tuple[object, ...]]:
    documents = workspace.table(DOCUMENTS).read("docs", ["doc_id", "status", *columns])
    assert isinstance(documents, pl.DataFrame)
    return documents.rows()


def test_without_the_package_a_pdf_names_the_extra_and_is_read_again_by_other_means(
    tmp_path: Path,
):
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/a.pdf").write_bytes(PAGE)
    (tmp_path / "docs/b.md").write_text("# Notes")
    workspace = Workspace(tmp_path / "home")

    def run(**told: object) -> int:
        collection = Collection(path="docs", settle_seconds=0, **told)  # type: ignore[arg-type]
        return update_documents(workspace, "docs", "docs", collection, tmp_path).parsed

    run(pdf_layout="docling")
    (pdf_row, notes) = statuses(workspace, "media_type", "error", "cure")
    assert pdf_row[:3] == ("docs/a.pdf", "unsupported", "application/pdf")
    assert "docling" in str(pdf_row[3])
    assert "chunking-assets[docling]" in str(pdf_row[4])
    assert notes[1] == "ok"
    assert run(pdf_layout="docling") == 0
    assert run() == 1
    assert statuses(workspace) == [("docs/a.pdf", "ok"), ("docs/b.md", "ok")]
    assert run() == 0


@pytest.mark.parametrize("folder", [None, "none", "empty"])
def test_without_its_models_a_pdf_names_how_to_fetch_them(tmp_path: Path, folder: str | None):
    """A package of docling's name that finds no models, as docling does in an empty folder."""
    package = tmp_path / "docling"
    (package / "datamodel").mkdir(parents=True)
    (tmp_path / "empty").mkdir()
    (package / "document_converter.py").write_text(
        "class DocumentConverter:\n"
        "    def __init__(self, **given): pass\n"
        "    def initialize_pipeline(self, format):\n"
        "        raise FileNotFoundError('model.safetensors not found')\n"
        "def PdfFormatOption(**given): pass\n"
    )
    (package / "datamodel/base_models.py").write_text("class InputFormat:\n    PDF = 'pdf'\n")
    (package / "datamodel/pipeline_options.py").write_text(
        "def made(**given): pass\n"
        "HeadingHierarchyOptions = PdfPipelineOptions = RapidOcrOptions = made\n"
    )
    code = (
        "import sys; from chunking_assets.parsed_elements.parse import parse_document;"
        f"r = parse_document(sys.stdin.buffer.read(), 'a.pdf', {DOCLING!r});"
        "print(r.status, r.error, r.cure)"
    )
    named = {} if folder is None else {docling_pdf.MODELS_FOLDER: str(tmp_path / folder)}
    shown = subprocess.run(
        [sys.executable, "-c", code],
        input=PAGE,
        env={**os.environ, "PYTHONPATH": str(tmp_path), **named},
        capture_output=True,
        check=True,
    ).stdout.decode()
    assert shown.startswith("unsupported a.pdf: ")
    assert "docling-tools models download" in shown
    assert f"{docling_pdf.MODELS_FOLDER}=FOLDER" in shown
    assert {None: "names no folder", "none": "is not there", "empty": "not found"}[folder] in shown


def test_other_models_are_another_parser_and_copied_ones_are_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def fingerprint(name: str, weights: bytes) -> str:
        (tmp_path / name / "layout").mkdir(parents=True, exist_ok=True)
        (tmp_path / name / "layout/model.safetensors").write_bytes(weights)
        monkeypatch.setenv(docling_pdf.MODELS_FOLDER, str(tmp_path / name))
        return parser_fingerprint(DOCLING)

    before = fingerprint("a", b"weights 1")
    assert fingerprint("b", b"weights 1") == before
    assert fingerprint("b", b"weights 2") != before
    monkeypatch.delenv(docling_pdf.MODELS_FOLDER)
    assert parser_fingerprint(DOCLING) != before
