"""Are the question files right? Everything that is wrong, in one run, before anything is built.

An error keeps a question from being scored, or two from being told apart. A warning is a question
that is scored and may measure something else than was meant; a note is worth knowing.
"""

import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Literal

import polars as pl

from chunking_assets.chunk_sets.context import plain_words
from chunking_assets.parsed_elements.document import Element
from chunking_assets.parsed_elements.language import detect_language
from chunking_assets.parsed_elements.parse import READABLE
from evals.gold_questions.documents import Documents
from evals.gold_questions.load import GoldQuestion, Quote, read_questions
from evals.gold_questions.resolve import resolve

CONFIDENT = 0.9
"""Below this probability a detected language says nothing against the declared one."""
LEAST_ANSWER_CHARS = 4
"""A shorter answer ("yes", "7 %") stands in many a question by chance."""
LEAST_QUOTE_WORDS = 3

_MACRO = {"nb": "no", "nn": "no"}

Severity = Literal["error", "warning"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing to mend. Printed, it is one line: file, question, key, problem and cure."""

    severity: Severity
    kind: str
    file: str
    where: str
    problem: str
    cure: str

    def __str__(self) -> str:
        return f"{self.file}: {self.where}: {self.problem}. {self.cure}"


@dataclass(frozen=True)
class Report:
    """What `check` found, errors first, like beside like; `crossing` are the ids of questions that
    no single document answers."""

    questions: Sequence[GoldQuestion]
    findings: Sequence[Finding]
    crossing: Sequence[str]

    def of(self, severity: Severity) -> list[Finding]:
        return [finding for finding in self.findings if finding.severity == severity]


def check(files: Iterable[Path], root: Path, documents: Documents) -> Report:
    """Read the question files and locate their quotes in the documents as they are now.

    Raises:
        CorpusError: a collection's folder cannot be listed.
    """
    questions, mistakes = read_questions(files, root)
    findings = [
        Finding("error", "mistake", m.file, m.question, m.problem, m.cure) for m in mistakes
    ]
    frame = documents.read({q.doc_id for asked in questions for s in asked.evidence for q in s})
    _, evidence = resolve(questions, frame)
    findings += _evidence_findings(questions, frame, evidence, documents)
    findings += duplicates(questions)
    for question in questions:
        findings += _own_findings(question)
    findings.sort(key=lambda finding: (finding.severity, finding.kind))
    return Report(questions, findings, [q.question_id for q in questions if crosses(q)])


def crosses(question: GoldQuestion) -> bool:
    """Whether no single document has a quote for every slot."""
    documents = [{quote.doc_id for quote in slot} for slot in question.evidence]
    return bool(documents) and not set.intersection(*documents)


def same_words(text: str) -> str:
    """Equal for texts that differ in case, marks, white space and how letters are encoded only.

    >>> same_words("How long?") == same_words("how  LONG")
    True
    >>> same_words("Caf\\u00e9?") == same_words("Cafe\\u0301")
    True
    """
    return _words(text).strip()


def _words(text: str) -> str:
    return plain_words(unicodedata.normalize("NFKC", text))


def holds_answer(question: str, answer: str) -> bool:
    """Whether a question says its own answer, word for word.

    >>> holds_answer("Is the fee two percent?", "Two percent.")
    True
    >>> holds_answer("Is it free?", "No.")
    False
    """
    words = same_words(answer)
    return len(words) >= LEAST_ANSWER_CHARS and f" {words} " in _words(question)


def other_language(declared: str, *texts: str) -> str | None:
    """The language the first text that can be told is in (ISO 639-1), if it is not the declared.

    Nothing is told of short texts, and of declared languages without a code of two letters.

    >>> other_language("pt-PT", "How long do refunds take?", "How long do refunds take? They take "
    ...     "twelve working days to arrive at the bank account of the buyer.")
    'en'
    """
    primary = declared.partition("-")[0].lower()
    if len(primary) != 2:
        return None
    for text in texts:
        found = detect_language(text, [Element("paragraph", 0, len(text))])
        if found and found.confidence >= CONFIDENT:
            return None if found.code == _MACRO.get(primary, primary) else found.code
    return None


def duplicates(questions: Iterable[GoldQuestion]) -> Iterator[Finding]:
    """Questions asked in the same words as one before."""
    first: dict[str, GoldQuestion] = {}
    for question in questions:
        earlier = first.setdefault(same_words(question.question), question)
        if earlier is not question:
            yield _finding(
                "warning",
                "duplicate",
                question,
                f"question: the same words as {earlier.question_id!r} in {earlier.file}",
                "Ask it once: both count in every mean. Quote what else answers it in one.",
            )


def _own_findings(question: GoldQuestion) -> Iterator[Finding]:
    if holds_answer(question.question, question.answer):
        yield _finding(
            "warning",
            "holds its answer",
            question,
            f"question: contains its answer ({question.answer!r})",
            "Ask without saying it.",
        )
    asked = _words(question.question)
    for key, quote in _quotes(question):
        words = same_words(quote.quote)
        if len(words.split()) >= LEAST_QUOTE_WORDS and f" {words} " in asked:
            yield _finding(
                "warning",
                "holds its answer",
                question,
                f"question: contains the quote of {key}",
                "Ask in other words than the document's.",
            )
    whole = f"{question.question} {question.answer}"
    if other := other_language(question.language, question.question, whole):
        yield _finding(
            "warning",
            "language",
            question,
            f"language: {question.language} is declared, the words look like {other}",
            "Correct the tag.",
        )


def _evidence_findings(
    questions: Sequence[GoldQuestion],
    frame: pl.DataFrame,
    evidence: pl.DataFrame,
    documents: Documents,
) -> Iterator[Finding]:
    statuses = dict(frame.select("doc_id", "status").iter_rows())
    rows: dict[tuple[str, int, int], list[dict[str, object]]] = {}
    for row in evidence.iter_rows(named=True):
        rows.setdefault((row["question_id"], row["evidence"], row["alternative"]), []).append(row)
    for question in questions:
        for number, slot in enumerate(question.evidence, start=1):
            found = [rows[question.question_id, number, n] for n in range(1, len(slot) + 1)]
            is_lost = all(places[0]["start"] is None for places in found)
            for (key, quote), places in zip(_slot_quotes(number, slot), found, strict=True):
                if places[0]["start"] is None:
                    severity: Severity = "error" if is_lost else "warning"
                    told = _missing(key, quote, places[0], statuses, documents)
                    yield _finding(severity, "not found", question, *told)
                elif len(places) > 1:
                    yield _finding(
                        "warning",
                        "ambiguous",
                        question,
                        f"{key}.quote: stands {len(places)} times in {quote.doc_id}, and any of "
                        "them counts",
                        f"Quote more words, or say which with `occurrence: 1` to {len(places)}.",
                    )


def _missing(
    key: str,
    quote: Quote,
    row: dict[str, object],
    statuses: dict[str, str],
    documents: Documents,
) -> tuple[str, str]:
    """Why a quote has no place, and the cure."""
    status = statuses.get(quote.doc_id)
    if status is None:
        near = get_close_matches(quote.doc_id, documents.files, n=1)
        cure = f"The nearest is {near[0]}." if near else "Write collection/path, as listed."
        return f"{key}.doc_id: no document {quote.doc_id}", cure
    if status not in READABLE:
        problem = f"{key}.doc_id: {quote.doc_id} has no text (status {status})"
        return problem, "Quote another document, or make this one readable."
    if row["diff"] is None and quote.occurrence is not None:
        problem = f"{key}: does not stand {quote.occurrence} times in {quote.doc_id}"
        return problem, "Correct `occurrence`, or quote more words and leave it out."
    cure = "Quote the document's own words, whole ones."
    near_passage = f" What is most like it: {row['diff']}" if row["diff"] else ""
    return f"{key}.quote: not found in {quote.doc_id}", cure + near_passage


def _quotes(question: GoldQuestion) -> Iterator[tuple[str, Quote]]:
    for number, slot in enumerate(question.evidence, start=1):
        yield from _slot_quotes(number, slot)


def _slot_quotes(number: int, slot: Sequence[Quote]) -> Iterator[tuple[str, Quote]]:
    """Quotes with their keys in the file, whose lists count from 0."""
    for alternative, quote in enumerate(slot):
        key = f"evidence.{number - 1}"
        yield (f"{key}.any_of.{alternative}" if len(slot) > 1 else key), quote


def _finding(
    severity: Severity, kind: str, question: GoldQuestion, problem: str, cure: str
) -> Finding:
    return Finding(severity, kind, question.file, question.where, problem, cure)
