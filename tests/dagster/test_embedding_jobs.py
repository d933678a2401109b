"""The sensor that collects what a batch API has brought, through real runs."""

import dagster as dg
import pytest
from chat_server import serving, without_endpoint
from embedding_server import DIMENSIONS, EmbeddingServer, word_tokenizer


@pytest.fixture
def server(monkeypatch):
    without_endpoint(monkeypatch)
    monkeypatch.setattr("chunking_assets.embedding_models.batch_jobs.POLL_SECONDS", 0)
    with serving(EmbeddingServer()) as running:
        yield running


@pytest.fixture
def remote(corpus_of, server, tmp_path):
    """The small corpus, embedded at the server by its batch API."""
    tokenizer = word_tokenizer(tmp_path)
    declared = {
        "kind": "openai", "model": "good", "base_url": server.url, "dimensions": DIMENSIONS,
        "max_tokens": 200, "tokenizer": tokenizer, "batch_from": 1,
    }  # fmt: skip
    return corpus_of(
        embedding_models={"remote": declared},
        chunkers={"recursive-20@1": {"kind": "recursive", "max_tokens": 20}},
        strategies={"one": {"chunker": "recursive-20@1", "model": "remote", "profile": "hybrid"}},
        comparison={"baseline": "one"},
    )


def sense(corpus):
    with dg.build_sensor_context(
        instance=corpus.instance,
        resources=corpus.resources,
        repository_def=corpus.defs.get_repository_def(),
    ) as context:
        return corpus.module("embedding_jobs").embedding_jobs(context)


def started(corpus, result):
    for request in result.run_requests:
        yield corpus.job.execute_in_process(
            instance=corpus.instance,
            asset_selection=[dg.AssetKey("chunk_embeddings")],
            partition_key=request.partition_key,
            tags=request.tags,
            raise_on_error=False,
        ).success


def test_cells_that_wait_for_a_job_are_built_when_it_is_done(remote, server):
    assert sense(remote).skip_reason.skip_message == "no job of a batch API is open"
    remote.converge_until("chunk_embeddings")
    cells = ["recursive-20@1|docs", "recursive-20@1|notes"]
    out_of_date = remote.module("inputs").out_of_date
    assert out_of_date(remote.config, remote.workspace, "chunk_embeddings", cells) == cells
    jobs = len(server.jobs)
    waiting = sense(remote)
    assert waiting.run_requests == []
    assert "jobs are under way" in waiting.skip_reason.skip_message

    server.finish()
    result = sense(remote)
    assert [r.run_key for r in result.run_requests] == [
        r.run_key for r in sense(remote).run_requests
    ]
    assert list(started(remote, result)) == [True] * len(result.run_requests)
    assert out_of_date(remote.config, remote.workspace, "chunk_embeddings", cells) == []
    assert len(server.jobs) == jobs
    assert sense(remote).run_requests == []


def failures(corpus, result):
    """Why the runs that were asked for failed."""
    for request in result.run_requests:
        run = corpus.job.execute_in_process(
            instance=corpus.instance,
            asset_selection=[dg.AssetKey("chunk_embeddings")],
            partition_key=request.partition_key,
            tags=request.tags,
            raise_on_error=False,
        )
        yield from (str(event.step_failure_data) for event in run.get_step_failure_events())


def test_each_failure_of_a_job_starts_one_run_which_fails_by_name_and_so_does_the_next(
    remote, server
):
    remote.converge_until("chunk_embeddings")
    keys = []
    for _ in range(2):
        server.finish(status="failed")
        result = sense(remote)
        (key,) = {request.run_key for request in result.run_requests}
        assert [r.run_key for r in sense(remote).run_requests] == [key]
        (failure,) = failures(remote, result)
        assert "a job of the batch API failed: line 1 is too long" in failure
        assert sense(remote).run_requests == []
        keys.append(key)
        remote.materializer().build(remote_stage(remote))  # a person sends the same texts again
    server.finish()
    result = sense(remote)
    assert list(started(remote, result)) == [True]
    assert len({*keys, *(r.run_key for r in result.run_requests)}) == 3


def remote_stage(corpus):
    """What `make build` does for `chunk_embeddings`."""
    stages = corpus.module("materialize").stages(corpus.config)
    return next(stage for stage in stages if stage.asset == "chunk_embeddings")


def test_a_server_that_does_not_answer_is_a_reason_and_no_failure(remote, server):
    remote.converge_until("chunk_embeddings")
    server.jobs.clear()  # it knows nothing of them any more
    result = sense(remote)
    assert result.run_requests == []
    assert "remote: " in result.skip_reason.skip_message
