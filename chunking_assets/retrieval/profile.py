"""A retrieval profile: which steps answer a question, with which settings."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

IMPLEMENTATION = 1
"""Raised when the same profile would answer the same question otherwise."""


class RetrievalProfile(BaseModel):
    """One entry of `retrieval_profiles:` in corpus.yaml.

    `search` is `vector` (exact or ANN cosine), `bm25` (full text) or `hybrid` (both, fused).
    `k` is the most chunks a question is answered with; `candidates` how many each search arm
    hands to fusion, and the most that any score looks at; `vector_weight` the share of the vector
    arm in the fused score; `cut` drops a hit scoring below that share of the best hit;
    `token_budget` bounds the context in tokens of the index's own model; `merge` joins chunks that
    touch or overlap in the same document.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    search: Literal["vector", "bm25", "hybrid"]
    k: int = Field(default=5, ge=1, le=1000)
    candidates: int = Field(default=100, ge=20, le=10_000)
    vector_weight: float = Field(default=0.5, ge=0, le=1)
    cut: float | None = Field(default=None, gt=0, lt=1)
    token_budget: int | None = Field(default=None, ge=1)
    merge: bool = True

    @model_validator(mode="after")
    def _enough_candidates(self) -> "RetrievalProfile":
        if self.candidates < self.k:
            raise ValueError(f"candidates ({self.candidates}) must be at least k ({self.k})")
        return self
