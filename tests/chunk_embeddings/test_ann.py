"""The ANN index: where it is built, what it finds, and that it holds every row that is served."""

import numpy as np
import pytest
from made_up_rows import DIMENSIONS, made_up_rows

from chunking_assets.chunk_embeddings import ann
from chunking_assets.chunk_embeddings.lance_index import LanceIndex
from chunking_assets.retrieval.search import Question, SearchArms
from chunking_assets.workspace import Workspace

SIZE = 600
INDEX = "recursive-20@1+hash"


@pytest.fixture
def vectors():
    found = np.random.default_rng(0).normal(size=(SIZE, DIMENSIONS)).astype(np.float32)
    return found / np.linalg.norm(found, axis=1, keepdims=True)


@pytest.fixture(params=[INDEX, f"{INDEX}+float16"])
def index(tmp_path, request):
    return LanceIndex(Workspace(tmp_path), request.param, DIMENSIONS)


def rounding(index):
    return 5e-4 if index.name.endswith("float16") else 2e-6


def test_a_small_table_is_searched_exactly(index, vectors):
    index.replace_documents(made_up_rows(vectors), "docs")
    index.publish()
    assert not ann.has_ann_index(index.open_served())


@pytest.mark.parametrize("parents", [0, 50])
def test_a_large_one_is_indexed_and_stays_so_as_it_grows(index, vectors, monkeypatch, parents):
    monkeypatch.setattr(ann, "ANN_FROM", 500)
    index.replace_documents(made_up_rows(vectors[:550], parents=parents), "docs")
    index.publish()
    later = made_up_rows(vectors[550:], first=1000)
    index.replace_documents(later, "docs", [later["doc_id"][0].as_py()])
    index.publish()
    assert index.unindexed_rows() == 0
    table = index.open_served()
    assert ann.has_ann_index(table)
    arms = SearchArms(table)
    for query in (vectors[3], vectors[580]):
        found = [hit.vector_score for hit in arms.vector(Question(query, None), 10)]
        assert found == pytest.approx(sorted(vectors @ query)[:-11:-1], abs=rounding(index))


def test_a_table_that_outgrows_its_graphs_gets_more_and_all_of_them_are_asked(
    index, vectors, monkeypatch
):
    monkeypatch.setattr(ann, "ANN_FROM", 100)
    monkeypatch.setattr(ann, "CHUNKS_PER_GRAPH", 150)

    def names():
        return [i.name for i in index.open_served().list_indices() if "vector" in i.columns]

    made = []
    for first, last in ((0, 140), (140, 160), (160, 400), (400, SIZE)):
        index.replace_documents(
            made_up_rows(vectors[first:last], first), "docs", [f"docs/{first}.md"]
        )
        index.publish()
        made += names()
    assert made == ["vector_idx", "vector_in_2_graphs", "vector_in_2_graphs", "vector_in_4_graphs"]
    assert index.unindexed_rows() == 0
    arms = SearchArms(index.open_served())
    for query in vectors[::60]:
        found = [hit.vector_score for hit in arms.vector(Question(query, None), 10)]
        assert found == pytest.approx(sorted(vectors @ query)[:-11:-1], abs=rounding(index))


def test_filters_hold_before_the_nearest_are_taken(index, vectors, monkeypatch):
    monkeypatch.setattr(ann, "ANN_FROM", 500)
    index.replace_documents(made_up_rows(vectors[:590]), "docs", ["docs/0.md"])
    index.replace_documents(made_up_rows(vectors[590:], first=1000), "docs", ["docs/1000.md"])
    index.publish()
    question = Question(vectors[0], None, "doc_id IN ('docs/1000.md')")
    assert len(SearchArms(index.open_served()).vector(question, 10)) == 10
