"""`python -m chunking_assets.chunk_sets`: strategies side by side over one file."""

import subprocess
import sys

import pytest
from small_corpus import write_corpus

TEXT = "# Refunds\n\nRefunds take five days.\n\n# Limits\n\nTen requests a second, not more.\n"


@pytest.fixture
def chunked(tmp_path):
    """Runs the command with a small corpus.yaml."""
    file = write_corpus(
        tmp_path,
        {"a.md": TEXT},
        embedding_models={"minilm": {"kind": "minilm"}},
        strategies={
            "recursive": {"chunker": "recursive-20@1", "model": "minilm", "profile": "hybrid"}
        },
    )

    def run(*arguments):
        return subprocess.run(
            [sys.executable, "-m", "chunking_assets.chunk_sets", *map(str, arguments)],
            env={"CORPUS_CONFIG": str(file), "PATH": ""},
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )

    return run


def test_declared_and_named_versions_are_written_to_one_page(chunked, tmp_path):
    page = tmp_path / "out" / "chunks.html"
    done = chunked(
        tmp_path / "docs" / "a.md", "--chunker", "recursive-20@1",
        "--chunker", "sliding-window-12@1", "--html", page,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert "recursive-20@1" in done.stdout
    assert "sliding-window-12@1" in page.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("name", "chunker", "said"),
    [
        ("a.md", "magic-20@1", "no chunker version is called 'magic-20@1'"),
        ("a.md", "fixed-0@1", "chunkers.fixed-0@1.max_tokens"),
        ("missing.md", "fixed-20@1", "cannot be read"),
        ("broken.png", "fixed-20@1", "no parser for image/png"),
    ],
)
def test_a_mistake_is_one_line_that_names_it(chunked, tmp_path, name, chunker, said):
    (tmp_path / "docs" / "broken.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    done = chunked(tmp_path / "docs" / name, "--chunker", chunker)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("error: ")
    assert said in done.stderr
    assert done.stderr.count("\n") == 1
