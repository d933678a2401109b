"""Whoever holds a chunk's id learns where it is from, and what became of it."""

from datetime import UTC, datetime

import pytest
from places import both_places
from small_corpus import CONFIGURATION, SmallCorpus, empty_file, write_corpus, write_document

from chunking_assets.build_log import record_build
from chunking_assets.chunk_sets.build import CHUNKS
from chunking_assets.chunk_sets.settings import all_settings
from chunking_assets.config import load
from chunking_assets.errors import CorpusError
from chunking_assets.live_index import __main__ as command
from chunking_assets.live_index.explain import explain, in_words
from chunking_assets.live_index.promotion import promote

pytestmark = pytest.mark.usefixtures("place")

DOCUMENTS = {
    "a.md": "# Refunds\n\nMoney goes back within 120 days.\n",
    "b.md": "# Fees\n\nA card costs 1.4 percent.\n",
}
STRATEGIES = {"one": CONFIGURATION["strategies"]["recursive"]}


@pytest.fixture
def corpus(tmp_path):
    corpus = SmallCorpus(write_corpus(tmp_path, DOCUMENTS, strategies=STRATEGIES))
    for version in corpus.config.chunker_versions.values():
        corpus.workspace.record_declaration("chunkers", version.name, version.declaration)
    corpus.update()
    for asset, partition in (
        ("parsed_elements", "docs"),
        ("chunk_sets", "recursive-20@1|docs"),
        ("chunk_embeddings", "recursive-20@1+hash|docs"),
    ):
        record_build(corpus.workspace, asset, partition, f"run-of-{asset}", 1.0, {"rows": 1})
    return corpus


def chunk_of(corpus, name):
    rows = corpus.workspace.table(CHUNKS).read("recursive-20@1|docs")
    return rows.filter(doc_id=f"docs/{name}")["chunk_id"][0]


def test_a_chunk_leads_to_document_elements_settings_runs_and_promotions(corpus):
    promote(corpus.workspace, corpus.config.strategies["one"], ["docs"])
    chunk_id = chunk_of(corpus, "a.md")
    found = explain(corpus.workspace, chunk_id)
    assert found.chunk["doc_id"] == found.document["doc_id"] == "docs/a.md"
    assert len(found.document["doc_rev"]) == 64
    assert {element["kind"] for element in found.elements} >= {"paragraph"}
    assert found.chunker["kind"] == "recursive"
    (index,) = found.indexes
    assert (index["index_version"], index["model"]["kind"]) == ("recursive-20@1+hash", "hash")
    assert [build["run_id"] for build in found.builds] == [
        "run-of-parsed_elements",
        "run-of-chunk_sets",
        "run-of-chunk_embeddings",
    ]
    (served,) = found.served
    assert (served.strategy, served.until, served.held) == ("one", None, True)
    words = in_words(found)
    for said in (
        chunk_id,
        "docs/a.md",
        "run-of-chunk_sets",
        "max_tokens=20",
        "overlap=0",
        "one from ",
    ):
        assert said in words


def test_defaults_and_settings_inside_others_are_said_like_what_was_declared(tmp_path):
    nested = {
        "kind": "late", "spans": {"kind": "sentence", "max_tokens": 30},
        "clean": {"blank_lines": True},
    }  # fmt: skip
    declared = {"recursive-20@1": {"kind": "recursive"}, "late@1": nested}
    config = load(write_corpus(tmp_path, DOCUMENTS, chunkers=declared, strategies=STRATEGIES))
    recursive, late = (all_settings(config.chunker_versions[name].declaration) for name in declared)
    assert (recursive["max_tokens"], recursive["overlap"], recursive["prefix"]) == (400, 0, "none")
    assert recursive["tokenizer_model"] == "hash"
    assert (late["spans"]["max_tokens"], late["spans"]["overlap"]) == (30, 0)
    assert (late["clean"]["blank_lines"], late["clean"]["unicode"]) == (True, "none")
    of_before = {**config.chunker_versions["recursive-20@1"].declaration, "implementation": 0}
    assert all_settings(of_before) == of_before


def test_a_chunk_that_went_says_when_and_which_revision_came(corpus):
    promote(corpus.workspace, corpus.config.strategies["one"], ["docs"])
    chunk_id, before = chunk_of(corpus, "a.md"), datetime.now(UTC)
    write_document(corpus.config.root, "a.md", "# Refunds\n\nMoney goes back within 30 days.\n")
    corpus.update()
    found = explain(corpus.workspace, chunk_id)
    assert found.chunk is None
    assert before < found.superseded["at"] < datetime.now(UTC)
    assert found.superseded["doc_rev"] == found.document["doc_rev"]
    (served,) = found.served
    assert served.held, "the state that was promoted is kept"
    assert f"revision {found.document['doc_rev']} came" in in_words(found)
    (corpus.config.root / "docs" / "a.md").unlink()
    other = chunk_of(corpus, "a.md")
    corpus.update()
    assert "the document is gone" in in_words(explain(corpus.workspace, other))


def test_a_chunk_that_came_back_is_no_longer_superseded(corpus):
    chunk_id, text = chunk_of(corpus, "a.md"), DOCUMENTS["a.md"]
    for content in ("Other words.", text):
        write_document(corpus.config.root, "a.md", content)
        corpus.update()
    assert explain(corpus.workspace, chunk_id).superseded is None


def test_the_beginning_of_an_id_is_enough_if_no_other_begins_so(corpus):
    chunk_id = chunk_of(corpus, "b.md")
    assert explain(corpus.workspace, chunk_id[:12]).chunk_id == chunk_id


def test_unknown_short_and_ambiguous_ids_are_said(corpus, monkeypatch):
    with pytest.raises(CorpusError, match="no chunk begins with 'zzzz'"):
        explain(corpus.workspace, "zzzz")
    with pytest.raises(CorpusError, match="too short"):
        explain(corpus.workspace, "a")
    monkeypatch.setattr("chunking_assets.live_index.explain.LEAST_PREFIX", 0)
    with pytest.raises(CorpusError, match=r"\d+ chunks begin with ''"):
        explain(corpus.workspace, "")


def run(corpus, monkeypatch, capsys, *arguments):
    monkeypatch.setenv("CORPUS_CONFIG", str(corpus.config.file))
    monkeypatch.setattr("sys.argv", ["live_index", *arguments])
    status = command.main()
    said = capsys.readouterr()
    return status, said.out, said.err


@both_places
def test_the_commands_say_what_they_found(corpus, monkeypatch, capsys):
    chunk_id = chunk_of(corpus, "a.md")
    status, out, _ = run(corpus, monkeypatch, capsys, "explain", chunk_id[:10])
    assert (status, chunk_id in out) == (0, True)
    status, out, _ = run(corpus, monkeypatch, capsys, "reconcile")
    assert (status, out) == (0, "recursive-20@1+hash, shard docs: nothing differs\n")
    empty_file(corpus.workspace.table(CHUNKS), "recursive-20@1|docs")
    status, out, err = run(corpus, monkeypatch, capsys, "reconcile")
    assert (status, "make repair" in err) == (1, True)
    status, out, _ = run(corpus, monkeypatch, capsys, "repair")
    assert (status, "removed, to be built again by `make build`" in out) == (0, True)
    corpus.update()
    status, out, _ = run(corpus, monkeypatch, capsys, "maintain")
    assert (status, "| recursive-20@1+hash |" in out) == (0, True)
    status, _, err = run(corpus, monkeypatch, capsys, "retire", "recursive-20@1")
    assert (status, "still declared" in err) == (1, True)
