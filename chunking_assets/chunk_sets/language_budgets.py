"""How many more tokens a language needs for the same content, by tokenizer.

A budget in tokens holds less of a language whose words the tokenizer breaks into more pieces, so
chunks of one corpus would differ in content by language; these factors make them even. They are
measured, not estimated: `benchmarks/parallel_text.yaml` says the same in sixteen languages (the
first five articles of the Universal Declaration of Human Rights and a page of a help centre, 1,600
characters in English), and a factor is its tokens by those of the English text, rounded to a
hundredth. `python -m benchmarks.languages` prints them; a test holds the table to within 2 %.
"""

from collections.abc import Mapping

from chunking_assets.embedding_models.e5_small import E5Small
from chunking_assets.embedding_models.minilm import MiniLM
from chunking_assets.embedding_models.model import EmbeddingModel

_MEASURED: tuple[tuple[EmbeddingModel, Mapping[str, float]], ...] = (
    (
        # Reads under half of ar he ja zh ko th: the factors hold for sizes, not for vectors.
        E5Small(vocabulary="en-pt"),
        {
            "pt": 1.13,
            "fr": 1.56,
            "es": 1.35,
            "de": 1.58,
            "it": 1.46,
            "nl": 1.53,
            "tr": 1.85,
            "ar": 2.12,
            "he": 2.36,
            "ru": 4.55,
            "hi": 2.78,
            "ja": 1.30,
            "zh": 0.39,
            "ko": 1.19,
            "th": 0.37,
        },
    ),
    (
        E5Small(vocabulary="full"),
        {
            "pt": 1.13,
            "fr": 1.32,
            "es": 1.17,
            "de": 1.17,
            "it": 1.19,
            "nl": 1.15,
            "tr": 1.14,
            "ar": 1.20,
            "he": 1.17,
            "ru": 1.20,
            "hi": 1.28,
            "ja": 1.15,
            "zh": 0.96,
            "ko": 1.20,
            "th": 1.05,
        },
    ),
    (
        # Reads under half of zh, and of th less than a tenth.
        MiniLM(),
        {
            "pt": 1.88,
            "fr": 1.88,
            "es": 1.81,
            "de": 2.01,
            "it": 2.00,
            "nl": 2.02,
            "tr": 2.11,
            "ar": 3.35,
            "he": 3.03,
            "ru": 4.54,
            "hi": 3.04,
            "ja": 2.14,
            "zh": 1.47,
            "ko": 3.19,
            "th": 0.23,
        },
    ),
)

FACTORS: Mapping[str, Mapping[str, float]] = {
    model.tokenizer_fingerprint(): factors for model, factors in _MEASURED
}
"""By the tokenizer's fingerprint and ISO 639-1 code; English is 1. Below 1 are languages of which
the tokenizer takes whole phrases for one unknown piece."""


def measured_factors(tokenizer_fingerprint: str) -> Mapping[str, float]:
    """ISO 639-1 code to factor of `max_tokens`; empty for a tokenizer that was not measured."""
    return FACTORS.get(tokenizer_fingerprint, {})
