"""What people say of answers: a small file of labels that a judge is measured against.

Two kinds of label. An answer labelled as a whole is faithful or not, and the judge goes through all
its steps. Labelled statements are put to the judge as they stand, so that its verdict and the
person's are on the same words.
"""

import csv
import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from chunking_assets.errors import CorpusError
from chunking_assets.strict_yaml import UnreadableYaml, first_mistake, read_yaml

_Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
CSV_COLUMNS = ("question", "contexts", "answer", "statement", "label", "kind")


@dataclass(frozen=True, slots=True)
class LabelledText:
    """`is_supported` is a person's word; `kind` the kind of error, or of case, in theirs."""

    text: str
    is_supported: bool
    kind: str


@dataclass(frozen=True, slots=True)
class LabelledAnswer:
    """`statements` empty: `whole` labels the answer."""

    question: str
    contexts: tuple[str, ...]
    answer: str
    whole: LabelledText | None
    statements: tuple[LabelledText, ...] = ()


class _Statement(BaseModel):
    model_config = ConfigDict(extra="forbid")
    text: _Text
    supported: bool
    kind: str = ""


class _Label(BaseModel):
    model_config = ConfigDict(extra="forbid")
    question: _Text
    contexts: list[_Text] = Field(min_length=1)
    answer: Annotated[str, StringConstraints(strip_whitespace=True)] = ""
    faithful: bool | None = None
    statements: list[_Statement] = Field(default_factory=list)
    kind: str = ""


def load_labels(file: Path) -> list[LabelledAnswer]:
    """The labels of a `.yaml` or `.csv` file.

    A CSV has a row a label with the columns question, contexts (JSON list, or the text of one),
    answer, statement (empty: the whole answer), label (yes or no: supported, faithful) and kind.

    Raises:
        CorpusError: the file cannot be read, or an entry is no label; names it.
    """
    entries = _csv_entries(file) if file.suffix.lower() == ".csv" else _yaml_entries(file)
    return [_label(file, where, entry) for where, entry in entries]


def _label(file: Path, where: str, entry: object) -> LabelledAnswer:
    try:
        parsed = _Label.model_validate(entry)
    except ValidationError as error:
        mistake = first_mistake(error)
        raise _error(file, f"{where}: {mistake.key}", mistake.problem, mistake.cure) from error
    if (parsed.faithful is None) == (not parsed.statements):
        problem = "needs either `faithful` or `statements`"
        raise _error(file, where, problem, "Label the answer as a whole, or its statements.")
    if parsed.faithful is not None and not parsed.answer:
        raise _error(file, where, "has no `answer`", "Add what is faithful or not.")
    return LabelledAnswer(
        question=parsed.question,
        contexts=tuple(parsed.contexts),
        answer=parsed.answer,
        whole=(
            None
            if parsed.faithful is None
            else LabelledText(parsed.answer, parsed.faithful, parsed.kind)
        ),
        statements=tuple(
            LabelledText(s.text, s.supported, s.kind or parsed.kind) for s in parsed.statements
        ),
    )


def _yaml_entries(file: Path) -> Iterable[tuple[str, object]]:
    try:
        content = read_yaml(file)
    except OSError as error:
        raise _unreadable(file, error) from error
    except UnreadableYaml as error:
        mistake = error.mistake
        raise _error(file, mistake.key, mistake.problem, mistake.cure) from error
    entries = content.get("labels") if isinstance(content, dict) else None
    if not isinstance(entries, list) or len(content) != 1:
        raise _error(file, "(file)", "is not one list of labels", "Start it with `labels:`.")
    return [(f"label number {n}", entry) for n, entry in enumerate(entries, 1)]


def _csv_entries(file: Path) -> Iterable[tuple[str, object]]:
    try:
        with file.open(encoding="utf-8-sig", newline="") as lines:
            reader = csv.DictReader(lines, restkey="(more)")
            rows = list(reader)
            columns = reader.fieldnames or []
    except OSError as error:
        raise _unreadable(file, error) from error
    except (csv.Error, UnicodeDecodeError) as error:
        raise _error(file, "(file)", f"is no CSV in UTF-8 ({error})", "Save it as such.") from error
    missing = [name for name in CSV_COLUMNS if name not in columns]
    if missing:
        raise _error(file, "(first line)", f"has no {', '.join(missing)}", "Add the columns.")
    return [(f"row {number}", _from_row(row)) for number, row in enumerate(rows, 2)]


def _from_row(row: dict[str, Any]) -> dict[str, Any]:
    """A row in the shape of YAML; a label that is neither yes nor no is left to be refused."""
    label = {"question": row["question"], "answer": row["answer"], "kind": row["kind"] or ""}
    contexts = (row["contexts"] or "").strip()
    if statement := (row["statement"] or "").strip():
        label["statements"] = [{"text": statement, "supported": row["label"]}]
    else:
        label["faithful"] = row["label"]
    try:
        listed = json.loads(contexts)
    except ValueError:
        listed = None
    return {**label, "contexts": listed if isinstance(listed, list) else [contexts]}


def _unreadable(file: Path, error: OSError) -> CorpusError:
    return _error(file, "(file)", f"cannot be read ({error.strerror})", "Correct `judge_labels`.")


def _error(file: Path, where: str, problem: str, cure: str) -> CorpusError:
    return CorpusError(f"{file}: {where}: {problem}. {cure}")
