"""What an index found does not depend on what it once held."""

import random

import pytest
from small_corpus import SmallCorpus, write_corpus, write_document

from chunking_assets.retrieval.open import open_strategy

WORDS = [f"word{n}" for n in range(40)]


def documents(seed):
    """Three hundred of one chunk each, most of which match any question a little."""
    chance = random.Random(seed)
    return {
        f"{n:03}.md": " ".join(chance.choices(WORDS, k=chance.randint(5, 18))) for n in range(300)
    }


def found(corpus, question):
    reader = open_strategy(corpus.workspace, corpus.config.strategies["recursive"])
    return [(hit.doc_id, hit.score, hit.bm25_score) for hit in reader.rank(question).hits]


@pytest.mark.parametrize("question", ["word1 word2", "word7 word8 word9 word10 word11"])
def test_an_index_edited_and_restored_finds_what_a_new_one_finds(tmp_path, question):
    before, between = documents(1), documents(2)
    edited = SmallCorpus(write_corpus(tmp_path / "edited", before))
    edited.update()
    for texts in (between, before):
        for name in list(before)[:150]:
            write_document(edited.config.root, name, texts[name])
        edited.update()
    new = SmallCorpus(write_corpus(tmp_path / "new", before))
    new.update()
    assert found(edited, question) == found(new, question)
