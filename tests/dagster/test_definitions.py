"""What Dagster loads: complete, light, and refused with one clear line when corpus.yaml is wrong."""

import os
import subprocess
import sys
from pathlib import Path

import dagster as dg
import pytest

REPOSITORY = Path(__file__).parents[2]
HEAVY = ("ragas", "openai", "lancedb", "lance", "pandas", "onnxruntime", "onnx", "duckdb")


def python(*arguments, **variables):
    """A Python of its own in the repository's folder."""
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=REPOSITORY,
        env={**os.environ, "PYTHONPATH": f"{REPOSITORY}:{REPOSITORY / 'tests'}", **variables},
        capture_output=True,
        text=True,
        timeout=120,
    )


def test_the_definitions_are_valid(corpus):
    dg.Definitions.validate_loadable(corpus.defs)


def test_every_asset_says_what_it_is_and_whose(corpus):
    for key in corpus.graph.get_all_asset_keys():
        node = corpus.graph.get(key)
        assert node.description, key
        assert node.kinds, key
        assert node.owners, key
        assert node.group_name != "default", key


def test_every_asset_that_is_built_has_a_code_version(corpus):
    built = corpus.graph.materializable_asset_keys
    assert len(built) == 9
    assert all(corpus.graph.get(key).code_version for key in built)


def test_every_asset_shows_its_columns_with_their_meaning(corpus):
    for key in corpus.graph.get_all_asset_keys():
        schema = corpus.graph.get(key).metadata["dagster/column_schema"]
        assert schema.columns
        assert all(column.description and column.type for column in schema.columns), key


def test_every_check_and_sensor_and_schedule_is_described(corpus):
    repository = corpus.defs.get_repository_def()
    automations = [*repository.sensor_defs, *repository.schedule_defs]
    assert {a.name for a in automations} == {
        "watch_documents", "keep_index_current", "nightly_evaluation",
    }  # fmt: skip
    assert all(a.description for a in automations)
    checks = [corpus.graph.get(key) for key in corpus.graph.asset_check_keys]
    assert {c.key.name for c in checks if c.blocking} == {"spans_exact", "index_reconciled"}
    assert all(c.description for c in checks)


def test_loading_the_code_location_loads_no_heavy_package():
    found = python(
        "-c",
        "import sys, dagster_defs.definitions\n"
        f"print([name for name in {HEAVY!r} if name in sys.modules])",
        CORPUS_CONFIG=str(REPOSITORY / "corpus.yaml"),
    )
    assert found.stdout.strip() == "[]", found.stderr[-2000:]


def test_dagsters_own_tool_accepts_the_project(tmp_path):
    checked = python(
        "-m", "dagster", "definitions", "validate", "--log-level", "error",
        CORPUS_CONFIG=str(REPOSITORY / "corpus.yaml"),
        DAGSTER_HOME=str(tmp_path),
    )  # fmt: skip
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_a_wrong_corpus_yaml_is_one_line_from_the_check_and_the_same_from_dagster(corpus_of):
    corpus = corpus_of()
    wrong = corpus.declare(chunkers={"fixed-20@1": {"kind": "fixed", "max_tokenz": 20}})
    settings = {"CORPUS_CONFIG": str(wrong)}
    checked = python("-c", CHECK, **settings)
    loaded = python("-c", LOAD, **settings)
    assert checked.returncode == 1
    assert loaded.returncode == 1
    line = checked.stderr.strip().removeprefix("error: ")
    assert line == (
        f"{wrong}: chunkers.fixed-20@1.max_tokenz: unknown key. Remove it or correct its spelling."
    )
    assert loaded.stderr.strip().splitlines()[-1].endswith(f"ConfigError: {line}")


CHECK = "import sys, small_corpus, chunking_assets.config as c; sys.exit(c.main())"
LOAD = "import small_corpus, dagster_defs.definitions"


def test_other_settings_under_a_used_version_are_refused_when_the_location_loads(corpus_of):
    corpus = corpus_of()
    corpus.look()
    corpus.run("parsed_elements", "docs")
    corpus.run("chunk_sets", "fixed-20@1|docs")
    declared = {"recursive-20@1": {"kind": "recursive", "max_tokens": 20}}
    corpus.declare(chunkers={**declared, "fixed-20@1": {"kind": "fixed", "max_tokens": 21}})
    with pytest.raises(Exception, match=r"chunkers\.fixed-20@1 was first used with other settings"):
        corpus.load()
    corpus.declare(
        chunkers={
            **declared,
            "fixed-20@1": {"kind": "fixed", "max_tokens": 20},
            "fixed-20@2": {"kind": "fixed", "max_tokens": 21},
        }
    )
    corpus.load()
    assert "fixed-20@2" in corpus.config.chunker_versions
