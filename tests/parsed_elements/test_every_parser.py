"""What holds of every parser of the registry, whatever it is given."""

import codecs
import json
import pkgutil
import re
import string
import sys
import time
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from written_files import column, docx, epub, odt, p, pdf, pptx, shape, tbl, xlsx

from chunking_assets import parsed_elements
from chunking_assets.parsed_elements.build import HEAD_BYTES
from chunking_assets.parsed_elements.decoding import decode, storable
from chunking_assets.parsed_elements.parse import (
    elements_by_document,
    elements_frame,
    parse_document,
)
from chunking_assets.parsed_elements.registry import BOUNDED, PARSERS
from chunking_assets.raw_documents.media_type import media_type

ROOT = Path(__file__).parents[2]
TEXT = sorted(PARSERS.keys() - BOUNDED.keys())
WRITTEN = {"text/html", "message/rfc822", "application/x-ipynb+json"}
"""Text whose canonical text is not the file itself."""

HARD = {
    "crlf": "one\r\n\r\ntwo\rthree\n\rfour\r\n",
    "nul": "a\x00b\n\n\x00\n\nc\n",
    "lone surrogates": "a \ud800 b\n\n\udfff\n",
    "separators": "one\u2028two\u2029three\x85four\x0bfive\x0csix\x1cseven\n\u2028\nend",
    "no-break spaces": "a\u00a0b\u3000c\u200bd\ufeffe\n\u00a0\nf",
    "joined emoji": "👨‍👩‍👧‍👦 👩🏽‍💻 🇧🇷🇫🇷 ❤️‍🔥 1️⃣\n\n🏳️‍🌈",
    "combining marks": "e\u0301te\u0301 Z͑ͫ̓ͪ̂A̴̵̜̰\n\n\u0301alone\n",
    "right to left": "سياسة الاسترجاع: نعم\n\n\u202eabc\u202c עברית\n",
    "no spaces": "商品到着後十四日以内であれば返品できます。\n",
    "marks of many formats": "# a\n- b\n| c | d |\n```\n<p>e\n{\"f\": 1}\n'g\";h,i\n/* j\n\"\"\"k\n--> l",
}  # fmt: skip

ENCODINGS = {
    "utf-8": lambda text: text.encode(errors="surrogatepass"),
    "utf-8 with mark": lambda text: codecs.BOM_UTF8 + text.encode(errors="surrogatepass"),
    "utf-16": lambda text: codecs.BOM_UTF16_LE + text.encode("utf-16-le", "surrogatepass"),
    "utf-16, other way round": lambda text: codecs.BOM_UTF16_BE + text.encode("utf-16-be", "surrogatepass"),
    "latin-1": lambda text: ("Gebühr für Käufe, gültig überall.\n" + text).encode("latin-1", "replace"),
}  # fmt: skip


@pytest.mark.parametrize("kind", TEXT)
def test_a_text_in_any_encoding_is_covered_and_offsets_lead_into_it(kind: str):
    for name, text in HARD.items():
        for encoding, encoded in ENCODINGS.items():
            data = encoded(text)
            read = parse_document(data, "a", kind)  # spans are checked inside
            if kind == "application/x-ipynb+json":
                assert read.status == "failed"
                continue
            assert read.status in ("ok", "empty"), (name, encoding, read.error)
            assert kind in WRITTEN or read.text == decode(data)
            frame = elements_frame("c/a", read.text, read.elements)
            assert elements_by_document(frame).get("c/a", ()) == read.elements
            assert all(
                parent is None or parent < ordinal
                for ordinal, parent in frame.select("ordinal", "parent").iter_rows()
            )


@pytest.mark.parametrize("name", HARD)
def test_office_files_hold_every_character_of_what_was_written(name: str):
    shown = "".join(c for c in HARD[name] if c >= " " and not 0xD800 <= ord(c) < 0xE000)
    words = shown.replace("\x85", " ").replace("|", "").replace("`", "")
    page = words.replace("<", "&lt;").replace("{", "{")
    cells = [[words, "b"], ["c", "d"]]
    rtf = "".join(f"\\u{ord(c) if ord(c) < 32768 else ord(c) - 65536}?" if ord(c) < 65536
                  else "".join(f"\\u{int.from_bytes(h, 'little', signed=True)}?" for h in
                               (c.encode("utf-16-le")[:2], c.encode("utf-16-le")[2:]))
                  for c in words)  # fmt: skip
    files = {
        "a.docx": docx(p(words, "Heading1") + p(words, numbered=(1, 1)) + tbl(cells)),
        "a.pptx": pptx([shape([words], "title") + shape([words], "body")]),
        "a.xlsx": xlsx({"Sheet": cells}),
        "a.odt": odt(f"<text:p>{page}</text:p>"),
        "a.epub": epub({"a.xhtml": f"<p>{page}</p>"}),
        "a.rtf": rf"{{\rtf1 {rtf}\par}}".encode(),
    }
    for file, data in files.items():
        read = parse_document(data, file, media_type(data[:HEAD_BYTES], file))
        assert read.status == "ok", (file, read.error)
        lost = _ink(words) - _ink(read.text)
        assert not lost, (file, lost)
        stored = elements_by_document(elements_frame("c/a", read.text, read.elements))
        assert stored["c/a"] == read.elements


def _ink(text: str) -> set[str]:
    return {c for c in text if not c.isspace() and c not in "\xad\x7f"}


def test_a_pdf_holds_every_character_of_its_encoding():
    """As far as WinAnsi goes: the characters above its ASCII that are letters or signs."""
    shown = "".join(chr(n) for n in range(0xA1, 0x100) if n != 0xAD)
    lines = [" ".join(shown[n : n + 12]) for n in range(0, len(shown), 12)]
    data = pdf([column(["A page of signs that stand for themselves:", *lines])])
    assert not set(shown) - set(parse_document(data, "a.pdf", "application/pdf").text)


def test_what_json_escapes_and_nothing_can_hold_costs_one_character():
    bad = "a \ud800 \u0000 b"
    cells = [
        {"cell_type": "markdown", "source": f"---\ntitle: {bad}\n---\n# {bad}"},
        {"cell_type": "code", "source": bad, "outputs": [{"data": {"text/html": f"<p>{bad}"}}]},
    ]
    for name, value in {
        "a.ipynb": {"nbformat": 4, "cells": cells},
        "a.json": {bad: {"long": "x" * 1_500}},
        "chat.json": [{"user": bad, "text": bad, "ts": bad}] * 2,
    }.items():
        data = json.dumps(value).encode()
        read = parse_document(data, name, media_type(data, name))
        assert read.status == "ok", read.error
        elements_frame(name, read.text, read.elements)
        assert all(storable(s) == s for e in read.elements for s in e.heading_path)


def _own_files() -> Iterator[Path]:
    for folder in ("sample_corpus", "docs", "sql", "chunking_assets/parsed_elements"):
        yield from (f for f in sorted((ROOT / folder).rglob("*")) if f.suffix not in (".pyc", ""))


def test_real_files_are_covered_and_what_they_say_is_kept():
    read = 0
    for file in _own_files():
        data = file.read_bytes()
        kind = media_type(data[:HEAD_BYTES], file.name)
        if kind not in PARSERS:
            continue
        parsed = parse_document(data, file.name, kind)
        assert parsed.status in ("ok", "partial", "empty"), parsed.error
        if kind in TEXT and kind not in WRITTEN | {"application/json"}:
            assert parsed.text == decode(data)
        read += 1
    assert read > 100


# Linear: the lines of Python that run are counted, which no other load on the machine changes. What
# runs inside of regular expressions is timed, and 16 times the text tells 16 times from 256 times the
# work on any machine. Libraries are timed by `benchmarks.parsing --growth`.

SHAPES: dict[str, Callable[[int], str]] = {
    "newlines": lambda n: "a" + "\n" * n + "b",
    "quotes": lambda n: ">" * n + " a",
    "one line": lambda n: "a" * n,
    "words": lambda n: "word " * n,
    "items": lambda n: "- a\n" * n,
    "nested items": lambda n: "".join("  " * (i % 50) + "- a\n" for i in range(n)),
    "brackets": lambda n: "[" * n,
    "tags": lambda n: "<p>a" * n,
    "components": lambda n: "<Ab\n" * n,
    "quoted": lambda n: '"a\n' * n,
    "rows": lambda n: "| a | b |\n" * n,
    "headings": lambda n: "# a\n" * n,
    "underlined": lambda n: "a\n=\n" * n,
    "names": lambda n: "Ana: a\nBo: b.\n" * n,
    "braces": lambda n: "{" * n,
}


def _lines_run(parse: Callable[[bytes], Any], data: bytes) -> int:
    lines = 0

    def count(frame: FrameType, event: str, argument: object) -> Any:
        nonlocal lines
        lines += event == "line"
        return count

    before = sys.gettrace()
    sys.settrace(count)
    try:
        parse(data)
    except Exception:
        lines += 0  # refused: what it took to find that out counts as well
    finally:
        sys.settrace(before)
    return lines


@pytest.mark.parametrize("kind", TEXT)
def test_twice_the_text_takes_twice_the_steps(kind: str):
    parse: Callable[[bytes], Any] = PARSERS[kind].parse  # type: ignore[assignment]
    _lines_run(parse, b"a\n")  # what is done once: imports, patterns
    for name, text in SHAPES.items():
        once, twice = (_lines_run(parse, text(n).encode()) for n in (200, 400))
        assert twice < 2.6 * once + 400, (name, once, twice)


PATTERNS = {
    (module.name, name): pattern
    for module in pkgutil.iter_modules(parsed_elements.__path__)
    if module.name != "__main__"
    for name, pattern in vars(import_module(f"{parsed_elements.__name__}.{module.name}")).items()
    if isinstance(pattern, re.Pattern)
}
SHORT = {
    ("html", "_FURNITURE_NAME"), ("html", "_CALLOUT_NAME"), ("html", "_SECTION_NAME"),
    ("markdown", "_HEADING_ID"),
}  # fmt: skip
"""Only asked of names of at most 100 characters, and of titles cut to 400."""
RUNS = [
    *string.punctuation, "a", "1", "A", " ", "\n", "\t", "é", "a ", "a\n", "a.", "a-", "a_", "a=", "a: ",
    "1.", "1,", ". ", "- ", "# ", "* ", '"a', "<a", "[a", "&a", "](", "//", "/*", "|a", "<!--", " \n",
]  # fmt: skip


def _uses() -> Iterator[tuple[str, str, str]]:
    """Each pattern of the parsers, and how it is asked."""
    for module, name in PATTERNS:
        source = Path(parsed_elements.__path__[0], f"{module}.py").read_text(encoding="utf-8")
        used = set(re.findall(rf"\b{name}\.(match|fullmatch|search|sub|split|find\w+)\b", source))
        yield from ((module, name, how) for how in sorted(used))


def _seconds(pattern: re.Pattern[Any], how: str, text: str) -> float:
    ask = getattr(pattern, how if how in ("match", "fullmatch", "search") else "findall")
    shown = text.encode() if isinstance(pattern.pattern, bytes) else text
    started = time.process_time()
    ask(shown)
    return time.process_time() - started


def test_no_regular_expression_is_slower_than_its_text_is_long():
    uses = [use for use in _uses() if use[:2] not in SHORT]
    assert len(uses) > 50
    slow = []
    for module, name, how in uses:
        pattern = PATTERNS[module, name]
        for run in RUNS:
            once, often = (run * (n // len(run)) + "\x01" for n in (500, 8000))
            least = 64 * max(_seconds(pattern, how, once), 1e-4)
            # What looks slow is looked at again: the machine may have been.
            if all(_seconds(pattern, how, often) > least for _ in range(4)):
                slow.append((module, name, how, run))
                break
    assert slow == []
