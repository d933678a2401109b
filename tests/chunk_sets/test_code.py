"""Source code is cut between definitions."""

import pytest

from chunking_assets.chunk_sets.code import CodeChunker
from chunking_assets.chunk_sets.recursive import RecursiveChunker
from chunking_assets.chunk_sets.spans import Document
from chunking_assets.parsed_elements import markdown
from chunking_assets.parsed_elements.python_source import parse_text
from chunking_assets.parsed_elements.source_code import RUST

SOURCE = '''\
import os
from json import dumps

LIMIT = 3  # 👨‍👩‍👧‍👦 never more

# Not a method.
@cache
def first(path):
    """Read it."""
    return open(path).read()


class Store(Base):
    """Holds é things."""

    size = 4

    # Above the decorator.
    @property
    def name(self):
        return dumps(self.size)

    def load(self):
        one = 1

        two = 2
        if one:
            two = 3
            one = 4

        return one, two
'''


@pytest.fixture
def document(words):
    return Document(SOURCE, parse_text(SOURCE).elements, words)


def chunks(document, max_tokens, **settings):
    return list(CodeChunker(max_tokens=max_tokens, **settings).chunks(document))


def test_definitions_are_whole_while_they_fit(document):
    found = chunks(document, 30, prefix="none")
    assert [c.text.splitlines()[0] for c in found] == [
        "import os", "class Store(Base):", "def load(self):",
    ]  # fmt: skip
    assert found[1].text.endswith("return dumps(self.size)")


def test_decorators_and_comments_stay_with_their_definition(document):
    found = chunks(document, 16, prefix="none")
    assert "# Not a method.\n@cache\ndef first(path):" in "\x00".join(c.text for c in found)
    assert "# Above the decorator.\n    @property\n    def name" in "\x00".join(
        c.text for c in found
    )


def test_the_head_of_a_class_stays_with_its_first_method(document):
    head = next(c for c in chunks(document, 24, prefix="none") if "class Store" in c.text)
    assert "def name" in head.text


def test_a_function_that_does_not_fit_is_cut_at_blank_lines_then_at_its_own_statements(document):
    found = chunks(document, 12, prefix="none")
    load = [c.text for c in found if c.start >= SOURCE.index("def load")]
    assert load[-1] == "return one, two"
    assert not any(text.startswith("one = 4") for text in load)


def test_imports_and_enclosing_signatures_stand_before_a_chunk(document):
    found = chunks(document, 40)
    (load,) = (c for c in found if c.text.startswith("def load"))
    assert load.prefix == "import os\nfrom json import dumps\nclass Store(Base):\n"
    inside = next(c for c in chunks(document, 14) if c.text.startswith("if one"))
    assert inside.prefix.endswith("class Store(Base):\n    def load(self):\n")


def test_where_all_imports_are_too_many_those_that_are_used_stand_there(words):
    source = "".join(f"import m{n}\n" for n in range(40)) + "\ndef f():\n    return m7.x\n" * 9
    document = Document(source, parse_text(source).elements, words)
    last = chunks(document, 20)[-1]
    assert last.prefix == "import m7\n"


def test_the_imports_are_not_put_before_themselves(document):
    assert chunks(document, 30)[0].prefix == ""


def test_an_emoji_in_a_comment_shifts_no_chunk(document):
    for chunk in chunks(document, 12):
        assert chunk.text == SOURCE[chunk.start : chunk.end]


def test_a_long_run_of_lines_takes_linear_time(words):
    source = "def f():\n" + "    x = call(1, 2)\n\n" * 20_000
    document = Document(source, parse_text(source).elements, words)
    before = words.characters
    found = chunks(document, 60)
    assert len(found) > 1_000
    assert words.characters - before < 4 * len(source)


def test_a_struct_and_its_impl_have_each_their_own_signature(words):
    source = (
        "use std::collections::{\n    HashMap,\n};\n\n/// A point.\n#[derive(Debug)]\n"
        "struct Point {\n    x: i64,\n}\n\nimpl Point {\n    /// Makes one.\n"
        "    fn new(x: i64) -> Self {\n        let map = HashMap::new();\n        Point { x }\n"
        "    }\n}\n"
    )
    document = Document(source, RUST.parse_text(source).elements, words)
    found = chunks(document, 18)
    assert any("/// A point.\n#[derive(Debug)]\nstruct Point {" in c.text for c in found)
    inside = next(c for c in found if "fn new" in c.text)
    assert inside.text.startswith(("impl Point {", "/// Makes one."))
    assert "struct Point" not in inside.prefix


def test_an_import_of_several_lines_is_put_whole_or_not_at_all(words):
    source = (
        "from typing import (\n    Any,\n    List,\n)\nimport os\nfrom .errors import (\n"
        "    Payment,\n)\n\n\ndef first() -> Any:\n    return 1\n\n\n"
        "def second():\n    raise Payment\n"
    )
    document = Document(source, parse_text(source).elements, words)
    second = next(c for c in chunks(document, 12) if c.text.startswith("def second"))
    assert second.prefix == "from .errors import (\n    Payment,\n)\n"


def test_a_prefix_gives_way_to_a_definition_that_fits_without_it(words):
    source = "import os\n\n\ndef f():\n" + "    os.call(1)\n" * 17
    document = Document(source, parse_text(source).elements, words)
    found = chunks(document, 20, max_chars=1000)
    whole = next(c for c in found if c.text.startswith("def f"))
    assert whole.text.count("call") == 17


def test_prose_without_definitions_is_cut_as_by_recursive(words):
    text = "# One\n\nText of one.\n\n### Two\n\nText of two and more.\n"
    document = Document(text, markdown.parse_text(text).elements, words)
    assert [c.text for c in chunks(document, 6, prefix="none")] == [
        c.text for c in RecursiveChunker(max_tokens=6).chunks(document)
    ]
