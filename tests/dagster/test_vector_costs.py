"""What the vectors of a run took is in the ledger, whatever they were for."""


def test_chunks_sentences_and_questions_are_work_of_their_own(corpus_of):
    price = {"model": "hash", "unit": "1M input tokens", "price": 1.0, "as_of": "2020-01-01"}
    corpus = corpus_of(
        chunkers={"semantic-20@1": {"kind": "semantic", "max_tokens": 20}},
        strategies={"one": {"chunker": "semantic-20@1", "model": "hash", "profile": "vector"}},
        comparison={"baseline": "one"},
        prices=[price],
    )
    corpus.materialize("retrieval_scores")
    costs = corpus.workspace.table("costs").read_all().sort("partition")
    rows = {(r["work"], r["asset"], r["partition"]): r for r in costs.iter_rows(named=True)}
    assert rows.keys() == {
        ("embed", "chunk_embeddings", "semantic-20@1+hash|docs"),
        ("embed", "chunk_embeddings", "semantic-20@1+hash|notes"),
        ("embed_sentences", "chunk_sets", "semantic-20@1|docs"),
        ("embed_sentences", "chunk_sets", "semantic-20@1|notes"),
        ("embed_questions", "retrieval_scores", "one"),
    }
    assert all(row["tokens_sent"] > 0 and row["cost"] > 0 for row in rows.values())
    assert rows["embed_questions", "retrieval_scores", "one"]["strategy"] == "one"
