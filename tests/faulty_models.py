"""Models that fail at one document, in a module that other processes can import."""

import os
import signal
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from small_corpus import HashModel, WordTokenizer

AT = "Document 20"


class MortalTokenizer(WordTokenizer):
    """Ends its process at that document, as the kernel does when memory runs out."""

    def __init__(self, deadly: str) -> None:
        self.deadly = Path(deadly)

    def starts(self, texts: Sequence[str]) -> list[np.ndarray]:
        if any(AT in text for text in texts) and self.deadly.exists():
            os.kill(os.getpid(), signal.SIGKILL)
        return super().starts(texts)


class MortalModel(HashModel):
    """Deadly as long as that file is there."""

    deadly: str

    def tokenizer(self, models_folder: Path) -> MortalTokenizer:
        return MortalTokenizer(self.deadly)


class FailingTokenizer(WordTokenizer):
    def starts(self, texts: Sequence[str]) -> list[np.ndarray]:
        if any(AT in text for text in texts):
            raise ValueError("no tokens for twenty")
        return super().starts(texts)


class FailingModel(HashModel):
    def tokenizer(self, models_folder: Path) -> FailingTokenizer:
        return FailingTokenizer()
