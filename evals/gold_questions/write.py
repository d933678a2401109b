"""Questions written as a file that `load` reads: by importers, and as drafts for a person.

Never over a file that is there: people correct these files by hand.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from chunking_assets.errors import CorpusError
from chunking_assets.workspace import write_atomically
from evals.gold_questions.load import GoldQuestion, Quote

SUFFIXES = (".yaml", ".yml", ".jsonl")


def check_new(file: Path) -> None:
    """
    Raises:
        CorpusError: the file is there already, or its name does not say what to write.
    """
    if file.suffix.lower() not in SUFFIXES:
        raise CorpusError(f"{file}: not a file questions are written to. Name it .yaml or .jsonl.")
    if file.exists():
        raise CorpusError(f"{file} is there already. Name another file, or remove it.")


def write_questions(file: Path, questions: Sequence[GoldQuestion], heading: str) -> None:
    """Write questions as YAML, or as JSON lines where the name says so: many are read faster.

    `heading` is a comment at the top; JSON lines have none.

    Raises:
        CorpusError: see `check_new`.
    """
    check_new(file)
    entries = [_entry(question) for question in questions]
    if file.suffix.lower() == ".jsonl":
        content = "".join(json.dumps(entry, ensure_ascii=False) + "\n" for entry in entries)
    else:
        comment = "".join(f"# {line}\n" for line in heading.splitlines())
        whole = {"questions": entries}
        content = comment + yaml.safe_dump(whole, sort_keys=False, allow_unicode=True, width=100)
    write_atomically(file.absolute(), content.encode())


def _entry(question: GoldQuestion) -> dict[str, Any]:
    entry: dict[str, Any] = {"id": question.question_id, "question": question.question}
    if question.answer:
        entry["answer"] = question.answer
    entry["language"] = question.language
    if question.tags:
        entry["tags"] = list(question.tags)
    if not question.answerable:
        entry["answerable"] = False
    if question.status != "approved":
        entry["status"] = question.status
    if question.evidence:
        slots = [[_quote(quote) for quote in slot] for slot in question.evidence]
        entry["evidence"] = [s[0] if len(s) == 1 else {"any_of": s} for s in slots]
    return entry


def _quote(quote: Quote) -> dict[str, Any]:
    entry: dict[str, Any] = {"doc_id": quote.doc_id, "quote": quote.quote}
    return entry if quote.occurrence is None else {**entry, "occurrence": quote.occurrence}
