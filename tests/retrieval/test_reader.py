import pytest
from small_corpus import HashEmbedder, SmallCorpus, write_corpus, write_document

from chunking_assets.chunk_embeddings.word_frequencies import word_frequencies
from chunking_assets.errors import CorpusError
from chunking_assets.retrieval import reader as reader_module
from chunking_assets.retrieval.bm25 import Bm25Settings, Weigher
from chunking_assets.retrieval.open import open_strategy
from chunking_assets.retrieval.search import Question

DOCUMENTS = {
    "refunds.md": "# Refunds\n\nMoney goes back within 120 days of the sale.",
    "fees.md": "# Fees\n\nA card payment costs 1.4 percent.",
    "quotes.md": '# It\'s\n\nThe "quoted" word and (brackets) OR AND NOT * are text: ~ ^ : + -',
}


@pytest.fixture
def corpus(tmp_path, monkeypatch):
    monkeypatch.setattr(reader_module, "FOLLOW_SECONDS", 0.0)
    corpus = SmallCorpus(write_corpus(tmp_path, DOCUMENTS))
    corpus.update()
    return corpus


def ask(corpus, question, strategy="recursive"):
    return open_strategy(corpus.workspace, corpus.config.strategies[strategy]).search(question)


@pytest.mark.parametrize("strategy", ["recursive", "fixed"])
def test_a_question_finds_its_document(corpus, strategy):
    passages = ask(corpus, "how many days until money of the sale goes back", strategy)
    assert passages[0].doc_id == "docs/refunds.md"


def test_a_passage_is_a_slice_of_the_canonical_text(corpus):
    for passage in ask(corpus, "card payment costs"):
        (start, end) = passage.spans[0]
        text = DOCUMENTS[passage.doc_id.removeprefix("docs/")]
        if len(passage.spans) == 1:
            assert text[start:end] == passage.text


@pytest.mark.parametrize(
    "question", ['"', "a:b", "shard = 'x' OR 1=1", "NOT *", "~", "(", "é\u0301", "x" * 10_000, "🙂"]
)
def test_a_question_is_text_and_never_syntax(corpus, question):
    assert len(ask(corpus, question)) <= 5


def test_an_empty_question_is_an_error(corpus):
    with pytest.raises(CorpusError, match="The question is empty"):
        ask(corpus, " \n")


def test_an_index_never_published_is_an_error(tmp_path):
    corpus = SmallCorpus(write_corpus(tmp_path, DOCUMENTS))
    with pytest.raises(CorpusError, match="was never published"):
        ask(corpus, "anything")


def test_an_open_reader_follows_the_index(corpus):
    reader = open_strategy(corpus.workspace, corpus.config.strategies["recursive"])
    assert reader.search("penguins in winter")[0].doc_id != "docs/new.md"
    write_document(corpus.config.root, "new.md", "Penguins in winter.")
    corpus.update()
    assert reader.search("penguins in winter")[0].doc_id == "docs/new.md"


def test_another_model_under_the_same_name_is_refused(corpus):
    changed = {"hash": {"kind": "hash", "max_tokens": 99}}
    other = SmallCorpus(write_corpus(corpus.config.root, DOCUMENTS, embedding_models=changed))
    with pytest.raises(CorpusError, match="was first used with other settings"):
        open_strategy(other.workspace, other.config.strategies["recursive"])


def test_a_shared_model_is_loaded_once(corpus):
    loaded = []

    def load():
        loaded.append(1)
        return HashEmbedder(512)

    reader = open_strategy(corpus.workspace, corpus.config.strategies["recursive"], load)
    reader.search("one")
    reader.search("two")
    assert loaded == [1]


@pytest.mark.parametrize("strategy", ["recursive", "fixed"])
def test_each_arm_asks_for_one_more_to_see_a_tie_across_its_limit(tmp_path, strategy):
    same = {f"{n}.md": "The same words everywhere." for n in range(30)}
    corpus = SmallCorpus(write_corpus(tmp_path, {**same, "best.md": "The same rare words."}))
    corpus.update()
    reader = open_strategy(corpus.workspace, corpus.config.strategies[strategy])
    served = reader._follow()
    weigher = served.weigher or Weigher(
        word_frequencies(corpus.workspace, "test", served.arms._table)
    )
    query = corpus.embedder.embed_queries(["rare words"])[0]
    question = Question(query, weigher.weigh("rare words", Bm25Settings()))
    assert [hit.doc_id for hit in served.arms.bm25(question, 10)] == ["docs/best.md"]
    assert [hit.doc_id for hit in served.arms.vector(question, 10)] == ["docs/best.md"]
