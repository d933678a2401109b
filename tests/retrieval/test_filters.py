"""Filters: what may answer, whatever the values look like."""

import json
import time
from datetime import UTC, datetime, timedelta, timezone

import polars as pl
import pytest
from pydantic import ValidationError
from small_corpus import CONFIGURATION, SmallCorpus, write_corpus

from chunking_assets.errors import CorpusError
from chunking_assets.parsed_elements.reuse import DOCUMENTS
from chunking_assets.retrieval import filters as filters_module
from chunking_assets.retrieval.filters import Filters
from chunking_assets.retrieval.open import open_strategy

TEXT = "The same words about refunds stand in every document of this corpus, whatever it is called."
STRANGE = ["it's.md", 'a"b.md', "100%_b.md", "back\\slash.md", "semi;colon--.md", "') OR (1=1.md"]
DOCUMENTS_WRITTEN = {
    "en/guide.md": f'# Fees\n\n{TEXT}\n\n# Bob\'s "refunds"\n\n{TEXT}',
    "en/other.txt": TEXT,
    "pt/guia.md": "Os reembolsos demoram cinco dias úteis a chegar ao cartão com que foram pagos.",
    **dict.fromkeys(STRANGE, TEXT),
}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    profiles = {
        "hybrid": {"search": "hybrid", "k": 50},
        "vector": {"search": "vector", "k": 50},
        "bm25": {"search": "bm25", "k": 50},
        "english": {"search": "hybrid", "k": 50, "filters": {"language": ["en"]}},
    }
    strategies = {
        name: {"chunker": "recursive-20@1", "model": "hash", "profile": name} for name in profiles
    }
    corpus = SmallCorpus(
        write_corpus(
            tmp_path_factory.mktemp("filters"),
            DOCUMENTS_WRITTEN,
            retrieval_profiles={**CONFIGURATION["retrieval_profiles"], **profiles},
            strategies=strategies,
        )
    )
    corpus.update()
    return corpus


def found(corpus, strategy="hybrid", **filters):
    reader = open_strategy(corpus.workspace, corpus.config.strategies[strategy])
    passages = reader.search("refunds reembolsos words", Filters(**filters))
    return {passage.doc_id.removeprefix("docs/") for passage in passages}


@pytest.mark.parametrize("strategy", ["hybrid", "vector", "bm25"])
def test_every_way_to_search_is_filtered(corpus, strategy):
    assert found(corpus, strategy, path=("en/",)) == {"en/guide.md", "en/other.txt"}
    assert found(corpus, strategy, language=("pt",)) == {"pt/guia.md"}
    assert found(corpus, strategy, media_type=("text/plain",)) == {"en/other.txt"}
    assert found(corpus, strategy, collection=("docs",)) == {*DOCUMENTS_WRITTEN}
    assert found(corpus, strategy, collection=("other",)) == set()


def test_a_heading_must_stand_above_the_chunk_to_the_letter(corpus):
    reader = open_strategy(corpus.workspace, corpus.config.strategies["hybrid"])
    passages = reader.search("refunds words", Filters(heading=('Bob\'s "refunds"',)))
    assert passages
    assert {passage.heading_path for passage in passages} == {('Bob\'s "refunds"',)}


@pytest.mark.parametrize("name", STRANGE)
def test_a_strange_name_is_a_name_and_finds_itself_only(corpus, name):
    pattern = name.replace("\\", "\\\\")
    assert found(corpus, path=(f"/{pattern}",)) == {name}


@pytest.mark.parametrize(
    "value", ["' OR 1=1 --", "'; DROP TABLE x", "%", "_", "\\", "\x00", "en') OR ('1'='1", "🙂"]
)
@pytest.mark.parametrize("key", ["collection", "language", "heading", "media_type"])
def test_a_value_is_never_syntax(corpus, key, value):
    assert found(corpus, **{key: (value,)}) == set()


def test_dates_bound_from_and_before(corpus):
    before, after = datetime(2000, 1, 1, tzinfo=UTC), datetime(2200, 1, 1)
    assert found(corpus, modified_from=before, modified_before=after) == {*DOCUMENTS_WRITTEN}
    assert found(corpus, modified_from=after) == set()
    assert found(corpus, modified_before=before) == set()


@pytest.mark.parametrize("hours", [None, 2])
def test_a_date_is_included_where_it_begins_and_not_where_it_ends(corpus, monkeypatch, hours):
    """Without an offset it is UTC, wherever the process runs."""
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    written = datetime(2026, 3, 1, 12, tzinfo=UTC)
    documents = filters_module._documents(corpus.workspace)
    dated = documents.with_columns(modified_at=pl.lit(written, documents.schema["modified_at"]))
    monkeypatch.setattr(filters_module, "_documents", lambda workspace: dated)
    zone = timezone(timedelta(hours=hours)) if hours else None
    there = written.astimezone(zone) if zone else written.replace(tzinfo=None)
    try:
        assert found(corpus, modified_from=there) == {*DOCUMENTS_WRITTEN}
        assert found(corpus, modified_before=there) == set()
        assert found(corpus, modified_from=there + timedelta(microseconds=1)) == set()
        assert found(corpus, modified_before=there + timedelta(seconds=1)) == {*DOCUMENTS_WRITTEN}
    finally:
        monkeypatch.undo()
        time.tzset()


def test_any_column_of_documents_can_be_asked_for(corpus):
    assert found(corpus, metadata={"path": "it's.md"}) == {"it's.md"}
    assert found(corpus, metadata={"status": "' OR 1=1"}) == set()
    with pytest.raises(CorpusError, match="no document has 'author' to filter by"):
        found(corpus, metadata={"author": "x"})


@pytest.mark.parametrize("form", ["json", "struct"])
def test_fields_of_a_documents_metadata_can_be_asked_for(corpus, monkeypatch, form):
    documents = filters_module._documents(corpus.workspace)
    fields = [{"author": f"O'{n}", "draft": n == 0} for n in range(documents.height)]
    column = pl.Series("metadata", fields if form == "struct" else list(map(json.dumps, fields)))
    monkeypatch.setattr(
        filters_module, "_documents", lambda workspace: documents.with_columns(column)
    )
    first = documents["path"][0]
    assert found(corpus, metadata={"author": "O'0"}) == {first}
    assert found(corpus, metadata={"draft": True}) == {first}
    assert found(corpus, metadata={"author": "O'0", "draft": False}) == set()


def test_the_profiles_filters_hold_for_every_question(corpus):
    assert found(corpus, "english", path=("pt/",)) == set()
    with pytest.raises(CorpusError, match="the profile filters by language already"):
        found(corpus, "english", language=("pt",))


def test_most_documents_are_named_by_those_left_out(corpus):
    condition = filters_module.where(Filters(path=("en/", "/*.md")), corpus.workspace)
    assert condition == "doc_id NOT IN ('docs/pt/guia.md')"


def test_an_unknown_filter_is_refused():
    with pytest.raises(ValidationError, match="Extra inputs"):
        Filters(author="x")


def test_texts_are_not_read_to_filter(corpus):
    assert corpus.workspace.table(DOCUMENTS).partitions()
    assert "text" not in filters_module._documents(corpus.workspace).columns
