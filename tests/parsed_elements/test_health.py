"""What parsing came to, as the check of a collection shows it."""

from pathlib import Path

from written_files import column, pdf

from chunking_assets.parsed_elements.build import update_documents
from chunking_assets.parsed_elements.health import parse_health
from chunking_assets.raw_documents.collection import Collection
from chunking_assets.workspace import Workspace

PAGE = column(["Refunds take five working days to arrive."])


def built(tmp_path: Path, **files: bytes) -> Workspace:
    workspace, folder = Workspace(tmp_path / "home"), tmp_path / "docs"
    folder.mkdir(exist_ok=True)
    for name, data in files.items():
        (folder / name.replace("_", ".")).write_bytes(data)
    collection = Collection(path="docs", settle_seconds=0)
    update_documents(workspace, "docs", "docs", collection, tmp_path)
    return workspace


def test_documents_are_counted_by_status_and_the_worst_come_first(tmp_path: Path):
    workspace = built(
        tmp_path,
        a_md=b"# Fees",
        b_md=b" ",
        c_pdf=pdf([[]], scanned=[1]),
        d_pdf=b"no pdf",
        e_pdf=pdf([PAGE, []], scanned=[2]),
        f_json=b"{",
    )
    health = parse_health(workspace, ["docs"], 9)
    assert health.statuses == {"ok": 2, "empty": 1, "failed": 1, "needs_ocr": 1, "partial": 1}
    assert (health.documents, health.without_text) == (6, 2)
    assert health.worst["doc_id"].to_list() == [
        "docs/d.pdf", "docs/c.pdf", "docs/e.pdf", "docs/b.md", "docs/f.json",
    ]  # fmt: skip
    assert health.worst["cure"].null_count() == 0
    assert parse_health(workspace, ["docs"], 1).worst.height == 1


def test_a_document_that_broke_is_without_text_though_its_last_one_is_served(tmp_path: Path):
    built(tmp_path, a_pdf=pdf([PAGE]))
    health = parse_health(built(tmp_path, a_pdf=b"no pdf any more"), ["docs"], 9)
    assert (health.statuses, health.without_text) == ({"stale": 1}, 1)


def test_a_partial_or_empty_document_is_no_failure(tmp_path: Path):
    workspace = built(tmp_path, a_pdf=pdf([PAGE, []], scanned=[2]), b_md=b"")
    assert parse_health(workspace, ["docs"], 9).without_text == 0
