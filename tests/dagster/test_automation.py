"""When Dagster redoes a partition by itself: never too late, never for nothing, never for ever."""

import dagster as dg
import pytest
import yaml

CELL = "recursive-20@1|docs"
CELLS_OF_DOCS = ["fixed-20@1|docs", "recursive-20@1|docs"]


def indexed(corpus):
    """The corpus up to its questions: enough to see what a changed document requests."""
    corpus.materialize("gold_questions")
    corpus.look()


def up_to_date(corpus, asset, key):
    return not corpus.module("inputs").is_out_of_date(corpus.config, corpus.workspace, asset, key)


def test_nothing_is_requested_before_there_is_a_shard(corpus):
    assert corpus.tick() == {}


def test_everything_is_built_once_and_then_nothing_is_requested(corpus):
    requested = corpus.converge()
    assert set(requested.values()) == {1}
    assert len(requested) == 2 + 4 + 4 + 1 + 2 + 2 + 1 + 1 + 1
    assert [corpus.tick() for _ in range(3)] == [{}, {}, {}]
    assert set(corpus.materialize().values()) == {0}


def test_a_changed_document_requests_its_shard_and_the_cells_of_its_shard(corpus):
    indexed(corpus)
    corpus.tick()
    corpus.write("docs/0.md", "An edit.")
    corpus.look()
    due = corpus.tick()
    assert due["parsed_elements"] == ["docs"]
    assert "chunk_sets" not in due
    corpus.run("parsed_elements", "docs")
    due = corpus.tick()
    assert due["chunk_sets"] == CELLS_OF_DOCS
    assert "chunk_embeddings" not in due
    corpus.run("chunk_sets", *CELLS_OF_DOCS)
    assert corpus.tick()["chunk_embeddings"] == CELLS_OF_DOCS


def test_an_edit_that_leaves_text_and_elements_as_they_were_stops_at_parsing(corpus):
    indexed(corpus)
    corpus.tick()
    corpus.write(
        "docs/0.md", "\ufeff" + (corpus.root / "docs/0.md").read_text()
    )  # a byte order mark
    corpus.look()
    assert corpus.tick()["parsed_elements"] == ["docs"]
    corpus.run("parsed_elements", "docs")
    assert not {"chunk_sets", "gold_questions"} & corpus.tick().keys()
    assert up_to_date(corpus, "chunk_sets", CELL)


@pytest.mark.parametrize("order", ["down, then up", "up, then stale down"])
def test_an_update_between_two_looks_is_not_lost(corpus, order):
    corpus.materialize("chunk_embeddings")
    corpus.look()
    corpus.tick()
    stale = corpus.module("inputs").wanted(corpus.config, corpus.workspace, "chunk_sets", CELL)
    if order == "down, then up":
        corpus.run("chunk_sets", CELL)
    corpus.write("docs/0.md", "An edit.")
    corpus.look()
    corpus.run("parsed_elements", "docs")
    if order == "up, then stale down":  # a build that had read the old text lands last
        corpus.workspace.stamps.write("chunk_sets", stale, CELL)
        corpus.instance.report_runless_asset_event(
            dg.AssetMaterialization("chunk_sets", partition=CELL)
        )
    assert CELL in corpus.tick()["chunk_sets"]
    corpus.run("chunk_sets", *CELLS_OF_DOCS)
    assert up_to_date(corpus, "chunk_sets", CELL)
    due = corpus.tick()
    assert "chunk_sets" not in due
    assert CELL in due["chunk_embeddings"]


def test_what_fails_is_tried_once_and_again_when_an_input_changes(corpus):
    indexed(corpus)
    for n in range(2):
        (corpus.root / f"docs/{n}.md").unlink()  # refused: most of the shard is gone
    corpus.look()
    tries = []
    for _ in range(3):
        due = corpus.tick()
        tries.append(due.get("parsed_elements", []))
        if tries[-1]:
            corpus.run("parsed_elements", *tries[-1])
    assert tries == [["docs"], [], []]
    corpus.write("docs/0.md", "Here again.")
    corpus.look()
    assert corpus.tick()["parsed_elements"] == ["docs"]
    assert corpus.run("parsed_elements", "docs")[0].success


def test_an_input_that_changes_while_a_build_fails_is_not_lost(corpus):
    indexed(corpus)
    for n in range(2):
        (corpus.root / f"docs/{n}.md").unlink()
    corpus.look()
    assert corpus.tick()["parsed_elements"] == ["docs"]
    corpus.run("parsed_elements", "docs")  # fails, and before the next look at it:
    corpus.write("docs/0.md", "Here again.")
    corpus.look()
    assert corpus.tick()["parsed_elements"] == ["docs"]


def test_a_mended_file_of_questions_is_tried_again(corpus):
    corpus.look()
    corpus.run("parsed_elements", "docs", "notes")
    right = (corpus.root / "questions.yaml").read_text()
    corpus.write("questions.yaml", "questions: [{id: one}]")
    assert "gold_questions" in corpus.tick()
    (failed,) = corpus.run("gold_questions")
    assert not failed.success
    assert "gold_questions" not in corpus.tick()
    corpus.write("questions.yaml", right)
    assert "gold_questions" in corpus.tick()


def test_a_new_strategy_requests_the_scores_of_its_version_only(corpus):
    corpus.materialize()
    corpus.look()
    strategies = yaml.safe_load((corpus.root / "corpus.yaml").read_text())["strategies"]
    added = {"chunker": "fixed-20@1", "model": "hash", "profile": "hybrid"}
    corpus.declare(strategies={**strategies, "fixed-hybrid": added})
    corpus.load()
    assert corpus.tick() == {"retrieval_scores": ["fixed-20@1"], "eval_tables": [""]}
    corpus.run("retrieval_scores", "fixed-20@1")
    due = corpus.tick()
    assert (due["ragas_scores"], due["strategy_comparison"]) == (["fixed-20@1"], [""])
    assert not {"chunk_sets", "chunk_embeddings", "retrieval_scores"} & due.keys()


def test_a_new_version_requests_its_own_cells_only(corpus):
    indexed(corpus)
    chunkers = yaml.safe_load((corpus.root / "corpus.yaml").read_text())["chunkers"]
    corpus.declare(chunkers={**chunkers, "fixed-40@1": {"kind": "fixed", "max_tokens": 40}})
    corpus.load()
    corpus.look()
    assert corpus.tick()["chunk_sets"] == ["fixed-40@1|docs", "fixed-40@1|notes"]


def test_a_promotion_requests_the_comparison_and_then_the_published_tables(corpus):
    corpus.materialize()
    corpus.look()
    corpus.defs.resolve_job_def("promote").execute_in_process(
        instance=corpus.instance,
        run_config={"ops": {"promote_strategy": {"config": {"strategy": "recursive"}}}},
    )
    assert set(corpus.tick()) == {"strategy_comparison"}
    corpus.run("strategy_comparison")
    assert set(corpus.tick()) == {"eval_tables", "report"}


def test_nothing_is_scored_while_the_index_and_the_questions_are_of_different_texts(corpus):
    corpus.materialize("retrieval_scores")
    corpus.look()
    corpus.tick()
    corpus.write("docs/0.md", "First of all. " + (corpus.root / "docs/0.md").read_text())
    corpus.look()
    corpus.run("parsed_elements", "docs")
    corpus.run("gold_questions")  # every quote of the document has moved
    assert "retrieval_scores" not in corpus.tick()
    corpus.run("chunk_sets", *CELLS_OF_DOCS)
    assert "retrieval_scores" not in corpus.tick()
    corpus.run("chunk_embeddings", *CELLS_OF_DOCS)
    assert corpus.tick()["retrieval_scores"] == ["fixed-20@1", "recursive-20@1"]
