"""BM25 as the profile sets it: words, stems, stop words, parameters, and what can be attained."""

import math

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_corpus import SmallCorpus, write_corpus, write_document

from chunking_assets.chunk_embeddings.lance_index import LanceIndex
from chunking_assets.chunk_embeddings.word_frequencies import (
    WordFrequencies,
    _folded,
    _words,
    word_frequencies,
    words_of,
)
from chunking_assets.retrieval.bm25 import STEMMERS, Bm25Settings, Weigher, language_of
from chunking_assets.retrieval.stop_words import STOP_WORDS

# Libraries of different Unicode versions disagree on what is new or not assigned.
OLD = st.characters(max_codepoint=0x1FFF, exclude_categories=["Cn"])
TEXT = st.text(OLD, max_size=60)


def counted(*texts):
    """What `word_frequencies` would count of these chunks."""
    words = [words_of(text) for text in texts]
    spelt = [set(w) for w in _words(pl.Series(texts)).to_list()]
    return WordFrequencies(
        len(texts),
        sum(map(len, words)),
        {word: sum(word in s for s in spelt) for s in spelt for word in s},
        {word: sum(word in w for w in words) for w in words for word in w},
    )


def test_the_score_is_the_published_formula():
    texts = ["red green green", "red blue", "blue sea"]
    weighed = Weigher(counted(*texts)).weigh("green sky", Bm25Settings(k1=1.5, b=0.5))
    idf = math.log(1 + (3 - 1 + 0.5) / (1 + 0.5))
    expected = idf * 2 * 2.5 / (2 + 1.5 * (0.5 + 0.5 * 3 / (7 / 3)))
    assert weighed.score(texts[0]) == pytest.approx(expected)
    assert weighed.score(texts[1]) == 0


@settings(deadline=None)
@given(st.lists(TEXT, min_size=1, max_size=6), TEXT, st.floats(0, 3), st.floats(0, 1))
def test_no_chunk_scores_more_than_is_attainable(texts, question, k1, b):
    weighed = Weigher(counted(*texts)).weigh(question, Bm25Settings(k1=k1, b=b))
    assert all(0 <= weighed.score(text) <= weighed.attainable + 1e-9 for text in texts)


def test_a_word_no_chunk_has_makes_the_attainable_score_higher():
    weigher = Weigher(counted("red green", "red blue"))
    known = weigher.weigh("green", Bm25Settings())
    assert weigher.weigh("green zebra", Bm25Settings()).attainable > 2 * known.attainable


def test_parameters_change_the_order():
    long, short = "red " * 4 + "green blue sea sky " * 10, "red sea"
    weigher = Weigher(counted(long, short, "green"))
    by_length = weigher.weigh("red", Bm25Settings(b=1))
    by_count = weigher.weigh("red", Bm25Settings(b=0))
    assert by_length.score(short) > by_length.score(long)
    assert by_count.score(short) < by_count.score(long)


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("Where are my refunds for the returned orders?", "A refund follows a return of the order"),
        ("Onde estão as devoluções dos pagamentos?", "A devolução do pagamento é feita logo."),
        ("Où sont les remboursements de ma commande ?", "Le remboursement des commandes suit."),
    ],
)
def test_stemming_finds_other_forms_in_the_questions_language(question, text):
    weigher = Weigher(counted(text, "zebra"))
    plain = weigher.weigh(question, Bm25Settings(stop_words=True))
    stemmed = weigher.weigh(question, Bm25Settings(stop_words=True, stem=True))
    assert stemmed.score(text) > plain.score(text)
    assert stemmed.score(text) <= stemmed.attainable


def test_stop_words_are_left_out_unless_there_is_nothing_else():
    weigher = Weigher(counted("who is the who", "a band"))
    settings = Bm25Settings(stop_words=True, language="en")
    assert weigher.weigh("Who is the best band?", settings).asked == "band best"
    assert weigher.weigh("Who is the who?", settings).asked == "is the who"


def test_a_language_without_stemmer_or_list_takes_words_as_they_are():
    weigher = Weigher(counted("cóż to jest"))
    settings = Bm25Settings(stem=True, stop_words=True, language="xx")
    assert weigher.weigh("cóż to", settings).asked == "cóż to"


@pytest.mark.parametrize("language", STOP_WORDS)
def test_a_question_of_small_words_is_of_their_language(language):
    words = sorted(
        STOP_WORDS[language] - {w for o in STOP_WORDS if o != language for w in STOP_WORDS[o]}
    )
    assert language_of(" ".join(words[:3])) == language


def test_every_stemmer_exists():
    import Stemmer

    assert {*STEMMERS.values()} <= {*Stemmer.algorithms()}


@settings(deadline=None)
@given(TEXT)
def test_counting_and_scoring_see_the_same_words(text):
    counted_words = pl.DataFrame({"w": _words(pl.Series([text]))[0]})
    folded = (
        counted_words.select(_folded(pl.col("w")))["w"].to_list() if counted_words.height else []
    )
    assert [word for word in folded if word] == words_of(text)


def test_ascii_and_other_text_are_split_alike():
    text = "It's 1.4% of_all: e-mail"
    assert [*words_of(text), "e"] == words_of(text + " é")


def test_words_are_counted_when_a_version_is_published_and_again_after_an_edit(tmp_path):
    corpus = SmallCorpus(write_corpus(tmp_path, {"a.md": "Été or ete.", "b.md": "Red red."}))
    corpus.update()
    name = "recursive-20@1+hash"

    def counts():
        index = LanceIndex(corpus.workspace, name)
        return word_frequencies(corpus.workspace, index.name, index.open_served())

    words = corpus.workspace.caches / "words" / LanceIndex(corpus.workspace, name).name
    (file,) = words.iterdir()
    written = file.stat().st_mtime_ns
    first = counts()
    assert (first.chunks, first.words) == (2, 5)
    assert first.spelt == {"été": 1, "or": 1, "ete": 1, "red": 1}
    assert first.chunks_with == {"ete": 2, "or": 1, "red": 1}
    assert counts() == first
    assert file.stat().st_mtime_ns == written
    write_document(corpus.config.root, "b.md", "Blue.")
    corpus.update()
    assert "red" not in counts().spelt
    assert counts().spelt["blue"] == 1
