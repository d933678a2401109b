"""Words and sentences of any script, for what compares texts without a model.

Words are folded in case and cut to their first letters, so that `serviced` meets `service`; scripts
that write no spaces give overlapping pairs of characters (McNamee & Mayfield 2004,
https://doi.org/10.1023/B:INRT.0000009441.78971.be, find both to do about as well as stemming).
"""

import re
import unicodedata
from itertools import pairwise

from chunking_assets.chunk_sets.sentences import sentence_starts

STEM_CHARS = 6

_WORD = re.compile(r"[^\W_]+")
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
    "\U00020000-\U0003ffff]+"
)


def words(text: str) -> list[str]:
    """
    >>> words("Serviced every 6 months"), words("一年保証")
    (['servic', 'every', '6', 'months'], ['一年', '年保', '保証'])
    """
    found: list[str] = []
    for match in _WORD.finditer(unicodedata.normalize("NFKC", text).casefold()):
        word = match.group()
        if _UNSPACED.search(word):
            found += [a + b for a, b in pairwise(word)] or [word]
        else:
            found.append(word if word.isdecimal() else word[:STEM_CHARS])
    return found


def sentences(text: str) -> list[str]:
    """The sentences of a text without the white space around them; a line of a list is one.

    >>> sentences("It is 40 EUR. Filters are extra.\\n\\n- free for members")
    ['It is 40 EUR.', 'Filters are extra.', '- free for members']
    """
    cuts = sorted({0, *sentence_starts(text), *(m.end() for m in re.finditer(r"\n", text))})
    parts = (text[start:end].strip() for start, end in pairwise([*cuts, len(text)]))
    return [part for part in parts if part]
