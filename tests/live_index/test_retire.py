import pytest
from places import both_places
from small_corpus import SmallCorpus, write_corpus

from chunking_assets.chunk_embeddings.lance_index import LanceIndex
from chunking_assets.chunk_sets.build import CHUNKS, EXCLUDED_SPANS, cell
from chunking_assets.chunk_sets.rows import CHUNKS_SCHEMA, EXCLUDED_SPANS_SCHEMA
from chunking_assets.live_index.retire import retire_shards, undeclared_shards
from chunking_assets.retrieval.open import open_strategy
from chunking_assets.workspace import Workspace

pytestmark = pytest.mark.usefixtures("place")

DOCUMENTS = {f"{n}.md": f"Document {n} is about subject {n} and nothing else." for n in range(8)}
BOTH = {
    "docs": {"path": "docs", "settle_seconds": 0},
    "other": {"path": "docs", "settle_seconds": 0},
}


def shards_served(corpus):
    rows = LanceIndex(corpus.workspace, "recursive-20@1+hash").rows(None, ["shard"], served=True)
    return sorted(rows["shard"].to_pylist())


@both_places
def test_a_collection_taken_out_of_the_configuration_is_no_longer_served(tmp_path):
    both = SmallCorpus(write_corpus(tmp_path, DOCUMENTS, collections=BOTH))
    both.update()
    assert set(shards_served(both)) == {"docs", "other"}
    one = SmallCorpus(write_corpus(tmp_path, DOCUMENTS))
    one.update()
    assert undeclared_shards(one.workspace, one.config.shards()) == ["other"]
    retire_shards(one.workspace, ["other"])
    assert undeclared_shards(one.workspace, one.config.shards()) == []
    assert shards_served(one) == ["docs"] * 8
    passages = open_strategy(one.workspace, one.config.strategies["recursive"]).search("subject 3")
    assert {p.doc_id.split("/")[0] for p in passages} == {"docs"}


def test_a_collection_cut_anew_keeps_every_document_once(tmp_path):
    whole = SmallCorpus(write_corpus(tmp_path, DOCUMENTS))
    whole.update()
    cut = {"docs": {"path": "docs", "settle_seconds": 0, "shards": 2}}
    parts = SmallCorpus(write_corpus(tmp_path, DOCUMENTS, collections=cut))
    parts.update()
    retire_shards(parts.workspace, undeclared_shards(parts.workspace, parts.config.shards()))
    assert len(shards_served(parts)) == 8
    assert set(shards_served(parts)) == {"docs-00", "docs-01"}
    assert parts.embedder.embedded == []


def test_retiring_twice_changes_nothing(tmp_path):
    both = SmallCorpus(write_corpus(tmp_path, DOCUMENTS, collections=BOTH))
    both.update()
    retire_shards(both.workspace, ["other"])
    version = LanceIndex(both.workspace, "recursive-20@1+hash").served_version()
    retire_shards(both.workspace, ["other"])
    assert LanceIndex(both.workspace, "recursive-20@1+hash").served_version() == version


def test_what_was_left_out_of_a_retired_shard_goes_with_its_chunks(tmp_path):
    workspace = Workspace(tmp_path)
    for table, schema in ((CHUNKS, CHUNKS_SCHEMA), (EXCLUDED_SPANS, EXCLUDED_SPANS_SCHEMA)):
        for shard in ("gone", "kept"):
            workspace.table(table).replace(schema.to_frame(), cell("clean@1", shard))
    retire_shards(workspace, ["gone"])
    for table in (CHUNKS, EXCLUDED_SPANS):
        assert workspace.table(table).partitions() == ["clean@1|kept"]
