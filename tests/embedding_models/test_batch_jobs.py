"""The batch API across runs: nothing is sent twice, nothing that was paid for is lost."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from chat_server import serving, without_endpoint
from embedding_server import DIMENSIONS, KEY, EmbeddingServer, vector_of, word_tokenizer

from chunking_assets.chat_models.chat_endpoint import CallFailed, EndpointStopped
from chunking_assets.embedding_models.batch_jobs import BatchPending
from chunking_assets.embedding_models.openai_model import OpenAIModel
from chunking_assets.embedding_models.remote_embedder import TextsRefused
from chunking_assets.embedding_models.vector_cache import VectorCache, embed_through_cache

TEXTS = [f"text {n}" for n in range(20)]


@pytest.fixture
def server(monkeypatch):
    without_endpoint(monkeypatch)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with serving(EmbeddingServer()) as running:
        yield running


@pytest.fixture
def run(server, tmp_path):
    """A run of its own: what embedding these texts gives, with a new client."""
    tokenizer = word_tokenizer(tmp_path)

    def run(texts, model="good", **settings):
        declared = OpenAIModel(
            model=model,
            tokenizer=tokenizer,
            dimensions=DIMENSIONS,
            max_tokens=20,
            base_url=server.url,
            **{"batch_from": 5, "passage_prefix": "passage: ", "limits": {"inputs": 3}} | settings,
        )
        embedder = declared.embedder(tmp_path)
        embedder._pause = embedder._pace._pause = lambda seconds, over: None
        cache = VectorCache(tmp_path, embedder.identity.fingerprint, DIMENSIONS)
        return embed_through_cache(embedder, cache, texts)

    return run


def expected(texts):
    return np.stack([vector_of(f"passage: {text}") for text in texts])


def test_many_texts_become_a_job_which_a_later_run_collects(run, server):
    with pytest.raises(BatchPending, match=r"batch_0 \(in_progress\)"):
        run(TEXTS)
    with pytest.raises(BatchPending, match=r"batch_0 \(in_progress\)"):
        run(TEXTS)
    assert len(server.jobs) == 1
    server.finish()
    embedded = run(TEXTS)
    np.testing.assert_array_equal(embedded.vectors, expected(TEXTS))
    assert (embedded.computed, embedded.reused) == (0, 20)
    assert server.requests == []


def test_few_texts_are_embedded_at_once(run, server):
    np.testing.assert_array_equal(run(TEXTS[:4]).vectors, expected(TEXTS[:4]))
    assert server.jobs == {}


def test_a_job_brings_its_vectors_even_if_others_ask(run, server):
    with pytest.raises(BatchPending):
        run(TEXTS)
    server.finish()
    run(["something else"])
    assert run(TEXTS).computed == 0
    assert len(server.jobs) == 1


def test_texts_that_came_meanwhile_are_a_job_of_their_own_or_wait_for_the_first(run, server):
    with pytest.raises(BatchPending):
        run(TEXTS[:10])
    with pytest.raises(BatchPending, match=r"batch_0.*batch_1"):
        run(TEXTS)
    lines = b"".join(server.files[job["input_file_id"]] for job in server.jobs.values())
    assert lines.count(b"passage: ") == 20


def test_a_job_whose_acceptance_was_never_read_is_not_sent_again(run, server):
    server.forgets_replies = True
    with pytest.raises(BatchPending, match="batch_0"):
        run(TEXTS)
    assert len(server.jobs) == 1


def test_a_job_the_run_was_killed_at_is_found_on_the_server(run, server, tmp_path):
    with pytest.raises(BatchPending):
        run(TEXTS)
    (number,) = tmp_path.rglob("*.id")
    number.unlink()  # as if killed before it was noted
    with pytest.raises(BatchPending):
        run(TEXTS)
    assert len(server.jobs) == 1
    server.finish()
    assert run(TEXTS).computed == 0


def test_what_a_job_leaves_out_is_asked_for_at_once(run, server):
    with pytest.raises(BatchPending):
        run(TEXTS)
    server.finish(status="expired", failing=["passage: text 7"])
    embedded = run(TEXTS)
    np.testing.assert_array_equal(embedded.vectors, expected(TEXTS))
    assert server.texts == ["passage: text 6", "passage: text 7", "passage: text 8"]


def test_a_text_no_model_takes_is_named_after_the_job_too(run, server):
    texts = [*TEXTS, "poison"]
    with pytest.raises(BatchPending):
        run(texts, model="poison")
    server.finish()
    with pytest.raises(TextsRefused, match="poison"):
        run(texts, model="poison")
    assert len(server.jobs) == 1


def test_a_job_that_failed_is_told_with_the_reason_and_sent_anew(run, server):
    with pytest.raises(BatchPending):
        run(TEXTS)
    server.finish(status="failed")
    with pytest.raises(CallFailed, match="a job of the batch API failed: line 1 is too long"):
        run(TEXTS)
    with pytest.raises(BatchPending, match="batch_1"):
        run(TEXTS)


def test_what_a_job_answers_wrongly_is_told_once_and_asked_for_anew(run, server):
    with pytest.raises(BatchPending):
        run(TEXTS)
    server.finish(short=["passage: text 7"])
    with pytest.raises(CallFailed, match="2 vectors for 3 texts"):
        run(TEXTS)
    embedded = run(TEXTS)
    np.testing.assert_array_equal(embedded.vectors, expected(TEXTS))
    assert (embedded.computed, embedded.reused) == (3, 17)


def test_what_a_job_read_only_in_part_is_told_and_not_paid_for_again(run, server):
    texts = [*TEXTS, "one two three four five six"]
    with pytest.raises(BatchPending):
        run(texts, model="cuts-at-3")
    server.finish()
    for _ in range(2):
        with pytest.raises(EndpointStopped, match=r"after about 3.* without which its texts are"):
            run(texts, model="cuts-at-3")
    assert len(server.jobs) == 1


def test_text_that_holds_another_scripts_end_of_line_goes_through_a_job(run, server):
    texts = [*TEXTS, "one\u2028two\x85three"]
    with pytest.raises(BatchPending):
        run(texts)
    server.finish()
    np.testing.assert_array_equal(run(texts).vectors, expected(texts))


def test_a_server_without_a_batch_api_is_said_and_leaves_nothing_behind(run, server, tmp_path):
    server.has_batch_api = False
    with pytest.raises(CallFailed, match="has no batch API: remove batch_from"):
        run(TEXTS)
    np.testing.assert_array_equal(run(TEXTS, batch_from=None).vectors, expected(TEXTS))
    assert list(tmp_path.rglob("*.jsonl")) == []


def test_a_job_the_server_does_not_know_is_not_paid_twice_without_a_word(run, server, tmp_path):
    with pytest.raises(BatchPending):
        run(TEXTS)
    server.jobs.clear()
    (number,) = tmp_path.rglob("*.id")
    with pytest.raises(CallFailed, match="does not know the job batch_0") as caught:
        run(TEXTS)
    assert str(number) in str(caught.value)
    number.unlink()
    with pytest.raises(BatchPending):
        run(TEXTS)


def test_runs_at_the_same_time_send_one_job(run, server):
    def attempt(_):
        with pytest.raises(BatchPending):
            run(TEXTS)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(attempt, range(4)))
    assert len(server.jobs) == 1


def test_a_large_order_is_several_jobs(run, server, monkeypatch):
    monkeypatch.setattr("chunking_assets.embedding_models.batch_jobs.JOB_TEXTS", 9)
    with pytest.raises(BatchPending):
        run(TEXTS)
    assert len(server.jobs) == 3
    server.finish()
    assert run(TEXTS).computed == 0


def test_nothing_that_is_kept_of_a_job_holds_the_key(run, tmp_path):
    with pytest.raises(BatchPending):
        run(TEXTS)
    kept = [file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()]
    assert kept
    assert not any(KEY.encode() in content for content in kept)
