"""The index as it was, until it is cleaned."""

from datetime import UTC, datetime, timedelta

import pytest
from places import both_places
from small_corpus import SmallCorpus, write_corpus, write_document

from chunking_assets.chunk_embeddings.lance_index import LanceIndex
from chunking_assets.errors import CorpusError
from chunking_assets.live_index.promotion import promote, rollback
from chunking_assets.live_index.serve import moment_of, open_past

pytestmark = pytest.mark.usefixtures("place")


@pytest.fixture
def corpus(tmp_path):
    corpus = SmallCorpus(write_corpus(tmp_path, {"a.md": "First words."}))
    corpus.update()
    return corpus


def go_live(corpus, name, **how):
    return promote(corpus.workspace, corpus.config.strategies[name], ["docs"], **how)


def answer(corpus, moment):
    then, reader = open_past(corpus.workspace, moment)
    return then.strategy, reader.search("words")[0].text


def test_strategy_and_content_are_those_of_the_moment(corpus):
    start = datetime.now(UTC)
    first = go_live(corpus, "recursive")["at"]
    write_document(corpus.config.root, "a.md", "Second words.")
    corpus.update()
    edited = datetime.now(UTC)
    second = go_live(corpus, "fixed", force=True)["at"]
    rollback(corpus.workspace, corpus.config.strategies)
    assert answer(corpus, first) == ("recursive", "First words.")
    assert answer(corpus, edited) == ("recursive", "Second words.")
    assert answer(corpus, second) == ("fixed", "Second words.")
    assert answer(corpus, datetime.now(UTC)) == ("recursive", "Second words.")
    with pytest.raises(CorpusError, match="Nothing was live on"):
        open_past(corpus.workspace, start)


@both_places
def test_a_reader_of_the_past_does_not_follow(corpus):
    _, reader = open_past(corpus.workspace, go_live(corpus, "recursive")["at"])
    write_document(corpus.config.root, "a.md", "Second words.")
    corpus.update()
    assert reader.search("words")[0].text == "First words."


def test_a_moment_is_a_date_a_time_or_a_promotion(corpus):
    event = go_live(corpus, "recursive")
    last = datetime(2026, 5, 31, 23, 59, 59, 999999, tzinfo=UTC)
    assert moment_of(corpus.workspace, "2026-05-31") == last
    assert moment_of(corpus.workspace, "2026-05-31T12:00") == last.replace(
        hour=12, minute=0, second=0, microsecond=0
    )
    assert moment_of(corpus.workspace, "2026-05-31T12:00+02:00").hour == 10
    assert moment_of(corpus.workspace, event["event_id"][:8]) == event["at"]
    with pytest.raises(CorpusError, match="'yesterday' is no date"):
        moment_of(corpus.workspace, "yesterday")


def test_before_the_first_publication_there_was_nothing(corpus):
    go_live(corpus, "recursive")
    with pytest.raises(CorpusError, match=r"did not exist yet. States still kept begin at: 2"):
        LanceIndex(corpus.workspace, "recursive-20@1+hash").open_at(
            datetime.now(UTC) - timedelta(days=1)
        )
