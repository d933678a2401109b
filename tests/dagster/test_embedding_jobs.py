"""The sensor that collects what a batch API has brought, through real runs."""

import dagster as dg
import pytest
from chat_server import serving, without_endpoint
from embedding_server import DIMENSIONS, EmbeddingServer
from tokenizers import Tokenizer as Engine
from tokenizers import models, pre_tokenizers


@pytest.fixture
def server(monkeypatch):
    without_endpoint(monkeypatch)
    monkeypatch.setattr("chunking_assets.embedding_models.batch_jobs.POLL_SECONDS", 0)
    with serving(EmbeddingServer()) as running:
        yield running


@pytest.fixture
def remote(corpus_of, server, tmp_path):
    """The small corpus, embedded at the server by its batch API."""
    engine = Engine(models.WordLevel({"[UNK]": 0}, unk_token="[UNK]"))
    engine.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    engine.save(str(tmp_path / "tokenizer.json"))
    declared = {
        "kind": "openai", "model": "good", "base_url": server.url, "dimensions": DIMENSIONS,
        "max_tokens": 200, "tokenizer": str(tmp_path / "tokenizer.json"), "batch_from": 1,
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


def test_a_server_that_does_not_answer_is_a_reason_and_no_failure(remote, server):
    remote.converge_until("chunk_embeddings")
    server.jobs.clear()  # it knows nothing of them any more
    result = sense(remote)
    assert result.run_requests == []
    assert "remote: " in result.skip_reason.skip_message
