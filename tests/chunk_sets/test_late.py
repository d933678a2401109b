"""What late chunking declares: the spans of another strategy, and no context but the window."""

from dataclasses import replace

import pytest
from pydantic import ValidationError

from chunking_assets.chunk_sets.chunker import Chunker
from chunking_assets.chunk_sets.chunking import chunk
from chunking_assets.chunk_sets.late import LateChunker
from chunking_assets.chunk_sets.recursive import RecursiveChunker
from chunking_assets.chunk_sets.semantic import SemanticChunker
from chunking_assets.chunk_sets.sliding_window import SlidingWindowChunker
from chunking_assets.chunk_sets.spans import Document, Facts
from chunking_assets.strict_yaml import first_mistake

RECURSIVE = {"kind": "recursive", "max_tokens": 20}


class Labelled(Chunker):
    """Puts a prefix before its chunks without being asked, as code does."""

    kind = "labelled"

    def chunks(self, document):
        for found in RecursiveChunker(max_tokens=self.max_tokens).chunks(document):
            yield replace(found, prefix="import x\n", n_tokens=found.n_tokens + 2)


def test_the_chunks_are_those_of_the_other_strategy(words):
    document = Document("One two three. Four five six. " * 20, [], words)
    late = list(LateChunker(spans=RECURSIVE).chunks(document))
    assert late == list(RecursiveChunker(max_tokens=20).chunks(document))


def test_a_prefix_nobody_asked_for_is_left_to_the_window(words):
    document = Document("One two three. Four five six. " * 20, [], words)
    late = list(LateChunker(spans=Labelled(max_tokens=20)).chunks(document))
    assert late == list(RecursiveChunker(max_tokens=20).chunks(document))


def test_the_sizes_are_those_of_the_spans():
    late = LateChunker(spans={"kind": "sliding_window", "max_tokens": 100, "stride": 80})
    assert isinstance(late.spans, SlidingWindowChunker)
    assert (late.max_tokens, late.overlap) == (100, 20)


def test_the_declaration_holds_that_of_the_spans():
    declared = LateChunker(spans=RECURSIVE).declaration()
    assert declared["spans"] == RecursiveChunker(max_tokens=20).declaration()
    assert declared["spans"]["kind"] == "recursive"
    assert declared != LateChunker(spans={**RECURSIVE, "overlap": 5}).declaration()
    assert declared != LateChunker(spans=RECURSIVE, context_tokens=0).declaration()


def test_a_language_has_its_budget_inside_too(words):
    late = LateChunker(spans=RECURSIVE, language_factors={"tr": 2.0})
    document = Document("bir " * 80, [], words, facts=Facts(language="tr"))
    assert [c.n_tokens for c in chunk(document, late)] == [40, 40]


def test_models_that_decide_the_spans_are_asked_with_the_tokenizer_around_them(words):
    asked = []

    class Models:
        declared = ("first", "second")

        def vectors(self, name, texts):
            asked.append(name)
            raise InterruptedError

    late = LateChunker(spans=SemanticChunker(), tokenizer="second")
    assert late.models_asked() == (None,)
    with pytest.raises(InterruptedError):
        list(late.chunks(Document("One. Two.", [], words, models=Models())))
    assert asked == ["second"]


@pytest.mark.parametrize(
    ("given", "key", "problem"),
    [
        ({}, "spans", "is missing"),
        ({"spans": 400}, "spans", "a mapping with the kind of a strategy"),
        ({"spans": {"max_tokens": 20}}, "spans", "a mapping with the kind of a strategy"),
        ({"spans": {"kind": "magic"}}, "spans", "unknown kind 'magic'"),
        ({"spans": {**RECURSIVE, "size": 3}}, "spans.size", "unknown key"),
        ({"spans": {**RECURSIVE, "max_tokens": 0}}, "spans.max_tokens", "greater than or equal"),
        ({"spans": {**RECURSIVE, "tokenizer": "e5"}}, "spans", "belongs to the strategy around"),
        ({"spans": {**RECURSIVE, "clean": {}}}, "spans", "belongs to the strategy around"),
        ({"spans": {**RECURSIVE, "neighbours": {}}}, "spans", "belongs to the strategy around"),
        ({"spans": LateChunker(spans=RECURSIVE)}, "spans", "cannot stand inside another"),
        ({"spans": {"kind": "heading"}}, "", "give spans prefix: none"),
        ({"spans": RECURSIVE, "max_tokens": 30}, "", "max_tokens belongs to spans"),
        ({"spans": RECURSIVE, "prefix": "title"}, "", "leave out prefix"),
        ({"spans": RECURSIVE, "neighbours": {}}, "", "leave out neighbours"),
        ({"spans": RECURSIVE, "context": {"model": "m", "max_tokens": 8}}, "", "leave out context"),
        ({"spans": RECURSIVE, "context_tokens": -1}, "context_tokens", "greater than or equal"),
    ],
    ids=str,
)
def test_settings_that_cannot_be_meant_are_refused_by_key(given, key, problem):
    with pytest.raises(ValidationError) as caught:
        LateChunker.model_validate(given)
    mistake = first_mistake(caught.value)
    assert mistake.key == key
    assert problem in mistake.problem
