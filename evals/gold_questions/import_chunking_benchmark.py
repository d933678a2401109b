"""The layout of Chroma's chunking benchmark as documents and questions.

Its gold is by offset, ours by quote. An excerpt that begins or ends inside a word is widened to
whole words, and one whose words stand several times says which is meant, so that every quote is
found just where the benchmark has it.
"""

import csv
import json
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, Field, TypeAdapter, ValidationError

from chunking_assets.errors import CorpusError
from evals.gold_questions.imports import Imported, new_folder, question_id
from evals.gold_questions.load import GoldQuestion, Quote
from evals.gold_questions.locate import FoldedText


class _Excerpt(BaseModel):
    content: str
    start_index: int = Field(ge=0)
    end_index: int


_EXCERPTS = TypeAdapter(Annotated[list[_Excerpt], Field(min_length=1)])


class _Corpus:
    """A text with its excerpts found again."""

    def __init__(self, file: Path) -> None:
        try:
            self.text = file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise CorpusError(f"{file} cannot be read ({error}). Restore the data set.") from error
        self.folded = FoldedText(self.text)

    def quote(self, doc_id: str, excerpt: _Excerpt) -> Quote | None:
        """None if the excerpt is not where it says."""
        start, end = excerpt.start_index, excerpt.end_index
        if not excerpt.content.strip() or self.text[start:end] != excerpt.content:
            return None
        start += len(excerpt.content) - len(excerpt.content.lstrip())
        end -= len(excerpt.content) - len(excerpt.content.rstrip())
        for inside in (None, str.isalnum, _is_ink):
            if inside:
                start, end = self._widened(start, end, inside)
            spans = self.folded.locate(self.text[start:end])
            if (start, end) in spans:
                occurrence = spans.index((start, end)) + 1 if len(spans) > 1 else None
                return Quote(doc_id, self.text[start:end], occurrence)
        return None

    def _widened(self, start: int, end: int, inside: Callable[[str], bool]) -> tuple[int, int]:
        while start > 0 and inside(self.text[start - 1]) and inside(self.text[start]):
            start -= 1
        while end < len(self.text) and inside(self.text[end]) and inside(self.text[end - 1]):
            end += 1
        return start, end


def _is_ink(character: str) -> bool:
    return not character.isspace()


def import_chunking_benchmark(
    folder: Path, documents: Path, collection: str, *, language: str = "en"
) -> Imported:
    """Copy `corpora/*.md` to the folder `documents`, and return the questions of
    questions_df.csv, each excerpt a slot, tagged with its corpus. There are no reference answers.

    Source: Smith & Troynikov, Evaluating Chunking Strategies for Retrieval, Chroma 2024,
    https://research.trychroma.com/evaluating-chunking

    Raises:
        CorpusError: a file is missing or not of this layout, or `documents` is not empty.
    """
    table = folder / "questions_df.csv"
    files = {file.stem: file for file in sorted((folder / "corpora").glob("*.md"))}
    if not table.is_file() or not files:
        raise CorpusError(f"{folder} has no questions_df.csv and corpora/*.md. Name their folder.")
    new_folder(documents)
    corpora = {name: _Corpus(file) for name, file in files.items()}
    for file in files.values():
        shutil.copyfile(file, documents / file.name)
    questions, skipped = [], []
    numbers: Counter[str] = Counter()
    for line, row in _rows(table):
        corpus = row.get("corpus_id") or ""
        if corpus not in corpora:
            skipped.append(f"{table.name}: line {line}: no corpora/{corpus}.md")
            continue
        try:
            excerpts = _EXCERPTS.validate_python(json.loads(row.get("references") or ""))
        except (ValueError, ValidationError):
            skipped.append(f"{table.name}: line {line}: references: are not excerpts")
            continue
        doc_id = f"{collection}/{files[corpus].name}"
        quotes = [corpora[corpus].quote(doc_id, excerpt) for excerpt in excerpts]
        found = list(dict.fromkeys(quote for quote in quotes if quote))
        if None in quotes or not (row.get("question") or "").strip():
            skipped.append(f"{table.name}: line {line}: an excerpt is not where it says")
            continue
        numbers[corpus] += 1
        questions.append(
            GoldQuestion(
                question_id=question_id(f"{corpus}-{numbers[corpus]:03d}"),
                question=row["question"].strip(),
                answer="",
                language=language,
                tags=(corpus,),
                answerable=True,
                evidence=tuple((quote,) for quote in found),
                file="",
            )
        )
    return Imported(questions, skipped, len(files))


def _rows(table: Path) -> list[tuple[int, dict[str, str]]]:
    try:
        with table.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file)
            return [(reader.line_num, row) for row in reader]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise CorpusError(f"{table} cannot be read ({error}). Restore the data set.") from error
