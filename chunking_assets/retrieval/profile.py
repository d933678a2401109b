"""A retrieval profile: which steps answer a question, with which settings."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

IMPLEMENTATION = 1
"""Raised when the same profile would answer the same question otherwise."""

ADDED_STEPS = frozenset(("dedupe", "parents"))
"""Steps that profiles declared before did not know."""


class RetrievalProfile(BaseModel):
    """One entry of `retrieval_profiles:` in corpus.yaml.

    `search` is `vector` (exact or ANN cosine), `bm25` (full text) or `hybrid` (both, fused).
    `k` is the most chunks a question is answered with; `candidates` how many each search arm
    hands to fusion, and the most that any score looks at; `vector_weight` the share of the vector
    arm in the fused score; `cut` drops a hit scoring below that share of the best hit;
    `token_budget` bounds the context in tokens of the index's own model; `merge` joins chunks that
    touch or overlap in the same document. `dedupe` drops a hit of which better hits cover at least
    that share; `parents` puts a parent in place of its children if at least that share of them
    were chosen.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    search: Literal["vector", "bm25", "hybrid"]
    k: int = Field(default=5, ge=1, le=1000)
    candidates: int = Field(default=100, ge=20, le=10_000)
    vector_weight: float = Field(default=0.5, ge=0, le=1)
    cut: float | None = Field(default=None, gt=0, lt=1)
    token_budget: int | None = Field(default=None, ge=1)
    merge: bool = True
    dedupe: float | None = Field(default=None, gt=0, le=1)
    parents: float | None = Field(default=None, gt=0, le=1)

    @model_validator(mode="after")
    def _enough_candidates(self) -> "RetrievalProfile":
        if self.candidates < self.k:
            raise ValueError(f"candidates ({self.candidates}) must be at least k ({self.k})")
        return self

    def declaration(self) -> dict[str, Any]:
        """What makes it this profile: without added steps that are off, so that one declared
        before they came is still the same."""
        off = {step for step in ADDED_STEPS if getattr(self, step) is None}
        return self.model_dump(mode="json", exclude=off)
