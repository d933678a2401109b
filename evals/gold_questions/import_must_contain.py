"""A list of questions with strings the answering passage must contain, as gold questions.

Such lists name words, not places. The shortest stretch of a document that holds all strings of an
entry becomes the quote; documents that hold one each are alternatives.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
)

from chunking_assets.errors import CorpusError
from chunking_assets.strict_yaml import Mistake, UnreadableYaml, first_mistake, read_yaml
from evals.gold_questions.documents import Documents
from evals.gold_questions.imports import Imported, question_id
from evals.gold_questions.load import LANGUAGE_TAG, GoldQuestion, Quote, Slot
from evals.gold_questions.locate import FoldedText
from evals.gold_questions.question_files import json_lines

LONGEST_STRETCH = 600
"""Code points; strings further apart are quoted one by one."""
MOST_DOCUMENTS = 5
"""Strings that more documents hold do not say where the answer is."""
MOST_PLACES = 20
"""Nor do strings that all stand more often in one document."""

_Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
Places = Sequence[tuple[int, int]]


class _Entry(BaseModel):
    model_config = ConfigDict(extra="forbid")
    question: _Text
    must_contain: Annotated[
        list[_Text],
        BeforeValidator(lambda given: [given] if isinstance(given, str) else given),
        Field(min_length=1),
    ]
    doc: _Text | None = None
    id: _Text | None = None
    answer: str = ""
    language: Annotated[str, StringConstraints(pattern=LANGUAGE_TAG)] | None = None
    tags: list[_Text] = Field(default_factory=list)


def import_must_contain(file: Path, documents: Documents, *, language: str = "en") -> Imported:
    """The entries of a YAML list or a JSON lines file, located in the declared collections.

    An entry has `question`, `must_contain` (a string or several, found as whole words, whatever
    the typography) and may have `doc` (a document id, or the end of one), `id`, `answer`,
    `language` and `tags`. Without `doc` every document is searched.

    Raises:
        CorpusError: the file cannot be read, or an entry is not of this form.
    """
    entries = list(_entries(file))
    asked = [_candidates(entry.doc, documents) for _, entry in entries]
    found: list[dict[str, tuple[str, list[Places]]]] = [{} for _ in entries]
    for doc_id in sorted(frozenset().union(*asked)):
        for text in documents.texts([doc_id]).values():
            folded = FoldedText(text)
            for (_, entry), wanted, places in zip(entries, asked, found, strict=True):
                if doc_id in wanted:
                    located = [folded.locate(words) for words in entry.must_contain]
                    if all(located):
                        places[doc_id] = text, [*located]
    questions, skipped = [], []
    for number, ((where, entry), wanted, places) in enumerate(
        zip(entries, asked, found, strict=True), start=1
    ):
        if not wanted:
            skipped.append(f"{file.name}: {where}: doc: no document ends in {entry.doc}")
            continue
        evidence = _evidence(entry.must_contain, places)
        if isinstance(evidence, str):
            skipped.append(f"{file.name}: {where}: must_contain: {evidence}")
            continue
        questions.append(
            GoldQuestion(
                question_id=question_id(entry.id or f"{file.stem}-{number:03d}"),
                question=entry.question,
                answer=entry.answer.strip(),
                language=entry.language or language,
                tags=tuple(entry.tags),
                answerable=True,
                evidence=evidence,
                file="",
            )
        )
    return Imported(questions, skipped)


def shortest_stretch(places: Sequence[Places]) -> tuple[int, int]:
    """The shortest span that holds one place of each kind; of equals the first.

    >>> shortest_stretch([[(0, 3), (40, 43)], [(50, 52), (90, 92)]])
    (40, 52)
    """
    latest: dict[int, tuple[int, int]] = {}
    stretches = []
    for start, end, kind in sorted((s, e, k) for k, spans in enumerate(places) for s, e in spans):
        latest[kind] = start, end
        if len(latest) == len(places):
            stretches.append(
                (min(s for s, _ in latest.values()), max(e for _, e in latest.values()))
            )
    return min(stretches, key=lambda span: (span[1] - span[0], span))


def _evidence(
    strings: Sequence[str], found: Mapping[str, tuple[str, list[Places]]]
) -> tuple[Slot, ...] | str:
    """The slots, or why there are none."""
    if not found:
        return "no document has all of these as whole words; correct them, or `doc`"
    most = max(min(map(len, places)) for _, places in found.values())
    if most > MOST_PLACES:
        return f"one document has them {most} times; give more or longer strings"
    near = {}
    for doc_id, (text, places) in found.items():
        start, end = shortest_stretch(places)
        if end - start <= LONGEST_STRETCH:
            near[doc_id] = Quote(doc_id, text[start:end])
    if len(near or found) > MOST_DOCUMENTS or (not near and len(found) > 1):
        return f"{len(near or found)} documents have them; name the one with `doc`"
    if near:
        return (tuple(near.values()),)
    (doc_id,) = found
    return tuple((Quote(doc_id, words),) for words in dict.fromkeys(strings))


def _candidates(doc: str | None, documents: Documents) -> frozenset[str]:
    if doc is None or doc in documents.files:
        return frozenset(documents.files if doc is None else [doc])
    return frozenset(doc_id for doc_id in documents.files if doc_id.endswith(f"/{doc}"))


def _entries(file: Path) -> Iterator[tuple[str, _Entry]]:
    try:
        for where, content in _contents(file):
            try:
                yield where, _Entry.model_validate(content)
            except ValidationError as error:
                mistake = first_mistake(error)
                message = f"{mistake.key or 'entry'}: {mistake.problem}. {mistake.cure}"
                raise CorpusError(f"{file}: {where}: {message}") from error
    except OSError as error:
        raise CorpusError(f"{file} cannot be read ({error.strerror}). Name a file.") from error


def _contents(file: Path) -> Iterator[tuple[str, Any]]:
    if file.suffix.lower() == ".jsonl":
        for line, content in json_lines(file):
            if isinstance(content, Mistake):
                raise CorpusError(f"{file}: {content.key}: {content.problem}. {content.cure}")
            yield f"line {line}", content
        return
    try:
        whole = read_yaml(file)
    except UnreadableYaml as error:
        mistake = error.mistake
        raise CorpusError(f"{file}: {mistake.key}: {mistake.problem}. {mistake.cure}") from error
    if not isinstance(whole, list):
        raise CorpusError(f"{file}: is not a list. Start each entry with `- question:`.")
    for number, content in enumerate(whole, start=1):
        yield f"entry {number}", content
