"""A model's tokenizer behind two questions: how many tokens, and where does each start.

Nothing is truncated or padded, and text that looks like a control token (`[SEP]`) is read as text.
Offsets are code points of the original string, whatever normalisation the model asks for. Where an
engine's own parts guarantee that words do not depend on their neighbours, it says so: then counts
of spans are added up, and a text is tokenized once for all chunkers.
"""

import json
import os
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import regex

from chunking_assets.errors import CorpusError

if TYPE_CHECKING:
    from tokenizers import Encoding
    from tokenizers import Tokenizer as Engine

BATCH = 256
"""Texts tokenized in one call: bounds the memory held by encodings."""

PLAIN_SPACE = " \t\n\r"
"""White space to Python and to every tokenizer."""
LEAD = "▁"
"""U+2581, SentencePiece's mark for the space before a word."""

READ_AS_SPACE = regex.compile(r"[\p{Cc}\p{Cf}\p{Z}\u2581\ufffd]")
"""What some model takes for white space or nothing; SentencePiece U+200B, U+FEFF, U+FFFD too."""

_DROP_WHITE_SPACE = frozenset(("BertPreTokenizer", "Whitespace", "WhitespaceSplit"))
_WITHIN_WORDS = frozenset(
    ("BertNormalizer", "Lowercase", "NFC", "NFD", "NFKC", "NFKD", "Nmt", "Precompiled")
)
"""Normalizers that map characters and what combines with them, white space to white space."""
_JOIN_SPACES = {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "}
_SHARES_A_CLUSTER = regex.compile(r"[\p{GCB=Prepend}\p{GCB=Extend}\p{GCB=ZWJ}\p{GCB=SpacingMark}]")
_PLANES = (range(0x20000), range(0xE0000, 0xE1000))
"""Where Unicode has characters that share a grapheme cluster with a space."""


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

    @cached_property
    def splits_at_white_space(self) -> bool:
        """Whether no token holds plain white space, and words between it give the same tokens
        wherever they stand; said only of engines made of parts known to work so.

        One exception: a text that ends in a character of `READ_AS_SPACE` may count one token more
        alone than before further text.
        """
        if not all(added.special for added in self._engine.get_added_tokens_decoder().values()):
            return False  # found before the text is read, with the spaces around it
        words = _parts(self._engine.pre_tokenizer)
        drops_spaces = any(w["type"] in _DROP_WHITE_SPACE for w in words[:1]) and all(
            w["type"] == "Metaspace" and w["prepend_scheme"] != "first" for w in words[1:]
        )
        return (drops_spaces or self._leads_with_spaces) and self._normalises_within_words()

    def _normalises_within_words(self) -> bool:
        """Whether normalising changes no word for what stands beyond plain white space."""
        parts = _parts(self._engine.normalizer)
        if not all(part["type"] in _WITHIN_WORDS or part == _JOIN_SPACES for part in parts):
            return False
        if not self._has_map:
            return True
        # The map is the model's own, and looked up by cluster, of which a space can be a part.
        normalise = self._engine.normalizer.normalize_str
        characters = [c for p in _PLANES for c in _SHARES_A_CLUSTER.findall("".join(map(chr, p)))]
        return normalise("a b\tc\nd\re").split() == [*"abcde"] and all(
            normalise(f"a {c}").startswith("a ") and normalise(f"{c} a").endswith(" a")
            for c in characters
        )

    @cached_property
    def _has_map(self) -> bool:
        """Whether SentencePiece's own map of characters normalises the text."""
        return any(part["type"] == "Precompiled" for part in _parts(self._engine.normalizer))

    @cached_property
    def _leads_with_spaces(self) -> bool:
        """Whether white space becomes the `▁` that leads the next word; at the end of a text there
        is a `▁` without a word. So it is if the engine splits before each `▁`, and its normalizer
        leaves one space of a run and no `▁` of the text."""
        words, normalizers = _parts(self._engine.pre_tokenizer), _parts(self._engine.normalizer)
        lead = {"type": "Metaspace", "replacement": LEAD, "prepend_scheme": "always", "split": True}
        return (
            words == [lead]
            and normalizers[-1:] == [_JOIN_SPACES]
            and not self._has_map  # it reads a wide space with a combining mark as a mere space
            and self._engine.normalizer.normalize_str(f"a\tb\nc\rd{LEAD}e") == "a b c d e"
            and self._engine.token_to_id(LEAD) is not None  # or its token would read otherwise
        )

    def count(self, texts: Sequence[str]) -> list[int]:
        """Tokens of each text, special tokens left out.

        Where white space leads words, plain white space at the end of a text does not count.
        """
        return [
            len(encoding)
            for batch in self._batches(texts)
            for encoding in self._engine.encode_batch_fast(batch, add_special_tokens=False)
        ]

    def starts(self, texts: Sequence[str]) -> list[np.ndarray]:
        """Per text, the code-point offset at which each token starts: int64, non-decreasing.

        Where white space leads words, a word's first token starts at the word, and white space at
        the end of a text is no token.
        """
        found = []
        for batch in self._batches(texts):
            removed = [self._removed_first(text) for text in batch]
            kept = [text[n:] for text, n in zip(batch, removed, strict=True)]
            encodings = self._engine.encode_batch(kept, add_special_tokens=False)
            for text, n, encoding in zip(kept, removed, encodings, strict=True):
                starts = np.array(self._offsets(text, encoding), np.int64)
                found.append(np.maximum.accumulate(starts) + n)
        return found

    def _removed_first(self, text: str) -> int:
        """Characters at the beginning that SentencePiece's map removes: the engine forgets them in
        the offsets of all that follows."""
        n = 0
        if self._has_map:
            while n < len(text) and not self._engine.normalizer.normalize_str(text[n]):
                n += 1
        return n

    def _offsets(self, text: str, encoding: "Encoding") -> list[int]:
        starts = [start for start, _ in encoding.offsets]
        if not self._leads_with_spaces:
            return starts
        if READ_AS_SPACE.match(text[-1:]) and encoding.tokens[-1:] == [LEAD]:
            starts.pop()
        return [start + (text[start] in PLAIN_SPACE) for start in starts]

    def _batches(self, texts: Sequence[str]) -> Iterator[list[str]]:
        for first in range(0, len(texts), BATCH):
            batch = texts[first : first + BATCH]
            yield [t.rstrip(PLAIN_SPACE) for t in batch] if self._leads_with_spaces else [*batch]

    def encode(self, text: str) -> "Encoding":
        """Token ids and offsets of one text, special tokens left out."""
        return self._engine.encode(text, add_special_tokens=False)

    def special_tokens(self) -> tuple[list[int], list[int]]:
        """The ids the model wants before and after every text."""
        encoding = self._engine.encode("a", add_special_tokens=True)
        content = [at for at, special in enumerate(encoding.special_tokens_mask) if not special]
        return encoding.ids[: content[0]], encoding.ids[content[-1] + 1 :]


def _parts(component: object) -> list[dict[str, Any]]:
    """The steps of a normalizer or pre-tokenizer as `tokenizer.json` has them: a step's settings
    are not all readable as attributes."""
    if component is None:
        return []
    state = json.loads(component.__getstate__())  # type: ignore[arg-type]
    parts: list[dict[str, Any]] = state.get("normalizers") or state.get("pretokenizers") or [state]
    return parts
