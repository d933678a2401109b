"""Any sentence embedding model exported to ONNX: a folder, read as its maker wrote it.

What the folder says (`model.json`, or the configuration files of sentence-transformers) counts
unless corpus.yaml says otherwise. The model is known by the content of its files, so another
export under the same path never passes for the old one, and the folder may move.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Literal

from pydantic import Field, ValidationInfo, field_validator

from chunking_assets.embedding_models.model import (
    Embedder,
    EmbeddingModel,
    ModelIdentity,
    Tokenizer,
)
from chunking_assets.embedding_models.weight_files import content_sha
from chunking_assets.errors import CorpusError
from chunking_assets.keys import digest

MODEL_FILES = ("model.onnx", "onnx/model.onnx")
TOKENIZER, DESCRIPTION = "tokenizer.json", "model.json"
TOKENIZER_VERSION = 1
"""Raised when the same tokenizer.json would cut the same text elsewhere."""
UNLIMITED = 1_000_000
"""Above this, a tokenizer's `model_max_length` means that nobody set it."""


class OnnxFolder(EmbeddingModel):
    """`kind: onnx`: a folder with `model.onnx` (or `onnx/model.onnx`) and `tokenizer.json`.

    `path` is absolute, or relative to the folder of corpus.yaml. `model.json` has the keys `id`,
    `dimensions`, `max_tokens`, `pooling`, `query_prefix` and `passage_prefix`; without it, what
    sentence-transformers wrote is read: `config.json`, `1_Pooling/config.json`,
    `sentence_bert_config.json`, `tokenizer_config.json`, `config_sentence_transformers.json`.
    The other settings override what the folder says; `max_tokens` counts special tokens and
    prefix. A graph with an output `sentence_embedding` pools by itself.
    """

    kind: ClassVar[str] = "onnx"
    path: str
    query_prefix: str | None = None
    passage_prefix: str | None = None
    pooling: Literal["mean", "cls"] | None = None
    max_tokens: int | None = Field(default=None, ge=8)

    @field_validator("path")
    @classmethod
    def _from_the_configuration(cls, path: str, info: ValidationInfo) -> str:
        root: Path = (info.context or {}).get("root", Path())
        return str(root / Path(path).expanduser())

    @property
    def folder(self) -> Path:
        return Path(self.path).absolute()

    def declaration(self) -> dict[str, object]:
        """The files' content and the settings in force; not the path."""
        identity = self._identity()
        return {
            "kind": self.kind,
            "revision": identity.revision,
            "max_tokens": identity.max_tokens,
            "query_prefix": identity.query_prefix,
            "passage_prefix": identity.passage_prefix,
            "pooling": identity.pooling,
        }

    def check_token_vectors(self) -> None:
        if self._identity().pooling != "mean":
            raise CorpusError(
                f"{self.folder}: the model is trained for its first token (pooling: cls), and the "
                "mean of its token vectors means nothing. Choose a model with pooling: mean."
            )

    def tokenizer_fingerprint(self) -> str:
        return digest("onnx-tokenizer", content_sha(self._file(TOKENIZER)), TOKENIZER_VERSION)

    def tokenizer(self, models_folder: Path) -> Tokenizer:
        from chunking_assets.embedding_models.tokenizer import TextTokenizer

        return TextTokenizer.from_file(self._file(TOKENIZER), self.tokenizer_fingerprint())

    def embedder(self, models_folder: Path) -> Embedder:
        """
        Raises:
            CorpusError: a file is missing, or is not what its name says.
        """
        from chunking_assets.embedding_models.onnx_embedder import OnnxEmbedder
        from chunking_assets.embedding_models.tokenizer import TextTokenizer

        tokenizer = TextTokenizer.from_file(self._file(TOKENIZER), self.tokenizer_fingerprint())
        return OnnxEmbedder(self._file(*MODEL_FILES), tokenizer, self._identity())

    def _identity(self) -> ModelIdentity:
        model = self._file(*MODEL_FILES)
        # A large export keeps its weights beside the graph: model.onnx_data, model.onnx.data.
        weights = [content_sha(file) for file in sorted(model.parent.glob("model.onnx*"))]
        weights_sha = weights[0] if len(weights) == 1 else digest(*weights)
        told = self._told()
        return ModelIdentity(
            id=str(told.get("id", "onnx")),
            revision=f"{weights_sha}+{self.tokenizer_fingerprint()}",
            dimensions=int(told["dimensions"]),
            max_tokens=int(told["max_tokens"]),
            query_prefix=str(told["query_prefix"]),
            passage_prefix=str(told["passage_prefix"]),
            pooling=str(told["pooling"]),
            normalised=True,
        )

    def _told(self) -> dict[str, Any]:
        """What the folder says of the model, and over it what corpus.yaml says."""
        said = self.model_dump(exclude={"path"}, exclude_none=True)
        own = self._read(DESCRIPTION, required=False)
        told = {"query_prefix": "", "passage_prefix": "", **(own or self._sentence_transformers())}
        told |= said
        for key in ("dimensions", "max_tokens", "pooling"):
            if told.get(key) is None:
                raise CorpusError(
                    f"{self.folder}: nothing says the model's {key}. Write a {DESCRIPTION} with "
                    "dimensions, max_tokens and pooling (mean or cls) there."
                )
        if told["pooling"] not in ("mean", "cls"):
            raise CorpusError(
                f"{self.folder}: pooling {told['pooling']!r} is not supported. Use a model with "
                "mean or cls, or export it with the pooled output sentence_embedding."
            )
        return told

    def _sentence_transformers(self) -> dict[str, Any]:
        if (self.folder / "2_Dense").exists():
            raise CorpusError(
                f"{self.folder}: the model ends in a dense layer (2_Dense), which its ONNX graph "
                f"does not hold. Export the whole model, and write a {DESCRIPTION} there."
            )
        encoder = self._read("config.json")
        pooling = self._read("1_Pooling/config.json", required=False)
        limits = [
            self._read("sentence_bert_config.json", required=False).get("max_seq_length"),
            self._read("tokenizer_config.json", required=False).get("model_max_length"),
            encoder.get("max_position_embeddings"),
        ]
        prompts = self._read("config_sentence_transformers.json", required=False).get("prompts", {})
        modes = [
            mode
            for mode, flag in (("cls", "cls_token"), ("mean", "mean_tokens"))
            if pooling.get(f"pooling_mode_{flag}")
        ]
        return {
            "dimensions": encoder.get("hidden_size"),
            "max_tokens": min((n for n in limits if n and n < UNLIMITED), default=None),
            "pooling": pooling.get("pooling_mode", "+".join(modes) or None),
            "query_prefix": prompts.get("query", ""),
            "passage_prefix": prompts.get("passage") or prompts.get("document") or "",
        }

    def _file(self, *names: str) -> Path:
        for name in names:
            if (file := self.folder / name).is_file():
                return file
        raise CorpusError(
            f"{self.folder}: {' or '.join(names)} is missing. Copy it there from the model's ONNX "
            "export, or correct the model's path in corpus.yaml."
        )

    def _read(self, name: str, *, required: bool = True) -> Mapping[str, Any]:
        if not required and not (self.folder / name).is_file():
            return {}
        file = self._file(name)
        try:
            content = json.loads(file.read_bytes())
        except ValueError as error:
            raise CorpusError(f"{file} is not JSON ({error}). Export the model again.") from error
        if not isinstance(content, dict):
            raise CorpusError(f"{file} is not a JSON object. Export the model again.")
        return content
