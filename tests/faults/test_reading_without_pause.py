"""A reader elsewhere that asks without pause while the index is updated, compacted, cleaned, promoted
and rolled back: no error, and every answer is of one strategy over one published content."""

import subprocess
import sys
from pathlib import Path

import pytest
from fork_server import environment
from small_corpus import SmallCorpus, write_corpus, write_document

from chunking_assets.chunk_embeddings import lance_index
from chunking_assets.keys import digest
from chunking_assets.live_index.maintenance import MaintenanceSettings, maintain
from chunking_assets.live_index.promotion import promote, rollback
from chunking_assets.retrieval.open import open_strategy

pytestmark = pytest.mark.usefixtures("place")

UPDATES = 8
EVERYTHING = {"k": 1000, "candidates": 1000, "merge": False}
PROFILES = {
    "hybrid": {"search": "hybrid", **EVERYTHING},
    "vector": {"search": "vector", **EVERYTHING},
}
PROGRAM = """
import sys
import small_corpus
from chunking_assets.live_index import serve
from chunking_assets.retrieval import reader
from chunking_assets.workspace import Workspace
from test_reading_without_pause import QUESTION, state_of

serve.FOLLOW_SECONDS = reader.FOLLOW_SECONDS = 0.0
live, told = serve.open_live(Workspace(sys.argv[1])), None
while True:
    state = state_of(live.search(QUESTION))
    if state != told:
        print(state, flush=True)
        told = state
"""
QUESTION = "which sentence of which document"


def state_of(passages):
    """What tells one content of one index from any other: every chunk of the answer."""
    found = sorted((hit.chunk_id, hit.text) for passage in passages for hit in passage.hits)
    return digest(found)


def write(root, revision):
    for number in range(6):
        text = "\n\n".join(f"Sentence {n} of {number} in revision {revision}." for n in range(4))
        write_document(root, f"{number}.md", text)


def test_a_reader_that_never_pauses_sees_whole_states_and_no_error(tmp_path, monkeypatch):
    """LanceDB: readers failed, or saw the half of an update, while a table was written and cleaned."""
    monkeypatch.setattr(lance_index, "MOST_FRAGMENTS", 2)  # compacted at nearly every update
    write(tmp_path, 0)
    corpus = SmallCorpus(write_corpus(tmp_path, {}, retrieval_profiles=PROFILES))
    corpus.update()
    strategies, shards = corpus.config.strategies, list(corpus.config.shards())
    promote(corpus.workspace, strategies["recursive"], shards)
    program = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(corpus.workspace.place)],
        env=environment(PYTHONPATH=f"{Path(__file__).parent}:{environment()['PYTHONPATH']}"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    whole = set()

    def expect():
        for strategy in strategies.values():
            whole.add(state_of(open_strategy(corpus.workspace, strategy).search(QUESTION)))

    with program:
        try:
            expect()
            seen = [program.stdout.readline().strip()]
            for revision in range(1, UPDATES + 1):
                write(tmp_path, revision)
                corpus.update()
                expect()
                if revision % 2:
                    promote(corpus.workspace, strategies["fixed"], shards, force=True)
                else:
                    rollback(corpus.workspace, strategies)
                maintain(corpus.workspace, MaintenanceSettings(keep_days=0))
            last = state_of(
                open_strategy(corpus.workspace, strategies["recursive"]).search(QUESTION)
            )
            while seen[-1] != last:
                seen.append(program.stdout.readline().strip())
                assert seen[-1], program.stderr.read()
            assert program.poll() is None, program.stderr.read()
        finally:
            program.kill()
    assert {*seen} <= whole
    assert len(seen) > UPDATES
