"""A cross-encoder as an ONNX folder: `model.onnx` (or `onnx/model.onnx`) and `tokenizer.json`.

One pair a run, so that a score depends on its pair alone, whatever is judged beside it.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from chunking_assets.errors import CorpusError

DEFAULT_MAX_TOKENS = 512


class CrossEncoder:
    """Scores question and text read together; the end of too long a text is not read."""

    def __init__(self, folder: Path) -> None:
        """
        Raises:
            CorpusError: the folder holds no such model, or one that does not give one score.
        """
        import onnxruntime
        from tokenizers import Tokenizer

        found = [folder / "model.onnx", folder / "onnx" / "model.onnx"]
        model = next((file for file in found if file.is_file()), None)
        if model is None or not (folder / "tokenizer.json").is_file():
            raise CorpusError(
                f"{folder} has no model.onnx and tokenizer.json. Export a cross-encoder there, or "
                "correct `rerank.path`."
            )
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        options.log_severity_level = 3
        try:
            self._session = onnxruntime.InferenceSession(
                str(model), options, providers=["CPUExecutionProvider"]
            )
            self._tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        except Exception as error:  # neither library's errors have a common base
            raise CorpusError(f"{folder} cannot be loaded ({error}). Export it again.") from error
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(_max_tokens(folder), strategy="only_second")
        self._inputs = {put.name for put in self._session.get_inputs()}
        self._folder = folder

    def __call__(self, question: str, texts: Sequence[str]) -> list[float]:
        return [self._score(question, text) for text in texts]

    def _score(self, question: str, text: str) -> float:
        pair = self._tokenizer.encode(question, text)
        known = {
            "input_ids": pair.ids,
            "attention_mask": pair.attention_mask,
            "token_type_ids": pair.type_ids,
        }
        feed = {name: np.array([ids], np.int64) for name, ids in known.items()}
        scores: Any = self._session.run(None, {name: feed[name] for name in self._inputs})[0]
        if np.size(scores) != 1:
            raise CorpusError(
                f"{self._folder} gives {np.size(scores)} values for a pair, not one score. "
                "It is not a cross-encoder for ranking."
            )
        return float(np.reshape(scores, -1)[0])


def _max_tokens(folder: Path) -> int:
    for name, key in (
        ("tokenizer_config.json", "model_max_length"),
        ("config.json", "max_position_embeddings"),
    ):
        try:
            said = json.loads((folder / name).read_text(encoding="utf-8")).get(key)
        except (OSError, ValueError):
            continue
        if isinstance(said, int) and 8 <= said <= 100_000:
            return said
    return DEFAULT_MAX_TOKENS
