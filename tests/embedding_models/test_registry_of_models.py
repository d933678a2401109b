"""Embedding models of other packages, by entry point."""

import sys

import pytest

from chunking_assets.embedding_models import registry
from chunking_assets.errors import CorpusError

PLUG_IN = """
from chunking_assets.embedding_models.model import EmbeddingModel

class Constant(EmbeddingModel):
    kind = "constant"

    def tokenizer_fingerprint(self):
        return "words"

    def tokenizer(self, models_folder):
        raise NotImplementedError

    def embedder(self, models_folder):
        raise NotImplementedError

class Unfinished(EmbeddingModel):
    kind = "unfinished"
"""


@pytest.fixture
def installed(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "constant_package.py").write_text(PLUG_IN)
    folder = tmp_path / "constant_package-1.0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: constant-package\nVersion: 1.0\n"
    )
    points = [f"[{registry.ENTRY_POINTS}]"]
    points += [f"{name.lower()} = constant_package:{name}" for name in ("Constant", "Unfinished")]
    (folder / "entry_points.txt").write_text("\n".join(points))
    vars(registry.KINDS).pop("offered", None)
    yield
    vars(registry.KINDS).pop("offered", None)
    sys.modules.pop("constant_package", None)


def test_a_model_of_another_package_is_found_by_its_kind(installed):
    assert registry.model_class("constant")().declaration() == {"kind": "constant"}


def test_one_that_is_not_finished_is_named(installed):
    with pytest.raises(CorpusError, match="has no method tokenizer_fingerprint"):
        registry.model_class("unfinished")


def test_an_unknown_kind_is_told_which_there_are():
    with pytest.raises(CorpusError, match=r"unknown kind 'e5'. Choose one of: e5-small, minilm"):
        registry.model_class("e5")
