"""A version taken out of corpus.yaml is forgotten when a person says so, and its scores are not."""

import polars as pl
import pytest
from places import FOLDER, both_places
from small_corpus import CONFIGURATION, SmallCorpus, write_corpus

from chunking_assets.chunk_embeddings.build import EMBEDDED_CHUNKS
from chunking_assets.chunk_embeddings.lance_index import LanceIndex, stored_indexes
from chunking_assets.chunk_sets.build import CHUNKS
from chunking_assets.errors import CorpusError
from chunking_assets.live_index import retire
from chunking_assets.live_index.promotion import promote
from chunking_assets.live_index.retire import retire_version, stored_versions
from chunking_assets.workspace import Workspace

pytestmark = pytest.mark.usefixtures("place")

DOCUMENTS = {f"{n}.md": f"Document {n} is about subject {n} and nothing else." for n in range(3)}
ONLY_FIXED = {
    "chunkers": {"fixed-20@1": {"kind": "fixed", "max_tokens": 20}},
    "strategies": {"fixed": CONFIGURATION["strategies"]["fixed"]},
}
OLD = "recursive-20@1"


@pytest.fixture
def corpus(tmp_path):
    """Both versions are stored, one is still declared."""
    both = SmallCorpus(write_corpus(tmp_path, DOCUMENTS))
    both.update()
    for version in both.config.chunker_versions.values():
        both.workspace.record_declaration("chunkers", version.name, version.declaration)
        both.workspace.stamps.write("chunk_sets", "inputs", f"{version.name}|docs")
    for strategy in ("recursive", "fixed"):
        both.workspace.table("ragas_scores").replace(pl.DataFrame({"score": [1.0]}), strategy)
    both.workspace.stamps.write("eval_tables", "inputs")
    return SmallCorpus(write_corpus(tmp_path, DOCUMENTS, **ONLY_FIXED))


def declared(corpus):
    return [*corpus.config.chunker_versions, *corpus.config.index_versions]


def files(workspace):
    """What is stored, without what is named anew each time."""
    return sorted(
        file.key.rpartition("/")[0]
        for file in workspace.store.files()
        if not file.key.startswith("locks/")
    )


@both_places
def test_a_retired_version_leaves_its_scores_and_the_meaning_of_its_name(corpus):
    workspace = corpus.workspace
    dropped = retire_version(workspace, OLD, declared(corpus))
    assert "index recursive-20@1+hash" in dropped
    assert stored_versions(workspace) == ["fixed-20@1"]
    assert not any(workspace.store.files("lance/recursive-20_v1__hash.lance"))
    for table in (CHUNKS, EMBEDDED_CHUNKS):
        assert all(p.startswith("fixed") for p in workspace.table(table).partitions())
    assert workspace.stamps.partitions("chunk_sets") == ["fixed-20@1|docs"]
    assert workspace.stamps.read("eval_tables") is None, "analysts no longer see it"
    assert workspace.table("ragas_scores").partitions() == ["fixed", "recursive"]
    with pytest.raises(CorpusError, match="A version never changes"):
        workspace.check_declaration("chunkers", OLD, {"kind": "other"})


def test_retiring_twice_changes_nothing(corpus):
    retire_version(corpus.workspace, OLD, declared(corpus))
    before = files(corpus.workspace)
    assert retire_version(corpus.workspace, OLD, declared(corpus)) == []
    assert files(corpus.workspace) == before


def test_one_index_of_a_version_can_go_alone(corpus):
    assert retire_version(corpus.workspace, "recursive-20@1+hash", declared(corpus)) == [
        "embedded_chunks of recursive-20@1+hash|docs",
        "index recursive-20@1+hash",
    ]
    assert stored_indexes(corpus.workspace) == ["fixed-20@1+hash"]
    assert "recursive-20@1|docs" in corpus.workspace.table(CHUNKS).partitions()


def test_what_is_declared_live_or_kept_for_a_rollback_is_refused(tmp_path, corpus):
    both = SmallCorpus(write_corpus(tmp_path, DOCUMENTS))
    with pytest.raises(CorpusError, match=r"fixed-20@1 is still declared. Take it"):
        retire_version(corpus.workspace, "fixed-20@1", declared(corpus))
    with pytest.raises(CorpusError, match=r"kept for a rollback \(recursive-20@1\+hash\)"):
        retire_version(corpus.workspace, OLD, declared(corpus), ["recursive-20@1+hash"])
    promote(both.workspace, both.config.strategies["recursive"], ["docs"])
    for version in (OLD, "recursive-20@1+hash"):
        with pytest.raises(CorpusError, match=r"is live \(recursive\). Promote another"):
            retire_version(corpus.workspace, version, declared(corpus))


def test_a_version_that_never_was_is_refused_with_those_that_could_go(corpus):
    with pytest.raises(CorpusError, match=r"called 'old@9'.* recursive-20@1, "):
        retire_version(corpus.workspace, "old@9", declared(corpus))


@both_places
def test_killed_half_way_and_run_again_is_the_same_end(
    tmp_path, corpus, place, bucket, monkeypatch
):
    def copy(name):
        workspace = Workspace(tmp_path / name if place == FOLDER else f"{bucket}/{name}")
        for file in corpus.workspace.store.files():
            workspace.store.write(file.key, corpus.workspace.store.read(file.key))
        return workspace

    calm = copy("calm")
    retire_version(calm, OLD, declared(corpus))
    expected = files(calm)
    steps = 0
    while True:
        again = copy(f"killed-{steps}")
        died = _kill_after(steps, again, declared(corpus), monkeypatch)
        retire_version(again, OLD, declared(corpus))
        assert files(again) == expected
        if not died:
            break
        steps += 1
    assert steps > 3


def _kill_after(steps, workspace, names, monkeypatch):
    """Whether it died before it was done."""
    left = steps

    def dying(do):
        def step(*arguments, **named):
            nonlocal left
            if left == 0:
                raise KeyboardInterrupt
            left -= 1
            return do(*arguments, **named)

        return step

    with monkeypatch.context() as patch:
        patch.setattr(LanceIndex, "drop", dying(LanceIndex.drop))
        patch.setattr(retire.Workspace, "table", dying(retire.Workspace.table))
        try:
            retire_version(workspace, OLD, names)
        except KeyboardInterrupt:
            return True
    return False
