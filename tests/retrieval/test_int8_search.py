"""Vectors of 8-bit integers are searched exactly: the nearest by the codes, whatever is filtered."""

import numpy as np
import pytest
from made_up_rows import DIMENSIONS, made_up_rows

from chunking_assets.chunk_embeddings import ann
from chunking_assets.chunk_embeddings.int8 import ROWS_AT_ONCE, as_int8
from chunking_assets.chunk_embeddings.lance_index import LanceIndex
from chunking_assets.retrieval.search import Question, SearchArms
from chunking_assets.workspace import Workspace

SIZE, PARENTS = 2 * ROWS_AT_ONCE + 100, 30
INDEX = "recursive-20@1+hash+int8"


@pytest.fixture(scope="module")
def vectors():
    found = np.random.default_rng(1).normal(size=(SIZE, DIMENSIONS)).astype(np.float32)
    return found / np.linalg.norm(found, axis=1, keepdims=True)


@pytest.fixture(scope="module")
def index(tmp_path_factory, vectors):
    """In two documents, with chunks that are only read, published as a large table is."""
    index = LanceIndex(Workspace(tmp_path_factory.mktemp("int8")), INDEX, DIMENSIONS)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ann, "ANN_FROM", 100)
        index.replace_documents(made_up_rows(vectors[:900], parents=PARENTS), "docs")
        later = made_up_rows(vectors[900:], first=5000)
        index.replace_documents(later, "docs", ["docs/5000.md"])
        index.publish()
    return index


def cosines(vectors, query):
    codes = as_int8(vectors).astype(np.float64)
    return codes @ query / np.linalg.norm(codes, axis=1)


def found(index, query, limit, where=None):
    hits = SearchArms(index.open_served()).vector(Question(query, None, where), limit)
    return [hit.vector_score for hit in hits], [hit.chunk_id for hit in hits]


@pytest.mark.parametrize("asked", [3, 899, 900, SIZE - 1])
@pytest.mark.parametrize("limit", [1, 10, SIZE - 1, SIZE, 2 * SIZE])
def test_the_nearest_are_found_and_scored_by_their_codes(index, vectors, asked, limit):
    wanted = sorted(cosines(vectors, vectors[asked]), reverse=True)[:limit]
    scores, chunks = found(index, vectors[asked], limit)
    assert scores == pytest.approx(wanted, abs=2e-6)
    assert chunks[0] == f"{asked:05}" if asked < 900 else f"{5000 + asked - 900:05}"
    assert len({*chunks}) == min(limit, SIZE)


def test_a_filter_leaves_as_many_as_satisfy_it(index, vectors):
    scores, chunks = found(index, vectors[3], 10, "doc_id = 'docs/5000.md'")
    wanted = sorted(cosines(vectors[900:], vectors[3]), reverse=True)[:10]
    assert scores == pytest.approx(wanted, abs=2e-6)
    assert all(chunk >= "05000" for chunk in chunks)
    assert found(index, vectors[3], 10, "doc_id = 'docs/none.md'") == ([], [])


def test_no_graph_is_built_for_them(index):
    assert not ann.has_ann_index(index.open_served())
    assert index.unindexed_rows() == 0


def test_directions_are_kept_to_the_rounding(vectors):
    one = np.sum(as_int8(vectors) * vectors, axis=1) / np.linalg.norm(as_int8(vectors), axis=1)
    assert one.min() > 0.9999
