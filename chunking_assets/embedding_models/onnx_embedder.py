"""Embeds with onnxruntime so that a vector depends on its text alone.

Each run holds ONE text: dynamically quantised models scale activations over the whole batch, so
batching would make a vector depend on its neighbours (and is slower on a CPU, for it pads).
Parallelism is one single-threaded run per worker, on one copy of the weights. A text longer than
the model reads at once is read in windows, never cut: the vector is their mean, weighted by their
tokens.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from chunking_assets.embedding_models.model import ModelIdentity, Progress, SpanWindow
from chunking_assets.embedding_models.tokenizer import TextTokenizer
from chunking_assets.errors import CorpusError

POOLED_OUTPUT = "sentence_embedding"
TOKEN_RANK = 3
"""Token vectors are (batch, tokens, dimensions)."""
KNOWN_INPUTS = frozenset({"input_ids", "attention_mask", "token_type_ids"})

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class _Window:
    """Token ids as the model reads them, and how many of them are content."""

    ids: list[int]
    content: int


class OnnxEmbedder:
    """An embedding model as an ONNX file, a tokenizer and an identity; safe for threads.

    `workers` texts are embedded at the same time, each on one thread; it changes no bit.
    """

    def __init__(
        self,
        model: Path,
        tokenizer: TextTokenizer,
        identity: ModelIdentity,
        workers: int | None = None,
    ) -> None:
        self._tokenizer, self._identity, self._model = tokenizer, identity, model
        self._workers = workers or min(2, os.cpu_count() or 1)
        self._session = _session(model)
        self._inputs = [i.name for i in self._session.get_inputs()]
        if unknown := set(self._inputs) - KNOWN_INPUTS:
            raise CorpusError(
                f"{model} asks for the inputs {sorted(unknown)}, which a text does not have. "
                f"Export it with no others than {sorted(KNOWN_INPUTS)}."
            )
        outputs = [(o.name, len(o.shape)) for o in self._session.get_outputs()]
        self._pooled = any(name == POOLED_OUTPUT for name, _ in outputs)
        self._output = POOLED_OUTPUT if self._pooled else outputs[0][0]
        self._token_output = next(
            (name for name, rank in outputs if rank == TOKEN_RANK),
            None if self._pooled else self._output,
        )
        self._before, self._after = tokenizer.special_tokens()
        self._room = identity.max_tokens - len(self._before) - len(self._after)
        for prefix in (identity.query_prefix, identity.passage_prefix):
            if tokenizer.count([prefix])[0] >= self._room:
                raise CorpusError(
                    f"{identity.id}: the prefix {prefix!r} leaves no room for text within "
                    f"{identity.max_tokens} tokens. Shorten it or raise max_tokens."
                )

    @property
    def identity(self) -> ModelIdentity:
        return self._identity

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Tokens the model reads for each passage, prefix and special tokens included.

        A text read in n windows counts the prefix and the special tokens n times, so that
        n is `ceil(tokens / identity.max_tokens)`.
        """
        prefix = self._identity.passage_prefix
        return [sum(len(w.ids) for w in self._windows(prefix, text)) for text in texts]

    def count_windows(self, texts: Sequence[str]) -> list[int]:
        """How many pieces each passage is read in; 1 is a text within the model's limit."""
        return [len(self._windows(self._identity.passage_prefix, text)) for text in texts]

    def embed_passages(self, texts: Sequence[str], progress: Progress | None = None) -> np.ndarray:
        """float32 (len(texts), dimensions), unit length, finite, in the order of `texts`.

        Raises:
            CorpusError: the model gives a vector that is not finite, or zero.
        """
        return self._embed(self._identity.passage_prefix, texts, progress)

    def embed_queries(self, texts: Sequence[str]) -> np.ndarray:
        """As `embed_passages`, for the question side."""
        return self._embed(self._identity.query_prefix, texts, None)

    @property
    def tokenizer(self) -> TextTokenizer:
        return self._tokenizer

    def embed_spans(self, windows: Sequence[SpanWindow]) -> list[np.ndarray]:
        """The mean of the token vectors of each span, of each window read as one passage.

        A token belongs to every span it reaches into; special tokens and the prefix to none.

        Raises:
            CorpusError: the model gives no vector per token, its mean is not its pooling, or a
                vector is not finite, or zero.
            ValueError: a window is longer than the model reads at once.
        """
        if self._token_output is None or self._identity.pooling != "mean":
            raise CorpusError(
                f"{self._identity.id} ({self._model}) does not give token vectors whose mean is "
                "its passage vector, which late chunking pools. Export it with the output "
                "last_hidden_state and pooling: mean, or choose another model or chunker."
            )
        return list(self._each(self._span_vectors, windows))

    def _embed(self, prefix: str, texts: Sequence[str], progress: Progress | None) -> np.ndarray:
        vectors = np.empty((len(texts), self._identity.dimensions), np.float32)
        for position, vector in enumerate(
            self._each(partial(self._vector, prefix), range(len(texts)), texts)
        ):
            vectors[position] = vector
            if progress is not None:
                progress(position + 1, len(texts))
        return vectors

    def _each(self, read: Callable[..., Result], *inputs: Iterable[Any]) -> Iterator[Result]:
        """What `read` gives for the inputs, in order, by as many workers as there are."""
        pool = ThreadPoolExecutor(self._workers, thread_name_prefix="embed")
        try:
            yield from pool.map(read, *inputs)
        finally:
            pool.shutdown(cancel_futures=True)

    def _vector(self, prefix: str, position: int, text: str) -> np.ndarray:
        windows = self._windows(prefix, text)
        if len(windows) == 1:
            vector = self._read(windows[0].ids)
        else:
            parts = [_unit(self._read(window.ids)) * window.content for window in windows]
            vector = np.sum(parts, axis=0)
        return self._usable(vector, position, text)

    def _span_vectors(self, window: SpanWindow) -> np.ndarray:
        text, spans = window
        prefix = self._identity.passage_prefix
        encoding = self._tokenizer.encode(prefix + text)
        if len(encoding.ids) > self._room:
            raise ValueError(f"a window of {len(encoding.ids)} tokens is beyond {self._room}")
        assert self._token_output is not None
        states = self._run([*self._before, *encoding.ids, *self._after], self._token_output)
        content = states[len(self._before) :][: len(encoding.ids)]
        starts, ends = np.array(encoding.offsets, np.int64).reshape(-1, 2).T - len(prefix)
        vectors = np.empty((len(spans), self._identity.dimensions), np.float32)
        for position, (start, end) in enumerate(spans):
            own = (starts < end) & (ends > start)
            read = content[own] if own.any() else states
            vectors[position] = self._usable(
                read.mean(axis=0, dtype=np.float64), position, text[start:end]
            )
        return vectors

    def _usable(self, vector: np.ndarray, position: int, text: str) -> np.ndarray:
        """The vector at unit length, float32."""
        unit = _unit(vector).astype(np.float32)
        if unit.shape != (self._identity.dimensions,):
            raise CorpusError(
                f"{self._model} gives vectors of shape {unit.shape}, "
                f"not {self._identity.dimensions} dimensions. Correct the model's settings."
            )
        if not (np.isfinite(unit).all() and unit.any()):
            raise CorpusError(
                f"{self._identity.id} gives no usable vector (not finite, or zero) for text "
                f"{position} ({text[:60]!r}…). Remove that text or choose another model."
            )
        return unit

    def _read(self, ids: list[int]) -> np.ndarray:
        """The model's vector for one window, float64, not normalised."""
        state = self._run(ids, self._output)
        if self._pooled:
            return np.asarray(state, np.float64)
        if self._identity.pooling == "cls":
            return np.asarray(state[0], np.float64)
        return np.asarray(state.mean(axis=0, dtype=np.float64))

    def _run(self, ids: list[int], output: str) -> np.ndarray:
        """What the model puts out for one window."""
        tokens = np.array([ids], np.int64)
        feed = {"input_ids": tokens}
        if "attention_mask" in self._inputs:
            feed["attention_mask"] = np.ones_like(tokens)
        if "token_type_ids" in self._inputs:
            feed["token_type_ids"] = np.zeros_like(tokens)
        return np.asarray(self._session.run([output], feed)[0][0])

    def _windows(self, prefix: str, text: str) -> list[_Window]:
        """The text as one window, or as the fewest equal ones, each led by the prefix."""
        encoding = self._tokenizer.encode(prefix + text)
        ids = encoding.ids
        lead = 0
        if len(ids) > self._room:
            lead = sum(end <= len(prefix) for _, end in encoding.offsets) if prefix else 0
        content = ids[lead:]
        count = max(1, -(-len(content) // (self._room - lead)))
        size = max(1, -(-len(content) // count))
        return [
            self._window(ids[:lead], content[first : first + size])
            for first in range(0, max(1, len(content)), size)
        ]

    def _window(self, lead: list[int], content: list[int]) -> _Window:
        return _Window([*self._before, *lead, *content, *self._after], max(1, len(content)))


def _unit(vector: np.ndarray) -> np.ndarray:
    with np.errstate(all="ignore"):  # the caller refuses what comes of a zero or infinite vector
        return np.asarray(vector / np.linalg.norm(vector))


def _session(model: Path) -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    # The memory arena's lock costs concurrent runs a tenth of their speed, and it never shrinks;
    # memory plans are kept per input length, of which there are hundreds.
    options.enable_cpu_mem_arena = False
    options.enable_mem_pattern = False
    options.log_severity_level = 3
    try:
        return onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime's errors have no common base
        raise CorpusError(
            f"{model} cannot be loaded as an ONNX model ({error}). Export it again."
        ) from error
