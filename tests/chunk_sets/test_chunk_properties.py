"""What every strategy promises for every text, held against the text and the real tokenizer."""

from random import Random

import pytest
from chunk_promises import (
    BASELINES,
    OWN,
    SEES_THE_WHOLE,
    EveryThird,
    anew,
    declared,
    looking_at,
    opened,
    promised,
)
from hard_texts import PATHOLOGICAL, TEXTS, samples
from hypothesis import given, settings
from hypothesis import strategies as st

from chunking_assets.chunk_sets.chunking import chunk
from chunking_assets.chunk_sets.registry import CHUNKERS
from chunking_assets.chunk_sets.spans import Document
from chunking_assets.parsed_elements import markdown, plain_text, python_source

every_strategy = pytest.mark.parametrize("kind", CHUNKERS)
our_strategies = pytest.mark.parametrize("kind", OWN)
STATELESS = [kind for kind in OWN if kind not in SEES_THE_WHOLE]
stateless = pytest.mark.parametrize("kind", STATELESS)

CLEAN = {"boilerplate": 0.5, "blank_lines": True, "invisible": True, "unicode": "NFKC"}
PARAMETERS = [
    {"max_tokens": 32},
    {"max_tokens": 100, "overlap": 20, "prefix": "breadcrumb"},
    {"max_tokens": 24, "overlap": 23, "prefix": "none"},
    {"max_tokens": 200, "max_chars": 40, "min_tokens": 10},
    {"max_tokens": 5, "overlap": 2, "prefix": "title"},
    {"max_tokens": 60, "min_tokens": 30, "clean": CLEAN},
    {"max_tokens": 80, "neighbours": {"before": 1, "after": 1}},
    {"max_tokens": 1},
]
DEEP = ("byte pairs", "word pieces")


@our_strategies
def test_promises_hold_for_multilingual_texts_and_files(kind, tokenizers):
    for number, (name, sample) in enumerate(samples().items()):
        for at, parameters in enumerate(PARAMETERS):
            tokenizer = DEEP[(number + at) % 2]
            with looking_at(name, tokenizer, parameters):
                chunker = declared(kind, **parameters)
                document = opened(sample.text, sample.elements, tokenizers[tokenizer], chunker)
                promised(document, chunker)


@pytest.mark.parametrize("kind", BASELINES)
def test_other_libraries_chunks_are_exact_spans_in_order(kind, tokenizers):
    for name, sample in samples().items():
        for parameters in ({"max_tokens": 40}, {"max_tokens": 60, "overlap": 20}):
            with looking_at(name, parameters):
                document = opened(sample.text, sample.elements, tokenizers["word pieces"])
                promised(document, declared(kind, **parameters))


PIECES = [
    *["a", "word", "Überprüfung", "。", "漢字", "葛\U000e0100", "e\u0301", "\u0301", "\u200d"],
    *["👨‍👩‍👧", "🇧🇷", "👍🏽", "한국", "ᄀ", "ᅡ", "क्षि", "्", "นี่", "\u0600", "\ufe0f", "\x00", "\x1c"],
    *[
        " ",
        "  ",
        "\n",
        "\n\n",
        "\r\n",
        "\r",
        "\t",
        "\u00a0",
        "\u2028",
        "\u3000",
        "\u200b",
        "\u00ad",
    ],
    *[". ", "! ", "? ", "Dr. ", "… ", "# H\n", "\n## Sub\n\n", "\n```\n", "\n~~~\n", "    code\n"],
    *[
        "- item\n",
        "> quote\n",
        "| a | b |\n|---|---|\n| 1 | 2 |\n| 3 | c d e f |\n",
        "---\n",
        "1. x\n",
    ],
    *["<p>", "\nAna: Hello.\n", "\nBo: Well?\n", "\ndef f(x):\n", "\nimport os\n", "\nclass A:\n"],
]
hostile_text = st.one_of(
    st.lists(st.sampled_from(PIECES), max_size=60).map("".join),
    st.text(max_size=200),
    st.text(" \n\r\ta.#", max_size=80),
)
parsers = st.sampled_from([markdown, plain_text, python_source, None])
any_document = st.one_of(
    st.builds(lambda text, parser: (text, parser.parse_text(text).elements if parser else []), hostile_text, parsers),
    st.sampled_from(sorted(samples())).map(lambda name: (samples()[name].text, samples()[name].elements)),
)  # fmt: skip
neighbours = st.builds(
    lambda unit, before, after: {"unit": unit, "before": before, "after": after},
    st.sampled_from(["sentences", "characters"]),
    st.integers(1, 12),
    st.integers(0, 12),
)
cleaning = st.fixed_dictionaries(
    {}, optional={"boilerplate": st.just(0.5), "blank_lines": st.booleans(), "invisible": st.booleans(), "unicode": st.sampled_from(["none", "NFC", "NFKC"])}
)  # fmt: skip
PARTICULAR = {
    "code": st.fixed_dictionaries({"prefix": st.sampled_from(["imports", "signature", "none"])}),
    "conversation": st.builds(
        lambda turns, again: {"turns": turns, "overlap_turns": min(again, turns - 1)},
        st.integers(1, 6),
        st.integers(0, 3),
    ),
    "hierarchical": st.fixed_dictionaries({"shape": st.sampled_from([(4, 1), (9, 3, 1)])}),
    "recursive": st.one_of(
        st.fixed_dictionaries({"separators": st.lists(st.sampled_from(["\n\n", " ", ". ", "\n# ", "a", "\u0301", "```"]))}),
        st.fixed_dictionaries({"preset": st.sampled_from(["none", "markdown", "python"])}),
    ),
    "routed": st.fixed_dictionaries({"answers": st.sampled_from(["short", "mixed", "long"])}),
    "semantic": st.fixed_dictionaries({"threshold": st.sampled_from(["percentile", "gradient"])}),
    "sentence": st.fixed_dictionaries({"overlap_sentences": st.integers(0, 3)}),
}  # fmt: skip
"""Parameters that only one kind has."""


@st.composite
def declarations(draw, kind):
    """Any parameters that can be meant."""
    most = draw(st.integers(1, 40) | st.integers(20, 120))
    parameters = draw(
        st.fixed_dictionaries(
            {"max_tokens": st.just(most)},
            optional={
                "overlap": st.integers(0, most - 1),
                "min_tokens": st.integers(0, most // 2),
                "max_chars": st.integers(1, 60),
                "prefix": st.sampled_from(["none", "breadcrumb", "title"]),
                "clean": cleaning,
                "neighbours": neighbours,
                "language_factors": st.just({"pt": 1.7, "tr": 0.4}),
            },
        )
    )
    parameters |= draw(PARTICULAR.get(kind, st.just({})))
    if "shape" in parameters:
        parameters["sizes"] = tuple(most * share for share in parameters.pop("shape"))
    if "overlap_sentences" in parameters:
        parameters.pop("overlap", None)
    return declared(kind, **parameters)


@our_strategies
@given(data=st.data())
@settings(max_examples=60, deadline=None)
def test_promises_hold_for_generated_texts_and_parameters(kind, tokenizers, data):
    text, elements = data.draw(any_document)
    chunker = data.draw(declarations(kind))
    tokenizer = tokenizers[data.draw(st.sampled_from(sorted(tokenizers)))]
    language = data.draw(st.sampled_from(["pt", "tr", "ja", None]))
    promised(opened(text, elements, tokenizer, chunker, language), chunker)


def test_promises_hold_where_a_chat_model_chooses_the_cuts(tokenizers):
    tokenizer = tokenizers["byte pairs"]
    for name, sample in samples().items():
        with looking_at(name):
            chunker = declared("llm", max_tokens=60, min_tokens=8, prefix="breadcrumb")
            document = opened(sample.text, sample.elements, tokenizer, chat=EveryThird())
            assert all(c.remark is None for c in promised(document, chunker))


@every_strategy
def test_empty_and_blank_texts_have_no_chunks(kind, words):
    for blank in ("", " ", "\n" * 1000, " \t\r\n\u00a0\u3000\u2028"):
        assert chunk(opened(blank, [], words), declared(kind)) == []


@our_strategies
def test_where_all_is_left_out_there_are_no_chunks(kind, words):
    text = "Left out. All of it."
    assert chunk(opened(text, [], words, excluded=[(0, len(text))]), declared(kind)) == []


@stateless
def test_appended_text_changes_only_the_last_chunks(kind, tokenizers):
    """What ends two chunks' worth of text before the end stays, with its prefix and its parents."""
    tokenizer, kept = tokenizers["byte pairs"], 0
    for name, sample in samples().items():
        if sample.text.count("```") % 2:
            continue  # what follows a fence that never closes is code
        appended = "\n\nAn appended paragraph.\n\n" + TEXTS["portuguese"]
        parser = {"python": python_source, "chat": plain_text}.get(name, markdown)
        if name == "python":
            appended = "\n\ndef appended():\n    return 1\n"
        if name == "chat":
            appended = "[2026-05-12 10:00] Bo: An appended turn.\n"
        longer = parser.parse_text(sample.text + appended)
        for parameters in ({"max_tokens": 32}, {"max_tokens": 24, "overlap": 12, "min_tokens": 8}):
            with looking_at(name, parameters):
                chunker = declared(kind, **parameters)
                document = opened(sample.text, sample.elements, tokenizer)
                before = chunk(document, chunker)
                after = chunk(opened(longer.text, longer.elements, tokenizer), chunker)
                largest = max([chunker.max_tokens, *getattr(chunker, "sizes", ())])
                end = document.back(len(sample.text), 2 * largest)
                assert [c for c in after if c.end <= end] == [c for c in before if c.end <= end]
                kept += sum(c.end <= end for c in before)
    assert kept > 50


@pytest.mark.parametrize("kind", ["recursive", "paragraph", "heading", "element", "late"])
def test_an_edit_in_one_section_leaves_the_chunks_of_later_sections(kind, words):
    sections = [f"# Part {i}\n\n" + f"Sentence number {i} goes on. " * 20 for i in range(8)]
    chunker = declared(kind, max_tokens=60)

    def chunks():
        text = "\n\n".join(sections)
        return chunk(opened(text, markdown.parse_text(text).elements, words), chunker)

    before = chunks()
    sections[1] = sections[1].replace("goes on", "has been edited and goes on")
    kept = {c.text for c in before if "number 7" in c.text}
    assert kept
    assert kept <= {c.text for c in chunks()}


def test_strategies_that_share_a_document_leave_no_trace_in_it(tokenizers):
    """A shard's versions share one tokenization; none may change what the next one sees."""
    for name in ("mixed", "table", "python", "chat"):
        sample = samples()[name]
        shared = opened(sample.text, sample.elements, tokenizers["byte pairs"])
        chunkers = [declared(k, max_tokens=n, prefix="title") for k in OWN for n in (40, 12)]
        Random(name).shuffle(chunkers)
        for chunker in chunkers:
            with looking_at(name, chunker.kind, chunker.max_tokens):
                assert chunk(shared, chunker) == chunk(anew(shared), chunker)


# Work


@pytest.fixture
def looked_at(monkeypatch):
    """Characters looked at in search of a cut, besides those that tokenizers read."""
    work = {"characters": 0}

    def counted(name, cost):
        method = getattr(Document, name)

        def counting(self, *args):
            found = method(self, *args)
            work["characters"] += cost(found, *args)
            return found

        monkeypatch.setattr(Document, name, counting)

    counted("is_apart", lambda found, offset: 2)
    counted("_cluster_end", lambda found, start: found - start)
    counted("skip_space", lambda found, offset, end: found - offset + 1)
    counted("trim", lambda found, start, end: end - start)
    counted("kept", lambda found, start, end: end - start)
    counted("lines_in", lambda found, start, end: len(found))
    return work


@our_strategies
def test_work_is_linear_and_promises_hold_for_pathological_texts(kind, tokenizers, looked_at):
    for number, (name, text) in enumerate(PATHOLOGICAL.items()):
        tokenizer = tokenizers[DEEP[number % 2]]
        with looking_at(name):
            chunker = declared(kind, max_tokens=128, overlap=16 * (number % 3), prefix="breadcrumb")
            document = opened(text, markdown.parse_text(text).elements, tokenizer)
            sizes = len(getattr(chunker, "sizes", ("one",)))
            tokenized, looked_at["characters"] = tokenizer.characters, 0
            chunk(document, chunker)
            assert tokenizer.characters - tokenized < 4 * len(text) * sizes
            assert looked_at["characters"] < 24 * len(text) * sizes
            promised(document, chunker)


@our_strategies
def test_work_stays_linear_where_many_chunks_must_be_shortened(kind, tokenizers):
    words = " ".join(TEXTS.values()).split()
    text = " ".join(Random(1).choices(words, k=4_000))
    for tokenizer in (tokenizers[name] for name in DEEP):
        document = opened(text, markdown.parse_text(text).elements, tokenizer)
        chunker = declared(kind, max_tokens=64, overlap=0)
        before = tokenizer.characters
        chunk(document, chunker)
        levels = len(getattr(chunker, "sizes", ("one",)))
        assert tokenizer.characters - before < (1 + 2 * levels) * len(text)


def test_ten_versions_share_one_tokenization_where_words_stand_alone(tokenizers):
    tokenizer = tokenizers["word pieces"]
    text = "\n\n".join([TEXTS["portuguese"], TEXTS["french"], TEXTS["turkish"]] * 20)
    document = opened(text, markdown.parse_text(text).elements, tokenizer)
    before = tokenizer.characters
    for number in range(10):
        chunk(document, declared("recursive", max_tokens=50 + 20 * number))
    assert tokenizer.characters - before < 1.2 * len(text)


def test_one_version_reuses_what_another_counted(tokenizers):
    tokenizer = tokenizers["unigram"]
    text = TEXTS["french"] * 10
    document = opened(text, markdown.parse_text(text).elements, tokenizer)
    chunk(document, declared("recursive", max_tokens=50))
    before = tokenizer.characters
    chunk(document, declared("recursive", max_tokens=50, max_chars=10_000))
    assert tokenizer.characters == before
