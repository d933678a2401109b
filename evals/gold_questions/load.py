"""Gold questions as people write them, read strictly.

A misspelt key or a question without evidence would quietly measure something else, so every
mistake stops here with the file, the question and the cure.
"""

import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from chunking_assets.errors import CorpusError
from chunking_assets.strict_yaml import Mistake, first_mistake
from evals.gold_questions.question_files import LOADERS, Entry

_Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
LANGUAGE_TAG = r"^[A-Za-z]{2,3}(-[A-Za-z0-9]+)*$"


class GoldQuestionError(CorpusError):
    """A file of gold questions says something that cannot be meant."""

    def __init__(self, file: str, question: str, problem: str, cure: str) -> None:
        super().__init__(f"{file}: {question}: {problem}. {cure}")
        self.file, self.question, self.problem, self.cure = file, question, problem, cure


@dataclass(frozen=True, slots=True)
class Quote:
    """Words of a document that answer a question. `doc_id` is `collection/relative/path`.

    `occurrence` says which one is meant, from 1, where the words stand there several times; None:
    any of them.
    """

    doc_id: str
    quote: str
    occurrence: int | None = None


Slot = tuple[Quote, ...]
"""Alternatives: one of them is needed. Nearly always there is one."""


@dataclass(frozen=True, slots=True)
class GoldQuestion:
    """A question with its reference answer and the words that prove it.

    All slots of `evidence` together answer it; there are none exactly when the corpus cannot
    (`answerable` is False). `language` is a BCP 47 tag; `file` is the file it was read from,
    relative to the project, and `where` its place there, for messages. A draft is not scored.
    """

    question_id: str
    question: str
    answer: str
    language: str
    tags: tuple[str, ...]
    answerable: bool
    evidence: tuple[Slot, ...]
    file: str
    status: Literal["approved", "draft"] = "approved"
    where: str = field(default="", compare=False)


class _Quote(BaseModel):
    model_config = ConfigDict(extra="forbid")
    doc_id: _Text
    quote: _Text
    occurrence: int | None = Field(default=None, ge=1)


class _Evidence(BaseModel):
    """A quote, or `any_of` with several. Not a union: its errors would not name one key."""

    model_config = ConfigDict(extra="forbid")
    doc_id: _Text | None = None
    quote: _Text | None = None
    occurrence: int | None = Field(default=None, ge=1)
    any_of: list[_Quote] | None = Field(default=None, min_length=2)


class _Question(BaseModel):
    model_config = ConfigDict(extra="forbid")
    id: Annotated[str, StringConstraints(pattern=r"^[\w.-]+$", max_length=128)]
    question: _Text
    answer: str = ""
    language: Annotated[str, StringConstraints(pattern=LANGUAGE_TAG)]
    tags: list[_Text] = Field(default_factory=list)
    answerable: bool = True
    status: Literal["draft", "approved"] = "approved"
    evidence: list[_Evidence] = Field(default_factory=list)


def load_questions(files: Iterable[Path], root: Path | None = None) -> list[GoldQuestion]:
    """The questions of these files, drafts too, in the order given.

    Files are named relative to `root`, the project's folder, where they lie in it, so that what is
    recorded does not depend on the machine; without it they are named as given.

    Raises:
        GoldQuestionError: a file cannot be read, an entry is not a question (unknown key, missing
            or mistyped value, evidence that contradicts `answerable`), or an id is used twice.
    """
    questions, mistakes = read_questions(files, root)
    if mistakes:
        raise mistakes[0]
    return questions


def read_questions(
    files: Iterable[Path], root: Path | None = None
) -> tuple[list[GoldQuestion], list[GoldQuestionError]]:
    """As `load_questions`, with every mistake instead of an error for the first."""
    questions: dict[str, GoldQuestion] = {}
    mistakes: list[GoldQuestionError] = []
    for path in files:
        named = path.relative_to(root) if root and path.is_relative_to(root) else path
        for found in _questions(path, named.as_posix()):
            if isinstance(found, GoldQuestionError):
                mistakes.append(found)
                continue
            first = questions.setdefault(found.question_id, found)
            if first is not found:
                mistakes.append(
                    GoldQuestionError(
                        found.file,
                        found.where,
                        f"id: is already used in {first.file} ({first.where})",
                        "Give each question its own id, in all files.",
                    )
                )
    return list(questions.values()), mistakes


def _questions(path: Path, file: str) -> Iterator[GoldQuestion | GoldQuestionError]:
    loader = LOADERS.get(path.suffix.lower())
    if loader is None:
        problem, cure = f"is not a kind of file read here ({path.suffix or 'no suffix'})", LOADERS
        yield GoldQuestionError(file, "(file)", problem, f"End its name in {', '.join(cure)}.")
        return
    try:
        for entry in loader(path):
            if isinstance(entry, Mistake):
                yield GoldQuestionError(file, entry.key, entry.problem, entry.cure)
                continue
            try:
                yield _question(file, entry)
            except GoldQuestionError as error:
                yield error
    except OSError as error:
        problem = f"cannot be read ({error.strerror})"
        yield GoldQuestionError(file, "(file)", problem, "Correct `questions:`.")


def _question(file: str, entry: Entry) -> GoldQuestion:
    def refused(problem: str, cure: str) -> GoldQuestionError:
        return GoldQuestionError(file, entry.where, problem, cure)

    try:
        parsed = _Question.model_validate(entry.content)
    except ValidationError as error:
        mistake = first_mistake(error)
        raise refused(f"{mistake.key or 'entry'}: {mistake.problem}", mistake.cure) from error
    if parsed.answerable and not parsed.evidence:
        raise refused(
            "has no evidence", "Quote the words that answer it, or write `answerable: false`."
        )
    if parsed.evidence and not parsed.answerable:
        raise refused(
            "is not answerable but has evidence",
            "Remove the evidence, or remove `answerable: false`.",
        )
    slots = []
    for number, evidence in enumerate(parsed.evidence):
        if mistake_of := _evidence_mistake(evidence):
            key, problem, cure = mistake_of
            raise refused(f"evidence.{number}.{key}: {problem}", cure)
        slots.append(_slot(evidence))
    return GoldQuestion(
        question_id=parsed.id,
        question=parsed.question,
        answer=parsed.answer.strip(),
        language=parsed.language,
        tags=tuple(parsed.tags),
        answerable=parsed.answerable,
        evidence=tuple(slots),
        file=file,
        status=parsed.status,
        where=entry.where,
    )


def _evidence_mistake(evidence: _Evidence) -> tuple[str, str, str] | None:
    own = evidence.model_dump(exclude_none=True, exclude={"any_of"})
    if evidence.any_of is None:
        missing = next((key for key in ("doc_id", "quote") if key not in own), None)
        return (missing, "is missing", "Add it.") if missing else None
    if own:
        key = next(iter(own))
        return key, "stands beside any_of", "Put it into each alternative."
    written = [(a.doc_id, a.quote, a.occurrence) for a in evidence.any_of]
    twice = next((n for n, a in enumerate(written) if a in written[:n]), None)
    if twice is not None:
        return f"any_of.{twice}", "is said twice", "Remove one of the two."
    return None


def _slot(evidence: _Evidence) -> Slot:
    alternatives = [_quote(a.doc_id, a.quote, a.occurrence) for a in evidence.any_of or ()]
    if evidence.doc_id is not None and evidence.quote is not None:
        alternatives.append(_quote(evidence.doc_id, evidence.quote, evidence.occurrence))
    return tuple(alternatives)


def _quote(doc_id: str, quote: str, occurrence: int | None) -> Quote:
    return Quote(unicodedata.normalize("NFC", doc_id), quote, occurrence)
