"""What `element` keeps together and where it cuts the rest. One token is one word here."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from chunking_assets.chunk_sets.element import ElementChunker
from chunking_assets.chunk_sets.recursive import RecursiveChunker
from chunking_assets.chunk_sets.spans import Document
from chunking_assets.parsed_elements import delimited, html


def chunks_of(document, max_tokens, **parameters):
    return list(ElementChunker(max_tokens=max_tokens, **parameters).chunks(document))


def texts_of(document, max_tokens, **parameters):
    return [chunk.text for chunk in chunks_of(document, max_tokens, **parameters)]


def page(markup, tokenizer):
    parsed = html.parse(f"<html><body>{markup}</body></html>".encode())
    return Document(parsed.text, parsed.elements, tokenizer)


# small elements


def test_small_elements_are_merged_up_to_the_budget(words, markdown):
    document = markdown("a b\n\n- c\n- d\n\n> e f\n\ng h", words)
    assert texts_of(document, 7) == ["a b\n\n- c\n- d", "> e f\n\ng h"]


def test_whole_sections_are_merged_and_one_that_does_not_fit_begins_a_chunk(words, markdown):
    document = markdown("# A\n\na a\n\n# B\n\nb b\n\n# C\n\nc c\n\nd d", words)
    assert texts_of(document, 10) == ["# A\n\na a\n\n# B\n\nb b", "# C\n\nc c\n\nd d"]


# steps


def test_a_list_of_steps_is_not_cut_while_it_fits(words, markdown):
    steps = "1. open it\n2. turn it\n3. close it"
    document = markdown(f"First of all, do this:\n\n{steps}\n\nDone.", words)
    assert texts_of(document, 11) == ["First of all, do this:", f"{steps}\n\nDone."]
    cut = [c.text for c in RecursiveChunker(max_tokens=11).chunks(document)]
    assert cut[0].endswith("2. turn it")


def test_what_is_nested_in_a_step_belongs_to_the_list(words, markdown):
    steps = "1. a\n\n   More.\n\n   ```sh\n   b\n   ```\n\n   - c\n     - d\n2. e\n\n   > f"
    document = markdown(f"One two three four five six.\n\n{steps}\n\nEnd.", words)
    assert texts_of(document, 16)[1].startswith(steps)


def test_unindented_code_between_two_steps_belongs_to_the_list(words, markdown):
    steps = "1. a\n\n```sh\nb\n```\n\n2. c\n\n```sh\nd\n```\n\n3. e"
    document = markdown(f"One two three four five.\n\n{steps}", words)
    assert texts_of(document, 12) == ["One two three four five.", steps]


def test_a_list_of_a_page_with_code_in_its_items_is_one_list(words):
    document = page(
        "<p>One two three four five six.</p>"
        "<ol><li>a<pre>b</pre><p>c</p><ol><li>d<li>e</ol></li><li>f</li></ol>",
        words,
    )
    assert [text.split()[0] for text in texts_of(document, 14)] == ["One", "1."]


def test_a_list_that_fits_no_chunk_is_cut_between_its_steps(words, markdown):
    steps = ["1. a b c\n   - d\n   - e", "2. f g\n\n   h i", "3. j\n   1. k\n   2. l"]
    document = markdown("\n".join(steps), words)
    assert texts_of(document, 9) == steps
    assert texts_of(document, 17) == ["\n".join(steps[:2]), steps[2]]


def test_a_step_that_fits_no_chunk_keeps_the_list_nested_in_it(words, markdown):
    nested = "1. d\n   2. e\n   3. f"
    document = markdown(f"1. a a a a a a\n   {nested}\n2. g", words)
    assert texts_of(document, 7) == ["1. a a a a a a", nested, "2. g"]


def test_numbers_that_begin_again_are_another_list(words, markdown):
    document = page("<p>x y z</p><ol><li>a<li>b</ol><ol><li>c<li>d</ol>", words)
    assert texts_of(document, 8) == ["x y z\n\n1. a\n2. b", "1. c\n2. d"]


@pytest.mark.parametrize("marker", ["-", "*", "+"])
def test_bullets_are_small_elements_like_others(marker, words, markdown):
    items = "\n".join(f"{marker} {letter}" for letter in "abcde")
    assert len(texts_of(markdown(f"One two three four.\n\n{items}", words), 10)[0].split()) == 10


def test_a_heading_stays_with_its_steps(words, markdown):
    steps = "# How\n\n1. a\n2. b\n3. c"
    document = markdown(f"One two three four five.\n\n{steps}\n\nz", words)
    assert texts_of(document, 8, prefix="none") == ["One two three four five.", steps, "z"]


# tables


def table(*rows):
    header, *body = [f"| {' | '.join(row.split())} |" for row in rows]
    return "\n".join([header, f"|{'---|' * len(rows[0].split())}", *body])


def test_a_table_is_not_cut_while_it_fits(words, markdown):
    fees = table("k v", "a 1", "b 2", "c 3")
    document = markdown(f"One.\n\n{fees}\n\nEnd.", words)
    assert texts_of(document, 21) == ["One.", fees, "End."]


def test_a_large_table_is_cut_between_rows_and_each_piece_has_the_header(words, markdown):
    """The header or its line of dashes was missing in docling-core#672, chonkie#582 and
    text-splitter#422."""
    document = markdown(
        "# Fees\n\n" + table("k v", *(f"{c} {i}" for i, c in enumerate("abcd"))), words
    )
    chunks = chunks_of(document, 20)
    assert [c.prefix for c in chunks] == ["", "Fees\n| k | v |\n|---|---|\n"]
    assert [c.text.splitlines()[-1] for c in chunks] == ["| b | 1 |", "| d | 3 |"]
    assert [c.n_tokens for c in chunks] == [18, 17]


def test_all_header_rows_are_repeated(words):
    document = page(
        "<table><thead><tr><th>P<th>Q<tr><th>p<th>q</thead>"
        + "".join(f"<tr><td>{i}<td>{i}" for i in range(6))
        + "</table>",
        words,
    )
    header = "| P | Q |\n| p | q |\n| --- | --- |\n"
    chunks = chunks_of(document, 32)
    assert len(chunks) > 1
    assert {c.prefix for c in chunks[1:]} == {header}


def test_a_table_without_a_header_repeats_nothing(words):
    rows = "".join(f"<tr><td>{i}<td>{i}" for i in range(9))
    chunks = chunks_of(page(f"<table>{rows}</table>", words), 20)
    assert {c.prefix for c in chunks} == {""}


def test_a_header_of_more_than_half_the_budget_is_left_out(words, markdown):
    text = table("a b c d", *["1 2 3 4"] * 4)
    prefixes = {
        size: {c.prefix for c in chunks_of(markdown(text, words), size)} for size in (19, 20)
    }
    assert prefixes == {19: {""}, 20: {"", "| a | b | c | d |\n|---|---|---|---|\n"}}


def test_a_header_gives_way_where_a_row_would_not_fit_beside_it(words, markdown):
    rows = ["1 2", "3 4", "5 6", "one-two three", "7 8", "9 10"]
    text = table("a b", *rows).replace("one-two", "one two three four five six seven")
    chunks = chunks_of(markdown(text, words), 16)
    pieces = [(bool(c.prefix), c.text.count("\n") + 1) for c in chunks]
    assert pieces == [(False, 4), (True, 1), (False, 2), (True, 1)]


def test_a_row_too_long_for_a_chunk_is_cut_between_cells(words, markdown):
    row = "| a a a | b b b | c \\| c | d |"
    document = markdown(f"| k | l | m | n |\n|---|---|---|---|\n{row}", words)
    assert texts_of(document, 9) == [
        "| k | l | m | n |",
        "|---|---|---|---|\n| a a a | b b b",
        "| c \\| c | d |",
    ]


def test_a_cell_too_long_for_a_chunk_is_cut_between_words(words, markdown):
    document = markdown(f"| k |\n|---|\n| {'a ' * 20}|", words)
    chunks = chunks_of(document, 10)
    assert max(c.n_tokens for c in chunks) == 10
    assert {c.prefix for c in chunks[1:]} == {"| k |\n|---|\n"}
    assert sum(c.text.count("a") for c in chunks) == 20


def test_the_rows_of_a_nested_table_keep_their_header(words, markdown):
    rows = "\n".join(f"   | {i} | {i} |" for i in range(6))
    document = markdown(f"1. Look:\n\n   | a | b |\n   |---|---|\n{rows}\n2. End.", words)
    chunks = chunks_of(document, 20)
    assert {c.prefix for c in chunks if c.text.startswith("| ")} == {"| a | b |\n   |---|---|\n"}


# code


def test_code_too_long_for_a_chunk_is_cut_at_its_blank_lines(words, markdown):
    document = markdown("```\na b\nc d\n\ne f\ng h\n\ni j\n```", words)
    assert texts_of(document, 8) == ["```\na b\nc d", "e f\ng h\n\ni j\n```"]


def test_code_without_blank_lines_is_cut_at_its_lines(words, markdown):
    document = markdown("```\na b c\nd e f\ng h i\n```", words)
    assert texts_of(document, 7) == ["```\na b c\nd e f", "g h i\n```"]


# whatever stands where


@st.composite
def structured(draw):
    """Markdown of prose, headings, step lists, tables and code, and the spans that count whole."""
    text, wholes = "", []
    for number in range(draw(st.integers(1, 8))):
        kind = draw(st.sampled_from(["prose", "heading", "steps", "table", "code"]))
        size = draw(st.integers(1, 9))
        match kind:
            case "prose":
                block = "Words of prose. " * size
            case "heading":
                block = "#" * draw(st.integers(1, 3)) + f" Part {number}"
            case "steps":
                nested = "".join(f"\n   - {i}" for i in range(draw(st.integers(0, 2))))
                block = "\n".join(f"{i}. step{nested}" for i in range(1, size + 1))
            case "table":
                block = table("k v", *[f"{i} x" for i in range(size)])
            case "code":
                block = "```\n" + "\n\n".join(["x = 1"] * size) + "\n```"
        block = block.strip()
        if kind in ("steps", "table", "code"):
            wholes.append((len(text), len(text) + len(block)))
        # Lists would run into one another without something between them.
        text += block + "\n\n" + ("Then this.\n\n" if kind == "steps" else "")
    return text, wholes


@given(structured(), st.integers(4, 40), st.sampled_from([0, 5]))
@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_nothing_that_fits_a_chunk_is_ever_cut(tokenizers, markdown, generated, size, overlap):
    text, wholes = generated
    for name in ("words", "byte pairs"):
        tokenizer = tokenizers[name]
        chunks = chunks_of(
            markdown(text, tokenizer), size, overlap=min(overlap, size // 2), prefix="none"
        )
        cuts = {offset for chunk in chunks for offset in (chunk.start, chunk.end)}
        for start, end in wholes:
            if tokenizer.count([text[start:end]])[0] <= size and end - start <= 8 * size:
                assert not any(start < cut < end for cut in cuts), text[start:end]


def test_deeply_nested_lists_take_no_recursion_and_linear_work(tokenizers, markdown):
    tokenizer = tokenizers["byte pairs"]
    page_of = lambda n: page("<ol><li>a b c d" * n + "</ol>" * n, tokenizer)  # noqa: E731
    work = []
    for size in (300, 600):
        document, before = page_of(size), tokenizer.characters
        chunks_of(document, 40)
        work.append((tokenizer.characters - before) / len(document.text))
    assert work[1] < 1.3 * work[0]


def test_every_table_of_a_csv_file_is_led_by_the_header_of_the_first(words):
    rows = "".join(f"Person {n};{n}\n" for n in range(30))
    text = f'name;note\n{rows}Bo;"two\nlines"\n{rows}'
    found = chunks_of(Document(text, delimited.parse_text(text).elements, words), 12)
    assert len(found) > 3
    assert {c.prefix for c in found[1:]} == {"name;note\n"}
    assert [c for c in found if 'Bo;"two\nlines"' in text[c.start : c.end]]
