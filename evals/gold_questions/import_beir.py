"""A data set in the layout of BEIR as documents and questions.

BEIR judges whole documents: it does not say which words answer. So the whole text of a relevant
document is the quote, and each relevant document a slot of its own. That is fair for corpora of
passages, a chunk or two each; of longer documents it asks that all of them be retrieved.
"""

import csv
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from chunking_assets.errors import CorpusError
from chunking_assets.parsed_elements.build import HEAD_BYTES
from chunking_assets.parsed_elements.parse import READABLE, parse_document
from chunking_assets.raw_documents.media_type import media_type
from chunking_assets.strict_yaml import Mistake, first_mistake
from evals.gold_questions.imports import Imported, file_name, new_folder, question_id
from evals.gold_questions.load import GoldQuestion, Quote
from evals.gold_questions.locate import FoldedText
from evals.gold_questions.question_files import json_lines


class _Record(BaseModel):
    """A line of corpus.jsonl or queries.jsonl."""

    model_config = ConfigDict(extra="ignore")
    id: str = Field(alias="_id", min_length=1)
    title: str = ""
    text: str = ""


@dataclass(frozen=True, slots=True)
class _Judgement:
    query: str
    document: str
    split: str


def import_beir(
    folder: Path,
    documents: Path,
    collection: str,
    *,
    split: str | None = None,
    language: str = "en",
) -> Imported:
    """Write every document of corpus.jsonl to the folder `documents`, and return the questions.

    A document is a text file with its title above its text. A question's evidence is the text of
    each document judged relevant (score above 0; grades are not kept), the title where there is no
    text; `collection` is the name the folder will be declared under. Queries without a judgement
    are left out: not judged is not unanswerable. Each question is tagged with its split; `split`
    takes one alone. There are no reference answers.

    Scores are of characters, so they are not BEIR's published ones, which rank documents.

    Source: Thakur et al., BEIR, NeurIPS 2021, https://arxiv.org/abs/2104.08663

    Raises:
        CorpusError: a file is missing or not of this layout, or `documents` is not empty.
    """
    judgements = list(_judgements(folder, split))
    queries = {record.id: record.text for _, record in _records(folder / "queries.jsonl")}
    relevant = {judgement.document for judgement in judgements}
    quotes: dict[str, Quote] = {}
    skipped: list[str] = []
    written: set[str] = set()
    new_folder(documents)
    for line, record in _records(folder / "corpus.jsonl"):
        name = f"{file_name(record.id)}.txt"
        if name in written:
            raise CorpusError(f"corpus.jsonl: line {line}: _id: {record.id!r} is used twice.")
        written.add(name)
        title = "" if record.title.strip() == record.text.strip() else record.title.strip()
        content = "\n\n".join(part for part in (title, record.text) if part.strip())
        data = content.encode()
        (documents / name).write_bytes(data)
        if record.id not in relevant:
            continue
        quote = Quote(f"{collection}/{name}", (record.text.strip() or title))
        parsed = parse_document(data, name, media_type(data[:HEAD_BYTES], name))
        if parsed.status not in READABLE or not FoldedText(parsed.text).locate(quote.quote):
            skipped.append(f"corpus.jsonl: line {line}: {record.id!r} has no words to quote")
        else:
            quotes[record.id] = quote
    questions = []
    for query, judged in _by_query(judgements).items():
        found = [quotes[j.document] for j in judged if j.document in quotes]
        text = queries.get(query, "").strip()
        if not text or len(found) < len({j.document for j in judged}):
            problem = "a relevant document is missing" if text else "no such query"
            skipped.append(f"qrels: query {query!r}: {problem}")
            continue
        questions.append(
            GoldQuestion(
                question_id=question_id(query),
                question=text,
                answer="",
                language=language,
                tags=tuple(sorted({j.split for j in judged})),
                answerable=True,
                evidence=tuple((quote,) for quote in dict.fromkeys(found)),
                file="",
            )
        )
    return Imported(questions, skipped, len(written))


def _by_query(judgements: list[_Judgement]) -> Mapping[str, list[_Judgement]]:
    found: dict[str, list[_Judgement]] = {}
    for judgement in judgements:
        found.setdefault(judgement.query, []).append(judgement)
    return found


def _records(file: Path) -> Iterator[tuple[int, _Record]]:
    try:
        for line, content in json_lines(file):
            if isinstance(content, Mistake):
                raise CorpusError(f"{file}: {content.key}: {content.problem}. {content.cure}")
            try:
                yield line, _Record.model_validate(content)
            except ValidationError as error:
                mistake = first_mistake(error)
                message = f"{mistake.key or 'line'}: {mistake.problem}. {mistake.cure}"
                raise CorpusError(f"{file}: line {line}: {message}") from error
    except OSError as error:
        raise _unreadable(file, error) from error


def _judgements(folder: Path, split: str | None) -> Iterator[_Judgement]:
    files = sorted((folder / "qrels").glob(f"{split or '*'}.tsv"))
    if not files:
        raise CorpusError(
            f"{folder} has no qrels/{split or '*'}.tsv. Name a folder with corpus.jsonl, "
            "queries.jsonl and qrels/."
        )
    for file in files:
        try:
            with file.open(encoding="utf-8-sig", newline="") as lines:
                rows = csv.reader(lines, delimiter="\t", quoting=csv.QUOTE_NONE)
                for number, row in enumerate(rows, start=1):
                    if row and (judged := _judgement(file, number, row)):
                        yield judged
        except (UnicodeDecodeError, csv.Error) as error:
            raise CorpusError(f"{file} is not text ({error}). Save it as UTF-8.") from error
        except OSError as error:
            raise _unreadable(file, error) from error


def _judgement(file: Path, number: int, row: list[str]) -> _Judgement | None:
    """None for the header, and for a document judged not relevant."""
    try:
        query, document, score = row
        is_relevant = float(score) > 0
    except ValueError as error:
        if number == 1:
            return None
        raise CorpusError(
            f"{file}: line {number}: is not query-id, corpus-id and score, with tabs between. "
            "Correct the line."
        ) from error
    return _Judgement(query, document, file.stem) if is_relevant else None


def _unreadable(file: Path, error: OSError) -> CorpusError:
    return CorpusError(
        f"{file} cannot be read ({error.strerror}). Name a folder with corpus.jsonl, "
        "queries.jsonl and qrels/."
    )
