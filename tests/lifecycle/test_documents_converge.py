"""Whatever was written, edited, moved, copied, broken and deleted in between: the tables are those
of a first run over the files as they are, and one more run does nothing."""

import subprocess
import tempfile
from pathlib import Path

import fsspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chunking_assets.parsed_elements.build import (
    DOCUMENTS,
    ELEMENTS,
    revisions_parsed,
    update_documents,
)
from chunking_assets.parsed_elements.reuse import ParsedBefore
from chunking_assets.raw_documents.collection import Collection
from chunking_assets.raw_documents.listing import content_version
from chunking_assets.raw_documents.look import look
from chunking_assets.workspace import Workspace

OF_THE_MOMENT = ["modified_at"]
DOCS = Collection(path="docs", shards=3, settle_seconds=0)
NAMES = st.sampled_from(["a.md", "b.md", "sub/c.md", "sub/d.txt", "e.md"])
TEXTS = st.sampled_from(["# One\n\nText one.", "Text two.\n\nMore of it.", "", "Text three."])
STEPS = st.one_of(
    st.tuples(st.just("write"), NAMES, TEXTS),
    st.tuples(st.just("delete"), NAMES),
    st.tuples(st.just("move"), NAMES, NAMES),
    st.tuples(st.just("copy"), NAMES, NAMES),
    st.tuples(st.just("link"), NAMES),
    st.tuples(st.just("update")),
)


def apply(folder, step, *arguments):
    file, *rest = (folder / argument for argument in arguments[:2])
    if step == "write":
        file.unlink(missing_ok=True)
        file.write_text(arguments[1])
    elif step == "delete":
        file.unlink(missing_ok=True)
    elif step == "link" and not file.exists():
        file.symlink_to("/etc/hostname")
    elif step in ("move", "copy") and file.is_file() and not file.is_symlink():
        (target,) = rest
        content = file.read_text()
        if step == "move":
            file.unlink()
        target.unlink(missing_ok=True)
        target.write_text(content)


def update(root, workspace):
    before = ParsedBefore(workspace)
    return [
        update_documents(
            workspace, shard, "docs", DOCS, root, parsed_before=before, confirm_deletions=True
        )
        for shard in DOCS.shards_of("docs")
    ]


def tables(workspace):
    return {
        (table, shard): workspace.table(table).read(shard).drop(OF_THE_MOMENT, strict=False).rows()
        for table in (DOCUMENTS, ELEMENTS)
        for shard in DOCS.shards_of("docs")
    }


@settings(max_examples=20, deadline=None)
@given(st.lists(STEPS, max_size=14))
def test_any_history_ends_as_a_first_run_would(steps):
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        (root / "docs" / "sub").mkdir(parents=True)
        workspace = Workspace(root / "kept")
        for step, *arguments in steps:
            if step == "update":
                update(root, workspace)
            else:
                apply(root / "docs", step, *arguments)
        updates = update(root, workspace)
        anew = Workspace(root / "anew")
        update(root, anew)
        assert tables(workspace) == tables(anew)
        found = look("docs", DOCS, root, workspace.caches)
        for made in updates:
            seen = found.revisions[made.shard]
            assert made.input_version == content_version(seen)
            assert revisions_parsed(workspace, made.shard) == seen
        manifests = [workspace.table(DOCUMENTS).manifest(u.shard) for u in updates]
        assert [(u.parsed, u.reused, bool(u.changes)) for u in update(root, workspace)] == [
            (0, 0, False)
        ] * 3
        assert [workspace.table(DOCUMENTS).manifest(u.shard) for u in updates] == manifests


@pytest.mark.parametrize("scheme", ["memory", "git"])
def test_a_distant_source_ends_as_a_folder_would(tmp_path, scheme):
    """Folders, buckets and repositories differ in where bytes are, not in what comes of them."""
    texts = {"a.md": "# One\n\nText one.", "sub/b.md": "Text two."}
    for name, text in texts.items():
        file = tmp_path / "docs" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    path = "memory://docs"
    if scheme == "memory":
        system = fsspec.filesystem("memory")
        system.store.clear()
        system.pipe({f"/docs/{name}": text.encode() for name, text in texts.items()})
    else:
        path = f"git+file://{tmp_path}/docs"
        git = ["git", "-C", str(tmp_path / "docs"), "-c", "user.name=a", "-c", "user.email=a@b"]
        for command in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "x"]):
            subprocess.run([*git, *command], check=True)

    def made(path):
        workspace = Workspace(tmp_path / "of" / path.partition(":")[0])
        collection = Collection(path=path, settle_seconds=0)
        update_documents(workspace, "docs", "docs", collection, tmp_path)
        second = update_documents(workspace, "docs", "docs", collection, tmp_path)
        assert (second.parsed, bool(second.changes)) == (0, False)
        return [
            workspace.table(table).read("docs").drop(OF_THE_MOMENT, strict=False).rows()
            for table in (DOCUMENTS, ELEMENTS)
        ]

    assert made(path) == made("docs")
