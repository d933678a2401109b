"""What one text costs in each language: tokens relative to English, by tokenizer.

    python -m benchmarks.languages

The text is `benchmarks/parallel_text.yaml`. The numbers are those of the table in
`chunking_assets/chunk_sets/language_budgets.py`, which a test holds to within 2 %.
"""

import sys
from collections.abc import Mapping
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.parallel_text import PARALLEL_TEXT
from chunking_assets.embedding_models.e5_small import E5Small
from chunking_assets.embedding_models.minilm import MiniLM
from chunking_assets.embedding_models.model import EmbeddingModel
from chunking_assets.embedding_models.tokenizer import TextTokenizer
from chunking_assets.errors import CorpusError

MODELS: Mapping[str, EmbeddingModel] = {
    "e5-small, en-pt": E5Small(vocabulary="en-pt"),
    "e5-small, full": E5Small(vocabulary="full"),
    "minilm": MiniLM(),
}
NOT_IN_ANY_VOCABULARY = "\U00013080"
"""An Egyptian hieroglyph."""


def measure(model: EmbeddingModel) -> dict[str, float]:
    """Tokens of each language's text by those of the English one, English left out.

    Raises:
        CorpusError: the package that carries the model's vocabulary is missing.
    """
    counts = model.tokenizer(Path()).count(list(PARALLEL_TEXT.values()))
    tokens = dict(zip(PARALLEL_TEXT, counts, strict=True))
    english = tokens.pop("en")
    return {language: count / english for language, count in tokens.items()}


def unread(model: EmbeddingModel) -> dict[str, float]:
    """The part of each language's text that the model reads as unknown pieces, 0 to 1.

    Raises:
        CorpusError: as of `measure`.
    """
    tokenizer = model.tokenizer(Path())
    assert isinstance(tokenizer, TextTokenizer)
    unknown = tokenizer.encode(NOT_IN_ANY_VOCABULARY).ids[-1]
    shares = {}
    for language, text in PARALLEL_TEXT.items():
        encoding = tokenizer.encode(text)
        pieces = zip(encoding.ids, encoding.offsets, strict=True)
        length = sum(end - start for piece, (start, end) in pieces if piece == unknown)
        shares[language] = length / len(text)
    return shares


def main() -> int:
    console = Console()
    table = Table(
        title="Tokens relative to English (unread part of the text)", title_justify="left"
    )
    table.add_column("language")
    for name in MODELS:
        table.add_column(name, justify="right")
    try:
        measured = [(measure(model), unread(model)) for model in MODELS.values()]
    except CorpusError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    for language in measured[0][0]:
        table.add_row(language, *(_cell(f[language], u[language]) for f, u in measured))
    console.print(table)
    return 0


def _cell(factor: float, part: float) -> str:
    return f"{factor:.2f}" + (f" ({100 * part:.0f} %)" if part >= 0.005 else "")


if __name__ == "__main__":
    sys.exit(main())
