"""A retrieval profile: which steps answer a question, with which settings."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from chunking_assets.retrieval.bm25 import Bm25Settings
from chunking_assets.retrieval.expand import Expand
from chunking_assets.retrieval.filters import Filters
from chunking_assets.retrieval.rerank import Rerank

IMPLEMENTATION = 2
"""Raised when the same profile would answer the same question otherwise."""

ADDED_STEPS = {
    *("dedupe", "parents", "fusion", "rank_constant", "bm25"),
    *("filters", "smooth", "rerank", "mmr", "expand", "other_languages"),
    *("trim", "translate"),
}
"""Steps that profiles declared before did not know."""


class RetrievalProfile(BaseModel):
    """One entry of `retrieval_profiles:` in corpus.yaml; the steps in the order they are taken.

    `search` is `vector` (exact or ANN cosine), `bm25` (full text) or `hybrid` (both, fused), over
    what `filters` leave. `candidates` is how many each search arm hands to fusion, and the most
    that any score looks at. `fusion` is `scores` (their weighted sum) or `ranks` (reciprocal rank,
    with `rank_constant`); `vector_weight` is the share of the vector arm in either. `smooth` adds
    that share of the scores of the two chunks beside a hit. `rerank` has a model judge the best.
    `dedupe` drops a hit of which better hits cover at least that share; `cut` one scoring below
    that share of the best; `mmr` weighs relevance (1) against novelty (0). `k` is the most chunks
    a question is answered with, `token_budget` bounds the context in tokens of the index's own
    model. `expand` adds the neighbours of what was chosen; `other_languages` that many of the best
    hits of each language the question is not in, over and above k, with `translate` by the nearest
    words of that language; `parents` puts a parent in place
    of its children if at least that share of them were chosen; `trim` always, trimmed to what lies
    between children that score at least that share of the best hit, so that `k` counts parents;
    `merge` joins chunks that touch or overlap in the same document.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    search: Literal["vector", "bm25", "hybrid"]
    k: int = Field(default=5, ge=1, le=1000)
    candidates: int = Field(default=100, ge=20, le=10_000)
    fusion: Literal["scores", "ranks"] = "scores"
    vector_weight: float = Field(default=0.5, ge=0, le=1)
    rank_constant: int = Field(default=60, ge=0, le=10_000)
    bm25: Bm25Settings | None = None
    filters: Filters | None = None
    smooth: float | None = Field(default=None, gt=0, le=1)
    rerank: Rerank | None = None
    dedupe: float | None = Field(default=None, gt=0, le=1)
    cut: float | None = Field(default=None, gt=0, lt=1)
    mmr: float | None = Field(default=None, ge=0, le=1)
    token_budget: int | None = Field(default=None, ge=1)
    expand: Expand | None = None
    other_languages: int | None = Field(default=None, ge=1, le=20)
    translate: bool = False
    parents: float | None = Field(default=None, gt=0, le=1)
    trim: float | None = Field(default=None, gt=0, lt=1)
    merge: bool = True

    @model_validator(mode="after")
    def _enough_candidates(self) -> "RetrievalProfile":
        if self.candidates < self.k:
            raise ValueError(f"candidates ({self.candidates}) must be at least k ({self.k})")
        if self.other_languages is not None and self.search == "bm25":
            raise ValueError("other_languages needs vectors: words are of one language")
        if self.translate and (self.other_languages is None or self.search != "hybrid"):
            raise ValueError("translate needs other_languages, and `search: hybrid`")
        if self.translate and (self.rerank or self.fusion == "ranks"):
            raise ValueError(
                "translate orders other languages by their fused scores: leave out rerank and "
                "`fusion: ranks`"
            )
        if self.trim is not None and (self.expand or self.parents is not None):
            raise ValueError("trim hands on parents: leave out expand and parents")
        return self

    def declaration(self) -> dict[str, Any]:
        """What makes it this profile: without added steps that are off, so that one declared
        before they came is still the same."""
        off = {step for step in ADDED_STEPS if getattr(self, step) == _default(step)}
        return self.model_dump(mode="json", exclude=off)


def _default(step: str) -> Any:
    return RetrievalProfile.model_fields[step].default
