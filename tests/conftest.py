"""What several stages' tests share: the default model, converted once, and a tiny one."""

import gc
import json
import os
import sys
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from chat_server import without_endpoint
from demo import Demo, build_demo
from places import BUCKET, places
from s3_server import Bucket

from chunking_assets.embedding_models.e5_small import E5Small
from chunking_assets.embedding_models.model import Embedder
from chunking_assets.embedding_models.onnx_folder import OnnxFolder

# Tests start processes by the dozen, each of which would compile all that it imports.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

TINY_WORDS = ("[UNK]", "[BEGIN]", "[END]", "red", "green", "blue", "sea", "zero", "broken", "huge")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What needs the sample corpus first: one worker then builds it while the others have tests
    without it, and nobody waits for it."""
    items.sort(key=lambda item: "demo" not in getattr(item, "fixturenames", ()))


def pytest_collection_finish() -> None:
    """Thousands of tests and the packages they import stay: to look through them again and again
    for what may go takes a twentieth of the time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 50)


@pytest.fixture(scope="session", autouse=True)
def _nobody_elses_endpoint():
    """No test sends anything to an endpoint of whoever runs it, or is paid for by them."""
    with pytest.MonkeyPatch.context() as patch:
        without_endpoint(patch)
        yield


@pytest.fixture(scope="session")
def s3_server() -> Iterator[Bucket]:
    with Bucket().serving() as server:
        yield server


@pytest.fixture
def bucket(s3_server: Bucket, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[str]:
    """The URL of a workspace nobody else has, and an environment that reaches it."""
    pytest.importorskip("obstore")
    for name, value in s3_server.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("CORPUS_LOCAL", str(tmp_path / "machine"))
    name = uuid.uuid4().hex
    yield f"s3://{s3_server.name}/{name}"
    s3_server.heal()
    for key in [key for key in s3_server.objects if key.startswith(name)]:
        del s3_server.objects[key]


@pytest.fixture(params=places)
def place(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Where `write_corpus` declares workspaces to be, one of `places`."""
    from small_corpus import PLACE

    if request.param == BUCKET:
        monkeypatch.setenv(PLACE, request.getfixturevalue("bucket"))
    return str(request.param)


@pytest.fixture(scope="session")
def models_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the default model is converted, once a session; $CORPUS_TEST_MODELS keeps it longer."""
    kept = os.environ.get("CORPUS_TEST_MODELS")
    folder = Path(kept).absolute() if kept else _shared(tmp_path_factory) / "models"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The temporary folder that all workers of a session have in common."""
    base = tmp_path_factory.getbasetemp()
    return base.parent if "PYTEST_XDIST_WORKER" in os.environ else base


@pytest.fixture(scope="session")
def e5(models_folder: Path) -> Embedder:
    return E5Small().embedder(models_folder)


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory, models_folder: Path) -> Demo:
    """The sample corpus as `make demo` leaves it; a minute on two cores, once a session."""
    return build_demo(_shared(tmp_path_factory) / "demo", models_folder)


@pytest.fixture(scope="session")
def tiny_folder(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Writes an ONNX model that looks its tokens up in a random table, as an export would be."""

    def write(*, seed: int = 0, **described: object) -> Path:
        folder = tmp_path_factory.mktemp("tiny")
        _write_tiny_onnx(folder / "model.onnx", seed)
        _write_tiny_tokenizer(folder / "tokenizer.json")
        description = {"dimensions": 4, "max_tokens": 8, "pooling": "mean", **described}
        (folder / "model.json").write_text(json.dumps(description))
        return folder

    return write


@pytest.fixture(scope="session")
def tiny(tiny_folder: Callable[..., Path]) -> Embedder:
    folder = tiny_folder()
    return OnnxFolder(path=str(folder)).embedder(folder)


def _write_tiny_onnx(file: Path, seed: int) -> None:
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    table = np.random.default_rng(seed).normal(size=(len(TINY_WORDS), 4)).astype(np.float32)
    table[[TINY_WORDS.index("[BEGIN]"), TINY_WORDS.index("[END]")]] = 0
    table[TINY_WORDS.index("zero")] = 0
    table[TINY_WORDS.index("broken")] = np.nan
    table[TINY_WORDS.index("huge")] = np.inf
    state = helper.make_tensor_value_info("last_hidden_state", TensorProto.FLOAT, ["b", "s", 4])
    ids, mask = (
        helper.make_tensor_value_info(name, TensorProto.INT64, ["b", "s"])
        for name in ("input_ids", "attention_mask")
    )
    graph = helper.make_graph(
        [helper.make_node("Gather", ["table", "input_ids"], ["last_hidden_state"])],
        "tiny",
        [ids, mask],
        [state],
        [numpy_helper.from_array(table, "table")],
    )
    onnx.save(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9),
        str(file),
    )


def _write_tiny_tokenizer(file: Path) -> None:
    from tokenizers import Tokenizer, pre_tokenizers, processors
    from tokenizers.models import WordLevel

    ids = {word: number for number, word in enumerate(TINY_WORDS)}
    tokenizer = Tokenizer(WordLevel(ids, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[BEGIN] $A [END]", special_tokens=[("[BEGIN]", 1), ("[END]", 2)]
    )
    tokenizer.enable_truncation(3)  # exporters leave such settings behind
    tokenizer.save(str(file))
