"""The numbers of a chunk set, and what counts as out of line."""

import polars as pl
import pytest
from small_corpus import SmallCorpus, write_corpus

from chunking_assets.chunk_sets.build import CHUNKS, cell
from chunking_assets.chunk_sets.statistics import chunk_set_statistics, compared_with_previous

CHUNKERS = {
    "plain@1": {"kind": "fixed", "max_tokens": 10},
    "plain@3": {"kind": "fixed", "max_tokens": 4},
    "plain-4@1": {"kind": "fixed", "max_tokens": 4},
    "clean@1": {"kind": "fixed", "max_tokens": 10, "clean": {"boilerplate": 1.0}},
    "sizes@1": {"kind": "hierarchical", "sizes": [20, 10]},
    "portuguese@1": {"kind": "fixed", "max_tokens": 10, "language_factors": {"pt": 2.0}},
}
PORTUGUESE = (
    "A devolução do produto leva até trinta dias úteis depois que o pedido foi aceito pela loja, "
    "e o dinheiro volta para a mesma conta que fez o pagamento."
)
DOCUMENTS = {
    "long.md": " ".join(f"word{n}" for n in range(35)),
    "short.md": "one two three",
    "copy.md": "one two three",
    "pt.md": PORTUGUESE,
}


@pytest.fixture
def corpus(tmp_path):
    strategy = {"chunker": "plain@1", "model": "hash", "profile": "vector"}
    file = write_corpus(tmp_path, DOCUMENTS, chunkers=CHUNKERS, strategies={"s": strategy})
    corpus = SmallCorpus(file)
    corpus.parse()
    corpus.chunk()
    return corpus


def numbers(corpus, name):
    return chunk_set_statistics(corpus.workspace, corpus.config.chunker_versions[name], "docs")


def test_sizes_and_counts_are_those_of_the_rows(corpus):
    found = numbers(corpus, "plain@1")
    rows = corpus.workspace.table(CHUNKS).read(cell("plain@1", "docs"))
    tokens = rows["n_tokens"]
    assert (found.chunks, found.documents, found.budget) == (rows.height, 4, 10)
    assert found.tokens.to_list() == tokens.to_list()
    assert found.mean_tokens == pytest.approx(tokens.mean())
    assert found.variation == pytest.approx(tokens.std(ddof=0) / tokens.mean())
    assert found.chunks_per_document == rows.height / 4
    assert found.most_of_a_document == 4
    assert found.at_the_cap == pytest.approx((tokens == 10).sum() / rows.height)
    assert (found.beyond, found.remarks, found.levels) == ((), {}, {0: rows.height})


def test_equal_texts_are_duplicates_of_each_other(corpus):
    found = numbers(corpus, "plain@1")
    assert found.duplicates == pytest.approx(2 / found.chunks)


def test_a_parent_with_its_child_s_text_is_no_duplicate(corpus):
    found = numbers(corpus, "sizes@1")
    assert set(found.levels) == {0, 1}
    assert found.duplicates == pytest.approx(2 / found.chunks)


def test_only_searched_chunks_have_a_size(corpus):
    found = numbers(corpus, "sizes@1")
    assert (found.budget, found.tokens.max()) == (10, 10)
    assert len(found.tokens) == found.levels[0]
    assert found.beyond == ()


def test_a_budget_is_that_of_the_document_s_language(corpus):
    found = numbers(corpus, "portuguese@1")
    assert (found.budget, found.tokens.max(), found.beyond) == (20, 20, ())


def test_a_chunk_beyond_its_budget_is_named_unless_it_is_marked(corpus):
    table, partition = corpus.workspace.table(CHUNKS), cell("plain-4@1", "docs")
    rows = table.read(partition)
    larger = pl.when(pl.col("doc_id") == "docs/long.md").then(5).otherwise("n_tokens")
    table.replace(rows.with_columns(n_tokens=larger, over_budget=pl.col("ordinal") > 1), partition)
    first_two = rows.filter(doc_id="docs/long.md")["chunk_id"][:2]
    assert numbers(corpus, "plain-4@1").beyond == tuple(first_two)


def test_the_share_left_out_is_of_all_characters(corpus, tmp_path_factory):
    texts = {f"{n}.md": f"{n} is here.\n\nAll rights reserved." for n in range(3)}
    strategy = {"chunker": "clean@1", "model": "hash", "profile": "vector"}
    root = tmp_path_factory.mktemp("clean")
    file = write_corpus(root, texts, chunkers=CHUNKERS, strategies={"s": strategy})
    small = SmallCorpus(file)
    small.parse()
    small.chunk()
    assert numbers(small, "clean@1").excluded == pytest.approx(20 / 32, abs=0.03)
    assert numbers(corpus, "plain@1").excluded == 0


def test_a_remark_is_counted(corpus):
    table, partition = corpus.workspace.table(CHUNKS), cell("plain@3", "docs")
    rows = table.read(partition)
    is_short = pl.col("doc_id") == "docs/short.md"
    remark = pl.when(is_short).then(pl.lit("cut as by recursive: timeout"))
    table.replace(rows.with_columns(remark=remark), partition, keys=table.manifest(partition).keys)
    assert numbers(corpus, "plain@3").remarks == {"cut as by recursive: timeout": 1}


def test_a_shard_without_a_text_has_numbers_too(tmp_path):
    strategy = {"chunker": "plain@1", "model": "hash", "profile": "vector"}
    file = write_corpus(tmp_path, {"a.md": "\n"}, chunkers=CHUNKERS, strategies={"s": strategy})
    blank = SmallCorpus(file)
    blank.parse()
    blank.chunk()
    for name in CHUNKERS:
        found = numbers(blank, name)
        assert (found.chunks, found.chunks_per_document, found.most_of_a_document) == (0, 0, 0)
        assert (found.mean_tokens, found.variation, found.at_the_cap) == (0, 0, 0)
        assert (found.duplicates, found.excluded) == (0, 0)


def test_a_version_is_compared_with_the_last_before_it_over_the_documents_both_have(corpus):
    before, now = (
        corpus.workspace.table(CHUNKS).read(cell(name, "docs")) for name in ("plain@1", "plain@3")
    )
    compared = compared_with_previous(corpus.workspace, "plain@3", "docs")
    assert (compared.previous, compared.documents) == ("plain@1", 4)
    assert compared.ratio == now.height / before.height
    table, partition = corpus.workspace.table(CHUNKS), cell("plain@1", "docs")
    fewer = {d: k for d, k in table.manifest(partition).keys.items() if d != "docs/long.md"}
    table.replace(before.filter(pl.col("doc_id") != "docs/long.md"), partition, keys=fewer)
    compared = compared_with_previous(corpus.workspace, "plain@3", "docs")
    assert compared.documents == 3
    assert compared.chunks == now.filter(pl.col("doc_id") != "docs/long.md").height


@pytest.mark.parametrize("name", ["plain@1", "plain-4@1", "plain@2"])
def test_nothing_is_compared_without_a_version_before_or_without_its_own_chunks(corpus, name):
    assert compared_with_previous(corpus.workspace, name, "docs") is None
