"""What the tables, views and worked queries say."""

import re
from pathlib import Path

import duckdb
import polars as pl
import pytest

from evals.database import publish, table_columns, table_comment, table_names, view_names

ROOT = Path(__file__).parents[2]
QUERIES = sorted((ROOT / "sql" / "queries").glob("*.sql"))
GUIDE = (ROOT / "docs" / "analysts.md").read_text(encoding="utf-8")
GUIDE_SQL = re.findall(r"```sql\n(.*?)```", GUIDE, re.DOTALL)
GUIDE_PYTHON = re.findall(r"```python\n(.*?)```", GUIDE, re.DOTALL)


@pytest.fixture(params=["empty", "filled"])
def database(request):
    """Both states of the published file: a new project, and one in use."""
    workspace = request.getfixturevalue(request.param)
    with duckdb.connect(workspace.eval_database, read_only=True) as connection:
        yield connection


def test_every_table_view_and_column_says_what_it_is(database):
    silent = database.execute(
        """
        select table_name from duckdb_tables() where not internal and comment is null
        union all
        select view_name from duckdb_views() where not internal and comment is null
        union all
        select table_name || '.' || column_name from duckdb_columns()
        where not internal and coalesce(comment, '') = ''
        """
    ).fetchall()
    assert silent == []


@pytest.mark.parametrize("name", table_names())
def test_columns_read_from_the_text_are_those_of_the_database(database, name):
    described = database.execute(
        "select column_name, data_type, comment from duckdb_columns() "
        "where table_name = ? order by column_index",
        [name],
    ).fetchall()
    full_names = {"timestamptz": "timestamp with time zone"}
    assert [
        (c.name, full_names.get(c.type, c.type).upper(), c.comment) for c in table_columns(name)
    ] == described
    assert table_comment(name)


@pytest.mark.parametrize("name", table_names() + view_names())
def test_no_column_needs_quotes(database, name):
    for column in database.table(name).columns:
        database.execute(f"select t.{column}, {column} from {name} as t order by {column}")


@pytest.mark.parametrize("name", view_names())
def test_a_view_answers_on_an_empty_and_on_a_filled_database(database, name):
    assert database.table(name).columns == [
        row[0] for row in database.execute(f"describe {name}").fetchall()
    ]
    database.execute(f"select * from {name}").fetchall()


@pytest.mark.parametrize("name", view_names())
def test_a_view_has_rows_where_there_is_something_to_see(rows, name):
    assert rows(f"select * from {name}")


@pytest.mark.parametrize("query", QUERIES, ids=lambda file: file.stem)
def test_a_worked_query_says_its_question_and_answers_it(database, query):
    text = query.read_text(encoding="utf-8")
    assert re.match(r"-- [A-Z].*\?", text)
    database.execute(text).fetchall()


@pytest.mark.parametrize("query", QUERIES, ids=lambda file: file.stem)
def test_a_worked_query_has_rows_on_real_data(rows, query):
    assert rows(query.read_text(encoding="utf-8"))


def test_there_are_eight_worked_queries():
    assert len(QUERIES) == 8


@pytest.mark.parametrize("example", GUIDE_SQL)
def test_an_example_of_the_guide_runs(database, example):
    database.execute(example).fetchall()


def test_the_guide_shows_every_view_and_query():
    shown = "\n".join(GUIDE_SQL)
    assert [v for v in view_names() if not re.search(rf"\bfrom {v}\b", shown)] == []
    assert [q.name for q in QUERIES if q.name not in GUIDE] == []


def test_the_guides_python_runs(filled, monkeypatch):
    folder = filled.root.parent / "project"
    folder.mkdir()
    (folder / ".corpus").symlink_to(filled.root)
    monkeypatch.chdir(folder)
    assert GUIDE_PYTHON
    for example in GUIDE_PYTHON:
        exec(example, {})


def test_keywords_are_lower_case():
    texts = [*(ROOT / "sql").glob("*/*.sql")]
    shouting = re.compile(r"\b(SELECT|FROM|WHERE|JOIN|GROUP|ORDER|CREATE|COMMENT)\b")
    assert [f.name for f in texts if shouting.search(f.read_text(encoding="utf-8"))] == []


def test_leaderboard_averages_active_questions_and_marks_the_live_strategy(rows):
    board = {row["strategy"]: row for row in rows("select * from leaderboard")}
    assert list(board) == ["large", "small", "never-run"]
    small, large = board["small"], board["large"]
    assert (small["n_questions"], small["recall_at_5"], small["precision_at_5"]) == (2, 0.5, 0.2)
    assert (small["is_live"], large["is_live"]) == (True, False)
    assert (small["mean_context_tokens"], small["chunks"], small["mean_chunk_tokens"]) == (9, 3, 4)
    assert (large["recall_at_5"], large["recall_at_1000_tokens"]) == (0.75, 0.75)
    assert large["precision_at_5"] is None
    assert (small["verdict"], large["verdict"], large["p_best"]) == ("baseline", "cannot tell", 0.7)


def test_leaderboard_shows_bounds_and_never_a_zero_for_a_missing_judgement(rows):
    board = {row["strategy"]: row for row in rows("select * from leaderboard")}
    small, large = board["small"], board["large"]
    assert (small["faithfulness"], small["faithfulness_coverage"]) == (0.75, 2 / 3)
    assert (small["faithfulness_n_scored"], small["faithfulness_n_total"]) == (2, 3)
    assert (small["faithfulness_low"], small["faithfulness_high"]) == (0.5, 2.5 / 3)
    assert (large["faithfulness"], large["faithfulness_coverage"]) == (None, 0)
    assert (large["faithfulness_low"], large["faithfulness_high"]) == (0, 1)
    assert (small["context_recall"], small["context_recall_n_total"]) == (None, 0)


def test_leaderboard_marks_scores_of_settings_that_changed(rows):
    board = rows("select strategy, scores_are_current from leaderboard order by strategy")
    assert [row["scores_are_current"] for row in board] == [False, None, True]


def test_question_matrix_shows_what_was_not_scored_as_missing(rows):
    matrix = {(r["question_id"], r["strategy"]): r for r in rows("select * from question_matrix")}
    assert len(matrix) == 6
    assert matrix["q2", "small"]["value"] == 0
    assert matrix["q2", "never-run"]["value"] is None


def test_questions_lost_and_won_starts_with_the_worst_loss_and_quotes_once(rows):
    lost, won = rows("select * from questions_lost_and_won")
    assert (lost["change"], lost["question_id"], lost["difference"]) == ("lost", "q1", -0.5)
    assert (won["quotes"], won["documents"]) == (["ten days"], ["kb/b.md"])


def test_score_coverage_counts_every_status(rows):
    large, small = rows("select * from score_coverage")
    counts = ("n_total", "n_scored", "n_error", "n_not_applicable", "n_stale", "n_skipped")
    assert [small[c] for c in counts] == [3, 2, 1, 1, 0, 0]
    assert [large[c] for c in counts] == [1, 0, 0, 0, 0, 1]
    assert (small["n_judges"], large["n_judges"]) == (1, 0)


def test_chunk_health_measures_sizes_and_duplicates(rows):
    small, _ = rows("select * from chunk_health")
    assert small["chunker_version"] == "recursive-200@1"
    assert (small["chunks"], small["documents"], small["chunks_per_document"]) == (3, 2, 1.5)
    assert (small["mean_tokens"], small["median_tokens"], small["max_tokens"]) == (4, 4, 5)
    assert small["over_budget"] == 1
    assert small["duplicate_share"] == pytest.approx(1 / 3)


def test_document_status_names_the_error_the_cure_and_the_questions_hit(rows):
    (scan,) = rows("select * from document_status")
    assert (scan["doc_id"], scan["questions_affected"]) == ("kb/scan.pdf", 1)
    assert scan["error"] == "no reader for application/pdf"
    assert scan["cure"] == "Convert it to Markdown, or exclude it."


def test_stale_questions_shows_the_quote_to_correct(rows):
    (stale,) = rows("select * from stale_questions")
    assert (stale["question_id"], stale["file"]) == ("q3", "questions/en.yaml")
    assert (stale["quote"], stale["evidence_status"]) == ("no longer said", "missing_quote")


def test_live_history_ends_each_term_where_the_next_begins(rows):
    terms = rows("select * from live_history")
    assert [t["strategy"] for t in terms] == ["small", "large", "small"]
    assert [t["hours_live"] for t in terms] == [24, 24, None]
    assert terms[0]["live_until"] == terms[1]["live_from"]


def test_embedding_costs_add_up_per_chunker_version(rows):
    costs = {(c["chunker_version"], c["asset"]): c for c in rows("select * from embedding_costs")}
    cost = costs["recursive-200@1", "chunk_embeddings"]
    assert (cost["vectors_embedded"], cost["vectors_reused"], cost["hit_rate"]) == (3, 3, 0.5)
    assert (cost["tokens_embedded"], cost["seconds"], cost["builds"]) == (20, 3, 2)
    assert costs[None, "parsed_elements"]["hit_rate"] is None


def test_retrieval_by_language_and_tag_group_the_same_questions(rows):
    by_language = {
        (r["language"], r["strategy"]): r for r in rows("select * from retrieval_by_language")
    }
    assert by_language["en", "small"]["recall_at_5"] == 1
    assert by_language["pt", "small"]["recall_at_5"] == 0
    by_tag = {(r["tag"], r["strategy"]): r for r in rows("select * from retrieval_by_tag")}
    assert (by_tag["time", "small"]["n_questions"], by_tag["time", "small"]["recall_at_5"]) == (
        2,
        0.5,
    )
    assert by_tag["chargeback", "large"]["recall_at_5"] == 1


def test_missed_questions_shows_what_was_retrieved_instead(rows):
    missed = {(m["strategy"], m["question_id"]): m for m in rows("select * from missed_questions")}
    assert missed.keys() == {("small", "q2"), ("large", "q1")}
    wrong_document = missed["small", "q2"]
    assert wrong_document["wanted_quotes"] == ["ten days"]
    assert wrong_document["wanted_documents"] == ["kb/b.md"]
    assert wrong_document["retrieved_document"] == "kb/a.md"
    assert wrong_document["retrieved_text"] == "Refunds take five days."
    assert not wrong_document["is_wanted_document"]
    assert missed["large", "q1"]["is_wanted_document"]


def test_a_missed_question_without_results_is_still_missed(workspace, tables):
    for name in ("gold_questions", "gold_evidence", "retrieval_scores"):
        workspace.table(name).replace(tables[name])
    with duckdb.connect(publish(workspace).path, read_only=True) as connection:
        found = connection.execute("select question_id, rank from missed_questions").fetchall()
    assert ("q2", None) in found


def test_the_primary_metric_follows_the_comparison(workspace, tables):
    comparison = tables["strategy_comparisons"].with_columns(
        is_primary=pl.col("metric") == "precision@5"
    )
    workspace.table("strategy_comparisons").replace(comparison)
    workspace.table("gold_questions").replace(tables["gold_questions"])
    workspace.table("retrieval_scores").replace(tables["retrieval_scores"])
    published = publish(workspace)
    with duckdb.connect(published.path, read_only=True) as connection:
        values = connection.execute(
            "select question_id, primary_value from question_scores where strategy = 'small'"
        ).fetchall()
    assert dict(values) == {"q1": 0.4, "q2": 0.0}
