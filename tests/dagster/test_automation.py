"""When Dagster redoes a partition by itself: never too late, never for nothing, never for ever."""

import os
from pathlib import Path

import dagster as dg
import polars as pl
import pytest
import yaml

from chunking_assets.embedding_models.registry import MODELS

CELL = "recursive-20@1|docs"
CELLS_OF_DOCS = ["fixed-20@1|docs", "recursive-20@1|docs"]


@pytest.fixture
def indexed(built_until):
    """The corpus up to its questions: enough to see what a changed document requests."""
    corpus = built_until("gold_questions")
    corpus.look()
    return corpus


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


def test_a_changed_document_requests_its_shard_and_the_cells_of_its_shard(indexed):
    corpus = indexed
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


def test_an_edit_that_leaves_text_and_elements_as_they_were_stops_at_parsing(indexed):
    corpus = indexed
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
def test_an_update_between_two_looks_is_not_lost(built_until, order):
    corpus = built_until("chunk_embeddings")
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


def test_what_fails_is_tried_once_and_again_when_an_input_changes(indexed):
    corpus = indexed
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


def test_an_input_that_changes_while_a_build_fails_is_not_lost(indexed):
    corpus = indexed
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


def test_a_new_strategy_requests_the_scores_of_its_version_only(built_until):
    corpus = built_until("report")
    corpus.look()
    strategies = yaml.safe_load((corpus.root / "corpus.yaml").read_text())["strategies"]
    added = {"chunker": "fixed-20@1", "model": "hash", "profile": "hybrid"}
    corpus.declare(strategies={**strategies, "fixed-hybrid": added})
    corpus.load()
    assert corpus.tick() == {"retrieval_scores": ["fixed-20@1"], "eval_tables": [""]}
    corpus.run("retrieval_scores", "fixed-20@1")
    due = corpus.tick()
    assert due["ragas_scores"] == ["fixed-20@1"]
    corpus.run("ragas_scores", "fixed-20@1")
    assert "strategy_comparison" in corpus.tick()
    assert not {"chunk_sets", "chunk_embeddings", "retrieval_scores"} & due.keys()


def test_a_new_version_requests_its_own_cells_only(indexed):
    corpus = indexed
    chunkers = yaml.safe_load((corpus.root / "corpus.yaml").read_text())["chunkers"]
    corpus.declare(chunkers={**chunkers, "fixed-40@1": {"kind": "fixed", "max_tokens": 40}})
    corpus.load()
    corpus.look()
    assert corpus.tick()["chunk_sets"] == ["fixed-40@1|docs", "fixed-40@1|notes"]


def test_a_promotion_requests_the_comparison_and_then_the_published_tables(built_until):
    corpus = built_until("report")
    corpus.look()
    corpus.defs.resolve_job_def("promote").execute_in_process(
        instance=corpus.instance,
        run_config={"ops": {"promote_strategy": {"config": {"strategy": "recursive"}}}},
    )
    assert set(corpus.tick()) == {"strategy_comparison"}
    corpus.run("strategy_comparison")
    assert set(corpus.tick()) == {"eval_tables", "report"}


def test_nothing_is_scored_while_the_index_and_the_questions_are_of_different_texts(built_until):
    corpus = built_until("retrieval_scores")
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


def test_many_changed_cells_that_lie_apart_become_a_few_runs(corpus_of, monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda _: None)  # hundreds of files that need not last
    corpus = versions_by_shards(corpus_of, versions=6, shards=30)
    apart = {key for key in corpus.cells if int(key[-2:]) % 2}
    for key in apart:
        corpus.workspace.stamps.write("chunk_sets", "of other texts", key)
    requested = set(corpus.tick()["chunk_sets"])
    assert len(apart) == 90
    assert len(corpus.requests("chunk_sets", *apart)) == 90  # what Dagster would make of them
    assert apart < requested
    assert len(corpus.requests("chunk_sets", *requested)) == 6


def test_what_is_not_known_to_be_good_is_not_run_along_with_what_is_due(corpus_of):
    corpus = versions_by_shards(corpus_of, versions=1, shards=60)
    (version,) = corpus.config.chunker_versions
    unsound, unparsed = f"{version}|docs-30", f"{version}|docs-10"
    for key in corpus.cells:
        if int(key[-2:]) % 2:
            corpus.workspace.stamps.write("chunk_sets", "of other texts", key)
    corpus.workspace.stamps.write("chunk_sets", corpus.module("inputs").UNSOUND, unsound)
    corpus.workspace.table("documents").remove("docs-10")
    assert unsound in corpus.tick()["chunk_sets"]  # tried once
    requested = corpus.tick()["chunk_sets"]
    assert {*requested} == {*corpus.cells[1:]} - {unsound, unparsed}


def versions_by_shards(corpus_of, versions, shards):
    """A corpus whose shards are parsed and chunked, as far as manifests and stamps say."""
    collection = {"docs": {"path": "docs", "settle_seconds": 0, "shards": shards}}
    chunkers = {f"fixed-{n}@1": {"kind": "fixed", "max_tokens": n + 1} for n in range(versions)}
    strategies = {"only": {"chunker": "fixed-0@1", "model": "hash", "profile": "vector"}}
    corpus = corpus_of(
        {"docs/0.md": "One."},
        collections=collection, chunkers=chunkers, strategies=strategies, questions=[],
    )  # fmt: skip
    names = list(corpus.config.shards())
    corpus.instance.add_dynamic_partitions("corpus_shard", names)
    corpus.cells = [
        f"{version}|{shard}" for version in corpus.config.chunker_versions for shard in names
    ]
    rows = pl.DataFrame({"doc_id": ["one"]})
    for shard in names:
        for table in ("documents", "elements"):
            corpus.workspace.table(table).replace(
                rows, shard, version=shard, details={"content_version": shard}
            )
    for key in corpus.cells:
        inputs = corpus.module("inputs").wanted(corpus.config, corpus.workspace, "chunk_sets", key)
        corpus.workspace.table("chunks").replace(rows, key, version=key)
        corpus.workspace.stamps.write("chunk_sets", inputs, key)
    return corpus


@pytest.mark.parametrize("looked", ["before the change", "after the change", "in between"])
def test_a_change_that_lands_while_its_cell_is_being_built_is_built_next(
    indexed, monkeypatch, looked
):
    """The old text is being embedded while the new one is written, parsed and chunked."""
    corpus = indexed
    corpus.tick()
    corpus.write("docs/0.md", "An edit.")
    corpus.converge_until("chunk_sets")
    ticks = []

    def edit():
        if looked != "after the change":
            ticks.append(corpus.tick())
        corpus.write("docs/0.md", "Another edit.")
        corpus.look()
        corpus.run("parsed_elements", "docs")
        if looked == "in between":
            ticks.append(corpus.tick())
        corpus.run("chunk_sets", *CELLS_OF_DOCS)
        ticks.append(corpus.tick())

    when_first_embedding(monkeypatch, edit)
    assert corpus.run("chunk_embeddings", CELL)[0].success
    assert not any(CELL in due.get("chunk_embeddings", []) for due in ticks)
    assert CELL in corpus.tick()["chunk_embeddings"]
    corpus.run("chunk_embeddings", CELL)
    assert up_to_date(corpus, "chunk_embeddings", CELL)
    assert CELL not in corpus.tick().get("chunk_embeddings", [])


def when_first_embedding(monkeypatch, act):
    """Calls `act` when the first text is embedded, and not again."""
    # Collecting doctests imports small_corpus once more: its last class is the one registered.
    embedder = type(MODELS["hash"]().embedder(Path()))
    embed, to_do = embedder.embed_passages, [act]

    def embed_and_act(self, texts, progress=None):
        if to_do:
            to_do.pop()()
        return embed(self, texts, progress)

    monkeypatch.setattr(embedder, "embed_passages", embed_and_act)


def test_cells_that_fail_in_a_run_of_many_are_tried_once_and_the_others_not_again(indexed):
    corpus = indexed
    corpus.tick()
    for n in range(3):
        corpus.write(f"docs/{n}.md", "An edit.")
        corpus.write(f"notes/{n}.md", "An edit.")
    corpus.converge_until("chunk_sets")
    damaged = corpus.workspace.table("chunks").files([CELL])[0]
    intact = damaged.read_bytes()
    damaged.write_bytes(b"damaged")
    due = corpus.tick()["chunk_embeddings"]
    assert len(due) == 4
    assert not all(run.success for run in corpus.run("chunk_embeddings", *due))
    assert [corpus.tick().get("chunk_embeddings", []) for _ in range(3)] == [[], [], []]
    damaged.write_bytes(intact)
    corpus.write("docs/0.md", "Another edit.")
    corpus.converge_until("chunk_sets")
    assert corpus.tick()["chunk_embeddings"] == CELLS_OF_DOCS


def test_an_early_cut_off_is_said_on_the_page(corpus):
    corpus.materialize("parsed_elements")
    assert corpus.latest("parsed_elements", "docs").metadata["content"].value == "new"
    corpus.write("docs/0.md", "\ufeff" + (corpus.root / "docs/0.md").read_text())
    corpus.materialize("parsed_elements")
    said = corpus.latest("parsed_elements", "docs").metadata["content"].value
    assert said == "as before, so nothing that is built from it is redone"
    corpus.write("docs/0.md", "An edit.")
    corpus.materialize("chunk_sets")
    assert corpus.latest("parsed_elements", "docs").metadata["content"].value == "changed"
    assert corpus.latest("chunk_sets", CELL).metadata["content"].value == "new"
