"""Vectors stored as float16: an index of its own, from the same cache, checked and searched alike."""

import numpy as np
import pyarrow as pa
import pytest
from small_corpus import DIMENSIONS, SmallCorpus, write_corpus, write_document

from chunking_assets.chunk_embeddings.build import update_index
from chunking_assets.chunk_embeddings.lance_index import LanceIndex, stored_indexes
from chunking_assets.chunk_embeddings.reconcile import reconcile
from chunking_assets.errors import CorpusError
from chunking_assets.live_index.explain import explain
from chunking_assets.live_index.promotion import promote
from chunking_assets.live_index.serve import open_live
from chunking_assets.retrieval.open import open_strategy

WHOLE, HALF = "recursive-20@1+hash", "recursive-20@1+hash+float16"
OF_INDEX = {"chunker": "recursive-20@1", "model": "hash", "profile": "vector"}
STRATEGIES = {"whole": OF_INDEX, "half": {**OF_INDEX, "precision": "float16"}}
DOCUMENTS = {
    f"{n}.md": f"Refunds of kind {n} take {n} days. Fees of kind {n} are {n} percent."
    for n in range(1, 9)
}


@pytest.fixture
def corpus(tmp_path):
    corpus = SmallCorpus(write_corpus(tmp_path, DOCUMENTS, strategies=STRATEGIES))
    corpus.update()
    return corpus


def index_of(corpus):
    return corpus.config.index_versions[HALF]


def repair(corpus):
    index = index_of(corpus)
    return update_index(corpus.workspace, index, ["docs"], lambda _: corpus.embedder, repair=True)


def stored(corpus, name):
    vectors = LanceIndex(corpus.workspace, name).rows(served=True).sort_by("chunk_id")["vector"]
    return vectors.type.value_type, np.array(vectors.to_pylist())


def answers(corpus, name):
    strategy = corpus.config.strategies[name]
    reader = open_strategy(corpus.workspace, strategy, lambda: corpus.embedder)
    return reader.rank("How many days do refunds of kind 3 take?").hits


def test_each_precision_is_an_index_and_no_text_is_embedded_twice(corpus):
    assert stored_indexes(corpus.workspace) == sorted([WHOLE, HALF])
    assert len(corpus.embedder.embedded) == len({*corpus.embedder.embedded})
    (whole, as_stored), (half, rounded) = stored(corpus, WHOLE), stored(corpus, HALF)
    assert (whole, half) == (pa.float32(), pa.float16())
    np.testing.assert_array_equal(rounded, as_stored.astype(np.float16))


def test_a_question_finds_the_same_with_cosines_that_are_nearly_the_same(corpus):
    whole, half = answers(corpus, "whole"), answers(corpus, "half")
    assert {h.chunk_id for h in whole} == {h.chunk_id for h in half}
    cosines = {h.chunk_id: h.vector_score for h in whole}
    assert {h.chunk_id: h.vector_score for h in half} == pytest.approx(cosines, abs=5e-4)
    assert half[0].chunk_id == whole[0].chunk_id


def test_a_changed_document_is_changed_in_both(corpus, tmp_path):
    write_document(tmp_path, "3.md", "Refunds of kind 3 take 300 days.")
    corpus.update()
    assert "300" in answers(corpus, "half")[0].text
    assert reconcile(corpus.workspace, index_of(corpus), "docs").agrees


@pytest.mark.parametrize("value", [np.inf, np.nan, 0.0])
def test_a_vector_that_cannot_be_found_is_noticed_and_made_good(corpus, value):
    lance = LanceIndex(corpus.workspace, HALF)
    before = stored(corpus, HALF)[1]
    table = lance._open()
    row = table.search().limit(1).to_arrow().drop_columns(["vector"])
    spoilt = pa.array([[np.float16(value)] * DIMENSIONS], pa.list_(pa.float16(), DIMENSIONS))
    table.delete(f"chunk_id = '{row['chunk_id'][0]}'")
    table.add(row.append_column("vector", spoilt).select(table.schema.names), on_bad_vectors="null")
    lance.publish()
    found = reconcile(corpus.workspace, index_of(corpus), "docs")
    assert found.rows.unusable == (row["chunk_id"][0].as_py(),)
    repair(corpus)
    assert reconcile(corpus.workspace, index_of(corpus), "docs").agrees
    np.testing.assert_array_equal(stored(corpus, HALF)[1], before)


def test_a_vector_beyond_float16_is_refused_and_not_stored_as_infinite(corpus):
    lance = LanceIndex(corpus.workspace, HALF, DIMENSIONS)
    rows = lance.rows("docs", served=True)
    huge = np.full(rows.num_rows * DIMENSIONS, 1e6, np.float32)
    at = rows.schema.get_field_index("vector")
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(huge), DIMENSIONS)
    with pytest.raises(CorpusError, match="not finite, or zero"):
        lance.replace_documents(rows.set_column(at, "vector", vectors), "docs")


def test_a_live_strategy_is_served_as_it_was_promoted(corpus):
    half = corpus.config.strategies["half"]
    promote(corpus.workspace, half, ["docs"], reason="smaller", force=True)
    (answer,) = open_live(corpus.workspace).answers(["How many days do refunds of kind 3 take?"])
    assert answer.passages[0].text == answers(corpus, "half")[0].text
    assert half.declared != corpus.config.strategies["whole"].declared


def test_the_model_of_a_chunk_is_told_for_every_index_that_holds_it(corpus):
    found = explain(corpus.workspace, answers(corpus, "half")[0].chunk_id)
    assert {i["index_version"] for i in found.indexes} == {WHOLE, HALF}
    assert {i["model"]["name"] for i in found.indexes} == {"hash"}
