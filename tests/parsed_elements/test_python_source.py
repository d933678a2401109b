import warnings

import pytest

from chunking_assets.parsed_elements.document import ParsedText, check_spans
from chunking_assets.parsed_elements.python_source import parse, parse_text


def parsed(text: str) -> ParsedText:
    result = parse_text(text)
    check_spans(result)
    assert result.text == text
    return result


def shown(text: str) -> list[tuple[str, tuple[str, ...], str]]:
    return [(e.kind, e.heading_path, text[e.start : e.end]) for e in parsed(text).elements]


GOLDEN = '''\
#!/usr/bin/env python
"""Payments 🙂 and refunds."""

import os
from typing import Any

LIMIT = 120  # days – café

# The one client.
@final
class Client(Base):
    """Talks to the API."""

    timeout = 3

    # Comes first.
    @property
    def é(self) -> str:
        return "é🙂"
        # still é

    RETRIES = 2

    async def refund(
        self,
    ) -> Any:
        def inner(): ...

        return inner


def main() -> None: ...


if __name__ == "__main__":
    main()
'''


def test_golden():
    assert shown(GOLDEN) == [
        ("docstring", (), '#!/usr/bin/env python\n"""Payments 🙂 and refunds."""'),
        ("import", (), "import os\nfrom typing import Any"),
        ("code", (), "LIMIT = 120  # days – café"),
        (
            "class",
            ("Client",),
            "# The one client.\n@final\nclass Client(Base):\n"
            '    """Talks to the API."""\n\n    timeout = 3',
        ),
        (
            "method",
            ("Client", "é"),
            "    # Comes first.\n    @property\n    def é(self) -> str:\n"
            '        return "é🙂"\n        # still é',
        ),
        ("code", ("Client",), "    RETRIES = 2"),
        (
            "method",
            ("Client", "refund"),
            "    async def refund(\n        self,\n    ) -> Any:\n"
            "        def inner(): ...\n\n        return inner",
        ),
        ("function", ("main",), "def main() -> None: ..."),
        ("code", (), 'if __name__ == "__main__":\n    main()'),
    ]
    assert {e.language for e in parsed(GOLDEN).elements} == {"python"}


def test_a_definition_says_where_its_signature_ends():
    headers = {
        e.heading_path[-1]: GOLDEN[e.start : e.attribute("header_end")]
        for e in parsed(GOLDEN).elements
        if e.attribute("header_end")
    }
    assert headers["refund"] == "    async def refund(\n        self,\n    ) -> Any:\n"
    assert headers["Client"] == "# The one client.\n@final\nclass Client(Base):\n"
    assert "main" not in headers, "its body has no line of its own"


def test_an_emoji_in_a_comment_shifts_nothing():
    text = "# 🙂🙂🙂\ndef a():\n    pass\n\ndef b():\n    pass\n"
    assert [part for *_, part in shown(text)] == [
        "# 🙂🙂🙂\ndef a():\n    pass",
        "def b():\n    pass",
    ]


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_any_line_end_gives_the_same_elements(newline: str):
    text = GOLDEN.replace("\n", newline)
    assert [(k, p, s.replace(newline, "\n")) for k, p, s in shown(text)] == shown(GOLDEN)


def test_nested_classes_are_cut_like_outer_ones():
    text = "class A:\n    class B:\n        x = 1\n\n        def f(self):\n            pass\n"
    assert [(kind, path) for kind, path, _ in shown(text)] == [
        ("class", ("A",)),
        ("class", ("A", "B")),
        ("method", ("A", "B", "f")),
    ]


def test_statements_on_one_line_are_one_element():
    assert len(shown("import os; x = 1; import re\n")) == 1
    assert len(shown("class A: x = 1; y = 2\n")) == 1


def test_a_unicode_separator_in_a_string_is_no_line_end():
    text = 'x = "a\u2028b"\n\ndef f():\n    pass\n'
    assert [kind for kind, *_ in shown(text)] == ["code", "function"]


def test_source_that_does_not_parse_is_read_as_text_and_says_so():
    result = parsed("def f(:\n    pass\n\nprint 'x'\n")
    assert [e.kind for e in result.elements] == ["code", "code"]
    assert result.warning == "not valid Python at line 1 (invalid syntax); read as plain text"


@pytest.mark.parametrize(
    "text", ["x = " + "(" * 500, "x = " + "-" * 100_000 + "1", "x = " + "1+" * 50_000 + "1", "a\0b"]
)
def test_source_beyond_the_parser_is_read_as_text(text: str):
    assert parsed(text).warning is not None


def test_a_file_of_comments_is_read_as_text():
    assert [kind for kind, *_ in shown("# one\n\n# two\n")] == ["code", "code"]


def test_a_dubious_escape_warns_nobody():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert parsed('x = "\\d"\n').warning is None


def test_the_declared_encoding_is_respected():
    data = "# -*- coding: latin-1 -*-\nname = 'é'\n".encode("latin-1")
    assert parse(data).text.endswith("name = 'é'\n")
