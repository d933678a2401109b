"""A model's tokenizer behind two questions: how many tokens, and where does each start.

Nothing is truncated or padded, and text that looks like a control token (`[SEP]`) is read as text.
Offsets are code points of the original string, whatever normalisation the model asks for.
"""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from chunking_assets.errors import CorpusError

if TYPE_CHECKING:
    from tokenizers import Encoding
    from tokenizers import Tokenizer as Engine

BATCH = 256
"""Texts tokenized in one call: bounds the memory held by encodings."""


class TextTokenizer:
    """A `tokenizers` engine as the chunkers and the embedder use it."""

    def __init__(self, engine: "Engine", fingerprint: str) -> None:
        # Without a word on parallelism, releases of the engine warn in every process forked later;
        # tokenizing is about one percent of the time of embedding, so one thread will do.
        os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
        engine.no_truncation()
        engine.no_padding()
        engine.encode_special_tokens = True
        self._engine, self._fingerprint = engine, fingerprint

    @classmethod
    def from_file(cls, file: Path, fingerprint: str) -> "TextTokenizer":
        """
        Raises:
            CorpusError: the file is not a tokenizer of the `tokenizers` library.
        """
        from tokenizers import Tokenizer as Engine

        try:
            return cls(Engine.from_str(file.read_text(encoding="utf-8")), fingerprint)
        except Exception as error:  # the library raises bare Exception
            raise CorpusError(
                f"{file} cannot be read as a tokenizer ({error}). "
                "Export the model again with its tokenizer.json."
            ) from error

    @property
    def fingerprint(self) -> str:
        return self._fingerprint

    @property
    def splits_at_white_space(self) -> bool:
        """Known of BERT's; a Unigram token may begin with the space before its word."""
        from tokenizers.pre_tokenizers import BertPreTokenizer

        return isinstance(self._engine.pre_tokenizer, BertPreTokenizer)

    def count(self, texts: Sequence[str]) -> list[int]:
        """Tokens of each text, special tokens left out."""
        return [
            len(encoding)
            for batch in _batches(texts)
            for encoding in self._engine.encode_batch_fast(batch, add_special_tokens=False)
        ]

    def starts(self, texts: Sequence[str]) -> list[np.ndarray]:
        """Per text, the code-point offset at which each token starts: int64, non-decreasing."""
        return [
            np.maximum.accumulate(np.array([start for start, _ in encoding.offsets], np.int64))
            for batch in _batches(texts)
            for encoding in self._engine.encode_batch(batch, add_special_tokens=False)
        ]

    def encode(self, text: str) -> "Encoding":
        """Token ids and offsets of one text, special tokens left out."""
        return self._engine.encode(text, add_special_tokens=False)

    def special_tokens(self) -> tuple[list[int], list[int]]:
        """The ids the model wants before and after every text."""
        encoding = self._engine.encode("a", add_special_tokens=True)
        content = [at for at, special in enumerate(encoding.special_tokens_mask) if not special]
        return encoding.ids[: content[0]], encoding.ids[content[-1] + 1 :]


def _batches(texts: Sequence[str]) -> Iterator[list[str]]:
    for first in range(0, len(texts), BATCH):
        yield list(texts[first : first + BATCH])
