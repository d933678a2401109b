import pytest
import yaml
from small_corpus import CONFIGURATION, write_corpus

from chunking_assets import config as configuration
from chunking_assets.errors import ConfigError, CorpusError
from chunking_assets.workspace import Workspace


def test_names_are_resolved_to_settings(tmp_path):
    config = configuration.load(write_corpus(tmp_path, {}))
    strategy = config.strategies["recursive"]
    assert strategy.index.name == "recursive-20@1+hash"
    assert strategy.index.chunker_version.chunker.max_tokens == 20
    assert strategy.profile.search == "hybrid"
    assert config.home == tmp_path / ".corpus"


def section(name, **changes):
    return {name: {**CONFIGURATION[name], **changes}}


@pytest.mark.parametrize(
    ("changes", "key", "problem"),
    [
        ({"colections": {}}, "colections", "unknown key"),
        (section("collections", docs={"path": "docs", "shard": 2}), "collections.docs.shard", "unknown key"),
        (section("collections", other={"path": "gone"}), "collections.other.path", "no folder 'gone'"),
        (section("collections", docs={"path": "docs", "shards": 0}), "collections.docs.shards", "greater than or equal to 1"),
        (section("chunkers", **{"x@1": {"kind": "magic"}}), "chunkers.x@1.kind", "unknown kind 'magic'"),
        (section("chunkers", **{"x": {"kind": "fixed"}}), "chunkers.x", "not a version name"),
        (section("chunkers", **{"x@1": {"kind": "fixed", "size": 3}}), "chunkers.x@1.size", "unknown key"),
        (section("chunkers", **{"x@1": {"kind": "fixed", "max_tokens": 9, "overlap": 9}}), "chunkers.x@1", "overlap (9) must be smaller than max_tokens (9)"),
        (section("chunkers", **{"x@1": {"kind": "fixed", "tokenizer": "gpt"}}), "chunkers.x@1.tokenizer", "unknown embedding model 'gpt'"),
        (section("strategies", s={"chunker": "x@1", "model": "hash", "profile": "hybrid"}), "strategies.s.chunker", "unknown chunker version 'x@1'"),
        (section("strategies", s={"chunker": "fixed-20@1", "model": "x", "profile": "hybrid"}), "strategies.s.model", "unknown embedding model 'x'"),
        (section("strategies", s={"chunker": "fixed-20@1", "model": "hash", "profile": "x"}), "strategies.s.profile", "unknown profile 'x'"),
        (section("retrieval_profiles", p={"search": "vector", "k": 90, "candidates": 30}), "retrieval_profiles.p", "candidates (30) must be at least k (90)"),
        ({"questions": ["gold/*.yaml"]}, "questions", "no file matches 'gold/*.yaml'"),
        ({"comparison": {"baseline": "x"}}, "comparison.baseline", "unknown strategy 'x'"),
        ({"comparison": {"metric": "recall"}}, "comparison.metric", "match pattern"),
        ({"strategies": {}}, "strategies", "at least 1 item"),
    ],
)  # fmt: skip
def test_a_mistake_is_one_error_that_names_file_key_and_cure(tmp_path, changes, key, problem):
    file = write_corpus(tmp_path, {}, **changes)
    with pytest.raises(ConfigError) as caught:
        configuration.load(file)
    assert caught.value.key == key
    assert problem in caught.value.problem
    assert str(file) in str(caught.value)
    assert caught.value.cure


def test_a_model_folder_is_relative_to_the_configuration_and_looked_into(tmp_path):
    file = write_corpus(
        tmp_path, {}, **section("embedding_models", mine={"kind": "onnx", "path": "m"})
    )
    with pytest.raises(ConfigError, match=str(tmp_path / "m")) as caught:
        configuration.load(file)
    assert caught.value.key == "embedding_models.mine"


def test_a_budget_below_the_chunk_size_is_refused(tmp_path):
    profiles = {"hybrid": {"search": "hybrid", "token_budget": 10}, "vector": {"search": "vector"}}
    with pytest.raises(ConfigError, match="token_budget of hybrid"):
        configuration.load(write_corpus(tmp_path, {}, retrieval_profiles=profiles))


@pytest.mark.parametrize("step", [{"smooth": 0.2}, {"expand": {}}])
def test_neighbours_of_chunks_searched_in_several_sizes_are_refused(tmp_path, step):
    def with_chunks(kind):
        return write_corpus(
            tmp_path,
            {"a.md": "Text."},
            chunkers={"sizes@1": {"kind": kind}},
            retrieval_profiles={"near": {"search": "vector", **step}},
            strategies={"sizes": {"chunker": "sizes@1", "model": "hash", "profile": "near"}},
        )

    with pytest.raises(ConfigError, match="near looks at neighbours"):
        configuration.load(with_chunks("multi_granularity"))
    assert configuration.load(with_chunks("hierarchical")).strategies


def test_a_name_said_twice_is_refused(tmp_path):
    file = write_corpus(tmp_path, {})
    file.write_text(file.read_text() + "\nquestions: []\nquestions: []\n")
    with pytest.raises(ConfigError, match="duplicate name 'questions'"):
        configuration.load(file)


def test_broken_yaml_names_the_line(tmp_path):
    file = tmp_path / "corpus.yaml"
    file.write_text("collections:\n  docs: {path: docs\nchunkers: {}\n")
    with pytest.raises(ConfigError, match="line 3"):
        configuration.load(file)


def test_a_missing_file_says_where_to_run(tmp_path):
    with pytest.raises(ConfigError, match="Run from the project's folder"):
        configuration.load(tmp_path / "corpus.yaml")


def test_the_workspace_can_be_moved_by_the_environment(tmp_path, monkeypatch):
    monkeypatch.setenv("CORPUS_HOME", str(tmp_path / "elsewhere"))
    assert configuration.load(write_corpus(tmp_path, {})).home == tmp_path / "elsewhere"


def test_the_digest_covers_settings_and_not_the_name(tmp_path):
    chunkers = {
        "a@1": {"kind": "fixed", "max_tokens": 20},
        "a@2": {"kind": "fixed", "max_tokens": 20},
        "b@1": {"kind": "fixed", "max_tokens": 21},
        "c@1": {"kind": "recursive", "max_tokens": 20},
    }
    strategies = {"s": {"chunker": "a@1", "model": "hash", "profile": "vector"}}
    file = write_corpus(tmp_path, {}, chunkers=chunkers, strategies=strategies)
    digests = {n: v.digest for n, v in configuration.load(file).chunker_versions.items()}
    assert digests["a@1"] == digests["a@2"]
    assert len(set(digests.values())) == 3


def test_a_declaration_changed_under_its_name_is_refused_before_anything_is_written(tmp_path):
    workspace = Workspace(tmp_path)
    workspace.record_declaration("chunkers", "a@1", {"kind": "fixed", "max_tokens": 20})
    workspace.record_declaration("chunkers", "a@1", {"max_tokens": 20, "kind": "fixed"})
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(CorpusError, match="max_tokens: 20 → 30"):
        workspace.record_declaration("chunkers", "a@1", {"kind": "fixed", "max_tokens": 30})
    assert sorted(tmp_path.rglob("*")) == before


def test_the_example_configuration_is_right():
    config = configuration.load()
    assert len(config.strategies) >= 4
    assert yaml.safe_load(config.file.read_text())["questions"]
