"""Reranking: a model reads question and chunk together and says how well they fit.

Off unless a profile asks for it: it costs a model call per question. Three kinds of model: one
behind a `/rerank` endpoint, a cross-encoder as an ONNX folder, a chat model. A reranker that fails
is an error and never a silent return to the old order, which would be scored as if it had worked.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import exp, isfinite
from operator import attrgetter
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator, model_validator

from chunking_assets.errors import CorpusError
from chunking_assets.retrieval.hit import Hit

Scorer = Callable[[str, Sequence[str]], Sequence[float]]
"""How well each text answers a question; higher is better."""


class Rerank(BaseModel):
    """`rerank:` of a profile.

    `kind` is `endpoint` (a server at `url` with a `/rerank` route as Cohere, Jina, vLLM, Infinity
    or TEI have it; the key is `CORPUS_RERANK_API_KEY`), `onnx` (a cross-encoder's folder at
    `path`) or `llm` (a chat model at the endpoint of `OPENAI_BASE_URL`). `model` is its name
    there. Of the candidates the best `top` are judged, and no other is handed on. `timeout` is in
    seconds.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    kind: Literal["endpoint", "onnx", "llm"]
    model: str = ""
    url: str = ""
    path: str = ""
    top: int = Field(default=20, ge=1, le=1000)
    timeout: float = Field(default=30, gt=0)

    @field_validator("path")
    @classmethod
    def _from_the_configurations_folder(cls, path: str, info: ValidationInfo) -> str:
        root: Path = (info.context or {}).get("root", Path())
        return str(root / Path(path).expanduser()) if path else ""

    @model_validator(mode="after")
    def _what_its_kind_needs(self) -> "Rerank":
        needed = {"endpoint": ("url",), "onnx": ("path",), "llm": ("model",)}[self.kind]
        for key in needed:
            if not getattr(self, key):
                raise ValueError(f"a reranker of kind {self.kind} needs {key}")
        return self

    def scorer(self, caches: Path) -> Scorer:
        """The model, opened; `caches` is where replies of a chat model are kept.

        Raises:
            CorpusError: there is no such model.
        """
        if self.kind == "endpoint":
            from chunking_assets.retrieval.rerank_endpoint import RerankEndpoint

            return RerankEndpoint(self.url, self.model, self.timeout)
        if self.kind == "onnx":
            from chunking_assets.retrieval.cross_encoder import CrossEncoder

            return CrossEncoder(Path(self.path))
        from chunking_assets.retrieval.rerank_llm import ChatReranker

        return ChatReranker(self.model, caches, self.timeout)


def rerank(question: str, ranked: Sequence[Hit], top: int, scorer: Scorer) -> list[Hit]:
    """The best `top` hits in the order of the model's scores, as it was given prefix and text.

    Scores outside [0, 1], the logits of many models, are put through the logistic function: the
    order stays, and a `cut` relative to the best one means something.

    Raises:
        CorpusError: the model does not give each text one finite score.
    """
    hits = ranked[:top]
    if not hits:
        return []
    scores = [float(score) for score in scorer(question, [hit.prefix + hit.text for hit in hits])]
    if len(scores) != len(hits) or not all(map(isfinite, scores)):
        raise CorpusError(
            f"the reranker gave {len(scores)} scores for {len(hits)} texts, or one that is no "
            "number. Check its model, or leave `rerank` out of the profile."
        )
    if min(scores) < 0 or max(scores) > 1:
        scores = [_logistic(score) for score in scores]
    judged = [
        replace(hit, score=score, rerank_score=score)
        for hit, score in zip(hits, scores, strict=True)
    ]
    return sorted(judged, key=attrgetter("rank_key"))


def _logistic(score: float) -> float:
    return 1 / (1 + exp(-score)) if score >= 0 else exp(score) / (1 + exp(score))
