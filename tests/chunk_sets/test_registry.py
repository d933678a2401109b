"""Kinds of other packages, by entry point, and what holds them to the promises."""

import sys

import pytest

from chunking_assets.chunk_sets import registry
from chunking_assets.chunk_sets.chunker import Chunk, Chunker
from chunking_assets.chunk_sets.chunking import chunk
from chunking_assets.chunk_sets.registry import chunker_class, chunker_kinds
from chunking_assets.chunk_sets.spans import Document
from chunking_assets.errors import CorpusError

PLUG_IN = """
from chunking_assets.chunk_sets.chunker import Chunker
from chunking_assets.chunk_sets.packing import pack

class LinesChunker(Chunker):
    kind = "lines"

    def chunks(self, document):
        return pack(document, self, ("line", "word"))

class Renamed(LinesChunker):
    kind = "another"

class Unfinished(Chunker):
    kind = "unfinished"

NOT_A_CHUNKER = dict
"""


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """Installs a package that offers these kinds."""
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "lines_package.py").write_text(PLUG_IN)

    def install(**points):
        folder = tmp_path / "lines_package-2.5.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text(
            "Metadata-Version: 2.1\nName: lines-package\nVersion: 2.5\n"
        )
        lines = [f"{kind} = {value}" for kind, value in points.items()]
        (folder / "entry_points.txt").write_text("\n".join([f"[{registry.ENTRY_POINTS}]", *lines]))
        vars(registry.KINDS).pop("offered", None)

    yield install
    vars(registry.KINDS).pop("offered", None)
    sys.modules.pop("lines_package", None)


def test_a_kind_of_another_package_is_declared_with_its_release(installed, words):
    installed(lines="lines_package:LinesChunker")
    chunker = chunker_class("lines")(max_tokens=2)
    assert "lines" in chunker_kinds()
    assert chunker.declaration()["package"] == "lines-package 2.5"
    chunks = chunk(Document("one\ntwo three\nfour", [], words), chunker)
    assert [c.text for c in chunks] == ["one", "two three", "four"]


@pytest.mark.parametrize(
    ("kind", "value", "problem"),
    [
        ("lines", "lines_package:Missing", "cannot be loaded"),
        ("lines", "no_such_package:Chunker", "cannot be loaded"),
        ("lines", "lines_package:NOT_A_CHUNKER", "is not a subclass of Chunker"),
        ("lines", "lines_package:Renamed", "does not say kind = 'lines'"),
        ("unfinished", "lines_package:Unfinished", "has no method chunks"),
        ("recursive", "lines_package:LinesChunker", "is offered twice"),
    ],
)
def test_a_broken_package_is_named(installed, kind, value, problem):
    installed(**{kind: value})
    with pytest.raises(CorpusError, match=problem):
        chunker_class(kind if kind != "recursive" else "lines")


class Foreign(Chunker):
    """Gives the chunks it is told to."""

    kind = "foreign"
    given: tuple[tuple[int, int, str], ...] = ()

    def chunks(self, document):
        for start, end, text in self.given:
            yield Chunk(start, end, text, "", n_tokens=1)


@pytest.mark.parametrize(
    "given",
    [
        ((0, 3, "One"),),
        ((0, 0, ""),),
        ((3, 4, " "),),
        ((4, 7, "two"), (0, 3, "one")),
        ((0, 7, "one two"), (4, 7, "two")),
    ],
)
def test_a_chunk_that_breaks_a_promise_is_refused(words, given):
    with pytest.raises(CorpusError, match="empty, out of order or not a slice of the text"):
        chunk(Document("one two", [], words), Foreign(given=given))


def test_tokens_of_a_foreign_strategy_are_counted_again(words):
    (found,) = chunk(
        Document("one two", [], words), Foreign(max_tokens=1, given=((0, 7, "one two"),))
    )
    assert (found.n_tokens, found.over_budget) == (2, True)
