"""What the pages of a document repeat is in its text and in no chunk."""

import polars as pl
from small_corpus import SmallCorpus, write_corpus
from written_files import column, pdf

from chunking_assets.chunk_sets.build import CHUNKS, EXCLUDED_SPANS, cell
from chunking_assets.chunk_sets.rows import EMBED_TEXT
from chunking_assets.chunk_sets.verify import verify_chunk_set

CHUNKERS = {
    "plain@1": {"kind": "recursive", "max_tokens": 60},
    "clean@1": {"kind": "recursive", "max_tokens": 60, "clean": {"blank_lines": True}},
}
STRATEGIES = {
    name.partition("@")[0]: {"chunker": name, "model": "hash", "profile": "vector"}
    for name in CHUNKERS
}


def test_no_version_embeds_running_headers_and_nothing_else_is_lost(tmp_path):
    file = write_corpus(tmp_path, {}, chunkers=CHUNKERS, strategies=STRATEGIES)
    pages = [
        [
            (72, 760, 9, "F1", "Terms of service"),
            *column([f"Clause {n} is about something else than all others."]),
            (300, 30, 9, "F1", str(n)),
        ]
        for n in range(1, 7)
    ]
    (tmp_path / "docs" / "terms.pdf").write_bytes(pdf(pages))
    corpus = SmallCorpus(file)
    corpus.parse()
    corpus.chunk()
    for name in CHUNKERS:
        rows = corpus.workspace.table(CHUNKS).read(cell(name, "docs"))
        embedded = "\n".join(rows.select(EMBED_TEXT).to_series())
        assert "Terms of service" not in embedded
        assert all(f"Clause {n} is about" in embedded for n in range(1, 7))
        assert len(rows) < 6  # chunks reach over pages
        health = verify_chunk_set(corpus.workspace, name, "docs")
        assert (health.inexact, health.uncovered) == ((), ())
    excluded = corpus.workspace.table(EXCLUDED_SPANS).read(cell("clean@1", "docs"))
    assert excluded.filter(pl.col("reason") == "furniture").height == 12
