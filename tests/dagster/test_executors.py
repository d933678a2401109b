"""CORPUS_EXECUTOR chooses where steps run, for every job; what it cannot mean is refused at once."""

import pytest
from processes import free_port

from chunking_assets.errors import CorpusError


@pytest.mark.parametrize(
    ("chosen", "name"),
    [
        (None, "in_process"), ("in_process", "in_process"), ("ray", "in_process"),
        ("multiprocess", "multiprocess"),
    ],
)  # fmt: skip
def test_every_job_has_the_executor_that_is_chosen(corpus_of, monkeypatch, chosen, name):
    if chosen == "ray":
        pytest.importorskip("ray")
    if chosen is None:
        monkeypatch.delenv("CORPUS_EXECUTOR", raising=False)
    else:
        monkeypatch.setenv("CORPUS_EXECUTOR", chosen)
    repository = corpus_of().defs.get_repository_def()
    jobs = repository.get_all_jobs()
    assert len(jobs) > 8
    assert {job.executor_def.name for job in jobs} == {name}


def test_another_word_is_refused_with_those_there_are(corpus_of, monkeypatch):
    monkeypatch.setenv("CORPUS_EXECUTOR", "celery")
    with pytest.raises(
        Exception, match=r"'celery'\. Set it to one of in_process, multiprocess, ray"
    ):
        corpus_of()


def test_ray_without_its_extra_is_refused_with_its_name(corpus_of, monkeypatch):
    corpus = corpus_of()
    executors = corpus.module("executors")
    monkeypatch.setenv("CORPUS_EXECUTOR", "ray")
    monkeypatch.setattr(executors, "find_spec", lambda name: None)
    with pytest.raises(CorpusError, match=r"extra `ray`.*chunking-assets\[ray\]"):
        executors.executor()


def test_a_cluster_that_does_not_answer_is_named_with_the_cure(corpus_of, monkeypatch):
    pytest.importorskip("ray")
    corpus = corpus_of()
    corpus.look()
    corpus.run("parsed_elements", "docs")
    monkeypatch.setenv("CORPUS_EXECUTOR", "ray")
    monkeypatch.setenv("RAY_ADDRESS", f"127.0.0.1:{free_port()}")
    (run,) = corpus.run("chunk_sets", "fixed-20@1|docs")
    (failure,) = run.get_step_failure_events()
    told = failure.step_failure_data.error.cause.message
    assert "nothing answers there. Start one with `python -m dagster_defs.ray_cluster`" in told
