"""Why a question was won or lost: its evidence, and what two strategies returned, side by side.

Taken from what was stored when the question was scored and from the canonical texts, so that
nothing is asked again. Texts come as pieces that are evidence or not; a page only has to show them.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from chunking_assets.parsed_elements.build import DOCUMENTS
from chunking_assets.workspace import Workspace, one_of
from evals.gold_questions.build import Gold
from evals.retrieval_scores.build import RETRIEVAL_SCORES, RETRIEVED_CHUNKS
from evals.retrieval_scores.cutoff import Cutoff
from evals.retrieval_scores.score import evidence_by_question
from evals.retrieval_scores.spans import Passage, Retrieval, Span

MOST_QUESTIONS = 40
MOST_PASSAGES = 5
EXCERPT, WITHOUT_EVIDENCE, BESIDE = 600, 240, 160
"""The most characters shown of a passage that holds evidence, of one that holds none, and before
and after evidence."""

Pieces = list[tuple[str, bool]]
"""A text in order, each piece evidence or not."""


@dataclass(frozen=True)
class Side:
    """What one strategy returned for a question: its value, why in words, the first passages."""

    strategy: str
    value: float
    why: str
    passages: Sequence[Mapping[str, Any]]
    more: int


@dataclass(frozen=True)
class Flipped:
    """A question one strategy won or lost against the baseline, with passages of its evidence."""

    question_id: str
    question: str
    answer: str
    change: str
    gold: Sequence[Mapping[str, Any]]
    baseline: Side
    other: Side


def flipped_questions(workspace: Workspace, gold: Gold, changes: pl.DataFrame) -> list[Flipped]:
    """The first of `question_changes`, an equal number of each strategy, lost before won."""
    known = changes.filter(pl.col("question_id").is_in(gold.questions["question_id"].implode()))
    share = max(1, MOST_QUESTIONS // max(1, known["strategy"].n_unique()))
    number = pl.int_range(pl.len()).over("strategy")
    chosen = known.filter(number < share).head(MOST_QUESTIONS)
    if chosen.is_empty():
        return []
    stored = _Stored(workspace, gold, chosen)
    return [_flipped(row, stored) for row in chosen.iter_rows(named=True)]


class _Stored:
    """What these questions need of the tables, read once."""

    def __init__(self, workspace: Workspace, gold: Gold, changes: pl.DataFrame) -> None:
        questions = changes["question_id"].unique().to_list()
        names = {*changes["strategy"], *changes["baseline"]}
        # What was judged is an answer over the passages as they were served.
        self.cutoff = str(changes["metric"][0]).partition("@")[2] or "served"
        self.ranked: dict[tuple[str, str], list[dict[str, Any]]] = {}
        self.tokens: dict[tuple[str, str], float] = {}
        for name in sorted(names):
            for row in _rows(workspace, RETRIEVED_CHUNKS, name, questions):
                self.ranked.setdefault((name, row["question_id"]), []).append(row)
            for row in _rows(workspace, RETRIEVAL_SCORES, name, questions):
                if row["metric"] == "context_tokens" and row["cutoff"] == self.cutoff:
                    self.tokens[name, row["question_id"]] = row["value"]
        evidence = gold.evidence.filter(one_of("question_id", questions))
        self.evidence = evidence_by_question(evidence)
        self.questions = {row["question_id"]: row for row in gold.questions.iter_rows(named=True)}
        documents = {row["doc_id"] for rows in self.ranked.values() for row in rows}
        self.texts = _texts(workspace, documents | set(evidence["doc_id"]))

    def counted(self, strategy: str, question_id: str) -> list[dict[str, Any]]:
        """The passages the score is of: a profile may cut earlier than the metric, and the context
        tokens that were measured with it say where."""
        ranked = self.ranked.get((strategy, question_id), [])
        limit = Cutoff.parse(self.cutoff)
        tokens = self.tokens.get((strategy, question_id))
        chosen, used = [], 0
        for row in ranked[: limit.passages]:
            used += row["n_tokens"] or 0
            if tokens is not None and used > tokens:
                break
            chosen.append(row)
        return chosen


def _rows(
    workspace: Workspace, name: str, strategy: str, questions: Sequence[str]
) -> Iterator[dict[str, Any]]:
    table = workspace.table(name)
    manifest = table.manifest(strategy)
    if manifest is not None:
        rows = table.snapshot(manifest).read(where=one_of("question_id", questions))
        yield from rows.iter_rows(named=True)


def _texts(workspace: Workspace, documents: set[str]) -> dict[str, str]:
    table, texts = workspace.table(DOCUMENTS), dict[str, str]()
    for partition in table.partitions() if documents else ():
        manifest = table.manifest(partition)
        if manifest is not None:
            rows = table.snapshot(manifest).read(["doc_id", "text"], one_of("doc_id", documents))
            texts.update((doc_id, text or "") for doc_id, text in rows.iter_rows())
    return texts


def _flipped(change: Mapping[str, Any], stored: _Stored) -> Flipped:
    question = stored.questions[change["question_id"]]
    sides = [
        _side(stored, change["question_id"], change[name], change[value])
        for name, value in (("baseline", "baseline_value"), ("strategy", "value"))
    ]
    return Flipped(
        question_id=change["question_id"],
        question=question["question"][:EXCERPT],
        answer=(question["answer"] or "")[:EXCERPT],
        change=change["change"],
        gold=[
            {
                "doc_id": span.doc_id,
                "text": excerpt(
                    text := stored.texts.get(span.doc_id, ""),
                    0,
                    len(text),
                    [span],
                    min(EXCERPT, len(span) + 2 * BESIDE),
                ),
            }
            for span in _gold(stored, change["question_id"], [])[:MOST_PASSAGES]
        ],
        baseline=sides[0],
        other=sides[1],
    )


def _gold(
    stored: _Stored, question_id: str, passages: Sequence[Mapping[str, Any]]
) -> Sequence[Span]:
    evidence = stored.evidence.get(question_id)
    return Retrieval(_passages(passages), evidence).gold if evidence else ()


def _passages(rows: Sequence[Mapping[str, Any]]) -> list[Passage]:
    return [Passage(r["doc_id"], r["start"], r["end"], r["n_tokens"] or 0) for r in rows]


def _side(stored: _Stored, question_id: str, strategy: str, value: float) -> Side:
    counted = stored.counted(strategy, question_id)
    ranked = stored.ranked.get((strategy, question_id), [])
    gold = _gold(stored, question_id, counted)
    shown = [
        {
            "rank": row["rank"],
            "doc_id": row["doc_id"],
            "n_tokens": row["n_tokens"],
            "text": excerpt(
                stored.texts.get(row["doc_id"], ""),
                row["start"],
                row["end"],
                [span for span in gold if span.doc_id == row["doc_id"]],
            ),
        }
        for row in counted[:MOST_PASSAGES]
    ]
    return Side(
        strategy, value, why(gold, counted, ranked), shown, max(0, len(counted) - MOST_PASSAGES)
    )


def why(
    gold: Sequence[Span], counted: Sequence[Mapping[str, Any]], ranked: Sequence[Mapping[str, Any]]
) -> str:
    """What became of each piece of evidence, in words.

    >>> row = dict(rank=3, doc_id="d", start=0, end=10, n_tokens=2)
    >>> why([Span("d", 5, 15)], [row], [row])
    '50% of the evidence, at rank 3.'
    """
    if not counted:
        return "Nothing was returned."
    found = Retrieval(_passages(counted), [[span] for span in gold]) if gold else None
    sentences = []
    for number, span in enumerate(gold, 1):
        assert found is not None
        name = "the evidence" if len(gold) == 1 else f"evidence {number}"
        share = found.coverage(span)
        if share:
            ranks = ", ".join(str(row["rank"]) for row in counted if _overlaps(row, span))
            amount = f"all of {name}" if share == 1 else f"{share:.0%} of {name}"
            sentences.append(f"{amount}, at rank {ranks}.")
            continue
        later = next((row["rank"] for row in ranked if _overlaps(row, span)), None)
        same = sum(row["doc_id"] == span.doc_id for row in counted)
        place = f"first met at rank {later}" if later else f"not among the first {len(ranked)}"
        sentences.append(
            f"none of {name}, {place}; "
            f"{same or 'none'} of {len(counted)} passages {'is' if same == 1 else 'are'} "
            "from its document."
        )
    return " ".join(sentence[0].upper() + sentence[1:] for sentence in sentences)


def _overlaps(row: Mapping[str, Any], span: Span) -> bool:
    return bool(
        row["doc_id"] == span.doc_id and row["start"] < span.end and span.start < row["end"]
    )


def excerpt(
    text: str, start: int, end: int, evidence: Sequence[Span], most: int = EXCERPT
) -> Pieces:
    """At most `most` characters of `text[start:end]`, the evidence marked, from a little before
    the first of it; an ellipsis where something is left out.

    >>> excerpt("one two three", 0, 7, [Span("d", 4, 13)])
    [('one ', False), ('two', True)]
    """
    start, end = max(0, min(start, len(text))), min(end, len(text))
    marked = sorted(
        (max(span.start, start), min(span.end, end))
        for span in evidence
        if span.start < end and start < span.end
    )
    first, most = start, most if marked else min(most, WITHOUT_EVIDENCE)
    if end - start > most and marked:
        first = min(max(start, marked[0][0] - BESIDE), end - most)
    last = min(end, first + most)
    pieces: Pieces = [("… ", False)] if first > start else []
    at = first
    for low, high in marked:
        low, high = max(low, at), min(high, last)
        if low < high:
            pieces += [(text[at:low], False), (text[low:high], True)]
            at = high
    pieces += [(text[at:last], False), (" …" if last < end else "", False)]
    return [piece for piece in pieces if piece[0]]
