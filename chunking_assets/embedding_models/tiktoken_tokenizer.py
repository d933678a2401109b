"""OpenAI's tokenizers, by the name of their encoding.

The package brings the code; the table of an encoding is fetched once by tiktoken itself, into the
folder of `TIKTOKEN_CACHE_DIR`, which can be filled beforehand on a machine without a network.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from chunking_assets.errors import CorpusError
from chunking_assets.keys import digest

if TYPE_CHECKING:
    from tiktoken import Encoding

ENCODINGS = ("cl100k_base", "o200k_base")


def fingerprint(encoding: str) -> str:
    return digest("tiktoken", encoding)


class TiktokenTokenizer:
    """A byte-pair encoding; a token may hold the space before a word."""

    splits_at_white_space = False

    def __init__(self, encoding: "Encoding") -> None:
        self._encoding = encoding
        self.fingerprint = fingerprint(encoding.name)

    @classmethod
    def named(cls, encoding: str) -> "TiktokenTokenizer":
        """
        Raises:
            CorpusError: the table of the encoding is neither here nor to be had.
        """
        import tiktoken

        try:
            return cls(tiktoken.get_encoding(encoding))
        except (OSError, ValueError) as error:
            raise CorpusError(
                f"the table of the tokenizer {encoding} cannot be fetched ({error}). Connect once, "
                "copy the table into the folder TIKTOKEN_CACHE_DIR names, or give the embedding "
                "model another `tokenizer`."
            ) from error

    def count(self, texts: Sequence[str]) -> list[int]:
        return [len(tokens) for tokens in self._tokens(texts)]

    def starts(self, texts: Sequence[str]) -> list[np.ndarray]:
        return [
            np.array(self._encoding.decode_with_offsets(tokens)[1], np.int64)
            for tokens in self._tokens(texts)
        ]

    def _tokens(self, texts: Sequence[str]) -> list[list[int]]:
        """Text that looks like a control token is read as text."""
        return [self._encoding.encode_ordinary(text) for text in texts]
