import pytest

from chunking_assets.parsed_elements.document import ParsedText, check_spans
from chunking_assets.parsed_elements.markdown import parse_text


def parsed(text: str) -> ParsedText:
    result = parse_text(text)
    check_spans(result)
    assert result.text == text
    return result


def shown(text: str) -> list[tuple[str, str]]:
    return [(e.kind, text[e.start : e.end]) for e in parsed(text).elements]


GOLDEN = """\
---
title: Refunds
---

# Refunds

Money goes back
to the card.

## Limits ##

1. Start: 120 days
   - weekends count
2. Grow: 180 days

   After that: a transfer.

> Ask support.
>
> They answer.

| plan | days |
|------|------|
| Grow | 180  |

```python
# not a heading
refund()
```

    indented: code

Setext
------

<div>
html
</div>

[support]: https://example.org "Support"

***
"""


def test_golden():
    assert shown(GOLDEN) == [
        ("front_matter", "---\ntitle: Refunds\n---"),
        ("heading", "# Refunds"),
        ("paragraph", "Money goes back\nto the card."),
        ("heading", "## Limits ##"),
        ("list_item", "1. Start: 120 days"),
        ("list_item", "   - weekends count"),
        ("list_item", "2. Grow: 180 days"),
        ("list_item", "   After that: a transfer."),
        ("quote", "> Ask support.\n>"),
        ("quote", "> They answer."),
        ("table", "| plan | days |\n|------|------|\n| Grow | 180  |"),
        ("code", "```python\n# not a heading\nrefund()\n```"),
        ("code", "    indented: code"),
        ("heading", "Setext\n------"),
        ("html", "<div>\nhtml\n</div>"),
        ("definition", '[support]: https://example.org "Support"'),
        ("residual", "***"),
    ]


def test_golden_levels_paths_and_languages():
    elements = parsed(GOLDEN).elements
    assert [e.level for e in elements if e.kind == "heading"] == [1, 2, 2]
    assert [e.level for e in elements if e.kind == "list_item"] == [1, 2, 1, 1]
    assert [e.heading_path for e in elements if e.kind == "heading"] == [
        ("Refunds",),
        ("Refunds", "Limits"),
        ("Refunds", "Setext"),
    ]
    assert next(e for e in elements if e.kind == "table").heading_path == ("Refunds", "Limits")
    assert [e.language for e in elements if e.kind == "code"] == ["python", None]
    assert elements[0].language == "yaml"


@pytest.mark.parametrize("tag", ["<Card>", "</Card>", "<Ui.Card x={1} />", "<Card\n  x\n>", "<>"])
def test_the_tag_of_a_component_is_a_block_of_its_own(tag: str):
    code = "```sh\na\n\n# b\n```"
    assert shown(f"{tag}\n{code}\n{tag}\n# c") == [
        ("html", tag), ("code", code), ("html", tag), ("heading", "# c"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "text", ["<Card", "<Card> is a tag", "<B>bold</B>", "<Card\n\n>", "<CARD>"]
)
def test_what_only_begins_like_a_component_is_not_one(text: str):
    # Left to the rules of HTML, under which a tag alone on its line reaches to a blank one.
    assert ("html", text.split("\n")[0]) not in shown(f"{text}\nmore")


def test_indentation_is_code_in_markdown_and_none_in_mdx():
    text = "<Card>\n    # text\n</Card>"
    kinds = [[e.kind for e in parse_text(text, mdx=mdx).elements] for mdx in (False, True)]
    assert kinds == [["html", "code", "html"], ["html", "heading", "html"]]


def test_prose_about_imports_is_prose():
    for text in ("import taxes from abroad", "export goods", "import 'x' and more.\n"):
        kind = "code" if text.startswith("import '") else "paragraph"
        assert [k for k, _ in shown(text)] == [kind]


@pytest.mark.parametrize(
    ("front", "facts"),
    [
        ("---\ntitle: A\nn: 3\nok: true\nnone:\n---\n",
         {"title": "A", "n": 3, "ok": True, "none": None}),
        ("---\ntags: [a, b]\nday: 2024-05-01\nby: {a: b}\n---\n", {"tags": "a, b", "day": "2024-05-01"}),
        ('+++\ntitle = "A"\n[menu]\nx = 1\n+++\n', {"title": "A"}),
        ("---\na: [unclosed\n---\n", {}),
        ("---\na: &a [x]\nb: [*a, *a]\n---\n", {"a": "x"}),
        ('---\ntitle: "a \\ud800 b"\n---\n', {"title": "a \ufffd b"}),
    ],
)  # fmt: skip
def test_what_front_matter_says_in_one_value_is_an_attribute(front: str, facts: dict[str, object]):
    (element,) = parsed(front).elements
    assert dict(element.attributes) == {f"metadata.{name}": fact for name, fact in facts.items()}


@pytest.mark.parametrize(
    "fence",
    [
        "```\n# comment\n```",
        "~~~\n# comment\n~~~",
        "   ```\n   # comment\n   ```",
        "```\n# comment\n`````",
        "````\n```\n# comment\n```\n````",
    ],
)
def test_a_hash_in_a_fence_is_no_heading(fence: str):
    assert [kind for kind, _ in shown(f"# Title\n\n{fence}\n\nend")] == [
        "heading",
        "code",
        "paragraph",
    ]


def test_an_unclosed_fence_runs_to_the_end():
    assert shown("a\n\n```sh\n# comment\n\n# more") == [
        ("paragraph", "a"),
        ("code", "```sh\n# comment\n\n# more"),
    ]


def test_tabs_and_no_break_spaces_in_code_are_kept():
    code = "```make\nall:\n\tcc\u00a0-O2\n```"
    assert shown(code) == [("code", code)]


def test_indentation_and_blank_lines_in_a_fence_are_kept():
    code = "```yaml\na:\n  b:\n\n    - c\n```"
    assert shown(code) == [("code", code)]


def test_a_nested_list_keeps_the_text_of_its_parent():
    assert shown("- parent\n  - child\n    - grandchild\n- uncle") == [
        ("list_item", "- parent"),
        ("list_item", "  - child"),
        ("list_item", "    - grandchild"),
        ("list_item", "- uncle"),
    ]


def test_a_first_level_heading_stays_in_the_path_below_a_second():
    elements = parsed("# A\n\n## B\n\ntext\n\n# C\n\n### D\n\ntext").elements
    assert elements[2].heading_path == ("A", "B")
    assert elements[-1].heading_path == ("C", "D")


def test_a_heading_in_a_quote_opens_no_section():
    elements = parsed("# A\n\n> ## Note\n> text\n\nafter").elements
    assert elements[1].heading_path == ("A", "Note")
    assert elements[-1].heading_path == ("A",)


@pytest.mark.parametrize(
    ("heading", "title"),
    [
        ("# Use `retry()` **now**", "Use retry() now"),
        ("# See [the *guide*](a.md)", "See the guide"),
        ("# snake_case and 2 * 3 * 4", "snake_case and 2 * 3 * 4"),
        ("# A &amp; B \\# C", "A & B # C"),
        ("# Install {#install}", "Install"),
        ("# ![logo](l.png) Tool <br>", "logo Tool"),
        ("# `List<T>` ~~old~~", "List<T> old"),
    ],
)
def test_markup_is_left_out_of_a_title(heading: str, title: str):
    assert parsed(heading).elements[0].heading_path == (title,)


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_any_line_end_gives_the_same_elements(newline: str):
    text = GOLDEN.replace("\n", newline)
    assert [(k, s.replace(newline, "\n")) for k, s in shown(text)] == shown(GOLDEN)


def test_a_table_says_where_its_header_ends():
    text = "before\n\n| a | b |\n|---|---|\n| 1 | 2 |\n| 3 | 4 |\n\nafter"
    table = parsed(text).elements[1]
    assert text[table.start : table.attribute("header_end")] == "| a | b |\n|---|---|\n"


def test_a_table_without_rows_is_all_header():
    text = "| a | b |\n|---|---|"
    assert parsed(text).elements[0].attribute("header_end") == len(text)


def test_a_table_ends_at_the_next_block():
    assert [k for k, _ in shown("|a|b|\n|-|-|\n|1|2|\n> quote\n\n|a|\n|-|\n# h")] == [
        "table",
        "quote",
        "table",
        "heading",
    ]


@pytest.mark.parametrize(
    "text",
    ["---\njust a line\n---\n", "---\n\n# Title\n", "--- \nkey: value\n", "text\n---\na: b\n---"],
)
def test_a_break_at_the_top_is_not_front_matter(text: str):
    assert "front_matter" not in [kind for kind, _ in shown(text)]


def test_toml_front_matter():
    text = '+++\ntitle = "x"\n+++\n# T'
    assert shown(text)[0] == ("front_matter", '+++\ntitle = "x"\n+++')
    assert parsed(text).elements[0].language == "toml"


def test_blocks_nested_too_deep_are_residual_and_not_lost():
    shown("> " * 1_000 + "deep\n\nafter")
    shown("".join("  " * depth + "- item\n" for depth in range(400)))


@pytest.mark.parametrize(
    "text",
    [
        "\n" * 100_000 + "end",
        " " * 1_000_000,
        "[" * 200_000,
        "*a" * 100_000,
        "[a]: b\n" * 20_000,
        ">" * 100_000,
        "- " * 20_000 + "a",
        "<!--\n" * 50_000,
        "a\n\n" * 30_000,
        "# " + "[" * 100_000,
    ],
    ids=lambda text: repr(text[:6]),
)
def test_hostile_text_comes_to_an_end_with_every_promise_kept(text: str):
    parsed(text)


def test_a_table_of_thousands_of_columns_and_short_rows_is_one_element():
    text = "|" + "a|" * 3_000 + "\n|" + "-|" * 3_000 + "\n" + "|x|\n" * 3_000
    assert [kind for kind, _ in shown(text)] == ["table"]
