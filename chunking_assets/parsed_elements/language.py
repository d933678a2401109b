"""The language of a document, found once for the whole of it; its chunks inherit it.

A naive Bayes model over byte sequences (Lui and Baldwin 2012, langid.py) as `py3langid` ships it:
no network, one wheel of 5 MB. Short strings are what such models fail at, so a sample from all
over the prose is judged, never a chunk, and no language is better than a doubtful one.
"""

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from chunking_assets.parsed_elements.document import Element

if TYPE_CHECKING:
    from py3langid.langid import LanguageIdentifier  # type: ignore[import-untyped]

VERSION = 1
"""Raised when the same text would be given another language."""
LIBRARIES = ("py3langid",)

SAMPLE_CHARS = 1500
"""Read of a longer text, a third each from its start, middle and end: about a millisecond."""
LEAST_BYTES = 60
"""In UTF-8, without white space: 60 Latin letters or 20 Chinese characters. Shorter texts are
given a wrong language with confidence."""
LEAST_CONFIDENCE = 0.5

_PROSE = frozenset(("heading", "paragraph", "list_item", "quote", "caption", "definition", "turn"))
_INCLUDES = {"ar": ("arz", "ary"), "zh": ("yue", "wuu"), "no": ("nn",)}
"""Varieties told apart by the model and written, counted and searched like the language."""


class Language(NamedTuple):
    """`code` is ISO 639-1; `confidence` the model's probability, 0 to 1."""

    code: str
    confidence: float


def detect_language(text: str, elements: Sequence[Element]) -> Language | None:
    """The language most of a document's prose is in; code, tables and front matter do not count.

    None for source code, for too little text (`LEAST_BYTES`), where no language reaches
    `LEAST_CONFIDENCE`, and for a language without a code of two letters. Deterministic, and safe
    in threads.

    >>> text = "Os reembolsos demoram cinco dias úteis a chegar ao cartão com que foram pagos."
    >>> detect_language(text, [Element("paragraph", 0, len(text))]).code
    'pt'
    >>> detect_language(text, [Element("code", 0, len(text))])
    """
    sample = _sample(" ".join(text[e.start : e.end] for e in elements if e.kind in _PROSE))
    if len("".join(sample.split()).encode(errors="surrogatepass")) < LEAST_BYTES:
        return None
    found = dict(_identifier().rank(sample))
    for language, varieties in _INCLUDES.items():
        found[language] += sum(found.pop(variety) for variety in varieties)
    code, confidence = max(found.items(), key=lambda item: item[1])
    if confidence < LEAST_CONFIDENCE or len(code) != 2:
        return None
    return Language(code, round(min(confidence, 1.0), 3))


def _sample(prose: str) -> str:
    if len(prose) <= SAMPLE_CHARS:
        return prose
    third = SAMPLE_CHARS // 3
    middle = (len(prose) - third) // 2
    return " ".join((prose[:third], prose[middle : middle + third], prose[-third:]))


@cache
def _identifier() -> "LanguageIdentifier":
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
