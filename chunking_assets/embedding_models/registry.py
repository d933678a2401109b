"""The embedding models corpus.yaml may name. Adding one is a file, a line here and its test."""

from chunking_assets.embedding_models.e5_small import E5Small
from chunking_assets.embedding_models.minilm import MiniLM
from chunking_assets.embedding_models.model import EmbeddingModel
from chunking_assets.embedding_models.onnx_folder import OnnxFolder

MODELS: dict[str, type[EmbeddingModel]] = {
    model.kind: model for model in (E5Small, MiniLM, OnnxFolder)
}
