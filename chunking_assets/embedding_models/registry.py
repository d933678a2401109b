"""The embedding models by kind. A new one is one file and one line here.

A package of anyone's adds one by the entry point group `chunking_assets.embedding_models`: its name
is the kind, what it points at a subclass of `EmbeddingModel`.
"""

from chunking_assets.embedding_models.e5_small import E5Small
from chunking_assets.embedding_models.minilm import MiniLM
from chunking_assets.embedding_models.model import EmbeddingModel
from chunking_assets.embedding_models.onnx_folder import OnnxFolder
from chunking_assets.embedding_models.openai_model import OpenAIModel
from chunking_assets.plug_ins import Kinds

ENTRY_POINTS = "chunking_assets.embedding_models"

MODELS: dict[str, type[EmbeddingModel]] = {
    model.kind: model for model in (E5Small, MiniLM, OnnxFolder, OpenAIModel)
}
KINDS = Kinds(
    EmbeddingModel,
    MODELS,
    ENTRY_POINTS,
    required=("tokenizer_fingerprint", "tokenizer", "embedder"),
)
model_class = KINDS.find
