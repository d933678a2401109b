"""Parts of the questions a strategy may be weak on: collection, language, tag, length.

A mean hides a language that fell by half. Slices are small and many, so they are looked at, not
decided on: a verdict needs as many questions as elsewhere, and is corrected for all of them.
"""

import re
from collections.abc import Mapping

import polars as pl

SLICES_SCHEMA: dict[str, type[pl.DataType]] = {
    "question_id": pl.String,
    "dimension": pl.String,
    "slice": pl.String,
}
LENGTHS = ((7, "short"), (15, "medium"))
"""The most words of a short and of a medium question; longer ones are long."""

# Thai, Lao, Burmese, Khmer, kana and Han: written without spaces.
_UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]")


def question_slices(questions: pl.DataFrame, documents: Mapping[str, str]) -> pl.DataFrame:
    """Which slices each question is in: `question_id, dimension, slice`, sorted.

    `questions` has `question_id, question, language, tags`; `documents` names the document each
    question rests on, which begins with its collection. Questions without one are left out.
    """
    rows = {
        (question_id, dimension, name)
        for question_id, question, language, tags in questions.select(
            "question_id", "question", "language", "tags"
        ).iter_rows()
        if question_id in documents
        for dimension, name in (
            ("collection", documents[question_id].partition("/")[0]),
            ("language", language),
            ("length", length_of(question)),
            *(("tag", tag) for tag in tags or ()),
        )
        if name
    }
    return pl.DataFrame(sorted(rows), schema=SLICES_SCHEMA, orient="row")


def length_of(question: str) -> str:
    """
    >>> length_of("How long do refunds take?"), length_of("退款需要多长时间")
    ('short', 'short')
    """
    words = n_words(question)
    return next((name for most, name in LENGTHS if words <= most), "long")


def n_words(text: str) -> int:
    """Words between white space; in scripts without spaces, two characters count as a word.

    >>> n_words("Quel est le délai ?"), n_words("退款需要多长时间")
    (4, 4)
    """
    unspaced = len(_UNSPACED.findall(text))
    spaced = [word for word in _UNSPACED.sub(" ", text).split() if any(map(str.isalnum, word))]
    return len(spaced) + (unspaced + 1) // 2
