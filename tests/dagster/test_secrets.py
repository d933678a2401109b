"""The key of an endpoint is in nothing that is stored or shown, whatever happens there."""

import pytest
from chat_server import serving, without_endpoint
from dagster._serdes import serialize_value
from embedding_server import DIMENSIONS, KEY, EmbeddingServer, word_tokenizer


@pytest.fixture
def corpus_at(corpus_of, monkeypatch, tmp_path):
    """The small corpus, embedded with a key by a model of this name."""
    without_endpoint(monkeypatch)
    monkeypatch.setenv("EMBEDDING_KEY", KEY)
    tokenizer = word_tokenizer(tmp_path)
    with serving(EmbeddingServer()) as server:

        def make(model, **settings):
            remote = {
                "kind": "openai", "model": model, "base_url": server.url, "dimensions": DIMENSIONS,
                "max_tokens": 200, "tokenizer": tokenizer,
                "key_variable": "EMBEDDING_KEY", **settings,
            }  # fmt: skip
            corpus = corpus_of(
                embedding_models={"remote": remote},
                chunkers={"recursive-20@1": {"kind": "recursive", "max_tokens": 20}},
                strategies={
                    "one": {"chunker": "recursive-20@1", "model": "remote", "profile": "hybrid"}
                },
                comparison={"baseline": "one"},
            )
            return corpus, server

        yield make


@pytest.mark.parametrize(
    ("model", "settings", "builds"),
    [
        ("good", {}, True),
        ("good", {"batch_from": 1}, False),
        ("auth", {}, False),
        ("poison", {"passage_prefix": "poison"}, False),
    ],
)
def test_the_key_is_in_no_file_no_log_and_no_metadata(corpus_at, model, settings, builds):
    corpus, server = corpus_at(model, **settings)
    corpus.converge_until("retrieval_scores" if builds else "chunk_embeddings")
    if builds:
        corpus.run("eval_tables")
    assert f"Bearer {KEY}" in server.keys
    logs = [
        serialize_value(entry)
        for run in corpus.instance.get_runs()
        for entry in corpus.instance.all_logs(run.run_id)
    ]
    assert [log for log in logs if "chunk_embeddings" in log]
    assert [log for log in logs if KEY in log] == []
    files = [file for file in corpus.root.rglob("*") if file.is_file()]
    assert [file for file in files if KEY.encode() in file.read_bytes()] == []
    if not builds:
        failed = [log for log in logs if "STEP_FAILURE" in log]
        assert failed
