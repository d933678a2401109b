"""Vectors stored smaller: an index of its own, from the same cache, checked and searched alike."""

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

WHOLE = "recursive-20@1+hash"
SMALLER = {"half": f"{WHOLE}+float16", "quarter": f"{WHOLE}+int8"}
ROUNDING = {"half": 5e-4, "quarter": 1e-2}
OF_INDEX = {"chunker": "recursive-20@1", "model": "hash", "profile": "vector"}
STRATEGIES = {
    "whole": OF_INDEX,
    "half": {**OF_INDEX, "precision": "float16"},
    "quarter": {**OF_INDEX, "precision": "int8"},
}
DOCUMENTS = {
    f"{n}.md": f"Refunds of kind {n} take {n} days. Fees of kind {n} are {n} percent."
    for n in range(1, 9)
}


@pytest.fixture
def corpus(tmp_path):
    corpus = SmallCorpus(write_corpus(tmp_path, DOCUMENTS, strategies=STRATEGIES))
    corpus.update()
    return corpus


@pytest.fixture(params=SMALLER)
def smaller(request):
    return request.param


def index_of(corpus, name):
    return corpus.config.index_versions[SMALLER[name]]


def repair(corpus, name):
    index = index_of(corpus, name)
    return update_index(corpus.workspace, index, ["docs"], lambda _: corpus.embedder, repair=True)


def stored(corpus, name):
    vectors = LanceIndex(corpus.workspace, name).rows(served=True).sort_by("chunk_id")["vector"]
    return vectors.type.value_type, np.array(vectors.to_pylist())


def answers(corpus, name):
    strategy = corpus.config.strategies[name]
    reader = open_strategy(corpus.workspace, strategy, lambda: corpus.embedder)
    return reader.rank("How many days do refunds of kind 3 take?").hits


def test_each_precision_is_an_index_and_no_text_is_embedded_twice(corpus):
    assert stored_indexes(corpus.workspace) == sorted([WHOLE, *SMALLER.values()])
    assert len(corpus.embedder.embedded) == len({*corpus.embedder.embedded})
    whole, as_stored = stored(corpus, WHOLE)
    half, halves = stored(corpus, SMALLER["half"])
    quarter, quarters = stored(corpus, SMALLER["quarter"])
    assert (whole, half, quarter) == (pa.float32(), pa.float16(), pa.int8())
    np.testing.assert_array_equal(halves, as_stored.astype(np.float16))
    largest = np.abs(as_stored).max(axis=1, keepdims=True)
    np.testing.assert_allclose(quarters / 127, as_stored / largest, atol=0.5001 / 127)


def test_a_question_finds_the_same_with_cosines_that_are_nearly_the_same(corpus, smaller):
    whole, found = answers(corpus, "whole"), answers(corpus, smaller)
    assert {h.chunk_id for h in whole} == {h.chunk_id for h in found}
    cosines = pytest.approx({h.chunk_id: h.vector_score for h in whole}, abs=ROUNDING[smaller])
    assert {h.chunk_id: h.vector_score for h in found} == cosines
    assert found[0].chunk_id == whole[0].chunk_id


def test_a_changed_document_is_changed_in_all(corpus, tmp_path, smaller):
    write_document(tmp_path, "3.md", "Refunds of kind 3 take 300 days.")
    corpus.update()
    assert "300" in answers(corpus, smaller)[0].text
    assert reconcile(corpus.workspace, index_of(corpus, smaller), "docs").agrees


@pytest.mark.parametrize(
    ("smaller", "value"),
    [("half", np.inf), ("half", np.nan), ("half", 0.0), ("quarter", 0)],
    indirect=["smaller"],
)
def test_a_vector_that_cannot_be_found_is_noticed_and_made_good(corpus, smaller, value):
    lance = LanceIndex(corpus.workspace, SMALLER[smaller])
    number, before = stored(corpus, SMALLER[smaller])
    table = lance._open()
    row = table.search().limit(1).to_arrow().drop_columns(["vector"])
    numbers = np.full(DIMENSIONS, value, number.to_pandas_dtype())
    spoilt = pa.FixedSizeListArray.from_arrays(pa.array(numbers), DIMENSIONS)
    table.delete(f"chunk_id = '{row['chunk_id'][0]}'")
    table.add(row.append_column("vector", spoilt).select(table.schema.names), on_bad_vectors="null")
    lance.publish()
    assert len(answers(corpus, smaller)) >= len(before) - 1  # the damage stops no search
    found = reconcile(corpus.workspace, index_of(corpus, smaller), "docs")
    assert found.rows.unusable == (row["chunk_id"][0].as_py(),)
    repair(corpus, smaller)
    assert reconcile(corpus.workspace, index_of(corpus, smaller), "docs").agrees
    np.testing.assert_array_equal(stored(corpus, SMALLER[smaller])[1], before)


@pytest.mark.parametrize(
    ("smaller", "value"),
    [("half", 1e6), ("half", 0.0), ("quarter", np.inf), ("quarter", np.nan), ("quarter", 0.0)],
    indirect=["smaller"],
)
def test_a_vector_that_could_not_be_found_is_refused(corpus, smaller, value):
    lance = LanceIndex(corpus.workspace, SMALLER[smaller], DIMENSIONS)
    rows = lance.rows("docs", served=True)
    numbers = np.full(rows.num_rows * DIMENSIONS, value, np.float32)
    at = rows.schema.get_field_index("vector")
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(numbers), DIMENSIONS)
    with pytest.raises(CorpusError, match="not finite, or zero"):
        lance.replace_documents(rows.set_column(at, "vector", vectors), "docs")


def test_a_live_strategy_is_served_as_it_was_promoted(corpus, smaller):
    strategy = corpus.config.strategies[smaller]
    promote(corpus.workspace, strategy, ["docs"], reason="smaller", force=True)
    (answer,) = open_live(corpus.workspace).answers(["How many days do refunds of kind 3 take?"])
    assert answer.passages[0].text == answers(corpus, smaller)[0].text
    assert strategy.declared != corpus.config.strategies["whole"].declared


def test_the_model_of_a_chunk_is_told_for_every_index_that_holds_it(corpus):
    found = explain(corpus.workspace, answers(corpus, "half")[0].chunk_id)
    assert {i["index_version"] for i in found.indexes} == {WHOLE, *SMALLER.values()}
    assert {i["model"]["name"] for i in found.indexes} == {"hash"}
