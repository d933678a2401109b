"""What the tables, views and worked queries say."""

import re
from pathlib import Path

import duckdb
import polars as pl
import pytest

from chunking_assets.live_index.strategy_cost import StrategyCost, strategy_costs_frame
from chunking_assets.prices import Money
from evals.database import publish, table_columns, table_comment, table_names, view_names
from evals.ragas_scores.metrics.registry import METRICS

ROOT = Path(__file__).parents[2]
QUERIES = sorted((ROOT / "sql" / "queries").glob("*.sql"))
GUIDE = (ROOT / "docs" / "analysts.md").read_text(encoding="utf-8")
GUIDE_SQL = re.findall(r"```sql\n(.*?)```", GUIDE, re.DOTALL)
GUIDE_PYTHON = re.findall(r"```python\n(.*?)```", GUIDE, re.DOTALL)


@pytest.fixture(params=["empty", "filled"], scope="module")
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
    columns = database.table(name).columns
    selected = ", ".join(f"t.{column}, {column}" for column in columns)
    database.execute(f"select {selected} from {name} as t order by {', '.join(columns)}")


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


def test_there_are_fifteen_worked_queries():
    assert len(QUERIES) == 15


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


def test_leaderboard_shows_what_a_strategy_costs_and_nothing_for_what_is_not_known(
    workspace, strategies
):
    costs = strategy_costs_frame(
        [
            StrategyCost("small", "i", "m", 3, 90, 10, Money(0.5, "EUR"), Money(0.1, "USD")),
            StrategyCost("large", "i", "m", 3, 90, 10, None, None),
        ]
    )
    file = publish(workspace, {"strategies": strategies, "strategy_costs": costs}).path
    columns = "reindex_cost, reindex_currency, storage_cost_per_month, storage_currency"
    with duckdb.connect(file, read_only=True) as connection:
        rows = connection.execute(f"select strategy, {columns} from leaderboard").fetchall()
    board = {strategy: shown for strategy, *shown in rows}
    assert board["small"] == [0.5, "EUR", 0.1, "USD"]
    assert board["large"] == board["never-run"] == [None] * 4


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


def test_where_a_judge_decides_the_views_follow_it(workspace, tables, strategies, ragas_scores):
    """Of an unanswerable question too, as comparisons do; what failed stays missing."""
    judged = [
        ("small", "q1", "ok", 1.0),
        ("small", "q4", "ok", 0.0),
        ("large", "q1", "ok", 0.25),
        ("large", "q2", "error", None),
        ("large", "q3", "ok", 1.0),  # its evidence is gone
    ]
    comparison = tables["strategy_comparisons"].with_columns(
        metric=pl.when("is_primary").then(pl.lit("faithfulness")).otherwise("metric")
    )
    workspace.table("strategy_comparisons").replace(comparison)
    workspace.table("ragas_scores").replace(ragas_scores(judged))
    for name in ("gold_questions", "retrieval_scores"):
        workspace.table(name).replace(tables[name])
    file = publish(workspace, {"strategies": strategies}).path
    with duckdb.connect(file, read_only=True) as connection:
        values = connection.execute(
            "select strategy, question_id, primary_value, recall_at_5 from question_scores"
        ).fetchall()
        board = connection.execute(
            "select strategy, n_questions, primary_mean from leaderboard where n_questions > 0"
        ).fetchall()
        frontier = connection.execute("select strategy from quality_frontier").fetchall()
        missing = connection.execute(
            "select affected from health where what = 'are missing for an active question'"
        ).fetchone()
    assert sorted(values) == [
        ("large", "q1", 0.25, 0.5),
        ("large", "q2", None, 1.0),
        ("small", "q1", 1.0, 1.0),
        ("small", "q2", None, 0.0),
        ("small", "q4", 0.0, None),
    ]
    assert board == [("small", 2, 0.5), ("large", 1, 0.25)]
    assert sorted(frontier) == [("large",), ("small",)]
    assert missing == (2,)  # those of the strategy that never ran: a judgement is no retrieval


def test_chunks_of_several_sizes_are_counted_apart(workspace, tables):
    sizes = tables["chunks"].with_columns(
        chunker_version=pl.lit("hierarchical-400@1"),
        level=pl.Series([0, 0, 0, 1]),
        searched=pl.Series([True, True, True, False]),
    )
    workspace.table("chunks").replace(sizes)
    with duckdb.connect(publish(workspace).path, read_only=True) as connection:
        found = connection.execute(
            "select level, searched, chunks, mean_tokens, duplicate_share from chunk_health"
        ).fetchall()
    assert found == [(0, True, 3, 4.0, pytest.approx(1 / 3)), (1, False, 1, 9.0, 0.0)]


def test_an_index_version_says_what_it_holds_and_whether_it_serves(rows):
    indexes = {i["index_version"]: i for i in rows("select * from index_versions")}
    small = indexes["recursive-200@1+e5-small"]
    assert (small["is_live"], small["is_declared"], small["strategies"]) == (True, True, ["small"])
    assert (small["chunks"], small["vectors"], small["documents"]) == (3, 2, 2)
    assert (small["tokens"], small["dimensions"], small["fingerprint"]) == (20, 384, "f1")
    assert indexes["markdown-400@1+e5-small"]["chunks"] == 0
    # Held, and asked for by nobody in the dimension.
    assert not indexes["recursive-400@1+e5-small"]["is_declared"]
    assert indexes["recursive-400@1+e5-small"]["longer_than_the_model_reads"] == 1


def test_a_run_adds_up_its_parts(workspace, tables):
    workspace.table("builds").replace(tables["builds"].with_columns(run_id=pl.lit("one")))
    with duckdb.connect(publish(workspace).path, read_only=True) as connection:
        (run,) = connection.sql("select * from runs").pl().to_dicts()
    assert (run["run_id"], run["parts"]) == ("one", 3)
    assert run["assets"] == ["chunk_embeddings", "parsed_elements"]
    assert (run["documents_added"], run["documents_changed"], run["documents_failed"]) == (5, 1, 1)
    assert (run["vectors_embedded"], run["tokens_embedded"], run["seconds"]) == (3, 20, 3.5)
    assert (run["finished_at"] - run["started_at"]).total_seconds() == 24 * 3600 + 2


def test_health_names_what_is_wrong_how_much_and_the_cure(rows):
    checks = {(c["subject"], c["what"]): c for c in rows("select * from health")}
    found = {key: (c["affected"], c["checked"]) for key, c in checks.items()}
    assert found["documents", "could not be read"] == (1, 3)
    assert found["questions", "have evidence that is no longer found"] == (1, 3)
    assert found["chunks", "are over the budget of their version"] == (1, 4)
    assert found["chunks", "repeat the text of another one of their version and size"] == (1, 4)
    assert found["index_versions", "lack a document that has a text"] == (2, 4)
    assert found["index_versions", "hold chunks longer than the model reads at once"] == (1, 4)
    assert found["scores", "are missing for an active question"] == (2, 6)
    assert found["scores", "are of settings that a strategy no longer has"] == (1, 2)
    assert found["scores", "show a chunk that has been replaced since"] == (1, 4)
    assert found["judgements", "failed"] == (1, 4)
    well = checks["live", "was promoted against the gate"]
    assert (well["affected"], well["severity"], well["cure"]) == (0, "ok", None)
    assert all(c["cure"] for c in checks.values() if c["affected"])


def test_nothing_is_checked_where_there_is_nothing(empty):
    with duckdb.connect(empty.eval_database, read_only=True) as connection:
        assert connection.execute("select * from health").fetchall() == []


def test_a_pair_is_seen_from_both_sides(workspace, tables):
    verdicts = pl.Series(["better", "baseline", "cannot tell"])
    compared = tables["strategy_comparisons"].with_columns(verdict=verdicts)
    for name in ("gold_questions", "retrieval_scores"):
        workspace.table(name).replace(tables[name])
    workspace.table("strategy_comparisons").replace(compared)
    with duckdb.connect(publish(workspace).path, read_only=True) as connection:
        large, small = connection.sql("select * from pairwise").pl().to_dicts()
    assert (large["strategy"], large["other"], large["n_questions"]) == ("large", "small", 2)
    assert (large["better_on"], large["worse_on"], large["equal_on"]) == (1, 1, 0)
    assert (large["difference"], small["difference"]) == (0.25, -0.25)
    assert (large["verdict"], small["verdict"]) == ("better", "worse")


def test_regressions_are_against_what_serves_and_what_served_before(rows):
    worse = {(r["strategy"], r["against"]): r for r in rows("select * from regressions")}
    assert worse.keys() == {("large", "small"), ("small", "large")}
    assert worse["large", "small"]["question_id"] == "q1"
    assert worse["large", "small"]["difference"] == -0.5
    assert worse["small", "large"]["question_id"] == "q2"
    assert worse["small", "large"]["quotes"] == ["ten days"]


def test_regressions_are_against_the_baseline_while_nothing_serves(workspace, tables, strategies):
    for name in ("gold_questions", "retrieval_scores", "strategy_comparisons"):
        workspace.table(name).replace(tables[name])
    file = publish(workspace, {"strategies": strategies}).path
    with duckdb.connect(file, read_only=True) as connection:
        found = connection.execute("select strategy, against, question_id from regressions")
        assert found.fetchall() == [("large", "small", "q1")]


def test_the_worst_document_comes_first_and_a_quote_twice_in_it_counts_once(rows):
    worst, other = rows("select * from worst_documents")
    assert (worst["doc_id"], worst["n_questions"], worst["mean"]) == ("kb/b.md", 1, 0.5)
    assert (worst["live_mean"], worst["best_strategy"], worst["best_mean"]) == (0, "large", 1)
    assert (other["doc_id"], other["mean"], other["live_mean"]) == ("kb/a.md", 0.75, 1)


def test_where_several_do_best_on_a_document_none_is_named(workspace, tables, strategies):
    for name in ("gold_questions", "gold_evidence"):
        workspace.table(name).replace(tables[name])
    alike = tables["retrieval_scores"].with_columns(value=pl.lit(0.0))
    workspace.table("retrieval_scores").replace(alike)
    file = publish(workspace, {"strategies": strategies}).path
    with duckdb.connect(file, read_only=True) as connection:
        found = connection.execute("select best_strategy, best_mean from worst_documents")
        assert found.fetchall() == [(None, 0.0), (None, 0.0)]


def test_a_strategy_that_another_beats_on_both_is_off_the_frontier(workspace, tables, strategies):
    scores = tables["retrieval_scores"].with_columns(
        value=pl.when((pl.col("strategy") == "large") & (pl.col("metric") == "context_tokens"))
        .then(7.0)
        .otherwise("value")
    )
    workspace.table("gold_questions").replace(tables["gold_questions"])
    workspace.table("retrieval_scores").replace(scores)
    file = publish(workspace, {"strategies": strategies}).path
    with duckdb.connect(file, read_only=True) as connection:
        found = connection.execute(
            "select strategy, is_on_frontier, beaten_by from quality_frontier"
        ).fetchall()
    assert found == [("large", True, None), ("small", False, ["large"])]


def test_what_is_read_for_the_frontier_ends_where_the_deciding_score_does(
    workspace, tables, strategies
):
    """The first five for recall@5; where a judge decides, what is handed on."""
    for name in ("gold_questions", "retrieval_scores", "strategy_comparisons", "ragas_scores"):
        workspace.table(name).replace(tables[name])

    def read():
        file = publish(workspace, {"strategies": strategies}).path
        with duckdb.connect(file, read_only=True) as connection:
            found = "select strategy, mean_context_tokens from quality_frontier"
            return dict(connection.execute(found).fetchall())

    assert read() == {"small": 9.0, "large": 12.0}
    judged = pl.when("is_primary").then(pl.lit("faithfulness")).otherwise("metric")
    comparisons = tables["strategy_comparisons"].with_columns(metric=judged)
    workspace.table("strategy_comparisons").replace(comparisons)
    assert read() == {"small": 6.0}


def test_a_strategy_no_longer_declared_is_history_and_no_fault(workspace, tables, strategies):
    for name in (
        "gold_questions", "gold_evidence", "retrieval_scores", "retrieved_chunks", "ragas_scores",
        "answers",
    ):  # fmt: skip
        workspace.table(name).replace(tables[name])

    def seen():
        left = strategies.filter(pl.col("strategy") == "large")
        with duckdb.connect(publish(workspace, {"strategies": left}).path, read_only=True) as found:
            yield {
                (subject, what): checked
                for subject, what, checked in found.execute(
                    "select subject, what, checked from health"
                ).fetchall()
            }
            yield found.execute("select strategy, is_declared from score_coverage").fetchall()
            yield found.execute("select best_strategy from worst_documents").fetchall()
            means = "select distinct strategy, is_declared from strategy_means order by strategy"
            yield found.execute(means).fetchall()

    checks, coverage, best, means = seen()
    assert checks["judgements", "were skipped"] == 1
    assert checks["answers", "failed"] == 1
    assert checks["scores", "show a chunk that has been replaced since"] == 2
    assert coverage == [("large", True), ("small", False)]
    assert {strategy for (strategy,) in best} == {"large"}
    assert means == [("large", True), ("small", False)]


def test_neither_the_better_nor_the_cheaper_is_off_the_frontier(rows):
    assert all(row["is_on_frontier"] for row in rows("select * from quality_frontier"))


def test_the_means_of_every_metric_have_one_shape(rows):
    means = {(m["strategy"], m["metric"]): m for m in rows("select * from strategy_means")}
    assert (means["small", "recall@5"]["mean"], means["small", "recall@5"]["n_scored"]) == (0.5, 2)
    judged = means["small", "faithfulness"]
    assert (judged["measured"], judged["mean"], judged["coverage"]) == ("judged", 0.75, 2 / 3)
    assert means["large", "faithfulness"]["mean"] is None


def test_the_history_of_a_metric_follows_the_promotions(rows):
    history = rows("select * from metric_history where metric = 'recall@5'")
    assert [h["strategy"] for h in history] == ["small", "large", "small"]
    assert [h["mean"] for h in history] == [0.5, 0.75, 0.5]
    assert [h["change"] for h in history] == [None, 0.25, -0.25]


def test_unanswered_are_questions_nobody_finds_or_every_model_abstains_on(
    workspace, tables, strategies
):
    workspace.table("gold_questions").replace(tables["gold_questions"])
    workspace.table("answers").replace(tables["answers"])
    nothing = pl.when(pl.col("question_id") == "q1").then(0.0).otherwise("value")
    workspace.table("retrieval_scores").replace(
        tables["retrieval_scores"].with_columns(value=nothing)
    )
    file = publish(workspace, {"strategies": strategies}).path
    with duckdb.connect(file, read_only=True) as connection:
        found = connection.execute(
            "select question_id, best_recall, n_answers, n_abstained from unanswered_questions"
        ).fetchall()
    assert found == [("q1", 0.0, 1, 0), ("q2", 1.0, 1, 1)]


def test_abstention_is_counted_where_it_was_right_and_where_it_was_not(workspace, tables):
    answers = tables["answers"].with_columns(
        question_id=pl.Series(["q1", "q4", "q1"]), strategy=pl.lit("small")
    )
    workspace.table("gold_questions").replace(tables["gold_questions"])
    workspace.table("answers").replace(answers)
    with duckdb.connect(publish(workspace).path, read_only=True) as connection:
        (outcome,) = connection.sql("select * from answer_outcomes").pl().to_dicts()
    assert (outcome["n_total"], outcome["n_answers"], outcome["n_error"]) == (3, 2, 1)
    assert (outcome["answered"], outcome["abstained_rightly"]) == (1, 1)
    assert (outcome["abstained_wrongly"], outcome["answered_the_unanswerable"]) == (0, 0)
    assert (outcome["abstention_rate"], outcome["with_wrong_citations"]) == (0.5, 1)
    assert outcome["with_flags"] == 1


def test_the_lineage_of_a_chunk_leads_to_bytes_elements_model_and_runs(rows):
    (chunk,) = rows("select * from chunk_lineage where chunk_id = 'c1'")
    assert (chunk["doc_id"], chunk["doc_rev"], chunk["parser"]) == ("kb/a.md", "r1", "markdown")
    assert (chunk["elements"], chunk["element_kinds"]) == ([0], ["paragraph"])
    assert (chunk["chunker_version"], chunk["embedding_model"]) == ("recursive-200@1", "e5-small")
    assert (chunk["parsed_by_run"], chunk["embedded_by_run"]) == ("r1", "r3")
    assert chunk["chunked_by_run"] is None
    assert (chunk["live_strategy"], chunk["vec_key"]) == ("small", "v1")


def test_leaderboard_has_every_judged_metric(rows):
    board = rows("select * from leaderboard")[0]
    for metric in METRICS:
        assert {metric, f"{metric}_coverage", f"{metric}_low", f"{metric}_high"} <= board.keys()
        assert f"'{metric}'" in (ROOT / "sql/views/leaderboard.sql").read_text(encoding="utf-8")
