"""Files of gold questions: YAML, CSV and JSON lines, one loader a format.

A loader says where each entry stands and what it says; what a question must be is decided once,
in `load`. A line that cannot be read is a mistake of its own, so that `make check` can name the
others too.
"""

import csv
import io
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from chunking_assets.strict_yaml import Mistake, UnreadableYaml, read_yaml

if TYPE_CHECKING:
    from _csv import Reader

COLUMNS = (
    "id", "question", "answer", "language", "tags", "answerable", "status",
    "evidence", "doc_id", "quote", "occurrence",
)  # fmt: skip
OF_EVIDENCE = frozenset(("evidence", "doc_id", "quote", "occurrence"))
TAG_SEPARATOR = ";"


@dataclass(frozen=True, slots=True)
class Entry:
    """What a file says in one place. `where` names it in errors: its line, id or number."""

    where: str
    content: object


Loader = Callable[[Path], Iterator[Entry | Mistake]]


def yaml_entries(path: Path) -> Iterator[Entry | Mistake]:
    """The entries of `questions:`, named by their ids."""
    try:
        content = read_yaml(path)
    except UnreadableYaml as error:
        yield error.mistake
        return
    entries = content.get("questions") if isinstance(content, dict) else None
    if not isinstance(entries, list) or len(content) != 1:
        yield Mistake("(file)", "is not one list of questions", "Start the file with `questions:`.")
        return
    for number, entry in enumerate(entries, start=1):
        yield Entry(_named(entry) or f"question number {number}", entry)


def jsonl_entries(path: Path) -> Iterator[Entry | Mistake]:
    """One JSON object a line, with the keys of a YAML entry."""
    for line, found in json_lines(path):
        where = f"line {line}"
        if isinstance(found, Mistake):
            yield found
        else:
            yield Entry(f"{where}, {name}" if (name := _named(found)) else where, found)


def json_lines(path: Path) -> Iterator[tuple[int, object]]:
    """Every line's number, from 1, and its JSON value, or the mistake in it; empty lines are
    passed over.

    Raises:
        OSError: the file cannot be read.
    """
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            try:
                text = line.decode("utf-8-sig").strip()
                value = json.loads(text, object_pairs_hook=_unique) if text else None
            except (ValueError, RecursionError) as error:
                problem = f"is not JSON ({error})"
                value = Mistake(
                    f"line {number}", problem, "Write one JSON object a line, in UTF-8."
                )
            else:
                if not text:
                    continue
            yield number, value


def csv_entries(path: Path) -> Iterator[Entry | Mistake]:
    """A row a question with its first quote; a row without an id adds a quote to the one above.

    Columns are those of `COLUMNS`; commas, semicolons or tabs separate them. Quotes with the same
    number in the column `evidence` are alternatives.
    """
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        yield Mistake("(file)", f"is not UTF-8 ({error.reason})", "Save it as CSV in UTF-8.")
        return
    first = text.partition("\n")[0]
    separator = max(",;\t", key=first.count)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    try:
        header = [name.strip() for name in next(reader, [])]
        if mistake := _header_mistake(header):
            yield mistake
            return
        yield from _rows(header, reader)
    except csv.Error as error:
        where = f"line {reader.line_num}"
        yield Mistake(
            where, f"is not CSV ({error})", 'Close its quotes ("), and double those in it.'
        )


LOADERS: Mapping[str, Loader] = {
    ".yaml": yaml_entries,
    ".yml": yaml_entries,
    ".csv": csv_entries,
    ".jsonl": jsonl_entries,
}
"""By the end of the file's name."""


def _named(content: object) -> str | None:
    name = content.get("id") if isinstance(content, dict) else None
    return None if name is None else f"question {name!r}"


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    said = Counter(name for name, _ in pairs)
    if twice := [name for name, times in said.items() if times > 1]:
        raise ValueError(f"duplicate name {twice[0]!r}")
    return dict(pairs)


def _header_mistake(header: Sequence[str]) -> Mistake | None:
    cure = f"The first line names the columns: {', '.join(COLUMNS)}; the last nine may be left out."
    for name in header:
        if name not in COLUMNS or header.count(name) > 1:
            problem = "stands twice" if name in COLUMNS else "is no column"
            return Mistake("line 1", f"{name!r} {problem}", cure)
    missing = [name for name in ("id", "question") if name not in header]
    return Mistake("line 1", f"has no column {missing[0]!r}", cure) if missing else None


class _Question:
    """A question whose rows are being read. Quotes of one number share a slot."""

    def __init__(self, line: int, cells: Mapping[str, str]) -> None:
        self.where = f"line {line}, question {cells['id']!r}"
        self.content: dict[str, object] = {k: v for k, v in cells.items() if k not in OF_EVIDENCE}
        if "tags" in cells:
            tags = (tag.strip() for tag in cells["tags"].split(TAG_SEPARATOR))
            self.content["tags"] = [tag for tag in tags if tag]
        self.slots: dict[str, list[dict[str, str]]] = {}
        self.add(line, cells)

    def add(self, line: int, cells: Mapping[str, str]) -> None:
        quote = {k: v for k, v in cells.items() if k in OF_EVIDENCE and k != "evidence"}
        if quote or "evidence" in cells:
            slot = cells.get("evidence", f"line {line}").strip()
            self.slots.setdefault(slot, []).append(quote)

    def entry(self) -> Entry:
        slots: list[object] = [q[0] if len(q) == 1 else {"any_of": q} for q in self.slots.values()]
        return Entry(self.where, {**self.content, **({"evidence": slots} if slots else {})})


def _rows(header: Sequence[str], reader: "Reader") -> Iterator[Entry | Mistake]:
    question: _Question | None = None
    line = reader.line_num + 1
    for row in reader:
        cells = {name: cell for name, cell in zip(header, row, strict=False) if cell.strip()}
        mistake = _row_mistake(line, cells, len(row), len(header), question is not None)
        if mistake:
            yield mistake
        elif "id" in cells:
            if question:
                yield question.entry()
            question = _Question(line, {**cells, "id": cells["id"].strip()})
        elif question:
            question.add(line, cells)
        line = reader.line_num + 1
    if question:
        yield question.entry()


def _row_mistake(
    line: int, cells: Mapping[str, str], given: int, named: int, is_under_question: bool
) -> Mistake | None:
    if given > named:
        problem, cure = (
            f"has {given} cells for {named} columns",
            "Put a cell with commas in quotes.",
        )
        return Mistake(f"line {line}", problem, cure)
    if "id" in cells or not cells:
        return None
    if not is_under_question:
        return Mistake(f"line {line}", "id: is missing", "Add it.")
    if others := [name for name in cells if name not in OF_EVIDENCE]:
        return Mistake(
            f"line {line}",
            f"{others[0]}: is said in a row without an id, which only adds a quote",
            "Give the row an id, or leave the cell empty.",
        )
    return None
