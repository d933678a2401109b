import pytest

from benchmarks import scale
from chunking_assets.chunk_embeddings.lance_index import LanceIndex
from chunking_assets.workspace import Workspace

INDEX = "sentence@1+scale"


@pytest.mark.parametrize("power", [0.5, 1.0, 2.0])
def test_the_exponent_of_growth_is_that_of_the_power(power):
    sizes = [1_000, 10_000, 100_000]
    assert scale.exponent(sizes, [3 * size**power for size in sizes]) == pytest.approx(power)


def test_each_stage_does_its_work_over_the_shards_it_is_given(tmp_path, monkeypatch):
    monkeypatch.setenv("CORPUS_HOME", str(tmp_path / "home"))
    scale.write_corpus(tmp_path, 200, shards=2)
    for stage in ("parse", "chunk", "write", "search"):
        scale.prepared(stage, tmp_path, ["part-0", "part-1"], 64)()
    table = LanceIndex(Workspace(tmp_path / "home"), INDEX).open_served()
    assert table.count_rows() == pytest.approx(200, rel=0.2)
    assert scale.megabytes_of(tmp_path / "home")["indexes"] > 0
