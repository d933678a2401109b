"""The process that parses untrusted files hangs, dies and eats memory; nothing else does."""

import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from threading import Thread

import polars as pl
import pytest
from parser_process import kill_once_given_a_file, waiting
from written_files import column, docx, p, pdf, xlsx

from chunking_assets.parsed_elements import guard
from chunking_assets.parsed_elements.build import (
    DOCUMENTS,
    has_documents_to_retry,
    update_documents,
)
from chunking_assets.parsed_elements.limits import Limits
from chunking_assets.parsed_elements.parse import ParsedDocument, outcome_key, parse_document
from chunking_assets.raw_documents.collection import Collection
from chunking_assets.workspace import Workspace

PDF = "application/pdf"
DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
PAGE = pdf([column(["Refunds take five working days to arrive."])])


@pytest.fixture(autouse=True)
def _own_waiting() -> Iterator[None]:
    guard.close()
    yield
    guard.close()


def parse(data: bytes, limits: Limits | None = None, kind: str = PDF) -> ParsedDocument:
    return parse_document(data, "a.pdf", kind, limits or Limits())


def test_one_warm_process_reads_file_after_file():
    assert parse(PAGE).status == "ok"
    first = waiting()
    assert parse(b"{\\rtf1 Hello}", kind="application/rtf").status == "ok"
    assert parse(b"package a\n", kind="text/x-go").status == "ok"
    assert waiting() == first


def test_text_starts_no_process():
    assert parse(b"# Hello", kind="text/markdown").status == "ok"
    assert not guard._idle.get(os.getpid())


def test_a_hang_ends_as_timeout_and_the_next_file_is_read():
    parse(PAGE)
    os.kill(waiting(), signal.SIGSTOP)
    hung = parse(PAGE, Limits(seconds=0.1))
    assert (hung.status, hung.text) == ("timeout", "")
    assert "parsing.seconds" in (hung.cure or "")
    assert parse(PAGE).status == "ok"


@pytest.mark.parametrize("number", [signal.SIGSEGV, signal.SIGKILL, signal.SIGABRT])
def test_a_death_amid_a_file_is_a_crash_of_that_file(number: signal.Signals):
    parse(PAGE)
    killer = kill_once_given_a_file(waiting(), number)
    dead = parse(PAGE)
    killer.join()
    assert dead.status == "crashed"
    assert number.name in (dead.error or "")
    assert parse(PAGE).status == "ok"


def test_a_crash_is_none_of_memory_however_much_the_one_that_asks_holds():
    """Linux counts it to the peak of a process that it starts."""
    ballast = b"x" * 700_000_000
    parse(PAGE)
    del ballast
    killer = kill_once_given_a_file(waiting())
    assert parse(PAGE).status == "crashed"
    killer.join()


def test_a_process_that_died_idle_is_no_files_fault():
    parse(PAGE)
    os.kill(waiting(), signal.SIGKILL)
    os.waitid(os.P_PID, waiting(), os.WEXITED | os.WNOWAIT)
    assert parse(PAGE).status == "ok"


def test_a_file_that_eats_memory_is_too_large_and_leaves_no_process_behind():
    greedy = docx(p("word ") * 100_000)
    parse(PAGE)
    before = waiting()
    result = parse(greedy, Limits(memory_mb=20), DOCX)
    assert result.status == "too_large"
    assert "memory" in (result.error or "")
    assert parse(PAGE).status == "ok"
    assert waiting() != before


def test_code_that_makes_its_grammar_eat_memory_is_too_large():
    """Asked by a small process: what a large one starts is not told from what it eats."""
    code = (
        "from chunking_assets.parsed_elements.parse import Limits, parse_document as parse\n"
        "for kind, code in (('text/x-go', b'{'), ('text/x-c', b'a['), ('text/javascript', b'('),\n"
        "                   ('application/sql', b'(')):\n"
        "    print(parse(code * 1_000_000, 'a', kind, Limits(memory_mb=100)).status)\n"
    )
    shown = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout
    assert shown.split() == ["too_large"] * 4


def test_threads_have_a_process_each():
    results: list[ParsedDocument] = []
    threads = [Thread(target=lambda: results.append(parse(PAGE))) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [r.status for r in results] == ["ok"] * 3
    assert 1 <= len(guard._idle[os.getpid()]) <= 3


def test_a_killed_parent_leaves_no_process_behind(tmp_path: Path):
    (tmp_path / "a.pdf").write_bytes(PAGE)
    code = (
        "import os, sys; from pathlib import Path; from chunking_assets.parsed_elements import guard;"
        "from chunking_assets.parsed_elements.limits import Limits;"
        f"guard.parse(Path(sys.argv[1]).read_bytes(), {PDF!r}, Limits());"
        "print(guard._idle[os.getpid()][0].process.pid, flush=True); sys.stdin.read()"
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", code, tmp_path / "a.pdf"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    with parent:
        assert parent.stdout
        ended = os.pidfd_open(int(parent.stdout.readline()))
        parent.kill()
    assert select.select([ended], [], [], 60)[0] == [ended]
    os.close(ended)


def mail(name: str) -> bytes:
    return f"From: {name}\nSubject: Fees\n\nNone for {name}.\n".encode()


KILLED = {
    "pdf": lambda name: pdf([column([f"Everything about {name} on a page."])]),
    "docx": lambda name: docx(p(name)),
    "xlsx": lambda name: xlsx({"Sheet": [[name, 1]]}),
    "eml": mail,
    "html": lambda name: f"<h1>{name}</h1>".encode(),
    "go": lambda name: f"package {name}\n".encode(),
}  # fmt: skip


@pytest.mark.parametrize("suffix", KILLED)
def test_a_crash_leaves_its_neighbours_complete_and_is_tried_again(tmp_path: Path, suffix: str):
    folder, workspace = tmp_path / "docs", Workspace(tmp_path / "home")
    folder.mkdir()
    for name in ("a", "b", "c"):
        (folder / f"{name}.{suffix}").write_bytes(KILLED[suffix](name))
    (folder / "d.md").write_text("# Notes")
    collection = Collection(path="docs", settle_seconds=0)
    killers = []

    def after(number: int, of: int) -> None:
        if number == 1:
            killers.append(kill_once_given_a_file(waiting()))

    update = update_documents(workspace, "docs", "docs", collection, tmp_path, progress=after)
    assert _statuses(workspace) == {
        f"docs/a.{suffix}": "ok", f"docs/b.{suffix}": "crashed", f"docs/c.{suffix}": "ok",
        "docs/d.md": "ok",
    }  # fmt: skip
    assert update.failed == (f"docs/b.{suffix}",)
    assert has_documents_to_retry(workspace, "docs")
    update = update_documents(workspace, "docs", "docs", collection, tmp_path)
    assert (set(_statuses(workspace).values()), update.parsed) == ({"ok"}, 1)
    killers[0].join()


def test_a_document_whose_parser_is_killed_is_served_as_it_was_until_it_is_read(tmp_path: Path):
    folder, workspace = tmp_path / "docs", Workspace(tmp_path / "home")
    folder.mkdir()
    file, collection = folder / "a.eml", Collection(path="docs", settle_seconds=0)
    file.write_bytes(mail("Ana"))
    update_documents(workspace, "docs", "docs", collection, tmp_path)
    file.write_bytes(mail("Bo"))
    killer = kill_once_given_a_file(waiting())
    update = update_documents(workspace, "docs", "docs", collection, tmp_path)
    killer.join()
    assert update.stale == ("docs/a.eml",)
    assert "Ana" in _texts(workspace)
    update_documents(workspace, "docs", "docs", collection, tmp_path)
    assert "Bo" in _texts(workspace)


def test_what_took_too_long_is_tried_again_by_the_next_run_and_what_is_damaged_is_not(
    tmp_path: Path,
):
    folder, workspace = tmp_path / "docs", Workspace(tmp_path / "home")
    folder.mkdir()
    (folder / "a.pdf").write_bytes(PAGE)
    (folder / "b.pdf").write_bytes(b"%PDF-1.7 and nothing else")
    collection, limits = Collection(path="docs", settle_seconds=0), Limits(seconds=5)
    parse(PAGE)
    os.kill(waiting(), signal.SIGSTOP)
    update_documents(workspace, "docs", "docs", collection, tmp_path, limits=limits)
    assert _statuses(workspace) == {"docs/a.pdf": "timeout", "docs/b.pdf": "failed"}
    assert has_documents_to_retry(workspace, "docs")
    update = update_documents(workspace, "docs", "docs", collection, tmp_path, limits=limits)
    assert _statuses(workspace) == {"docs/a.pdf": "ok", "docs/b.pdf": "failed"}
    assert update.parsed == 1
    assert not has_documents_to_retry(workspace, "docs")


def test_other_limits_are_tried_on_what_broke_the_old_ones(tmp_path: Path):
    folder, workspace = tmp_path / "docs", Workspace(tmp_path / "home")
    folder.mkdir()
    (folder / "a.pdf").write_bytes(pdf([column([f"A page, number {n}."]) for n in range(3)]))
    (folder / "b.pdf").write_bytes(PAGE)
    collection = Collection(path="docs", settle_seconds=0)
    few, more = Limits(pages=2), Limits(pages=9)
    for limits, status, parsed in ((few, "partial", 2), (few, "partial", 0), (more, "ok", 1)):
        update = update_documents(workspace, "docs", "docs", collection, tmp_path, limits=limits)
        assert (_statuses(workspace)["docs/a.pdf"], update.parsed) == (status, parsed)


def test_limits_are_part_of_the_key_of_what_has_no_whole_text():
    few, more = Limits(pages=1), Limits(pages=2)
    assert outcome_key("ok", "rev", PDF, few) == outcome_key("ok", "rev", PDF, more)
    assert outcome_key("partial", "rev", PDF, few) != outcome_key("partial", "rev", PDF, more)


def test_a_missing_package_is_named_with_the_extra_that_brings_it(tmp_path: Path):
    """A folder in front of the installed packages hides one."""
    (tmp_path / "pypdfium2.py").write_text("raise ModuleNotFoundError(name='pypdfium2')")
    code = (
        "import sys; from chunking_assets.parsed_elements.parse import parse_document;"
        "r = parse_document(sys.stdin.buffer.read(), 'a.pdf', 'application/pdf');"
        "print(r.status, r.error, r.cure)"
    )
    shown = subprocess.run(
        [sys.executable, "-c", code],
        input=PAGE,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        check=True,
    ).stdout.decode()
    assert shown.startswith("unsupported a.pdf: ")
    assert "pypdfium2" in shown
    assert "chunking-assets[office]" in shown


def _statuses(workspace: Workspace) -> dict[str, str]:
    documents = workspace.table(DOCUMENTS).read("docs", ["doc_id", "status"])
    assert isinstance(documents, pl.DataFrame)
    return dict(documents.iter_rows())


def _texts(workspace: Workspace) -> str:
    documents = workspace.table(DOCUMENTS).read("docs", ["text"])
    assert isinstance(documents, pl.DataFrame)
    return " ".join(documents["text"])
