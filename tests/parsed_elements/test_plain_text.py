import pytest

from chunking_assets.parsed_elements.document import ParsedText, check_spans
from chunking_assets.parsed_elements.plain_text import parse_text


def parsed(text: str) -> ParsedText:
    result = parse_text(text)
    check_spans(result)
    assert result.text == text
    return result


def shown(text: str) -> list[tuple[str, str]]:
    return [(e.kind, text[e.start : e.end]) for e in parsed(text).elements]


def test_paragraphs_end_at_blank_lines_and_keep_their_indentation():
    assert shown("\n\n  first\n  line\n \t\nsecond  \r\n\r\nthird\r\rfourth") == [
        ("paragraph", "  first\n  line"),
        ("paragraph", "second  "),
        ("paragraph", "third"),
        ("paragraph", "fourth"),
    ]


CONVERSATION = """\
Ticket 4711, e-mail

[2026-05-12 09:14] Ana (customer): Good morning!
I cannot refund: the button is gone.

It is grey.
[2026-05-12 09:15] Rui (Tidepay): Which plan?
[2026-05-12 09:16] Ana (customer): Start
"""


def test_a_conversation_is_cut_into_turns():
    elements = parsed(CONVERSATION).elements
    assert shown(CONVERSATION) == [
        ("paragraph", "Ticket 4711, e-mail"),
        (
            "turn",
            "[2026-05-12 09:14] Ana (customer): Good morning!\n"
            "I cannot refund: the button is gone.\n\nIt is grey.",
        ),
        ("turn", "[2026-05-12 09:15] Rui (Tidepay): Which plan?"),
        ("turn", "[2026-05-12 09:16] Ana (customer): Start"),
    ]
    assert dict(elements[1].attributes) == {
        "speaker": "Ana",
        "role": "customer",
        "time": "2026-05-12 09:14",
    }


def test_a_conversation_needs_no_times():
    text = "Ana: Does it work?\nBo: yes\nAna: Good.\nand thanks"
    assert [kind for kind, _ in shown(text)] == ["turn", "turn", "turn"]
    assert parsed(text).elements[1].attribute("speaker") == "Bo"


@pytest.mark.parametrize(
    "text",
    [
        "[09:14] INFO: started\n[09:15] ERROR: stopped\n[09:16] INFO: started",
        "Subject: hello\nDate: today\nFrom: Ana\nTo: Bo",
        "id: 1\nname: a\nid: 2\nname: b\nid: 3\nname: c",
        "Please note: this is prose.\nIt has a second line.\nAnd a third. Remember: four.",
        "Note: One.\nNote: Two.\nNote: Three.",
        "Files: a\nLicense: MIT\n\nFiles: b\nLicense: MIT\n\nFiles: c\nLicense: MIT",
    ],
    ids=["log", "mail header", "keys and values", "prose", "one speaker", "records"],
)
def test_what_only_looks_like_a_conversation_is_paragraphs(text: str):
    assert {kind for kind, _ in shown(text)} == {"paragraph"}


@pytest.mark.parametrize(
    "text",
    [
        "\n" * 100_000,
        "\n" * 100_000 + "x",
        " " * 1_000_000,
        "a" * 1_000_000,
        "a:" * 300_000,
        "[" * 300_000,
    ],
    ids=lambda text: repr(text[:4]),
)
def test_hostile_text_comes_to_an_end_with_every_promise_kept(text: str):
    parsed(text)
