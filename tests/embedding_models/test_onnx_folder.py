import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from tokenizers import Tokenizer

from chunking_assets.embedding_models.model import Embedder
from chunking_assets.embedding_models.onnx_folder import OnnxFolder
from chunking_assets.errors import CorpusError


def load(folder: Path, **settings: object) -> Embedder:
    return OnnxFolder(path=str(folder), **settings).embedder(folder)


def as_sentence_transformers(folder: Path, **pooling: object) -> Path:
    """The same model described by the files that sentence-transformers writes."""
    (folder / "model.json").unlink()
    files = {
        "config.json": {"hidden_size": 4, "max_position_embeddings": 512},
        "1_Pooling/config.json": {"word_embedding_dimension": 4, **pooling},
        "sentence_bert_config.json": {"max_seq_length": 8, "do_lower_case": False},
        "tokenizer_config.json": {"model_max_length": 1000000000000000019884624838656},
        "config_sentence_transformers.json": {
            "prompts": {"query": "sea ", "document": "red "},
            "default_prompt_name": None,
        },
    }
    for name, content in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(json.dumps(content))
    return folder


def test_the_files_of_sentence_transformers_describe_a_model(tiny_folder):
    folder = as_sentence_transformers(tiny_folder(), pooling_mode_mean_tokens=True)
    identity = load(folder).identity
    assert (identity.dimensions, identity.max_tokens, identity.pooling) == (4, 8, "mean")
    assert (identity.query_prefix, identity.passage_prefix) == ("sea ", "red ")


def test_settings_override_what_the_folder_says(tiny_folder):
    folder = as_sentence_transformers(tiny_folder(), pooling_mode_mean_tokens=True)
    identity = load(folder, query_prefix="", max_tokens=9, pooling="cls").identity
    assert (identity.query_prefix, identity.max_tokens, identity.pooling) == ("", 9, "cls")
    assert identity.passage_prefix == "red "


def test_mean_pooling_is_the_mean_of_the_token_vectors(tiny_folder):
    red, green = np.random.default_rng(0).normal(size=(10, 4))[3:5]  # the tiny model's table
    expected = (red + green) / np.linalg.norm(red + green)
    assert np.allclose(load(tiny_folder()).embed_passages(["red green"])[0], expected, atol=1e-6)


def test_cls_pooling_takes_the_first_token(tiny_folder):
    folder = tiny_folder(pooling="cls")
    tokenizer = json.loads((folder / "tokenizer.json").read_text())
    tokenizer["post_processor"] = None  # then the first word is the first token
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    red, red_green = load(folder).embed_passages(["red", "red green"])
    assert red.tobytes() == red_green.tobytes()


@pytest.mark.parametrize("name", ["model.onnx", "tokenizer.json", "config.json"])
def test_a_missing_file_is_named_with_the_cure(tiny_folder, name):
    folder = as_sentence_transformers(tiny_folder(), pooling_mode_mean_tokens=True)
    (folder / name).unlink()
    with pytest.raises(CorpusError, match=rf"{name}.* is missing\. Copy it there"):
        load(folder)


@pytest.mark.parametrize("pooling", [{}, {"pooling_mode_lasttoken": True}])
def test_unknown_pooling_is_refused_and_can_be_said(tiny_folder, pooling):
    folder = as_sentence_transformers(tiny_folder(), **pooling)
    with pytest.raises(CorpusError, match="pooling"):
        load(folder)
    assert load(folder, pooling="mean").identity.pooling == "mean"


def test_unsupported_pooling_is_refused(tiny_folder):
    folder = as_sentence_transformers(tiny_folder(), pooling_mode="weightedmean")
    with pytest.raises(CorpusError, match="'weightedmean' is not supported"):
        load(folder)


def test_a_dense_layer_after_pooling_is_refused(tiny_folder):
    folder = as_sentence_transformers(tiny_folder(), pooling_mode_mean_tokens=True)
    (folder / "2_Dense").mkdir()
    with pytest.raises(CorpusError, match="2_Dense"):
        load(folder)


def test_wrong_dimensions_are_refused(tiny_folder):
    with pytest.raises(CorpusError, match=r"shape \(4,\), not 5 dimensions"):
        load(tiny_folder(dimensions=5)).embed_passages(["red"])


def test_a_file_that_is_no_model_is_refused(tiny_folder):
    folder = tiny_folder()
    (folder / "model.onnx").write_bytes(b"version https://git-lfs.github.com/spec/v1")
    with pytest.raises(CorpusError, match="cannot be loaded as an ONNX model"):
        load(folder)


def test_a_file_that_is_no_tokenizer_is_refused(tiny_folder):
    folder = tiny_folder()
    (folder / "tokenizer.json").write_text("{}")
    with pytest.raises(CorpusError, match="cannot be read as a tokenizer"):
        load(folder)


def test_the_identity_changes_with_weights_prefix_and_tokenizer(tiny_folder):
    base, other = tiny_folder(), tiny_folder(seed=1)
    tokenizer = tiny_folder()
    content = (tokenizer / "tokenizer.json").read_text()
    (tokenizer / "tokenizer.json").write_text(content.replace('"sea"', '"ocean"'))
    identities = [
        load(base).identity,
        load(other).identity,
        load(tokenizer).identity,
        load(base, passage_prefix="sea ").identity,
        load(base, query_prefix="sea ").identity,
        load(base, max_tokens=9).identity,
        load(base, pooling="cls").identity,
    ]
    assert len({identity.fingerprint for identity in identities}) == len(identities)


def test_weights_replaced_under_the_same_path_are_another_declaration(tiny_folder):
    folder, other = tiny_folder(), tiny_folder(seed=1)
    before = OnnxFolder(path=str(folder)).declaration()
    shutil.copyfile(other / "model.onnx", folder / "model.onnx")
    assert OnnxFolder(path=str(folder)).declaration() != before


def test_a_folder_may_move(tiny_folder, tmp_path):
    folder = tiny_folder()
    moved = shutil.copytree(folder, tmp_path / "elsewhere")
    assert OnnxFolder(path=str(folder)).declaration() == OnnxFolder(path=str(moved)).declaration()
    assert load(folder).identity.fingerprint == load(moved).identity.fingerprint


def test_a_relative_path_starts_at_the_working_folder(tiny_folder, monkeypatch):
    folder = tiny_folder()
    monkeypatch.chdir(folder.parent)
    assert load(Path(folder.name)).embed_passages(["red"]).shape == (1, 4)


def test_a_special_token_spelled_in_a_text_is_text(tiny_folder):
    folder = tiny_folder()
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.add_special_tokens(["[END]"])
    tokenizer.save(str(folder / "tokenizer.json"))
    assert load(folder).count_tokens(["red[END]green"]) == [2 + 1]  # one unknown word


def test_truncation_left_in_the_tokenizer_is_ignored(tiny_folder):
    assert load(tiny_folder()).count_tokens(["red " * 5]) == [7]
