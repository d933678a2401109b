"""What every RAGAS metric is here: what it reads, and what a judge's replies to it may say.

ragas decides the prompts, the calls and the formula. It takes what a judge returns on trust: fewer
verdicts than statements raise a score, and a verdict of 2 counts as two supported statements. So
each reply is read here first, and the value is computed again from the verdicts that were kept.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

Read = Literal["answer", "reference", "contexts"]
Source = Literal["answer", "reference", "passage", "question"]


@dataclass(frozen=True, slots=True)
class Sample:
    """What is judged. A metric is given no empty text among those it reads."""

    question: str
    answer: str
    reference: str
    contexts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Verdict:
    """The judge's word on one statement: 1 it holds, 0 it does not; and why.

    `source` is what the statement is: part of the answer or of the reference answer, a passage, or
    a question the judge derived from the answer.
    """

    statement: str
    verdict: int
    reason: str
    source: Source


@dataclass(frozen=True, slots=True)
class Said:
    """What a judge has said in one judgement: texts cut into statements, and verdicts."""

    statements: tuple[tuple[str, ...], ...] = ()
    verdicts: tuple[Verdict, ...] = ()

    def __add__(self, other: "Said") -> "Said":
        return Said(self.statements + other.statements, self.verdicts + other.verdicts)

    def of(self, source: Source) -> list[int]:
        """The verdicts on statements of one source."""
        return [v.verdict for v in self.verdicts if v.source == source]


class Metric(ABC):
    """One metric of ragas. Subclasses import ragas inside their methods: it costs seconds."""

    name: ClassVar[str]
    reads: ClassVar[frozenset[Read]]
    is_embedding: ClassVar[bool] = False
    rounding: ClassVar[float] = 1e-9
    """How far the value of ragas may be from ours: it rounds some of its own."""

    @abstractmethod
    def of_ragas(self, llm: Any, embeddings: Any) -> Any:
        """The metric as ragas has it, with the parameters that are part of the measurement."""

    @abstractmethod
    def inputs(self, sample: Sample) -> dict[str, Any]:
        """What `ascore` of ragas is called with."""

    @abstractmethod
    def read(self, reply: Any, said: Said, sample: Sample) -> Said:
        """What one reply of the judge adds to what it `said`.

        Raises:
            ValueError: ragas would make a score of it, and it is none.
        """

    @abstractmethod
    def value(self, said: Said, computed: float) -> float | None:
        """In [0, 1]; None if there was nothing to judge. `computed` is what ragas made of it."""


def checked(
    verdicts: Iterable[tuple[str, int, str]], source: Source, expected: int | None = None
) -> Said:
    """Verdicts as (statement, verdict, reason), `expected` of them (None: at least one).

    Raises:
        ValueError: a verdict is neither 0 nor 1, or their number is another.

    >>> checked([("It is red.", 2, "")], "answer")
    Traceback (most recent call last):
    ValueError: verdict 2: only 0 and 1 are verdicts
    """
    given = tuple(Verdict(text, verdict, why, source) for text, verdict, why in verdicts)
    for each in given:
        if each.verdict not in (0, 1):
            raise ValueError(f"verdict {each.verdict}: only 0 and 1 are verdicts")
    if not given or (expected is not None and len(given) != expected):
        wanted = "at least 1" if expected is None else expected
        raise ValueError(f"{len(given)} verdicts given, {wanted} expected")
    return Said(verdicts=given)


def share(verdicts: Sequence[int]) -> float | None:
    """The share that is 1; None of nothing."""
    return sum(verdicts) / len(verdicts) if verdicts else None
