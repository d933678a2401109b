"""Hits in other languages than the question's come along, over and above k."""

import pytest
from pydantic import ValidationError
from small_corpus import SmallCorpus, write_corpus

from chunking_assets.retrieval.hit import Hit
from chunking_assets.retrieval.open import open_strategy
from chunking_assets.retrieval.other_languages import Languages, of_other_languages
from chunking_assets.retrieval.profile import RetrievalProfile
from chunking_assets.retrieval.select import within

QUESTION = "Qual é o prazo para o reembolso de uma venda?"
PORTUGUESE = "O prazo para o reembolso de uma venda é de {} dias e o dinheiro volta ao cartão."
ENGLISH = "Money goes back to the card within {} days of the day on which it was taken."
FRENCH = "Les commerçants reçoivent leur argent {} jours après la vente, sauf les jours fériés."
CODE = "def days():\n    return {}\n"


def hit(name, tokens=10):
    return Hit(name, name, 0, 0, 10, "", "x" * 10, (), tokens, 1.0)


def corpus_of(folder, documents, **profile):
    profiles = {"asked": {"search": "hybrid", "k": 1, **profile}}
    strategy = {"chunker": "recursive-20@1", "model": "hash", "profile": "asked"}
    file = write_corpus(
        folder, documents, retrieval_profiles=profiles, strategies={"asked": strategy}
    )
    corpus = SmallCorpus(file)
    corpus.update()
    return corpus


def found(corpus, question=QUESTION):
    reader = open_strategy(corpus.workspace, corpus.config.strategies["asked"])
    return [passage.doc_id.removeprefix("docs/") for passage in reader.search(question)]


def in_three_languages():
    texts = {"pt": PORTUGUESE, "en": ENGLISH, "fr": FRENCH}
    return {f"{code}{n}.md": text.format(n) for code, text in texts.items() for n in range(10, 13)}


def test_the_first_of_every_other_language_are_chosen():
    ranked = [hit(name) for name in ("pt1", "en1", "code", "en2", "fr1", "en3")]
    languages = {h.doc_id: h.doc_id[:2] for h in ranked if h.doc_id != "code"}
    chosen = of_other_languages(ranked, "pt", 2, languages)
    assert [h.doc_id for h in chosen] == ["en1", "en2", "fr1"]


def test_the_best_of_each_other_language_come_on_top_of_k(tmp_path):
    corpus = corpus_of(tmp_path, in_three_languages(), other_languages=1)
    first, *others = found(corpus)
    assert first.startswith("pt")
    assert sorted(name[:2] for name in others) == ["en", "fr"]


def test_nothing_comes_along_unless_asked_for(tmp_path):
    assert len(found(corpus_of(tmp_path, in_three_languages()))) == 1


def test_a_language_that_is_not_among_the_candidates_is_looked_for(tmp_path):
    many = {f"pt{n}.md": PORTUGUESE.format(n) for n in range(60)}
    documents = {**many, "en.md": ENGLISH.format(30)}
    corpus = corpus_of(tmp_path, documents, candidates=20, other_languages=1)
    assert found(corpus)[1:] == ["en.md"]


def test_the_language_of_most_documents_is_looked_for_too(tmp_path):
    documents = {f"pt{n}.md": PORTUGUESE.format(n) for n in range(10, 13)} | {"en.md": ENGLISH}
    documents["days.py"] = CODE.format(3)
    corpus = corpus_of(tmp_path, documents, other_languages=1)
    conditions = Languages(corpus.workspace).conditions
    assert " NOT IN " in conditions["pt"]
    assert found(corpus, ENGLISH)[1].startswith("pt")


def test_documents_without_a_language_are_not_of_another_one(tmp_path):
    documents = {"pt.md": PORTUGUESE.format(30), "days.py": CODE.format(3)}
    assert found(corpus_of(tmp_path, documents, other_languages=1)) == ["pt.md"]


def test_a_question_whose_language_cannot_be_told_is_answered_as_ever(tmp_path):
    corpus = corpus_of(tmp_path, in_three_languages(), other_languages=1)
    assert len(found(corpus, "10 11 12")) == 1


def test_what_does_not_fit_the_budget_stays_behind():
    chosen = within([hit("a", 10)], [hit("b", 30), hit("c", 5), hit("a", 10)], 20)
    assert [h.doc_id for h in chosen] == ["a", "c"]


def test_words_alone_cannot_find_another_language():
    with pytest.raises(ValidationError, match="other_languages needs vectors"):
        RetrievalProfile(search="bm25", other_languages=1)
