"""Publishing: whole or not at all, in nobody's way, readable by older clients."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import duckdb
import polars as pl
import pytest
from small_corpus import DIMENSIONS, SmallCorpus, write_corpus

from chunking_assets.config import load
from chunking_assets.errors import CorpusError
from chunking_assets.workspace import Workspace
from evals import database
from evals.database import index_rows, publish, strategy_rows, table_columns

ROOT = Path(__file__).parents[2]


def scores(generation: int, rows: int = 1000) -> pl.DataFrame:
    """Retrieval scores that all say in which generation they were written."""
    return pl.DataFrame(
        {
            "strategy": ["small"] * rows,
            "strategy_digest": ["s1"] * rows,
            "question_id": [f"q{n}" for n in range(rows)],
            "metric": ["recall"] * rows,
            "cutoff": ["5"] * rows,
            "value": [float(generation)] * rows,
        }
    )


def write(workspace: Workspace, generation: int) -> None:
    workspace.table("retrieval_scores").replace(scores(generation), version=str(generation))


def generations(file: Path) -> list[tuple[float, int]]:
    with duckdb.connect(file, read_only=True) as connection:
        return connection.execute(
            "select value, count(*) from retrieval_scores group by value"
        ).fetchall()


def builds(workspace: Workspace) -> list[str]:
    return sorted(os.listdir(workspace.eval_database.parent / "builds"))


def run_python(code: str, *arguments: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", code, *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )


def test_rows_are_counted_and_every_partition_is_there(filled):
    published = publish(filled, {"strategies": pl.read_parquet(_dumped_strategies(filled))})
    assert published.rows["chunks"] == 4
    assert published.rows["strategies"] == 3
    with duckdb.connect(published.path, read_only=True) as connection:
        counted = {
            table: connection.execute(f"select count(*) from {table}").fetchone()[0]
            for table in published.rows
        }
    assert counted == published.rows


def _dumped_strategies(workspace: Workspace) -> Path:
    """The published strategies as a frame again, so that publishing them changes nothing."""
    file = workspace.root / "strategies.parquet"
    with duckdb.connect(workspace.eval_database, read_only=True) as connection:
        connection.table("strategies").pl().write_parquet(file)
    return file


def test_equal_inputs_make_no_new_build(workspace, strategies):
    write(workspace, 1)
    first = publish(workspace, {"strategies": strategies})
    second = publish(workspace, {"strategies": strategies.clone()})
    assert (first.is_new, second.is_new) == (True, False)
    assert (second.build, second.inputs, second.rows) == (first.build, first.inputs, first.rows)
    assert builds(workspace) == [first.build.name]


@pytest.mark.parametrize("changed", ["table", "dimension", "sql"])
def test_any_changed_input_makes_a_new_build(workspace, strategies, monkeypatch, changed):
    write(workspace, 1)
    publish(workspace, {"strategies": strategies})
    if changed == "table":
        write(workspace, 2)
    if changed == "dimension":
        strategies = strategies.with_columns(k=pl.lit(7))
    if changed == "sql":
        views = {**database._statements("views"), "new_view": "create view new_view as select 1"}
        texts = {"tables": database._statements("tables"), "views": views}
        monkeypatch.setattr(database, "_statements", texts.__getitem__)
    assert publish(workspace, {"strategies": strategies}).is_new


def test_rows_written_without_a_version_are_published_all_the_same(workspace):
    workspace.table("retrieval_scores").replace(scores(1))
    publish(workspace)
    workspace.table("retrieval_scores").replace(scores(2))
    assert generations(publish(workspace).path) == [(2.0, 1000)]


def test_a_lost_build_is_made_again(workspace):
    published = publish(workspace)
    published.path.resolve().unlink()
    assert publish(workspace).is_new
    assert publish(workspace).path.exists()


def test_files_that_no_manifest_names_are_not_published(workspace):
    write(workspace, 1)
    stray = workspace.root / "tables" / "retrieval_scores" / "all" / "stray.parquet"
    scores(9).write_parquet(stray)
    assert generations(publish(workspace).path) == [(1.0, 1000)]


def test_partitions_written_before_a_column_existed_get_nulls(workspace):
    table = workspace.table("retrieved_chunks")
    hit = {
        "strategy": "small",
        "question_id": "q1",
        "rank": 1,
        "chunk_id": "c",
        "doc_id": "d",
        "start": 0,
        "end": 9,
        "n_tokens": 3,
        "score": 0.5,
        "vector_score": 0.5,
    }
    table.replace(pl.DataFrame([hit]), "old")
    table.replace(pl.DataFrame([{**hit, "bm25_score": 2.0}]), "new")
    with duckdb.connect(publish(workspace).path, read_only=True) as connection:
        found = connection.execute("select bm25_score from retrieved_chunks").fetchall()
    assert sorted(found, key=str) == [(2.0,), (None,)]


def test_a_column_of_nothing_but_nulls_is_published(workspace):
    write(workspace, 1)
    nothing = scores(1).with_columns(value=pl.lit(None), strategy_digest=pl.lit("s"))
    workspace.table("retrieval_scores").replace(nothing, "other", version="1")
    assert sorted(generations(publish(workspace).path), key=str) == [(1.0, 1000), (None, 1000)]


@pytest.mark.parametrize("folder", ["it's here", "a [b] *c {d}", "ação"])
def test_the_workspace_may_have_any_name(tmp_path, strategies, folder):
    workspace = Workspace(tmp_path / folder)
    write(workspace, 1)
    workspace.table("chunks").replace(_one_chunk(), "recursive-400@1|kb/ü%")
    published = publish(workspace, {"strategies": strategies})
    assert published.rows["chunks"] == 1
    assert generations(published.path) == [(1.0, 1000)]


def _one_chunk() -> pl.DataFrame:
    return pl.DataFrame(
        [
            {
                "chunker_version": "recursive-400@1",
                "chunk_id": "c",
                "doc_id": "kb/ü",
                "ordinal": 0,
                "start": 0,
                "end": 1,
                "text": "x\0y",
                "prefix": "",
                "cleaned": None,
                "n_tokens": 1,
                "n_chars": 3,
                "heading_path": [],
                "level": 0,
                "parent_id": None,
                "searched": True,
                "budget": 400,
                "over_budget": False,
                "remark": None,
                "text_sha": "t",
                "chunkset_key": "k",
            }
        ]
    )


@pytest.mark.parametrize(
    ("status", "value"), [("ok", None), ("error", 0.0), ("ok", float("nan")), ("ok", 2.0)]
)
def test_a_judgement_that_hides_what_is_missing_is_refused(workspace, ragas_scores, status, value):
    write(workspace, 1)
    publish(workspace)
    workspace.table("ragas_scores").replace(ragas_scores([("small", "q1", status, value)]))
    with pytest.raises(CorpusError, match="table ragas_scores cannot be published: Constraint"):
        publish(workspace)
    assert generations(workspace.eval_database) == [(1.0, 1000)]


@pytest.mark.parametrize("status", ["error", "not_applicable", "stale", "skipped"])
def test_a_judgement_that_failed_is_a_row_without_a_value(workspace, ragas_scores, status):
    workspace.table("ragas_scores").replace(ragas_scores([("small", "q1", status, None)]))
    assert publish(workspace).rows["ragas_scores"] == 1


def test_a_status_nobody_declared_is_refused(workspace, ragas_scores):
    workspace.table("ragas_scores").replace(ragas_scores([("small", "q1", "failed", None)]))
    with pytest.raises(CorpusError, match="ragas_scores"):
        publish(workspace)


def test_a_metric_with_its_cutoff_in_the_name_is_refused(workspace):
    workspace.table("retrieval_scores").replace(scores(1).with_columns(metric=pl.lit("recall@5")))
    with pytest.raises(CorpusError, match="table retrieval_scores"):
        publish(workspace)


def test_a_missing_column_is_named_with_the_table_and_where_columns_are_declared(workspace):
    workspace.table("retrieval_scores").replace(scores(1).drop("cutoff"))
    with pytest.raises(CorpusError, match=r"retrieval_scores .*cutoff.*sql/tables/retrieval_"):
        publish(workspace)


def test_a_manifest_that_promises_other_rows_is_refused(workspace):
    write(workspace, 1)
    file = workspace.root / "tables" / "retrieval_scores" / "all" / "_manifest.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "rows": 7}))
    with pytest.raises(CorpusError, match=r"table retrieval_scores: .*1000"):
        publish(workspace)
    assert not workspace.eval_database.exists()
    assert builds(workspace) == []


def test_an_unknown_dimension_is_refused(workspace, strategies):
    with pytest.raises(CorpusError, match="no table is called strategys"):
        publish(workspace, {"strategys": strategies})


def test_an_error_leaves_the_served_build_and_no_other_file(workspace):
    write(workspace, 1)
    published = publish(workspace)
    workspace.table("retrieval_scores").replace(scores(2).drop("cutoff"))
    with pytest.raises(CorpusError):
        publish(workspace)
    assert builds(workspace) == [published.build.name]


def test_a_view_that_fails_on_the_rows_there_are_is_not_served(workspace, monkeypatch):
    """Bound it would pass: only a row shows that a metric is no number."""
    text = "create view fragile as\nselect metric::bigint as n from retrieval_scores;"
    with_one = {**database._statements("views"), "fragile": text}
    texts = {"tables": database._statements("tables"), "views": with_one}
    monkeypatch.setattr(database, "_statements", texts.__getitem__)
    empty = publish(workspace)
    write(workspace, 1)
    with pytest.raises(CorpusError, match=r"sql/views/fragile\.sql fails .*Conversion Error"):
        publish(workspace)
    assert builds(workspace) == [empty.build.name]


READER = """
import collections, json, select, sys
import duckdb
file, seen = sys.argv[1], collections.Counter()
while True:
    last = bool(select.select([sys.stdin], [], [], 0)[0])
    try:
        with duckdb.connect(file, read_only=True) as connection:
            twice = [
                connection.execute(
                    "select value, count(*), (select max(k) from strategies) "
                    "from retrieval_scores group by value"
                ).fetchall()
                for _ in range(2)
            ]
        (value, rows, k), = twice[0]
        whole = twice[0] == twice[1] and rows == 1000 and k == value
        seen[f"generation {value:.0f}" if whole else f"torn {twice}"] += 1
    except Exception as error:
        seen[f"error {error!r}"] += 1
    if sum(seen.values()) == 1:
        print("reading", flush=True)
    if last:
        break
print(json.dumps(seen), flush=True)
"""


def test_reading_during_twenty_publications_sees_whole_builds_and_no_error(workspace, strategies):
    def publish_generation(number: int) -> None:
        write(workspace, number)
        publish(workspace, {"strategies": strategies.with_columns(k=pl.lit(number))})

    publish_generation(0)
    reader = run_python(READER, workspace.eval_database)
    assert reader.stdout.readline() == "reading\n"
    for number in range(1, 21):
        publish_generation(number)
    seen = json.loads(reader.communicate("stop\n")[0])
    assert [key for key in seen if not key.startswith("generation")] == []
    assert {"generation 0", "generation 20"} <= seen.keys()


PAUSED_PUBLICATION = """
import signal, sys
from pathlib import Path
from chunking_assets.workspace import Workspace
from evals import database

def pause(*arguments):
    print("there", flush=True)
    signal.pause()

setattr(database, sys.argv[2], pause)
database.publish(Workspace(Path(sys.argv[1])))
"""


@pytest.mark.parametrize(
    ("killed_before", "served"),
    [("_fill", 1), ("_verify", 1), ("_flush", 1), ("_serve", 1), ("_drop_old_builds", 2)],
)
def test_a_killed_publication_leaves_a_whole_file_served(workspace, killed_before, served):
    write(workspace, 1)
    publish(workspace)
    write(workspace, 2)
    process = run_python(PAUSED_PUBLICATION, workspace.root, killed_before)
    assert process.stdout.readline() == "there\n"
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert generations(workspace.eval_database) == [(float(served), 1000)]
    assert generations(publish(workspace).path) == [(2.0, 1000)]
    left = [*builds(workspace), *os.listdir(workspace.eval_database.parent)]
    assert [name for name in left if name.startswith(".")] == []


def test_an_open_connection_keeps_its_content_and_blocks_nobody(workspace):
    write(workspace, 1)
    file = publish(workspace).path
    question = "select value, count(*) from retrieval_scores group by value"
    with duckdb.connect(file, read_only=True) as analyst:
        analyst.execute("select 1").fetchall()
        for number in range(2, 2 + database.KEPT_BUILDS + 1):
            write(workspace, number)
            assert publish(workspace).is_new
        assert analyst.execute(question).fetchall() == [(1.0, 1000)]
        assert generations(file) == [(float(number), 1000)]


def test_the_last_three_builds_are_kept(workspace):
    made = []
    for number in range(5):
        write(workspace, number)
        made.append(publish(workspace).build)
    assert builds(workspace) == [build.name for build in made[-3:]]
    assert generations(made[-2]) == [(3.0, 1000)]


def test_the_served_build_is_kept_when_the_clock_went_back(workspace):
    folder = workspace.eval_database.parent / "builds"
    folder.mkdir(parents=True)
    for year in (2097, 2098, 2099):
        (folder / f"evals-{year}0101T000000000000Z-x.duckdb").touch()
    write(workspace, 1)
    published = publish(workspace)
    assert generations(published.path) == [(1.0, 1000)]
    assert len(builds(workspace)) == 3


def test_a_log_left_beside_a_build_harms_no_later_one(workspace):
    """Somebody with the rights to opened the file for writing, and was killed."""
    write(workspace, 1)
    file = publish(workspace).path
    served = file.resolve()
    served.chmod(0o644)
    analyst = run_python(
        "import duckdb, os, signal, sys\n"
        "connection = duckdb.connect(sys.argv[1])\n"
        "connection.execute('create table mine as select 1 as one')\n"
        "os.kill(os.getpid(), signal.SIGKILL)",
        file,
    )
    analyst.communicate()
    assert served.with_name(f"{served.name}.wal").exists()
    for number in range(2, 2 + database.KEPT_BUILDS):
        write(workspace, number)
        publish(workspace)
        assert generations(file) == [(float(number), 1000)]
    assert [name for name in builds(workspace) if name.endswith(".wal")] == []


def test_the_file_is_written_for_clients_of_the_declared_release(workspace):
    file = publish(workspace).path
    with duckdb.connect(file, read_only=True) as connection:
        (tags,) = connection.execute(
            "select tags from duckdb_databases() where not internal"
        ).fetchone()
    assert tags["storage_version"].startswith(database.STORAGE_VERSION)


def test_the_file_is_read_only_and_the_link_relative(workspace):
    """A relative link still leads to its build when the workspace is moved."""
    published = publish(workspace)
    assert published.path.resolve().stat().st_mode & 0o777 == 0o444
    assert published.path.readlink() == Path("builds") / published.build.name


def test_the_build_names_itself(workspace):
    published = publish(workspace)
    with duckdb.connect(published.path, read_only=True) as connection:
        assert connection.execute("select build, inputs from _build").fetchall() == [
            (published.build.stem, published.inputs)
        ]


def test_column_schemas_are_read_without_loading_duckdb():
    code = (
        "import sys\nfrom evals.database import table_columns\n"
        "print(len(table_columns('chunks')), 'duckdb' in sys.modules)"
    )
    assert run_python(code).communicate()[0] == "20 False\n"


def test_strategy_rows_have_the_declared_columns_even_without_strategies():
    assert strategy_rows([]).columns == [c.name for c in table_columns("strategies")]
    assert strategy_rows([]).height == 0


def test_a_question_declared_twice_is_refused_by_name(workspace, tables):
    twice = pl.concat([tables["gold_questions"], tables["gold_questions"]])
    workspace.table("gold_questions").replace(twice)
    with pytest.raises(CorpusError, match="table gold_questions cannot be published: Constraint"):
        publish(workspace)


def test_strategy_rows_say_what_corpus_yaml_declares(workspace):
    config = load(ROOT / "corpus.yaml")
    rows = strategy_rows(config.strategies.values())
    assert rows["strategy"].to_list() == list(config.strategies)
    assert rows["strategy_digest"].to_list() == [s.digest for s in config.strategies.values()]
    published = publish(workspace, {"strategies": rows})
    with duckdb.connect(published.path, read_only=True) as connection:
        declared = connection.execute(
            "select count(*) from strategies where (settings->>'$.profile.k')::bigint = k"
        ).fetchone()
    assert declared == (len(config.strategies),)


def test_a_declared_index_is_described_before_and_after_it_is_built(tmp_path):
    corpus = SmallCorpus(write_corpus(tmp_path, {"a.md": "# One\n\nTwo words.\n"}))
    indexes = corpus.config.index_versions.values()
    before = index_rows(corpus.workspace, indexes)
    assert before["index_version"].to_list() == [index.name for index in indexes]
    assert before["dimensions"].to_list() == [None, None]
    corpus.update()
    after = index_rows(corpus.workspace, indexes)
    assert after["dimensions"].to_list() == [DIMENSIONS, DIMENSIONS]
    assert after["fingerprint"].n_unique() == 1
    assert after["fingerprint"].null_count() == 0
    assert publish(corpus.workspace, {"declared_indexes": after}).rows["declared_indexes"] == 2
