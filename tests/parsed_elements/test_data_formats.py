"""CSV, JSON, subtitles, notebooks, e-mail, reStructuredText: small documents and what is in them."""

import json
from email.message import EmailMessage

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from chunking_assets.parsed_elements import (
    delimited,
    email_message,
    json_data,
    notebook,
    plain_text,
    restructured_text,
    subtitles,
)
from chunking_assets.parsed_elements.document import check_spans
from chunking_assets.parsed_elements.parse import parse_document
from chunking_assets.raw_documents.media_type import media_type


def parts(parsed):
    return [(e.kind, parsed.text[e.start : e.end]) for e in parsed.elements]


def parsed_file(data, name):
    return parse_document(data, name, media_type(data, name))


# CSV


@pytest.mark.parametrize("mark", [",", ";", "\t", "|"])
def test_the_separator_is_read_off_the_records(mark):
    text = f"name{mark}price\nAna, and; Bo{mark}1,5\nCy{mark}2\n".replace("Ana, and; Bo", "Ana")
    (table,) = delimited.parse_text(text).elements
    assert text[: table.attribute("header_end")] == f"name{mark}price\n"


def test_a_record_with_a_line_end_in_quotes_is_one_table_of_its_own():
    text = 'name;note\r\nAna;one\r\nBo;"two\r\n\r\nlines; and more"\r\nCy;three\r\n'
    parsed = delimited.parse_text(text)
    assert parts(parsed) == [
        ("table", "name;note\r\nAna;one"),
        ("table", 'Bo;"two\r\n\r\nlines; and more"'),
        ("table", "Cy;three"),
    ]
    assert {e.attribute("header_start") for e in parsed.elements} == {0}
    assert [e.attribute("row") for e in parsed.elements] == [1, 3, 4]


def test_a_quote_that_is_never_closed_costs_its_line_and_is_told():
    text = 'name;note\nAna;"one\nBo;two\n'
    parsed = delimited.parse_text(text)
    assert parts(parsed) == [("table", text.rstrip())]
    assert parsed.warning == "a quote opened in line 2 is never closed"


def test_numbers_are_no_header():
    (table,) = delimited.parse_text("1,2\n3,4\n").elements
    assert table.attribute("header_end") is None


# JSON


def test_a_small_value_is_whole_and_a_large_one_is_taken_apart():
    held = {"name": "Ana", "notes": ["x" * 800, "y" * 800], "n": 1}
    text = json.dumps({"people": [held, {"name": "Bo"}]}, indent=1)
    parsed = json_data.parse_text(text)
    paths = [e.heading_path for e in parsed.elements if e.kind == "code"]
    assert paths == [
        ("people",),
        ("people", "notes"),
        ("people", "notes"),
        ("people",),
        ("people",),
    ]
    check_spans(parsed)
    assert parsed.text == text


def test_escaped_letters_are_written_out_and_the_text_stays_json():
    value = {"city": "Münster 🙂", "quote": 'a "b" \\u00fc', "control": "\x00"}
    parsed = json_data.parse_text(json.dumps(value))
    assert "Münster 🙂" in parsed.text
    assert json.loads(parsed.text) == value


def test_messages_are_a_conversation():
    log = {
        "channel": "support",
        "messages": [
            {"user": "ana", "text": "Where is\nmy card?", "ts": "1747041240.1"},
            {"user": "bo", "text": "On its way.", "ts": "1747041300.2"},
        ],
    }
    parsed = parsed_file(json.dumps(log).encode(), "export.json")
    assert [e.kind for e in parsed.elements] == ["paragraph", "turn", "turn"]
    assert [e.attribute("speaker") for e in parsed.elements] == [None, "ana", "bo"]
    assert parsed.text.splitlines()[2] == "[1747041240.1] ana: Where is"


def test_an_export_with_profiles_and_blocks_is_a_conversation_of_people():
    message = {
        "client_msg_id": "1", "type": "message", "user": "U1", "ts": "1747041240.1", "text": "Hi",
        "blocks": [{"type": "rich_text"}], "user_profile": {"real_name": "Ana", "display_name": ""},
    }  # fmt: skip
    parsed = json_data.parse_text(json.dumps([message, {**message, "user_profile": None}]))
    assert [e.attribute("speaker") for e in parsed.elements] == ["Ana", "U1"]


def test_records_that_say_more_than_messages_do_are_kept_as_they_are():
    reviews = [{"author": "Ana", "text": "Good", "stars": 5}, {"author": "Bo", "text": "No"}]
    parsed = json_data.parse_text(json.dumps(reviews))
    assert parsed.text == json.dumps(reviews)


def test_json_lines_are_an_element_each_and_a_broken_one_is_told():
    parsed = parsed_file(b'{"a": 1}\n\n{"a": \n{"a": 3}\n', "log.jsonl")
    assert parts(parsed) == [("code", '{"a": 1}'), ("code", '{"a":'), ("code", '{"a": 3}')]
    assert parsed.error.endswith("1 lines are no JSON, the first: 3")


def test_what_is_no_json_is_read_as_text_and_told():
    parsed = parsed_file(b'{"a": [1, 2', "half.json")
    assert (parsed.status, parts(parsed)) == ("ok", [("paragraph", '{"a": [1, 2')])
    assert "no valid JSON" in parsed.error


def test_values_nested_beyond_reason_fail_by_name():
    parsed = parsed_file(b"[" * 100_000 + b"]" * 100_000, "bomb.json")
    assert parsed.status == "failed"
    assert "nested too deep" in parsed.error


# Subtitles and chats


def test_a_cue_is_a_turn_with_its_time_and_voice():
    text = "WEBVTT\n\nNOTE by Ana\n\nintro\n00:01.000 --> 00:02.500 line:0\n<v Ana>Hello\nthere.\n"
    parsed = parsed_file(text.encode(), "talk.vtt")
    assert [kind for kind, _ in parts(parsed)] == ["residual", "residual", "turn"]
    assert dict(parsed.elements[2].attributes) == {
        "time": "00:01.000", "until": "00:02.500", "speaker": "Ana"
    }  # fmt: skip


def test_subrip_is_read_the_same():
    text = "1\r\n00:00:01,000 --> 00:00:02,000\r\nOlá.\r\n\r\n2\r\n00:00:03,000 --> 00:00:04,000\r\nSim.\r\n"
    parsed = parsed_file(text.encode(), "film.srt")
    assert [e.attribute("time") for e in parsed.elements] == ["00:00:01,000", "00:00:03,000"]


def test_a_messenger_export_is_cut_into_its_messages():
    text = (
        "12/05/2026, 09:14 - Ana: Where is my card?\nIt was due.\n12/05/2026, 09:15 - Bo: Soon.\n"
    )
    parsed = plain_text.parse_text(text)
    assert [e.attribute("speaker") for e in parsed.elements] == ["Ana", "Bo"]
    assert parsed.elements[0].attribute("time") == "12/05/2026, 09:14"


# Notebooks


def a_notebook(*cells, **settings):
    return json.dumps({"nbformat": 4, "cells": list(cells), **settings}).encode()


MARKDOWN_CELL = {"cell_type": "markdown", "source": ["# Fees\n", "\n", "What they are.\n", "```\n"]}
CODE_CELL = {
    "cell_type": "code",
    "source": "print('x')",
    "outputs": [
        {"output_type": "stream", "text": ["x\n"]},
        {"output_type": "display_data", "data": {"image/png": "iVBORw0KGgo="}},
    ],
}


def test_cells_are_text_code_and_output_under_the_headings_before_them():
    told = {"language_info": {"name": "python"}}
    data = a_notebook(MARKDOWN_CELL, CODE_CELL, metadata=told)
    parsed = parsed_file(data, "fees.ipynb")
    assert parts(parsed)[-2:] == [("code", "```python\nprint('x')\n```"), ("code", "```\nx\n```")]
    assert {e.heading_path for e in parsed.elements} == {("Fees",)}
    assert parsed.elements[-1].attribute("output") is True
    assert "iVBOR" not in parsed.text


def test_a_fence_left_open_in_one_cell_swallows_no_other():
    parsed = notebook.parse(a_notebook(MARKDOWN_CELL, {"cell_type": "markdown", "source": "Then."}))
    assert parts(parsed)[-1] == ("paragraph", "Then.")


def test_a_huge_output_is_cut_and_says_so():
    loud = {"cell_type": "code", "source": "x", "outputs": [{"text": "y" * 1_000_000}]}
    parsed = parsed_file(a_notebook(loud), "loud.ipynb")
    assert len(parsed.text) < 3_000
    assert "998000 more characters of output" in parsed.text
    assert parsed.error.endswith("1 outputs are cut to 2000 characters")


def test_notebooks_of_older_formats_are_read():
    cells = [
        {"cell_type": "heading", "level": 2, "source": "Fees"},
        {"cell_type": "code", "input": "x"},
    ]
    data = json.dumps({"nbformat": 3, "worksheets": [{"cells": cells}]}).encode()
    assert parts(notebook.parse(data)) == [("heading", "## Fees"), ("code", "```\nx\n```")]


@pytest.mark.parametrize("data", [b"{", b"[]", b'{"cells": []}'])
def test_what_is_no_notebook_fails_with_a_cure(data):
    parsed = parsed_file(data, "a.ipynb")
    assert parsed.status == "failed"
    assert "Save the notebook again" in parsed.cure


# E-mail


def a_message(body="The fee is 5 €.\n\n> Which fee?\n> Mine.\n", **headers):
    message = EmailMessage()
    told = {"From": "Ana <ana@example.org>", "To": "bo@example.org", "Subject": "Fees", **headers}
    for name, value in told.items():
        message[name.replace("_", "-")] = value
    message.set_content(body)
    return message


def test_a_message_is_its_subject_who_wrote_it_and_its_body():
    parsed = parsed_file(a_message().as_bytes(), "a.eml")
    assert parts(parsed) == [
        ("heading", "# Fees"),
        ("paragraph", "From: Ana <ana@example.org>\nTo: bo@example.org"),
        ("paragraph", "The fee is 5 €."),
        ("quote", "> Which fee?\n> Mine."),
    ]
    assert {e.heading_path for e in parsed.elements} == {("Fees",)}


def test_attachments_are_listed_and_make_the_document_partial():
    message = a_message()
    message.add_attachment(b"%PDF-1.7", maintype="application", subtype="pdf", filename="a.pdf")
    parsed = parsed_file(message.as_bytes(), "a.eml")
    assert (parsed.status, parts(parsed)[-1]) == (
        "partial",
        ("list_item", "- a.pdf (application/pdf, 8 bytes)"),
    )
    assert "attachments not read: a.pdf" in parsed.error


def test_the_plain_body_is_preferred_and_a_page_is_read_as_one():
    message = a_message("plain")
    message.add_alternative("<h2>Page</h2><p>of the same</p>", subtype="html")
    assert "of the same" not in email_message.parse(message.as_bytes()).text
    page = a_message()
    page.set_content("<h2>Page</h2><table><tr><th>a<th>b<tr><td>1<td>2</table>", subtype="html")
    parsed = email_message.parse(page.as_bytes())
    assert [kind for kind, _ in parts(parsed)][-2:] == ["heading", "table"]
    assert parsed.elements[-1].heading_path == ("Fees", "Page")


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-be", "utf-8-sig"])
def test_a_message_saved_in_another_encoding_is_the_same_message(encoding):
    text = "From: ana@example.org\nSubject: Gebühren\n\nFünf Euro.\n"
    parsed = parsed_file(text.encode(encoding), "a.eml")
    assert parts(parsed)[0] == ("heading", "# Gebühren")
    assert parts(parsed)[-1] == ("paragraph", "Fünf Euro.")


def test_an_encrypted_message_is_called_so():
    data = b"From: a@b.c\nSubject: x\nContent-Type: multipart/encrypted; boundary=b\n\n--b--\n"
    assert parsed_file(data, "a.eml").status == "encrypted"


def test_a_message_saved_as_text_is_recognised_and_a_text_about_headers_is_not():
    message = a_message(Date="Tue, 01 Oct 2024 12:34:56 -0500", MIME_Version="1.0")
    assert media_type(message.as_bytes(), "mail.txt") == "message/rfc822"
    assert (
        media_type(b"From: the start\nSubject: what it is about\n\nDate: none", "a.txt")
        == "text/plain"
    )


def test_what_only_has_the_name_of_a_message_is_read_as_text_and_told():
    parsed = parsed_file(b"Just words.", "a.eml")
    assert parts(parsed) == [("paragraph", "Just words.")]
    assert "has no headers of an e-mail" in parsed.error


# reStructuredText

GUIDE = """\
=====
Guide
=====

Fees
----

Paid in *euro*::

    $ pay 5

.. code-block:: python

   pay(5)

.. note:: Never twice.

.. _target:

- card

  over two paragraphs
- transfer

1. first
2. second

term
    what it means

======  =====
Card    Fee
======  =====
debit   0
======  =====

+---+---+
| a | b |
+---+---+

Cards
=====
"""


def test_the_blocks_of_a_guide():
    parsed = restructured_text.parse_text(GUIDE)
    check_spans(parsed)
    kinds = [(e.kind, e.level) for e in parsed.elements]
    assert kinds == [
        ("heading", 1), ("heading", 2), ("paragraph", 0), ("code", 0), ("code", 0),
        ("paragraph", 0), ("definition", 0), ("list_item", 1), ("list_item", 1), ("list_item", 1),
        ("list_item", 1), ("list_item", 1), ("definition", 0), ("table", 0), ("table", 0),
        ("heading", 3),
    ]  # fmt: skip
    assert parsed.elements[4].language == "python"
    assert parsed.elements[3].heading_path == ("Guide", "Fees")
    assert parsed.text == GUIDE


def test_an_overlined_title_is_another_level_than_the_same_line_under_it_alone():
    parsed = restructured_text.parse_text("=\nA\n=\n\nB\n====\n\nAAAA\n====\n")
    assert [e.level for e in parsed.elements if e.kind == "heading"] == [1, 1]


# Whatever they are given

NEWLINES = ("\n", "\r\n", "\r", "\u2028", " ", "\t", "\ufeff", "é🙂")


def pieces(*some):
    text = st.text(alphabet=st.characters(exclude_categories=["Cs"], exclude_characters="\0"))
    return st.lists(st.one_of(st.sampled_from(some + NEWLINES), text), max_size=40).map("".join)


@settings(deadline=None)
@given(pieces('"', ";", ",", "a", "1", '""', "a;b\n", '"x\ny";'))
@example('"')
def test_records_cover_the_file(text):
    parsed = delimited.parse_text(text)
    check_spans(parsed)
    assert parsed.text == text


JSON_VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=1200)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=5), inner, max_size=4)
    ),
    max_leaves=12,
)


@settings(deadline=None)
@given(JSON_VALUES, st.sampled_from([None, 0, 2]), st.booleans())
def test_the_values_of_any_json_cover_it_and_stay_json(value, indent, escaped):
    text = json.dumps(value, indent=indent, ensure_ascii=escaped)
    parsed = json_data.parse_text(text)
    check_spans(parsed)
    if "turn" not in {e.kind for e in parsed.elements}:
        assert json.loads(parsed.text) == value


@settings(deadline=None)
@given(pieces("1\n", "00:01.0 --> 00:02.0\n", "<v Ana>", "WEBVTT", "\n\n", "NOTE"))
def test_cues_cover_the_file(text):
    parsed = subtitles.parse_text(text)
    check_spans(parsed)
    assert parsed.text == text


@settings(deadline=None)
@given(
    pieces(
        "====\n", "----\n", "A\n", "- ", "  ", "    ", ".. ", "::\n", "code::", "+--+\n", "|", "1. ",
        ".. _a:", "== ==\n", "term\n", ":f: x",
    )
)  # fmt: skip
@example("..\nx")
def test_blocks_cover_the_file(text):
    parsed = restructured_text.parse_text(text)
    check_spans(parsed)
    assert parsed.text == text


@settings(deadline=None)
@given(
    pieces(
        "From: a\n", "Subject: b\n", "Content-Type: ", "multipart/mixed; boundary=b\n", "--b\n",
        "text/html\n", "\n\n", "charset=utf-7", "=?utf-8?q?x?=", "Content-Disposition: attachment",
        "> q\n", "message/rfc822\n", "Content-Transfer-Encoding: base64\n",
    )
)  # fmt: skip
def test_any_message_has_a_status(text):
    parsed = parsed_file(f"Subject: s\n{text}".encode(), "a.eml")
    assert parsed.status in ("ok", "partial", "encrypted", "failed")
    assert parsed.status != "failed" or "Error" not in parsed.error, parsed.error
