"""Gold questions as people write them: YAML files, read strictly.

A misspelt key or a question without evidence would quietly measure something else, so every
mistake stops here with the file, the question and the cure.
"""

import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import yaml
from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from chunking_assets.errors import CorpusError

_Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]


class GoldQuestionError(CorpusError):
    """A file of gold questions says something that cannot be meant."""

    def __init__(self, file: str, question: str, problem: str, cure: str) -> None:
        super().__init__(f"{file}: {question}: {problem}. {cure}")
        self.file, self.question, self.problem, self.cure = file, question, problem, cure


@dataclass(frozen=True, slots=True)
class Quote:
    """Words of a document that answer a question. `doc_id` is `collection/relative/path`."""

    doc_id: str
    quote: str


@dataclass(frozen=True, slots=True)
class GoldQuestion:
    """A question with its reference answer and the words that prove it.

    `evidence` is empty exactly when the corpus cannot answer (`answerable` is False); `language`
    is a BCP 47 tag; `file` is the file it was read from, relative to the project.
    """

    question_id: str
    question: str
    answer: str
    language: str
    tags: tuple[str, ...]
    answerable: bool
    evidence: tuple[Quote, ...]
    file: str


class _Evidence(BaseModel):
    model_config = ConfigDict(extra="forbid")
    doc_id: _Text
    quote: _Text


class _Question(BaseModel):
    model_config = ConfigDict(extra="forbid")
    id: Annotated[str, StringConstraints(pattern=r"^[\w.-]+$", max_length=128)]
    question: _Text
    answer: str = ""
    language: Annotated[str, StringConstraints(pattern=r"^[A-Za-z]{2,3}(-[A-Za-z0-9]+)*$")]
    tags: list[_Text] = Field(default_factory=list)
    answerable: bool = True
    evidence: list[_Evidence] = Field(default_factory=list)


def load_questions(files: Iterable[Path], root: Path | None = None) -> list[GoldQuestion]:
    """The questions of these files, in the order given.

    Files are named relative to `root`, the project's folder, where they lie in it, so that what is
    recorded does not depend on the machine; without it they are named as given.

    Raises:
        GoldQuestionError: a file cannot be read, an entry is not a question (unknown key, missing
            or mistyped value, evidence that contradicts `answerable`), or an id is used twice.
    """
    questions: dict[str, GoldQuestion] = {}
    for path in files:
        named = path.relative_to(root) if root and path.is_relative_to(root) else path
        file = named.as_posix()
        for number, entry in enumerate(_entries(path, file), start=1):
            question = _question(file, number, entry)
            first = questions.setdefault(question.question_id, question)
            if first is not question:
                raise GoldQuestionError(
                    file,
                    f"question {question.question_id!r}",
                    f"the id is already used in {first.file}",
                    "Give each question its own id, in all files.",
                )
    return list(questions.values())


def _question(file: str, number: int, entry: object) -> GoldQuestion:
    name = entry.get("id") if isinstance(entry, dict) else None
    where = f"question {name!r}" if name is not None else f"question number {number}"
    try:
        parsed = _Question.model_validate(entry)
    except ValidationError as error:
        raise GoldQuestionError(file, where, *_problem_and_cure(error)) from error
    if parsed.answerable and not parsed.evidence:
        raise GoldQuestionError(
            file,
            where,
            "has no evidence",
            "Quote the words that answer it, or write `answerable: false`.",
        )
    if parsed.evidence and not parsed.answerable:
        raise GoldQuestionError(
            file,
            where,
            "is not answerable but has evidence",
            "Remove the evidence, or remove `answerable: false`.",
        )
    return GoldQuestion(
        question_id=parsed.id,
        question=parsed.question,
        answer=parsed.answer.strip(),
        language=parsed.language,
        tags=tuple(parsed.tags),
        answerable=parsed.answerable,
        evidence=tuple(
            Quote(unicodedata.normalize("NFC", e.doc_id), e.quote) for e in parsed.evidence
        ),
        file=file,
    )


def _problem_and_cure(error: ValidationError) -> tuple[str, str]:
    mistakes = error.errors()
    # A misspelt key is also a missing one; only the first is the mistake.
    first = next((m for m in mistakes if m["type"] == "extra_forbidden"), mistakes[0])
    key = ".".join(str(part) for part in first["loc"]) or "entry"
    if first["type"] == "extra_forbidden":
        return f"unknown key {key!r}", "Remove it or correct its spelling."
    if first["type"] == "missing":
        return f"{key} is missing", "Add it."
    problem = f"{key}: {first['msg']} (given: {first['input']!r})"
    if first["type"] == "string_type":  # `no` is a boolean to YAML, and 12 a number
        return problem, "Put the value in quotes."
    return problem, "Correct the value."


class _UniqueKeys(yaml.SafeLoader):
    """YAML that refuses a key said twice instead of silently keeping the last."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[str] = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode):
                if key.value in seen:
                    raise yaml.constructor.ConstructorError(
                        None, None, f"duplicate key {key.value!r}", key.start_mark
                    )
                seen.add(key.value)
        return super().construct_mapping(node, deep)


def _entries(path: Path, file: str) -> list[object]:
    try:
        content = yaml.load(path.read_bytes(), _UniqueKeys)  # noqa: S506 - a SafeLoader
    except OSError as error:
        raise GoldQuestionError(
            file, "(file)", f"cannot be read ({error.strerror})", "Correct `questions:`."
        ) from error
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f"line {mark.line + 1}" if mark else "(file)"
        problem = getattr(error, "problem", None) or str(error)
        raise GoldQuestionError(file, where, problem, "Correct the YAML there.") from error
    entries = content.get("questions") if isinstance(content, dict) else None
    if not isinstance(entries, list) or len(content) != 1:
        raise GoldQuestionError(
            file, "(file)", "is not one list of questions", "Start the file with `questions:`."
        )
    return entries
