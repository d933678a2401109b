"""What Dagster loads: complete, light, and refused with one clear line when corpus.yaml is wrong."""

import os
import subprocess
import sys
from pathlib import Path

import dagster as dg
import pytest

REPOSITORY = Path(__file__).parents[2]
HEAVY = ("ragas", "openai", "lancedb", "lance", "pandas", "onnxruntime", "onnx", "duckdb", "ray")


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


def test_groups_are_listed_in_the_order_data_flows(corpus):
    groups = {key: corpus.graph.get(key).group_name for key in corpus.graph.get_all_asset_keys()}
    assert {*groups.values()} == {
        "1_documents", "2_chunks", "3_index", "4_evaluation", "5_verdict",
    }  # fmt: skip
    for key, group in groups.items():
        assert all(groups[parent] <= group for parent in corpus.graph.get(key).parent_keys)


def test_owners_are_those_of_the_configuration(corpus_of):
    corpus = corpus_of(owners=["team:search", "ada@example.com"])
    for key in corpus.graph.get_all_asset_keys():
        assert set(corpus.graph.get(key).owners) == {"team:search", "ada@example.com"}


@pytest.mark.parametrize("url", [None, "https://example.com/acme/corpus/blob/main"])
def test_every_page_leads_to_its_code_and_to_what_to_read(corpus_of, monkeypatch, url):
    if url:
        monkeypatch.setenv("CORPUS_SOURCE_URL", url)
    corpus = corpus_of()
    for key in corpus.graph.get_all_asset_keys():
        metadata = corpus.graph.get(key).metadata
        (code,) = metadata["dagster/code_references"].code_references
        for place in (code.url if url else code.file_path, metadata["read"].value):
            path = place.removeprefix(url or str(REPOSITORY)).lstrip("/")
            assert place.startswith(url or str(REPOSITORY))
            assert (REPOSITORY / path).is_file(), key
        assert corpus.graph.get(key).tags["layer"] in ("corpus", "measurement")


def test_column_lineage_names_columns_that_are_there_and_leads_from_chunk_to_document(corpus):
    columns = {
        key.to_user_string(): {
            column.name
            for column in corpus.graph.get(key).metadata["dagster/column_schema"].columns
        }
        for key in corpus.graph.get_all_asset_keys()
    }
    made_from = {}
    for key in corpus.graph.get_all_asset_keys():
        lineage = corpus.graph.get(key).metadata.get("dagster/column_lineage")
        for column, sources in lineage.deps_by_column.items() if lineage else ():
            assert column in columns[key.to_user_string()]
            assert {*(s.asset_key for s in sources)} <= corpus.graph.get(key).parent_keys
            assert all(s.column_name in columns[s.asset_key.to_user_string()] for s in sources)
            made_from[key.to_user_string(), column] = {
                (s.asset_key.to_user_string(), s.column_name) for s in sources
            }
    elements = made_from["chunk_sets", "start_char"]
    assert elements == {("parsed_elements", "elements.start_char")}
    assert made_from[elements.pop()] == {("raw_documents", "doc_rev")}
    assert made_from["chunk_embeddings", "chunk_id"] == {("chunk_sets", "chunk_id")}


def test_every_check_and_sensor_and_schedule_is_described(corpus):
    repository = corpus.defs.get_repository_def()
    automations = [*repository.sensor_defs, *repository.schedule_defs]
    assert {a.name for a in automations} == {
        "watch_documents", "keep_index_current", "nightly_evaluation", "watch_freshness",
        "alert_on_failed_checks", "weekly_maintenance", "embedding_jobs", "nightly_retry",
    }  # fmt: skip
    assert all(a.description for a in automations)
    checks = [corpus.graph.get(key) for key in corpus.graph.asset_check_keys]
    assert {c.key.name for c in checks if c.blocking} == {
        "spans_exact", "index_reconciled", "documents_indexed",
    }  # fmt: skip
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
