"""Where a ranking is cut, as a value that prints and parses.

5         the five best chunks
1000t     the best chunks that fit 1,000 context tokens
served    what the retrieval profile serves
"""

import re
from dataclasses import dataclass

from chunking_assets.errors import CorpusError

_CUTOFF = re.compile(r"(?P<passages>[1-9]\d*)|(?P<tokens>[1-9]\d*)t|served", re.ASCII)


@dataclass(frozen=True, slots=True)
class Cutoff:
    """At most `passages` chunks, at most `tokens` context tokens, or all that was served.

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
                f"{text!r} is not a cutoff. Write a number of chunks (5), a token budget "
                "(1000t) or `served`."
            )
        return cls(**{name: int(n) for name, n in match.groupdict().items() if n is not None})

    def __str__(self) -> str:
        if self.tokens is not None:
            return f"{self.tokens}t"
        return "served" if self.passages is None else str(self.passages)
