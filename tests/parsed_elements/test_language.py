"""The language of documents, and what a change of the detector does to those stored."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from small_corpus import SmallCorpus, write_corpus

from benchmarks.parallel_text import PARALLEL_TEXT
from chunking_assets.parsed_elements import build, language
from chunking_assets.parsed_elements.build import DOCUMENTS, update_documents
from chunking_assets.parsed_elements.document import Element
from chunking_assets.parsed_elements.language import LEAST_CONFIDENCE, detect_language
from chunking_assets.parsed_elements.parse import parse_document
from chunking_assets.raw_documents.listing import scan
from chunking_assets.raw_documents.media_type import media_type

ROOT = Path(__file__).parents[2]
SAMPLES = sorted(
    file
    for folder in ("conversations", "help-center", "handbook", "releases")
    for file in (ROOT / "sample_corpus" / folder).rglob("*.*")
)
OF_PORTUGAL, OF_FRANCE = ("teletrabalho", "pt-"), ("teletravail", "fr-")

ENGLISH, PORTUGUESE = PARALLEL_TEXT["en"], PARALLEL_TEXT["pt"]


def detect(text, kind="paragraph"):
    found = detect_language(text, [Element(kind, 0, len(text))])
    return found and found.code


@pytest.mark.parametrize("code", PARALLEL_TEXT)
def test_a_document_is_told_from_those_of_other_languages(code):
    text = PARALLEL_TEXT[code]
    found = detect_language(text, [Element("paragraph", 0, len(text))])
    assert found is not None
    assert found.code == code
    assert LEAST_CONFIDENCE <= found.confidence <= 1


@pytest.mark.parametrize("code", PARALLEL_TEXT)
def test_a_short_page_is_enough(code):
    blocks = PARALLEL_TEXT[code].split("\n\n")
    assert detect(blocks[-2]) == code
    assert detect(blocks[-1]) == code


@pytest.mark.parametrize("file", SAMPLES, ids=lambda f: f.name)
def test_the_sample_corpus_is_in_three_languages(file):
    expected = "en"
    if file.parent.name == "pt" or file.name.startswith(OF_PORTUGAL):
        expected = "pt"
    elif file.parent.name == "fr" or file.name.startswith(OF_FRANCE):
        expected = "fr"
    data = file.read_bytes()
    parsed = parse_document(data, file.name, media_type(data, file.name))
    found = detect_language(parsed.text, parsed.elements)
    assert found is not None
    assert found.code == expected


@pytest.mark.parametrize("file", sorted((ROOT / "sample_corpus").rglob("*.py")), ids=str)
def test_source_code_has_no_language(file):
    parsed = parse_document(file.read_bytes(), file.name, "text/x-python")
    assert detect_language(parsed.text, parsed.elements) is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Refunds",
        "Reset your password",
        "politica de reembolso",
        "12 34 5.6 77 88 99 1,234.50 2026-01-01 " * 20,
        "9f3ab2 77ac01 dead beef c0ffee 00ff11 " * 20,
        "2026-01-01 12:00:00 INFO svc started pid=33 port=8080 ERROR conn refused " * 10,
        "https://example.com/a/b?c=d http://foo.bar/baz https://x.io/1 " * 10,
        "🎉 🎉 👍 😀 " * 20,
        "\ud800" * 100,
    ],
)
def test_no_language_is_better_than_a_doubtful_one(text):
    assert detect(text) is None


@pytest.mark.parametrize("kind", ["code", "table", "front_matter", "import", "function"])
def test_only_prose_is_judged(kind):
    text = ENGLISH + PORTUGUESE * 3
    elements = [
        Element("paragraph", 0, len(ENGLISH)),
        Element(kind, len(ENGLISH), len(text)),
    ]
    assert detect_language(text, elements).code == "en"


def test_a_long_document_is_sampled_all_over():
    title_page = ENGLISH[:400]
    text = title_page + "\n\n" + PORTUGUESE * 40
    assert detect(text) == "pt"


def test_a_variety_counts_as_its_language():
    assert detect("你哋喺邊度呀？我哋而家喺屋企食緊飯，你要唔要過嚟一齊食呀？我哋等緊你。") == "zh"
    assert (
        detect("ازيك عامل ايه النهاردة انا رايح الشغل دلوقتي و هكلمك لما ارجع ان شاء الله") == "ar"
    )


def test_threads_agree():
    texts = list(PARALLEL_TEXT.values()) * 10
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(detect, texts)) == list(PARALLEL_TEXT) * 10


def test_the_model_as_it_is_kept_is_that_of_the_wheel(tmp_path):
    unpacked, kept = language._read(tmp_path), language._read(tmp_path)
    (file,) = tmp_path.iterdir()
    assert language._kept(file) is not None
    for text in PARALLEL_TEXT.values():
        assert kept.rank(text) == unpacked.rank(text)


def test_a_damaged_copy_of_the_model_is_passed_over(tmp_path):
    file = tmp_path / "kept.arrow"
    language._keep(file, {"pc": np.arange(3)})
    file.write_bytes(file.read_bytes()[:100])
    assert language._kept(file) is None


def test_it_is_silent_and_opens_no_connection():
    program = (
        "import sys\n"
        "def refuse(event, _):\n"
        "    if event in ('socket.connect', 'socket.getaddrinfo'): raise SystemExit(event)\n"
        "sys.addaudithook(refuse)\n"
        "import logging; logging.basicConfig(level=logging.DEBUG)\n"
        "from chunking_assets.parsed_elements.document import Element\n"
        "from chunking_assets.parsed_elements.language import detect_language\n"
        "text = 'The money is back on your card three working days after the parcel arrived.'\n"
        "assert detect_language(text, [Element('paragraph', 0, len(text))]).code == 'en'\n"
    )
    command = [sys.executable, "-W", "error", "-c", program]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


# Stored documents


@pytest.fixture
def corpus(tmp_path):
    documents = {
        "en.md": ENGLISH,
        "pt.md": PORTUGUESE,
        "f.py": "def f():\n    return 1\n",
        "e.md": "",
    }
    return SmallCorpus(write_corpus(tmp_path, documents))


def stored(corpus):
    rows = corpus.workspace.table(DOCUMENTS).read("docs")
    return {
        path: (lang, sure)
        for path, lang, sure in rows.select("path", "language", "language_confidence").iter_rows()
    }


def test_ok_documents_are_stored_with_their_language(corpus):
    corpus.parse()
    rows = stored(corpus)
    assert {path: found for path, (found, _) in rows.items()} == {
        "en.md": "en",
        "pt.md": "pt",
        "f.py": None,
        "e.md": None,
    }
    assert all((found is None) == (sure is None) for found, sure in rows.values())


def test_a_new_detector_looks_at_every_document_again(corpus, monkeypatch):
    (before,) = corpus.parse()
    monkeypatch.setattr(language, "VERSION", language.VERSION + 1)
    monkeypatch.setattr(build, "detect_language", lambda *_: language.Language("gl", 0.9))
    (after,) = corpus.parse()
    assert len(after.changes.changed) == 4
    assert stored(corpus)["pt.md"] == ("gl", 0.9)
    assert after.content_version != before.content_version


def test_a_new_detector_that_finds_the_same_changes_nothing_below(corpus, monkeypatch):
    (before,) = corpus.parse()
    monkeypatch.setattr(language, "VERSION", language.VERSION + 1)
    (after,) = corpus.parse()
    assert after.changes.changed
    assert after.content_version == before.content_version


def made_by_an_earlier_release(corpus):
    table = corpus.workspace.table(DOCUMENTS)
    manifest = table.manifest("docs")
    rows = table.read("docs").drop("language", "language_confidence")
    rows = rows.with_columns(pl.lit("of another parser").alias("parse_key"))
    keys = dict.fromkeys(manifest.keys, "of another parser")
    table.replace(rows, "docs", keys=keys, details=manifest.details)
    elements = corpus.workspace.table("elements")
    elements.replace(elements.read("docs"), "docs", keys=keys)


def test_documents_stored_without_a_language_get_one(corpus):
    corpus.parse()
    wanted = stored(corpus)
    made_by_an_earlier_release(corpus)
    corpus.parse()
    assert stored(corpus) == wanted


def test_a_document_held_back_keeps_the_row_of_an_earlier_release(corpus):
    corpus.parse()
    made_by_an_earlier_release(corpus)
    collection = corpus.config.collections["docs"]
    listing = scan("docs", collection, corpus.config.root)
    update_documents(
        corpus.workspace,
        "docs",
        "docs",
        collection,
        corpus.config.root,
        listing=replace(listing, held=frozenset({"docs/pt.md"})),
    )
    assert stored(corpus)["en.md"][0] == "en"
    assert stored(corpus)["pt.md"] == (None, None)
