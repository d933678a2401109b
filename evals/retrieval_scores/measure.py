"""A measure is a value that prints and parses: a metric and where the ranking is cut.

recall@5         the five best passages
recall@1000t     the best passages that fit 1,000 context tokens
recall@served    what the retrieval profile serves
"""

import re
from dataclasses import dataclass

from chunking_assets.errors import CorpusError

_CUTOFF = re.compile(r"(?P<passages>[1-9]\d*)|(?P<tokens>[1-9]\d*)t|served", re.ASCII)
_METRIC = re.compile(r"[a-z][a-z_]*")


@dataclass(frozen=True, slots=True)
class Cutoff:
    """At most `passages` passages, at most `tokens` context tokens, or all that was served.

    >>> str(Cutoff.parse("1000t")), Cutoff.parse("5").passages
    ('1000t', 5)
    """

    passages: int | None = None
    tokens: int | None = None

    @classmethod
    def parse(cls, text: str) -> "Cutoff":
        """
        Raises:
            CorpusError: `text` is not a cutoff.
        """
        match = _CUTOFF.fullmatch(text)
        if match is None:
            raise CorpusError(
                f"{text!r} is not a cutoff. Write a number of passages (5), a token budget "
                "(1000t) or `served`."
            )
        return cls(**{name: int(n) for name, n in match.groupdict().items() if n is not None})

    def __str__(self) -> str:
        if self.tokens is not None:
            return f"{self.tokens}t"
        return "served" if self.passages is None else str(self.passages)


@dataclass(frozen=True, slots=True)
class Measure:
    """
    >>> str(Measure.parse("recall@1000t"))
    'recall@1000t'
    """

    metric: str
    cutoff: Cutoff

    @classmethod
    def parse(cls, text: str) -> "Measure":
        """The metric need not be a retrieval metric: `faithfulness@served` parses too.

        Raises:
            CorpusError: `text` is not a measure.
        """
        metric, at, cutoff = text.partition("@")
        if not at or not _METRIC.fullmatch(metric):
            raise CorpusError(
                f"{text!r} is not a measure. Write metric@cutoff, for example recall@5."
            )
        return cls(metric, Cutoff.parse(cutoff))

    def __str__(self) -> str:
        return f"{self.metric}@{self.cutoff}"
