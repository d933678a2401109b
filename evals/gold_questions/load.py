"""Gold questions as people write them: YAML files, read strictly.

A misspelt key or a question without evidence would quietly measure something else, so every
mistake stops here with the file, the question and the cure.
"""

import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from chunking_assets.errors import CorpusError
from chunking_assets.strict_yaml import UnreadableYaml, first_mistake, read_yaml

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
        mistake = first_mistake(error)
        problem = f"{mistake.key or 'entry'}: {mistake.problem}"
        raise GoldQuestionError(file, where, problem, mistake.cure) from error
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


def _entries(path: Path, file: str) -> list[object]:
    try:
        content = read_yaml(path)
    except OSError as error:
        raise GoldQuestionError(
            file, "(file)", f"cannot be read ({error.strerror})", "Correct `questions:`."
        ) from error
    except UnreadableYaml as error:
        mistake = error.mistake
        raise GoldQuestionError(file, mistake.key, mistake.problem, mistake.cure) from error
    entries = content.get("questions") if isinstance(content, dict) else None
    if not isinstance(entries, list) or len(content) != 1:
        raise GoldQuestionError(
            file, "(file)", "is not one list of questions", "Start the file with `questions:`."
        )
    return entries
