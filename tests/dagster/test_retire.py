"""A collection taken out of corpus.yaml: its shards are dropped, once the others are in place."""

import pytest

from chunking_assets.chunk_embeddings.lance_index import LanceIndex

pytestmark = pytest.mark.usefixtures("place")

ONE = {"docs": {"path": "docs", "settle_seconds": 0}}
TWO = {**ONE, "notes": {"path": "notes", "settle_seconds": 0}}


def rows(corpus):
    """The shard of every row that readers are served."""
    index = LanceIndex(corpus.workspace, "recursive-20@1+hash")
    return index.rows(None, ["shard"], served=True)["shard"].to_pylist()


def served(corpus):
    return set(rows(corpus))


def without_notes(corpus):
    corpus.declare(collections=ONE)
    corpus.load()


def test_the_command_drops_it_after_the_index_is_built(built_until):
    corpus = built_until("chunk_embeddings")
    without_notes(corpus)
    assert corpus.materializer().retire() == ["notes"]
    assert served(corpus) == {"docs"}
    assert corpus.materializer().retire() == []


def test_the_sensor_starts_the_job_once(built_until):
    corpus = built_until("chunk_embeddings")
    without_notes(corpus)
    (request,) = corpus.look().run_requests
    assert request.job_name == "retire_shards"
    assert corpus.look().run_requests[0].run_key == request.run_key
    job = corpus.defs.resolve_job_def("retire_shards")
    run_config = corpus.module("materialize").QUIET
    assert job.execute_in_process(instance=corpus.instance, run_config=run_config).success
    assert served(corpus) == {"docs"}
    assert corpus.look().run_requests == []


def test_declared_again_and_taken_out_again_it_is_dropped_again(built_until):
    corpus = built_until("chunk_embeddings")
    without_notes(corpus)
    first = corpus.look().run_requests[0].run_key
    corpus.materializer().retire()
    corpus.declare(collections=TWO)
    corpus.load()
    corpus.write("notes/0.md", "Other words than before.")
    corpus.look()
    corpus.materialize("chunk_embeddings")
    assert served(corpus) == {"docs", "notes"}
    without_notes(corpus)
    assert corpus.look().run_requests[0].run_key != first


def test_nothing_is_dropped_before_what_replaces_it_is_served(built_until):
    corpus = built_until("chunk_embeddings")
    corpus.declare(collections={"docs": {"path": "docs", "settle_seconds": 0, "shards": 2}})
    corpus.load()
    assert corpus.look().run_requests == []
    corpus.materialize("chunk_embeddings")
    assert corpus.look().run_requests[0].job_name == "retire_shards"
    assert corpus.materializer().retire() == ["docs", "notes"]
    assert len(rows(corpus)) == 12
    assert {*rows(corpus)} <= {"docs-00", "docs-01"}
