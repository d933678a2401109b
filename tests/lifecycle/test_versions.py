"""From one version of a chunker to another and back: nothing is mixed, lost or paid for twice."""

import pytest
from places import BUCKET, FOLDER
from small_corpus import SmallCorpus, write_corpus

from chunking_assets.chunk_embeddings.lance_index import LanceIndex
from chunking_assets.chunk_sets.build import CHUNKS
from chunking_assets.live_index.retire import retire_version

pytestmark = pytest.mark.usefixtures("place")

TEXTS = {
    f"{n}.md": "\n\n".join(f"Paragraph {p} of {n} says one thing and another." for p in range(6))
    for n in range(4)
}
VERSIONS = {"recursive-20@1": 20, "recursive-20@2": 9}


def corpus_with(root, *names):
    chunkers = {n: {"kind": "recursive", "max_tokens": VERSIONS[n]} for n in names}
    strategies = {
        name.replace("@", "-"): {"chunker": name, "model": "hash", "profile": "vector"}
        for name in names
    }
    return SmallCorpus(write_corpus(root, TEXTS, chunkers=chunkers, strategies=strategies))


def stored(corpus, version):
    """The chunks as they lie on disk, and the rows of the index."""
    (file,) = corpus.workspace.table(CHUNKS).files([f"{version}|docs"])
    rows = LanceIndex(corpus.workspace, f"{version}+hash").rows(served=True).to_pylist()
    return file.read_bytes(), sorted(rows, key=lambda row: row["chunk_id"])


@pytest.mark.parametrize(
    ("retires", "place"), [(False, FOLDER), (True, FOLDER), (True, BUCKET)], indirect=["place"]
)
def test_v1_to_v2_and_back_gives_the_same_bytes_and_embeds_nothing(tmp_path, retires):
    """Switching the chunk method and back loses or mixes chunks elsewhere."""
    one = corpus_with(tmp_path, "recursive-20@1")
    one.update()
    before = stored(one, "recursive-20@1")
    two = corpus_with(tmp_path, "recursive-20@2")
    two.update()
    other = stored(two, "recursive-20@2")
    assert not {r["chunk_id"] for r in before[1]} & {r["chunk_id"] for r in other[1]}
    if retires:
        assert retire_version(two.workspace, "recursive-20@1", ["recursive-20@2"])
    back = corpus_with(tmp_path, "recursive-20@1")
    back.update()
    assert stored(back, "recursive-20@1") == before
    assert back.embedder.embedded == []
    assert stored(back, "recursive-20@2") == other
