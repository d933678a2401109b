"""Several runs at the same time, in processes of their own: no duplicate, no loss, no deadlock."""

import os
import shutil

import pytest
from fork_server import ForkServer
from observer import Observer
from small_corpus import write_corpus, write_document

ROUNDS = 2
MOMENT = 1_700_000_000


pytestmark = pytest.mark.usefixtures("place")


@pytest.fixture(scope="module")
def on_a_machine(tmp_path_factory, s3_server):
    """What processes are told that outlive the tests."""
    return {**s3_server.environment, "CORPUS_LOCAL": str(tmp_path_factory.mktemp("machine"))}


@pytest.fixture(scope="module")
def observer(on_a_machine):
    with Observer(**on_a_machine) as observer:
        yield observer


@pytest.fixture(scope="module")
def stages(tmp_path_factory, on_a_machine):
    output = tmp_path_factory.mktemp("stages") / "output"
    with ForkServer("stages", output, **on_a_machine) as stages:
        yield stages


def document(number, revision):
    return "\n\n".join(
        f"Sentence {n} of document {number} in revision {revision} is a paragraph."
        for n in range(5)
    )


def corpora(tmp_path, shards):
    """Two folders with the same documents, and what edits both."""
    roots = [tmp_path / "calm", tmp_path / "busy"]
    collections = {"docs": {"path": "docs", "shards": shards, "settle_seconds": 0}}
    texts = {f"{n}.md": document(n, 0) for n in range(24)}
    write_corpus(roots[0], texts, collections=collections)
    shutil.copytree(*roots)
    write_corpus(roots[1], {}, collections=collections)

    def edit(revision):
        for root in roots:
            for number in range(revision, 24, 3):
                write_document(root, f"{number}.md", document(number, revision))
            (root / "docs" / f"{revision}.md").unlink()
            (root / "docs" / f"{23 - revision}.md").rename(root / "docs" / f"moved-{revision}.md")
            for file in (root / "docs").iterdir():
                os.utime(file, (MOMENT + revision,) * 2)

    edit(0)
    return roots[0] / "corpus.yaml", roots[1] / "corpus.yaml", edit


def test_two_runs_over_the_same_partitions_end_as_one(tmp_path, observer, stages):
    """LanceDB: two writers of the same new keys left every row twice."""
    calm, busy, edit = corpora(tmp_path, shards=2)
    for revision in range(1, ROUNDS + 1):
        stages.run(calm)
        stages.run_together([busy], [busy])
        assert observer.content(busy) == observer.content(calm)
        edit(revision)


def test_four_runs_over_neighbouring_partitions_lose_nothing(tmp_path, observer, stages):
    """LanceDB: commits of several writers conflicted, and a retry wrote rows twice or not at all."""
    calm, busy, edit = corpora(tmp_path, shards=4)
    for revision in range(1, ROUNDS + 1):
        stages.run(calm)
        stages.run_together(*([busy, f"docs-{n:02}"] for n in range(4)))
        assert observer.content(busy) == observer.content(calm)
        edit(revision)
