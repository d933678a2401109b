"""`python -m benchmarks.parsing FOLDER`: what parsing costs and finds, beside markitdown.

Every file below FOLDER is parsed as the pipeline would, in this process and, where a format is
guarded, in its worker; then by markitdown if it is installed (`pip install 'markitdown[all]'`), in
turns. Seconds are wall time, since ours may be spent in the worker. What is found is compared by
words, headings and table rows; a PDF's words with those that pypdfium2 gives of its pages.

`--growth`, without a folder: what each parser of text takes for hostile text and for twice as much
of it, in seconds of this process's CPU. Text that is read too fast to be told from noise is made
longer until it is not. Nothing may take more than 2.6 times as long.
"""

import argparse
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path
from typing import TypeVar, cast

from rich.console import Console
from rich.table import Table

from chunking_assets.errors import CorpusError
from chunking_assets.parsed_elements.build import HEAD_BYTES
from chunking_assets.parsed_elements.parse import READABLE, ParsedDocument, parse_document
from chunking_assets.parsed_elements.registry import BOUNDED, PARSERS, Parser
from chunking_assets.raw_documents.media_type import media_type

LEAST_WIDTH = 150
ROUNDS = 2
_WORD = re.compile(r"\w+")
_HEADING = re.compile(r"^#{1,6} ", re.MULTILINE)
_ROW = re.compile(r"^\|(?!\s*:?-{3})", re.MULTILINE)
_LEAST_PER_MB = 1e6

HOSTILE: dict[str, Callable[[int], str]] = {
    "100,000 line ends": lambda n: "a" + "\n" * (100_000 * n) + "b",
    "100,000 nested quotes": lambda n: ">" * (100_000 * n) + " a",
    "a line of 1 MB": lambda n: "a" * (1_000_000 * n),
    "1 MB of words": lambda n: "word " * (200_000 * n),
    "100,000 brackets": lambda n: "[" * (100_000 * n),
    "100,000 quotation marks": lambda n: '"' * (100_000 * n),
}
MOST_GROWTH = 2.6
LEAST_SECONDS = 0.2
"""What takes less is not told from noise; the text is doubled until it takes more."""
MOST_DOUBLINGS = 4
LEAST_TIMED = 0.1
"""Seconds that a file is read again for: a file of a millisecond is not timed by one or two looks,
nor by that in which a process is started for it."""
MOST_ROUNDS = 20

Converter = Callable[[bytes, str], str]
Result = TypeVar("Result")


@dataclass
class Found:
    """Of one format, by one library."""

    seconds: float = 0.0
    read: int = 0
    words: int = 0
    headings: int = 0
    rows: int = 0

    def add(self, text: str, seconds: float) -> None:
        self.seconds += seconds
        self.read += bool(text.strip())
        self.words += len(_WORD.findall(text))
        self.headings += len(_HEADING.findall(text))
        self.rows += len(_ROW.findall(text))


@dataclass
class Format:
    """All files of one media type."""

    files: int = 0
    size: int = 0
    statuses: Counter[str] = field(default_factory=Counter)
    ours: Found = field(default_factory=Found)
    other: Found = field(default_factory=Found)
    text_words: int = 0
    page_words: int = 0


def documents(folder: Path) -> Iterator[tuple[Path, bytes]]:
    """The files below a folder that have any bytes."""
    for file in sorted(folder.rglob("*")):
        if file.is_file() and not file.is_symlink():
            yield file, file.read_bytes()


def measure(folder: Path, other: Converter | None) -> dict[str, Format]:
    """Ours and another's, file by file."""
    formats: dict[str, Format] = {}
    for file, data in documents(folder):
        kind = media_type(data[:HEAD_BYTES], file.name)
        of_kind = formats.setdefault(kind, Format())
        parsed, seconds = _ours(data, file.name, kind)
        of_kind.files += 1
        of_kind.size += len(data)
        of_kind.statuses[parsed.status] += 1
        of_kind.ours.add(_as_markdown(parsed), seconds)
        if kind == "application/pdf" and parsed.status in READABLE:
            ours, pages = Counter(_WORD.findall(_dense(parsed.text))), _pdf_words(data)
            of_kind.page_words += pages.total()
            of_kind.text_words += (ours & pages).total()
        if other is not None:
            text, seconds = _timed(partial(_converted, other, data, file.name))
            of_kind.other.add(text, seconds)
    return formats


def _ours(data: bytes, name: str, kind: str) -> tuple[ParsedDocument, float]:
    return _timed(lambda: parse_document(data, name, kind))


def _converted(other: Converter, data: bytes, name: str) -> str:
    with suppress(Exception):  # what it cannot read, it has not read
        return other(data, name)
    return ""


def _timed(read: Callable[[], Result]) -> tuple[Result, float]:
    """What it gives, and its shortest time."""
    seconds = list[float]()
    while len(seconds) < ROUNDS or (sum(seconds) < LEAST_TIMED and len(seconds) < MOST_ROUNDS):
        started = time.perf_counter()
        result = read()
        seconds.append(time.perf_counter() - started)
    return result, min(seconds)


def _as_markdown(parsed: ParsedDocument) -> str:
    """The text with a mark before each heading and row, so that both are counted alike."""
    marked = []
    for element in parsed.elements:
        text = parsed.text[element.start : element.end]
        if element.kind == "heading" and not text.startswith("#"):
            text = f"# {text}"
        if element.kind == "table" and not text.startswith("|"):
            text = "\n".join(f"|{line}" for line in text.splitlines())
        marked.append(text)
    return "\n".join(marked)


def _dense(text: str) -> str:
    """Joined at hyphens of line ends, as both sides are compared without them."""
    return re.sub(r"-\s*\n\s*", "", text)


def _pdf_words(data: bytes) -> Counter[str]:
    """What pypdfium2 gives of all pages."""
    import pypdfium2

    with pypdfium2.PdfDocument(data) as document:
        pages = [page.get_textpage().get_text_bounded() for page in document]
    return Counter(_WORD.findall(_dense("\n".join(pages))))


def growth() -> tuple[Table, list[str]]:
    """Seconds for each hostile text and how many times as many for twice the text; what grows
    faster than it."""
    table = Table("format", *HOSTILE, box=None)
    faster = []
    for kind in sorted(PARSERS.keys() - BOUNDED.keys()):
        row = [kind.rpartition("/")[2]]
        for name, text in HOSTILE.items():
            once, twice = _grown(kind, text)
            row.append(f"{once:.2f} × {twice / max(once, 1e-4):.1f}")
            if twice > LEAST_SECONDS and twice > MOST_GROWTH * once:
                faster.append(f"{kind}: {name}: {once:.2f} s, then {twice:.2f} s")
        table.add_row(*row)
    return table, faster


def _grown(kind: str, text: Callable[[int], str]) -> tuple[float, float]:
    """Seconds for a text that takes long enough to be timed, and for twice as much."""
    for doubling in range(MOST_DOUBLINGS + 1):
        size = 2**doubling
        once, twice = (
            min(_cpu_seconds(kind, text(n * size).encode()) for _ in range(ROUNDS)) for n in (1, 2)
        )
        if twice > LEAST_SECONDS:
            break
    return once, twice


def _cpu_seconds(kind: str, data: bytes) -> float:
    parser = cast(Parser, PARSERS[kind])
    started = time.process_time()
    with suppress(CorpusError):  # a refusal takes time, too
        parser.parse(data)
    return time.process_time() - started


def markitdown() -> Converter | None:
    """markitdown's conversion of some bytes; None if it is not installed."""
    if find_spec("markitdown") is None:
        return None
    from markitdown import MarkItDown, StreamInfo

    converter = MarkItDown(enable_plugins=False)

    def convert(data: bytes, name: str) -> str:
        info = StreamInfo(extension=Path(name).suffix)
        return str(converter.convert_stream(BytesIO(data), stream_info=info).text_content)

    return convert


def print_formats(formats: dict[str, Format], compared: bool) -> None:
    """A row a format; a ratio above 1 says that ours is faster, or finds more."""
    columns = ["format", "files", "MB/s", "statuses", "words", "headings", "rows"]
    if compared:
        columns += ["read (theirs)", "speed ×", "words ×", "headings (theirs)", "rows (theirs)"]
    table = Table(*columns, box=None)
    for kind, found in sorted(formats.items(), key=lambda item: -item[1].files):
        ours, other = found.ours, found.other
        statuses = ", ".join(f"{n} {status}" for status, n in found.statuses.most_common())
        speed = found.size / _LEAST_PER_MB / max(ours.seconds, 1e-9)
        row = [kind.rpartition("/")[2][-40:], found.files, f"{speed:.2f}", statuses, ours.words]
        row += [ours.headings, ours.rows]
        if compared:
            row += [
                other.read,
                _ratio(other.seconds, ours.seconds),
                _ratio(ours.words, other.words),
            ]
            row += [other.headings, other.rows]
        table.add_row(*map(str, row))
    Console(width=max(Console().width, LEAST_WIDTH)).print(table)
    pdf = formats.get("application/pdf")
    if pdf and pdf.page_words:
        print(f"\nPDF: {pdf.text_words / pdf.page_words:.4f} of pypdfium2's words are in our text")


def _ratio(above: float, below: float) -> str:
    return f"{above / below:.2f}" if below else "–"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.parsing",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--growth", action="store_true", help="hostile text, and twice as much")
    options = parser.parse_args(arguments)
    if options.growth:
        table, faster = growth()
        Console(width=max(Console().width, LEAST_WIDTH)).print(table)
        print("\n".join(faster) or f"\nnothing grows more than {MOST_GROWTH} times")
        return 1 if faster else 0
    if options.folder is None:
        parser.error("name a folder, or --growth")
    if not options.folder.is_dir():
        print(f"error: {options.folder} is no folder", file=sys.stderr)
        return 1
    other = markitdown()
    if other is None:
        print("markitdown is not installed: pip install 'markitdown[all]'\n", file=sys.stderr)
    print_formats(measure(options.folder, other), other is not None)
    return 0


if __name__ == "__main__":
    sys.exit(main())
