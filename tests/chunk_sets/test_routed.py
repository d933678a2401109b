"""Each document goes to the strategy that suits it."""

import pytest
from chunk_promises import opened
from hard_texts import CHAT, MARKDOWN, PYTHON, TEXTS, samples

from chunking_assets.chunk_sets.chunker import Chunker
from chunking_assets.chunk_sets.routed import RoutedChunker, measure
from chunking_assets.parsed_elements import markdown

SECTIONS = "".join(f"# Part {n}\n\nText of part {n}.\n\n" for n in range(3))
DOCUMENTS = {
    "code": samples()["python"],
    "conversation": samples()["chat"],
    "tables": samples()["table"],
    "sections": markdown.parse_text(SECTIONS),
    "prose": samples()["french"],
}


@pytest.mark.parametrize("structure", DOCUMENTS)
def test_a_document_is_cut_as_the_strategy_of_its_structure_does(structure, words):
    parsed = DOCUMENTS[structure]
    document = opened(parsed.text, parsed.elements, words)
    routed = RoutedChunker(max_tokens=80)
    assert measure(document).structure == structure
    chunks = list(routed.chunks(document))
    size = routed.size_for(measure(document).density)
    kind = routed.kinds()[structure]
    assert {c.remark for c in chunks} == {f"cut as {kind}, {size} tokens ({structure})"}
    alone = list(routed.route(structure, size).chunks(document))
    assert [(c.start, c.end, c.prefix) for c in chunks] == [
        (c.start, c.end, c.prefix) for c in alone
    ]


def test_a_language_without_spaces_is_cut_at_its_sentences(words):
    document = opened(TEXTS["japanese"], samples()["japanese"].elements, words, language="ja")
    assert measure(document).structure == "unspaced"
    assert RoutedChunker().kinds()["unspaced"] == "sentence"


def test_short_answers_and_dense_text_get_smaller_chunks():
    sizes = {
        a: RoutedChunker(max_tokens=400, answers=a).size_for(0) for a in ("short", "mixed", "long")
    }
    assert sizes == {"short": 200, "mixed": 300, "long": 400}
    assert RoutedChunker(max_tokens=400, answers="long").size_for(1.0) == 200
    assert RoutedChunker(max_tokens=40).size_for(1.0) == 40


def test_a_document_of_code_and_tables_is_dense(words):
    dense = opened(PYTHON, samples()["python"].elements, words)
    table = opened(MARKDOWN["table"], samples()["table"].elements, words)
    prose = opened(TEXTS["french"], samples()["french"].elements, words)
    assert measure(dense).density > 0.9
    assert 0.5 < measure(table).density < 1.0
    assert measure(prose).density == 0.0


def test_overlap_in_tokens_becomes_one_of_turns_in_a_conversation(words):
    document = opened(CHAT, samples()["chat"].elements, words)
    assert list(RoutedChunker(max_tokens=80, overlap=20).chunks(document))


@pytest.mark.parametrize(
    ("routes", "problem"),
    [
        ({"prose": "magic"}, "unknown kind 'magic'"),
        ({"prose": "routed"}, "cannot lead to routed again"),
        ({"poems": "fixed"}, "Input should be"),
        ({"prose": "llm"}, "prose cannot be cut as llm: model Field required"),
        ({"tables": "late"}, "tables cannot be cut as late: spans Field required"),
    ],
)
def test_a_route_that_cannot_be_taken_is_refused(routes, problem):
    with pytest.raises(ValueError, match=problem):
        RoutedChunker(routes=routes)


def test_the_strategies_behind_the_routes_are_part_of_what_is_declared():
    chunker: Chunker = RoutedChunker(routes={"prose": "semantic"})
    assert chunker.declaration()["routes"]["prose"]["kind"] == "semantic"
    library = RoutedChunker(routes={"prose": "semchunk"}).declaration()["routes"]["prose"]
    assert library["library"].startswith("semchunk ")
    assert RoutedChunker(routes={"prose": "recursive"}) == RoutedChunker()
    assert chunker.models_asked() == (None,)
